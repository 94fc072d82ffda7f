//! A server without a port, with a user, a bot and whatever else an operation can name, and a look at what it
//! stores.

use std::num::NonZeroU32;

use hub_core::{
    accounts::{ClientInfo, NewUser},
    bots::NewBind,
    id::{MessageId, TraceId},
    store::StoreConfig,
};
use hub_server::{AppSettings, app, rate_limit::RateLimitSettings, settings::Values};
use poem::{
    EndpointExt,
    endpoint::BoxEndpoint,
    test::{TestClient, TestRequestBuilder},
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

use super::operation::Operation;
use crate::support::world::World;

pub const PASSWORD: &str = "correct horse battery staple";
const MANY: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
pub const ORIGIN: &str = "http://localhost:9800";

/// What is asked, and what there is.
pub struct Stage {
    pub client: TestClient<BoxEndpoint<'static, poem::Response>>,
    pub hub: World,
    pub ada: String,
    pub bob: String,
    pub bind: String,
    ids: Vec<(&'static str, String)>,
    /// Looks behind the hub's back.
    witness: tokio::sync::Mutex<SqliteConnection>,
    _folder: tempfile::TempDir,
}

pub type Request<'r> = TestRequestBuilder<'r, BoxEndpoint<'static, poem::Response>>;

/// An answer to a request.
pub struct Answer {
    pub status: u16,
    pub json: Value,
}

impl Stage {
    pub async fn new() -> Self {
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
    pub fn ids(&self, operation: &Operation) -> Vec<(&str, &str)> {
        let id = if operation.path.contains("/sessions/") { "session" } else { "bot" };
        let known = |name: &str| self.ids.iter().find(|(known, _)| *known == name).map(|(_, id)| id.as_str());
        let mut ids: Vec<(&str, &str)> = self.ids.iter().map(|(name, id)| (*name, id.as_str())).collect();
        ids.push(("id", known(id).unwrap()));
        ids
    }

    pub fn path(&self, operation: &Operation) -> String {
        operation.with(&self.ids(operation))
    }

    pub async fn ask(
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
    pub async fn ask_as(&self, operation: &Operation, path: &str, cookie: &str) -> Answer {
        let (cookie, body) = (format!("session={cookie}"), (operation.entry().body)(self));
        self.ask(operation, path, |request| {
            let request = request.header("Cookie", cookie);
            if body.is_null() { request } else { request.body_json(&body) }
        })
        .await
    }

    /// A call by ada with any bytes for a body.
    pub async fn ask_with(
        &self,
        operation: &Operation,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let cookie = format!("session={}", self.ada);
        let (content_type, body) = (content_type.to_owned(), body.into());
        self.ask(operation, &self.path(operation), |request| {
            request.header("Cookie", cookie).header("Content-Type", content_type).body(body)
        })
        .await
    }

    /// Everything that is stored, by table.
    pub async fn stored(&self) -> Vec<(String, Option<String>)> {
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
