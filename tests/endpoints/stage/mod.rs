//! A server without a port, with a user, a bot and whatever else an operation can name, and a look at what it
//! stores.

mod calls;

use std::num::NonZeroU32;

use futures_util::StreamExt;
use hub_core::{
    access::{Actor, Role},
    accounts::{ClientInfo, NewApiKey, NewUser},
    admin::UserPatch,
    apps::{AppPatch, Install, NewApp},
    bots::NewBind,
    channels::NewChannel,
    config::HubConfig,
    demo::{DemoReceiver, Playground},
    id::{MessageId, PasskeyId, TraceId},
    plugins::{NewInstallation, Submission},
    store::StoreConfig,
    traces::{BulkOptions, ReplaySelection},
};
use hub_server::{AppSettings, app, rate_limit::RateLimitSettings, settings::Values};
use poem::{
    Endpoint, EndpointExt,
    endpoint::BoxEndpoint,
    test::{TestClient, TestRequestBuilder},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::support::world::World;

pub const PASSWORD: &str = "correct horse battery staple";
const MANY: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
pub const ORIGIN: &str = "http://localhost:9800";

/// A hub with objects of every kind, and a client of its API.
pub struct Stage {
    pub client: TestClient<BoxEndpoint<'static, poem::Response>>,
    settings: AppSettings,
    pub hub: World,
    pub ada: String,
    /// Another session of ada's, to be ended.
    pub spare: String,
    pub credentials: Credentials,
    pub bob: String,
    pub bind: String,
    pub plugin: String,
    /// An app that is on no bot yet.
    pub spare_app: String,
    /// Another bot of ada's, with nothing.
    pub other_bot: String,
    /// Bob.
    pub other_user: String,
    /// A login that a client of the channel started.
    channel_bind: String,
    /// Key of the channel.
    key: String,
    ids: Vec<(&'static str, String)>,
    /// Looks behind the hub's back.
    witness: tokio::sync::Mutex<SqliteConnection>,
    _folder: tempfile::TempDir,
}

/// Credentials next to the sessions of ada, who owns everything, and of bob, who owns nothing.
pub struct Credentials {
    /// A session of an administrator who owns nothing.
    pub admin: String,
    pub ada_key: String,
    pub bob_key: String,
    pub channel_key: String,
    /// Of the app on the bot.
    pub app_token: String,
    /// Its webhook secret.
    pub app_secret: String,
    pub expired_session: String,
    pub expired_key: String,
}

pub type Request<'r> = TestRequestBuilder<'r, BoxEndpoint<'static, poem::Response>>;

/// The source of a plugin.
pub fn script(name: &str) -> String {
    format!("// ==UserScript==\n// @name {name}\n// ==/UserScript==\nfunction onRequest() {{}}\n")
}

/// An app that could be listed.
fn new_app(name: &str) -> NewApp {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    NewApp {
        name: name.to_owned(),
        slug: None,
        rest: AppPatch {
            description: Some("Tells something.".to_owned()),
            webhook_url: Some("http://receiver.test/app".to_owned()),
            // Where nothing is called: it is on this machine.
            redirect_uris: words(&["http://localhost:3000/cb"]),
            events: words(&["message"]),
            scopes: words(&[
                "message:read",
                "message:write",
                "contact:read",
                "bot:read",
                "tools:write",
                "config:read",
            ]),
            ..AppPatch::default()
        },
    }
}

/// A request hook and a message to try it with.
pub fn mock_message() -> Value {
    let sender = json!({ "user_id": "ann", "user_name": "Ann" });
    json!({ "script": script("tagger"), "message": { "content": "hi", "sender": sender } })
}

/// A response hook and an answer to try it with.
pub fn mock_response() -> Value {
    json!({ "script": script("tagger"), "response": { "status": 200, "body": "" } })
}

/// An answer to a request.
pub struct Answer {
    pub status: u16,
    pub json: Value,
}

impl Answer {
    /// Reads a response: null if the body is not JSON. Of a stream, which has no end, it reads the first event.
    pub async fn of(mut response: poem::Response) -> Self {
        let status = response.status().as_u16();
        if response.content_type() == Some("text/event-stream") {
            let mut pieces = Box::pin(response.take_body().into_bytes_stream());
            let piece = pieces.next().await.unwrap().unwrap();
            let text = std::str::from_utf8(&piece).unwrap();
            let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            return Self { status, json: serde_json::from_str(data).unwrap() };
        }
        let text = response.take_body().into_bytes().await.unwrap();
        Self { status, json: serde_json::from_slice(&text).unwrap_or(Value::Null) }
    }
}

impl Stage {
    pub async fn new() -> Self {
        Self::configured(|_| ()).await
    }

    /// With other settings of the hub.
    pub async fn configured(change: impl FnOnce(&mut HubConfig)) -> Self {
        // The limits have tests of their own; here nothing may hide behind one.
        let limits = RateLimitSettings {
            auth_per_ip: MANY,
            auth_per_account: MANY,
            bad_credentials: MANY,
            sends: MANY,
            debug: MANY,
            default: MANY,
            ..RateLimitSettings::default()
        };
        Self::with(change, limits).await
    }

    pub async fn with(change: impl FnOnce(&mut HubConfig), rate_limits: RateLimitSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.db");
        let store = StoreConfig::Sqlite(file.clone());
        let hub = World::builder().store(store).config(change).open().await;
        let bot = hub.bind(None).await;
        let channel = hub.channel(&bot, World::webhook("/hook")).await;
        let other_bot = hub.bind(Some("wx-other")).await.id.to_string();
        let bind = hub.hub.bots().start_bind(&hub.owner, NewBind::default()).await.unwrap().bind_id;
        let own_key =
            hub.hub.channels().regenerate_key(&hub.owner, bot.id, channel, None, None).await.unwrap().api_key;
        let client = hub.hub.channels().authenticate_key(own_key.expose()).await.unwrap();
        let channel_bind = hub.hub.bots().start_bind(&client, NewBind::default()).await.unwrap().bind_id;
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
        let replay = hub.hub.traces();
        let replay = replay
            .replay_all(&hub.owner, ReplaySelection::Ids(vec![trace]), BulkOptions::default(), None)
            .await;
        let replay = replay.unwrap().id.unwrap();
        let plugins = hub.hub.plugins();
        let new = Submission { script: script("tagger"), ..Submission::default() };
        let plugin = plugins.submit(&hub.owner, new, None).await.unwrap().id;
        let new = NewInstallation { plugin_id: plugin, version: None, position: None };
        plugins.install(&hub.owner, bot.id, channel, new).await.unwrap();
        let weather = hub.hub.apps().create(&hub.owner, new_app("weather"), None).await.unwrap();
        let spare_app = hub.hub.apps().create(&hub.owner, new_app("news"), None).await.unwrap().app.id;
        let new = hub_core::apps::NewInstallation {
            app_id: weather.app.id,
            scopes: None,
            handle: None,
            config: None,
        };
        let installed = hub.hub.apps().install(&hub.owner, bot.id, new, None).await.unwrap();
        let Install::Done(installed) = installed else { panic!("{installed:?}") };
        let app_token = installed.app_token;
        let passkey: PasskeyId = hub.hub.context().ids.next();
        let owner = hub.owner.principal();
        let sql = format!(
            "INSERT INTO passkeys (id, user_id, credential_id, credential, name, created_at)
                VALUES ('{passkey}', '{owner}', 'e30', '{{}}', 'Phone', 0);
             INSERT INTO external_accounts (provider, subject, user_id, username, avatar_url, created_at)
                VALUES ('github', '1', '{owner}', 'ada', '', 0)"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut witness).await.unwrap();
        let client = ClientInfo::default();
        let accounts = hub.hub.accounts();
        let ada = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let spare = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let new =
            NewUser { username: "bob".into(), password: PASSWORD.into(), display_name: None, email: None };
        let bob = accounts.register(new, None, &client).await.unwrap();
        // A session of ada's that is not the one she asks with.
        let other = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let other = accounts.authenticate_session(other.token.expose()).await.unwrap();
        let session = other.user().unwrap().session_id.unwrap();
        let named = |name: &str| NewUser {
            username: name.to_owned(),
            password: PASSWORD.into(),
            display_name: None,
            email: None,
        };
        let dan = accounts.register(named("dan"), None, &client).await.unwrap();
        let dans = accounts.authenticate_session(dan.token.expose()).await.unwrap();
        let rita = accounts.register(named("rita"), None, &client).await.unwrap();
        let admin = UserPatch { role: Some(Role::Admin), ..UserPatch::default() };
        hub.hub.admin().update_user(&Actor::Operator, rita.me.user.id, admin).await.unwrap();
        let key = async |of: &Actor| {
            let new = NewApiKey { name: "program".to_owned(), expires_in_days: None };
            accounts.create_api_key(of, new, None).await.unwrap()
        };
        let bobs = accounts.authenticate_session(bob.token.expose()).await.unwrap();
        let (ada_key, bob_key, expired_key) =
            (key(&hub.owner).await, key(&bobs).await, key(&hub.owner).await);
        let expired = accounts.login("ada", "correct horse battery".into(), &client).await.unwrap();
        let gone = accounts.authenticate_session(expired.token.expose()).await.unwrap();
        let sql = format!(
            // A use of the other keys is noted already: it must not count as a change.
            "UPDATE sessions SET expires_at = 1 WHERE id = '{}'; UPDATE user_keys SET expires_at = 1 WHERE id = '{}';
             UPDATE user_keys SET last_used_at = 4102444800000",
            gone.user().unwrap().session_id.unwrap(),
            expired_key.key.id
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut witness).await.unwrap();
        let made = NewChannel::named("program");
        let channel_key = hub.hub.channels().create(&hub.owner, bot.id, made, None).await.unwrap().api_key;
        let credentials = Credentials {
            admin: rita.token.expose().to_owned(),
            ada_key: ada_key.secret.expose().to_owned(),
            bob_key: bob_key.secret.expose().to_owned(),
            channel_key: channel_key.expose().to_owned(),
            app_token: app_token.expose().to_owned(),
            app_secret: weather.webhook_secret.expose().to_owned(),
            expired_session: expired.token.expose().to_owned(),
            expired_key: expired_key.secret.expose().to_owned(),
        };
        let key = key(&hub.owner).await.key.id;
        let receiver = DemoReceiver::new(hub.hub.context().clock.clone());
        let playground = Some(Playground { simulator: hub.sim.clone(), receiver });
        let values = Values { rate_limits, playground, ..Values::new(ORIGIN.parse().unwrap()) };
        let settings = AppSettings::from(values);
        let endpoint = app(hub.hub.clone(), settings.clone()).boxed();
        let ids = vec![
            ("channelId", channel.to_string()),
            ("clientId", "sock_01K9ZC3V5T8QK4X7M2N6P0RSWA".to_owned()),
            ("bind", bind.to_string()),
            ("traceId", trace.to_string()),
            ("messageId", message.to_string()),
            ("userId", "ann".to_owned()),
            ("bot", bot.id.to_string()),
            ("session", session.to_string()),
            ("plugin", plugin.to_string()),
            ("pluginId", plugin.to_string()),
            ("app", weather.app.id.to_string()),
            ("appId", weather.app.id.to_string()),
            ("key", key.to_string()),
            ("user", dan.me.user.id.to_string()),
            ("sessionId", dans.user().unwrap().session_id.unwrap().to_string()),
            ("passkey", passkey.to_string()),
            ("replay", replay.to_string()),
            ("provider", "github".to_owned()),
        ];
        Self {
            client: TestClient::new(endpoint),
            settings,
            hub,
            ada: ada.token.expose().to_owned(),
            spare: spare.token.expose().to_owned(),
            credentials,
            bob: bob.token.expose().to_owned(),
            bind: bind.to_string(),
            plugin: plugin.to_string(),
            spare_app: spare_app.to_string(),
            other_bot,
            other_user: bob.me.user.id.to_string(),
            channel_bind: channel_bind.to_string(),
            key: own_key.expose().to_owned(),
            ids,
            witness: tokio::sync::Mutex::new(witness),
            _folder: folder,
        }
    }

    /// The application once more, for a listener.
    pub fn endpoint(&self) -> impl Endpoint<Output = poem::Response> + 'static {
        app(self.hub.hub.clone(), self.settings.clone())
    }

    /// A code of this kind with a right checksum, which no one was given.
    pub fn code(&self, kind: &str) -> String {
        let (_, body) = self.ada.split_once('_').unwrap();
        format!("{kind}_{body}")
    }

    /// Writes to the database behind the hub's back.
    pub async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *self.witness.lock().await).await.unwrap();
    }

    /// Every table gets another name.
    pub async fn hide_tables(&self) {
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        let tables: Vec<String> =
            sqlx::query_scalar(tables).fetch_all(&mut *self.witness.lock().await).await.unwrap();
        for table in tables {
            self.run(&format!("ALTER TABLE {table} RENAME TO hidden_{table}")).await;
        }
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
        // What an app asks is noted, refused or not.
        for (table, sql) in statements.into_iter().filter(|(table, _)| table != "app_calls") {
            let rows: Option<String> =
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut *witness).await.unwrap();
            stored.push((table, rows));
        }
        assert!(stored.iter().any(|(table, rows)| table == "users" && rows.is_some()));
        stored
    }
}
