//! Every operation of the OpenAPI document against everybody who may not use it and everything that is wrong:
//! the refusal is the documented one, in the envelope, and changes nothing.
//!
//! `TABLE` says how each operation is called rightly; an operation without an entry fails the first test.

use std::num::NonZeroU32;

use crate::support::world::World;
use hub_core::{
    accounts::{ClientInfo, NewUser},
    bots::NewBind,
    id::{MessageId, TraceId},
    store::StoreConfig,
};
use hub_server::{AppSettings, app, openapi, rate_limit::RateLimitSettings, settings::Values};
use poem::{
    EndpointExt,
    endpoint::BoxEndpoint,
    http::Method,
    test::{TestClient, TestRequestBuilder},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// How one operation is called rightly.
struct Entry {
    operation: &'static str,
    /// A right body; null when it takes none.
    body: fn(&Stage) -> Value,
    /// What a right call is answered with here.
    answers: u16,
}

const fn entry(operation: &'static str, body: fn(&Stage) -> Value, answers: u16) -> Entry {
    Entry { operation, body, answers }
}

fn none(_: &Stage) -> Value {
    Value::Null
}

/// In the order of calling: what deletes stands last.
const TABLE: &[Entry] = &[
    entry("getHealth", none, 200),
    entry("getReadiness", none, 200),
    entry("register", |_| json!({ "username": "carol", "password": "another long password" }), 200),
    entry("login", |_| json!({ "username": "bob", "password": PASSWORD }), 200),
    entry("getMe", none, 200),
    entry("listSessions", none, 200),
    entry("listBots", none, 200),
    entry("getBot", none, 200),
    entry("getBotStatus", none, 200),
    entry("startBind", |_| json!({ "network": "sim" }), 200),
    entry("confirmBind", |stage| json!({ "bind_id": stage.bind, "wait_ms": 0 }), 200),
    entry("reconnectBot", none, 200),
    entry("sendMessage", |_| json!({ "content": "hello" }), 409),
    entry("listMessages", none, 200),
    entry("listContacts", none, 200),
    entry("setContactRemark", |_| json!({ "remark": "a friend" }), 200),
    entry("listTraces", none, 200),
    entry("getTrace", none, 200),
    entry("replayTrace", |_| json!({}), 200),
    entry("listChannels", none, 200),
    entry("createChannel", |_| json!({ "name": "second" }), 200),
    entry("getChannel", none, 200),
    entry("updateChannel", |_| json!({ "name": "renamed" }), 200),
    entry("setChannelFilter", |_| json!({ "keywords": ["order"] }), 200),
    entry("setWebSocketSink", |_| json!({ "enabled": true }), 200),
    entry("setWebhookSink", |_| json!({ "enabled": true, "url": "http://receiver.test/hook" }), 200),
    entry("setAiSink", |_| json!({ "enabled": false }), 200),
    entry("regenerateChannelKey", none, 200),
    entry("deleteChannel", none, 200),
    entry("deleteBot", none, 200),
    entry("deleteSession", none, 200),
    entry("logout", none, 200),
];

const PASSWORD: &str = "correct horse battery staple";
const MANY: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
const ORIGIN: &str = "http://localhost:9800";

/// One operation as the document describes it.
#[derive(Debug, Clone)]
struct Operation {
    id: String,
    method: Method,
    path: String,
    described: Value,
}

fn operations() -> Vec<Operation> {
    let document = openapi::document(ORIGIN);
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            operations.push(Operation {
                id: described["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                described: described.clone(),
            });
        }
    }
    operations
}

impl Operation {
    fn is_open(&self) -> bool {
        self.described["security"].as_array().is_none_or(Vec::is_empty)
    }

    fn takes_body(&self) -> bool {
        self.described["requestBody"].is_object()
    }

    fn body_is_required(&self) -> bool {
        self.described["requestBody"]["required"] == json!(true)
    }

    fn entry(&self) -> &'static Entry {
        let found = TABLE.iter().find(|entry| entry.operation == self.id);
        found.unwrap_or_else(|| panic!("{} has no entry in the table of endpoints", self.id))
    }

    /// The path with these ids in the places of its parameters.
    fn with(&self, ids: &[(&str, &str)]) -> String {
        let filled =
            ids.iter().fold(self.path.clone(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id));
        assert!(!filled.contains('{'), "{filled}: who fills this in?");
        filled
    }

    fn parameters(&self) -> Vec<&str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect()
    }
}

/// What is asked, and what there is.
struct Stage {
    client: TestClient<BoxEndpoint<'static, poem::Response>>,
    hub: World,
    ada: String,
    bob: String,
    bind: String,
    ids: Vec<(&'static str, String)>,
    /// Looks behind the hub's back.
    witness: tokio::sync::Mutex<SqliteConnection>,
    _folder: tempfile::TempDir,
}

type Request<'r> = TestRequestBuilder<'r, BoxEndpoint<'static, poem::Response>>;

/// An answer to a request.
struct Answer {
    status: u16,
    json: Value,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.db");
        let hub = World::builder().store(StoreConfig::Sqlite(file.clone())).open().await;
        let bot = hub.bind(None).await;
        let channel = hub.channel(&bot, World::webhook("/hook")).await;
        let bind = hub.hub.bots().start_bind(&hub.owner, NewBind::default()).await.unwrap().bind_id;
        let mut witness = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
        let (message, trace): (MessageId, TraceId) =
            (hub.hub.context().ids.next(), hub.hub.context().ids.next());
        let sql = format!(
            "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
                group_id, kind, content, items, dedupe_key, status, sent_at, created_at)
             VALUES ('{message}', '{0}', 'inbound', 'ann', 'ann', 'bot', '', 'ann', '', 'text', 'hi', '[]', '1',
                'received', 0, 0);
             INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
                window_sends) VALUES ('{0}', 'ann', '', '', '', 1, 0, 0);
             INSERT INTO traces (id, message_id, bot_id, channel_id, status, summary, attempts, started_at,
                duration_ms, steps) VALUES ('{trace}', '{message}', '{0}', '{channel}', 'error', '', 1, 0, 0, '[]')",
            bot.id
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut witness).await.unwrap();
        let client = ClientInfo::default();
        let accounts = hub.hub.accounts();
        let ada = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let new =
            NewUser { username: "bob".into(), password: PASSWORD.into(), display_name: None, email: None };
        let bob = accounts.register(new, None, &client).await.unwrap();
        // A session of ada's that is not the one she asks with.
        let other = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let other = accounts.authenticate_session(other.token.expose()).await.unwrap();
        let session = other.user().unwrap().session_id.unwrap();
        let values = Values {
            // The limits have tests of their own; here nothing may hide behind one.
            rate_limits: RateLimitSettings {
                auth_per_ip: MANY,
                auth_per_account: MANY,
                default: MANY,
                ..RateLimitSettings::default()
            },
            ..Values::new(ORIGIN.parse().unwrap())
        };
        let endpoint = app(hub.hub.clone(), AppSettings::from(values)).boxed();
        let ids = vec![
            ("channelId", channel.to_string()),
            ("traceId", trace.to_string()),
            ("userId", "ann".to_owned()),
            ("bot", bot.id.to_string()),
            ("session", session.to_string()),
        ];
        Self {
            client: TestClient::new(endpoint),
            hub,
            ada: ada.token.expose().to_owned(),
            bob: bob.token.expose().to_owned(),
            bind: bind.to_string(),
            ids,
            witness: tokio::sync::Mutex::new(witness),
            _folder: folder,
        }
    }

    /// The ids of an operation's parameters; `id` is a session or a bot.
    fn ids(&self, operation: &Operation) -> Vec<(&str, &str)> {
        let id = if operation.path.contains("/sessions/") { "session" } else { "bot" };
        let known = |name: &str| self.ids.iter().find(|(known, _)| *known == name).map(|(_, id)| id.as_str());
        let mut ids: Vec<(&str, &str)> = self.ids.iter().map(|(name, id)| (*name, id.as_str())).collect();
        ids.push(("id", known(id).unwrap()));
        ids
    }

    fn path(&self, operation: &Operation) -> String {
        operation.with(&self.ids(operation))
    }

    async fn ask(
        &self,
        operation: &Operation,
        path: &str,
        build: impl for<'r> FnOnce(Request<'r>) -> Request<'r>,
    ) -> Answer {
        let request = self.client.request(operation.method.clone(), path).header("Origin", ORIGIN);
        let mut response = build(request).send().await.0;
        let status = response.status().as_u16();
        let text = response.take_body().into_bytes().await.unwrap();
        Answer { status, json: serde_json::from_slice(&text).unwrap_or(Value::Null) }
    }

    /// A right call, but for the credential.
    async fn ask_as(&self, operation: &Operation, path: &str, cookie: &str) -> Answer {
        let (cookie, body) = (format!("session={cookie}"), (operation.entry().body)(self));
        self.ask(operation, path, |request| {
            let request = request.header("Cookie", cookie);
            if body.is_null() { request } else { request.body_json(&body) }
        })
        .await
    }

    /// A call by ada with any bytes for a body.
    async fn ask_with(&self, operation: &Operation, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
        let cookie = format!("session={}", self.ada);
        let (content_type, body) = (content_type.to_owned(), body.into());
        self.ask(operation, &self.path(operation), |request| {
            request.header("Cookie", cookie).header("Content-Type", content_type).body(body)
        })
        .await
    }

    /// Everything that is stored, by table.
    async fn stored(&self) -> Vec<(String, Option<String>)> {
        let mut witness = self.witness.lock().await;
        // The statement that writes out a table, made by the database from its columns.
        let statements =
            "SELECT m.name, 'SELECT group_concat(' || group_concat('quote(\"' || c.name || '\")', '||') ||
                ', char(10)) FROM \"' || m.name || '\"'
             FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' GROUP BY m.name";
        let statements: Vec<(String, String)> =
            sqlx::query_as(statements).fetch_all(&mut *witness).await.unwrap();
        let mut stored = Vec::new();
        for (table, sql) in statements {
            let rows: Option<String> =
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut *witness).await.unwrap();
            stored.push((table, rows));
        }
        assert!(stored.iter().any(|(table, rows)| table == "users" && rows.is_some()));
        stored
    }
}

/// A refusal has the documented status and the envelope.
#[track_caller]
fn refused(operation: &Operation, answer: &Answer, status: u16, code: &str, why: &str) {
    let Answer { status: got, json } = answer;
    let id = &operation.id;
    assert_eq!((*got, json["error"]["code"].as_str()), (status, Some(code)), "{id}, {why}: {json}");
    assert!(operation.described["responses"][got.to_string()].is_object(), "{id} does not document {got}");
    assert_eq!(json["success"], false, "{id}, {why}: {json}");
    let error = &json["error"];
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{id}, {why}: {json}");
    assert!(error["request_id"].is_string(), "{id}, {why}: {json}");
    assert!(json.get("data").is_none(), "{id}, {why}: {json}");
}

#[test]
fn every_operation_has_an_entry_and_every_entry_an_operation() {
    let operations = operations();
    for operation in &operations {
        operation.entry();
    }
    for entry in TABLE {
        let known = operations.iter().any(|operation| operation.id == entry.operation);
        assert!(known, "{} is not in the OpenAPI document", entry.operation);
    }
}

#[tokio::test]
async fn nobody_without_a_right_credential_gets_in() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations().into_iter().filter(|operation| !operation.is_open()) {
        let path = stage.path(&operation);
        let body = (operation.entry().body)(&stage);
        let send = async |name: &str, value: String| {
            stage
                .ask(&operation, &path, |request| {
                    let request = if value.is_empty() { request } else { request.header(name, value) };
                    if body.is_null() { request } else { request.body_json(&body) }
                })
                .await
        };
        refused(&operation, &send("X-Nothing", String::new()).await, 401, "UNAUTHORIZED", "no credential");
        for (name, value) in [
            ("Authorization", "Bearer hubu_unknown".to_owned()),
            ("Authorization", "Bearer hubc_unknown".to_owned()),
            ("Authorization", format!("Bearer {}", stage.ada)),
            ("X-API-Key", "hubu_unknown".to_owned()),
        ] {
            refused(&operation, &send(name, value).await, 401, "INVALID_TOKEN", "a bad credential");
        }
        let cookie = "session=hubs_unknown".to_owned();
        refused(&operation, &send("Cookie", cookie).await, 401, "UNAUTHORIZED", "an unknown session");
        // A bad credential is not made good by a cookie beside it.
        let both = stage
            .ask(&operation, &path, |request| {
                request.header("Cookie", format!("session={}", stage.ada)).header("X-API-Key", "hubu_unknown")
            })
            .await;
        refused(&operation, &both, 401, "INVALID_TOKEN", "a bad credential beside a good cookie");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let changing = |operation: &Operation| operation.method != Method::GET && !operation.is_open();
    for operation in operations().into_iter().filter(changing) {
        for origin in ["https://evil.example", "null", "http://localhost:9800.evil.example"] {
            let body = (operation.entry().body)(&stage);
            let mut request = stage
                .client
                .request(operation.method.clone(), stage.path(&operation))
                .header("Cookie", format!("session={}", stage.ada))
                .header("Origin", origin);
            if !body.is_null() {
                request = request.body_json(&body);
            }
            let mut response = request.send().await.0;
            let status = response.status().as_u16();
            let json = response.take_body().into_json().await.unwrap();
            refused(&operation, &Answer { status, json }, 403, "FORBIDDEN", origin);
        }
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn what_is_not_yours_or_not_there_or_no_id_is_not_found() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations() {
        let parameters = operation.parameters();
        if parameters.is_empty() {
            continue;
        }
        let others = stage.ask_as(&operation, &stage.path(&operation), &stage.bob).await;
        refused(&operation, &others, 404, "NOT_FOUND", "somebody else's");
        for parameter in parameters {
            let ids = stage.ids(&operation);
            let right = ids.iter().find(|(name, _)| *name == parameter).unwrap().1;
            let (kind, _) = right.split_once('_').unwrap_or((right, ""));
            // No such thing, another kind of thing, no id at all, what breaks out of a path or a statement.
            for wrong in [
                format!("{kind}_01BX5ZZKBKACTAV9WEVGEMMVRZ"),
                "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ".to_owned(),
                right.to_lowercase() + "0",
                "0".to_owned(),
                "%27%20OR%201=1--".to_owned(),
                "%00".to_owned(),
            ] {
                let mut ids = ids.clone();
                for (name, id) in &mut ids {
                    if *name == parameter {
                        *id = &wrong;
                    }
                }
                let absent = stage.ask_as(&operation, &operation.with(&ids), &stage.ada).await;
                refused(&operation, &absent, 404, "NOT_FOUND", &format!("{parameter} is {wrong}"));
                // Whether it exists does not show: the same words for what is somebody else's.
                assert_eq!(
                    (&absent.json["error"]["details"], absent.status),
                    (&others.json["error"]["details"], others.status),
                    "{}",
                    operation.id
                );
            }
        }
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn bad_bodies_are_refused_with_the_field_that_is_wrong() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let json_type = "application/json";
    for operation in operations().into_iter().filter(Operation::takes_body) {
        for text in ["{", "[]", "\"text\"", "{\"a\":}", "\u{feff}{}", "nul"] {
            let answer = stage.ask_with(&operation, json_type, text).await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", text);
        }
        let answer = stage
            .ask_with(&operation, json_type, [b"{\"x\":\"".as_slice(), &[0xff, 0xfe], b"\"}"].concat())
            .await;
        refused(&operation, &answer, 400, "INVALID_PARAMS", "no UTF-8");
        if operation.body_is_required() {
            let answer = stage.ask_with(&operation, json_type, "").await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", "no body");
        }
        let mut unknown = (operation.entry().body)(&stage);
        unknown["no_such_field"] = json!(1);
        let answer = stage.ask_with(&operation, json_type, unknown.to_string()).await;
        refused(&operation, &answer, 400, "INVALID_PARAMS", "an unknown field");
        let told = answer.json["error"].to_string();
        assert!(told.contains("no_such_field"), "{} does not name the field: {told}", operation.id);
        let body = (operation.entry().body)(&stage).to_string();
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let answer = stage.ask_with(&operation, wrong, body.clone()).await;
            refused(&operation, &answer, 415, "UNSUPPORTED_MEDIA_TYPE", wrong);
        }
        let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(1024 * 1024));
        let answer = stage.ask_with(&operation, json_type, huge).await;
        refused(&operation, &answer, 413, "PAYLOAD_TOO_LARGE", "more than 1 MiB");
    }
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn bad_pages_are_refused() {
    let stage = Stage::new().await;
    let lists = operations()
        .into_iter()
        .filter(|operation| operation.described["parameters"].to_string().contains("\"cursor\""));
    let mut count = 0;
    for operation in lists {
        count += 1;
        for query in ["limit=0", "limit=201", "limit=-1", "limit=x", "cursor=x", "cursor=AAAA", "cursor=%00"]
        {
            let path = format!("{}?{query}", stage.path(&operation));
            let answer = stage.ask_as(&operation, &path, &stage.ada).await;
            refused(&operation, &answer, 400, "INVALID_PARAMS", query);
        }
        let path = format!("{}?limit=1", stage.path(&operation));
        let page = stage.ask_as(&operation, &path, &stage.ada).await;
        assert_eq!(page.status, 200, "{}: {}", operation.id, page.json);
        assert!(page.json["data"]["items"].is_array(), "{}: {}", operation.id, page.json);
        assert!(page.json["data"].get("next_cursor").is_some(), "{}: {}", operation.id, page.json);
    }
    assert!(count >= 5, "lists were found");
}

#[tokio::test]
async fn right_calls_are_answered_as_documented() {
    let stage = Stage::new().await;
    let operations = operations();
    for entry in TABLE {
        let operation = operations.iter().find(|operation| operation.id == entry.operation).unwrap();
        // Whoever signs in anew ends the session they had; here it is needed again.
        let cookie = if operation.is_open() { "" } else { &stage.ada };
        let answer = stage.ask_as(operation, &stage.path(operation), cookie).await;
        assert_eq!(answer.status, entry.answers, "{}: {}", operation.id, answer.json);
        assert!(operation.described["responses"][entry.answers.to_string()].is_object(), "{}", operation.id);
        if operation.path.starts_with("/api/") {
            assert_eq!(
                answer.json["success"],
                json!(entry.answers < 300),
                "{}: {}",
                operation.id,
                answer.json
            );
        }
    }
    // The last of them ended the session.
    let me = operations.iter().find(|operation| operation.id == "getMe").unwrap();
    refused(me, &stage.ask_as(me, "/api/auth/me", &stage.ada).await, 401, "UNAUTHORIZED", "after logout");
    stage.hub.stop().await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused_in_the_envelope() {
    let stage = Stage::new().await;
    for path in ["/api/nothing", "/api/bots/x/y/z/w", "/api", "/bot/v1/nothing", "/nothing"] {
        let mut response = stage.client.get(path).send().await.0;
        let json: Value = response.take_body().into_json().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &json["error"]["code"]),
            (404, &json!("NOT_FOUND")),
            "{path}: {json}"
        );
    }
    for operation in operations() {
        let mut response = stage.client.request(Method::PATCH, stage.path(&operation)).send().await.0;
        let json: Value = response.take_body().into_json().await.unwrap();
        let id = &operation.id;
        assert_eq!(
            (response.status().as_u16(), &json["error"]["code"]),
            (405, &json!("METHOD_NOT_ALLOWED")),
            "{id}: {json}"
        );
        let allow = response.headers()["allow"].to_str().unwrap();
        assert!(allow.contains(operation.method.as_str()), "{id}: {allow}");
    }
}
