//! A hub with a network that follows a script, for the tests of this folder.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use tokio::sync::Barrier;

use super::{BotStatus, NewSend, credentials};
use crate::{
    Hub,
    access::{Actor, ChannelActor, Role, UserActor},
    config::HubConfig,
    id::{BotId, ChannelId, UserId},
    network::{
        Connection, Credentials, LoginProgress, LoginPrompt, LoginState, LoginStep, Network, NetworkError,
        TextFormat, WindowRules,
    },
    random::Random,
    secret::{KeyMark, Secret},
    store::{
        StoreConfig,
        bots::{NewBot, NewLogin},
    },
    time::{ManualClock, Timestamp},
};

/// A network whose logins follow a script. A window lasts an hour and allows three sends; `|` cuts a text.
#[derive(Debug, Clone, Default)]
pub(super) struct Scripted(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
pub(super) struct Script {
    /// Responses of the next steps; `Waiting` when empty.
    pub steps: VecDeque<Result<LoginStep, NetworkError>>,
    /// Tokens sent at each start of a login.
    pub starts: Vec<Vec<String>>,
    /// Code and number of each step.
    pub polls: Vec<(String, Option<String>)>,
    /// Barrier at which steps wait for each other.
    pub together: Option<Arc<Barrier>>,
    /// Error of the next start.
    pub no_code: Option<NetworkError>,
}

#[async_trait]
impl Network for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn begin_login(&self, known: &[Secret]) -> Result<LoginPrompt, NetworkError> {
        let mut script = self.script();
        if let Some(error) = script.no_code.take() {
            return Err(error);
        }
        script.starts.push(known.iter().map(|token| token.expose().to_owned()).collect());
        let code = format!("code-{}", script.starts.len());
        Ok(LoginPrompt {
            qr_text: Secret::new(format!("https://scan/{code}")),
            state: LoginState(Secret::new(code)),
            lives: Duration::from_secs(120),
        })
    }

    async fn login_step(
        &self,
        state: &LoginState,
        verify_code: Option<&str>,
        _: Duration,
    ) -> Result<LoginProgress, NetworkError> {
        let together = self.script().together.clone();
        if let Some(barrier) = together {
            barrier.wait().await;
        }
        let mut script = self.script();
        script.polls.push((state.0.expose().to_owned(), verify_code.map(str::to_owned)));
        let step = script.steps.pop_front().unwrap_or(Ok(LoginStep::Waiting))?;
        Ok(LoginProgress { step, state: state.clone() })
    }

    fn connect(&self, _: &Credentials) -> Arc<dyn Connection> {
        unreachable!("nothing here polls or sends")
    }

    fn window_rules(&self) -> WindowRules {
        WindowRules { age: Some(Duration::from_secs(3600)), sends: Some(3), burst: None, gap: Duration::ZERO }
    }

    fn split_text(&self, text: &str, _: TextFormat) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }
}

impl Scripted {
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    /// Adds responses of next steps.
    pub fn then<const N: usize>(&self, steps: [LoginStep; N]) {
        self.script().steps.extend(steps.map(Ok));
    }
}

/// Credentials of a login to a person's account.
pub(super) fn login(person: &str, token: &str) -> Credentials {
    Credentials {
        token: token.into(),
        account_id: format!("{person}@bot"),
        owner_user_id: person.to_owned(),
        base_url: "https://api.example".to_owned(),
    }
}

/// A text to the owner of the account.
pub(super) fn say(text: &str) -> NewSend {
    NewSend { content: text.to_owned(), ..NewSend::default() }
}

/// A text to a person.
pub(super) fn to(person: &str, text: &str) -> NewSend {
    NewSend { to_user_id: Some(person.to_owned()), ..say(text) }
}

/// A hub on a fresh file, its clock and its network.
pub(super) struct World {
    pub hub: Hub,
    pub clock: ManualClock,
    pub network: Scripted,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl World {
    pub async fn open() -> Self {
        Self::with(HubConfig { max_bots_per_user: 6, max_outbox_per_peer: 100, ..HubConfig::default() }).await
    }

    pub async fn with(config: HubConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.db");
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let network = Scripted::default();
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(path.clone()))
            .secret_key([7; 32])
            .clock(clock.clone())
            .random(Random::seeded(11))
            .network(network.clone())
            .config(config)
            .open()
            .await
            .unwrap();
        Self { hub, clock, network, path, _folder: folder }
    }

    /// Runs statements directly on the database, to stand in for other parts of the hub.
    pub async fn sql(&self, sql: String) {
        let mut conn = SqliteConnectOptions::new().filename(&self.path).connect().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        let mut conn = SqliteConnectOptions::new().filename(&self.path).connect().await.unwrap();
        sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap()
    }

    pub async fn user(&self, name: &str) -> Actor {
        let user_id: UserId = self.hub.context().ids.next();
        self.sql(format!(
            "INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
             VALUES ('{user_id}', '{name}', '', '', 'member', 'active', 0, 0)"
        ))
        .await;
        Actor::User(UserActor::embedded(user_id, Role::Member))
    }

    /// The client of a new channel of a bot.
    pub async fn channel_actor(&self, owner: &Actor, bot_id: BotId) -> Actor {
        let channel_id: ChannelId = self.hub.context().ids.next();
        self.sql(format!(
            "INSERT INTO channels (id, bot_id, name, enabled, key_hash, key_last4, filter, websocket, webhook, ai,
                on_plugin_error, lane_hold_s, last_seq, created_at, updated_at)
             VALUES ('{channel_id}', '{bot_id}', 'c', 1, '{channel_id}', '', '{{}}', '{{}}', '{{}}', '{{}}',
                'retry', 60, 0, 0, 0)"
        ))
        .await;
        let owner_id = owner.user().unwrap().user_id;
        Actor::Channel(ChannelActor { channel_id, bot_id, owner_id, key: KeyMark::default(), ilink: None })
    }

    /// A bot whose account belongs to `person`.
    pub async fn bot(&self, owner: &Actor, person: &str) -> BotId {
        let ctx = self.hub.context();
        let id = ctx.ids.next();
        let account = login(person, &format!("token-of-{person}"));
        let new = NewBot {
            id,
            owner_id: owner.user().unwrap().user_id,
            name: person.to_owned(),
            network: "scripted".to_owned(),
            login: NewLogin {
                credentials: credentials::seal(&ctx.sealer, id, &account),
                wx_id: account.account_id,
                owner_user_id: account.owner_user_id,
            },
        };
        let now = ctx.store.now();
        ctx.store.write(move |tx| Box::pin(async move { tx.bots().insert(&new, now).await })).await.unwrap();
        id
    }

    /// Writes the contact as the poller does when a message of a person is received.
    pub async fn person_writes(&self, bot_id: BotId, person: &str) {
        let now = self.clock.now().as_millis();
        self.sql(format!(
            "INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count,
                last_message_at, context_token, window_opened_at, window_sends)
             VALUES ('{bot_id}', '{person}', 'Name of {person}', '', '', 1, {now}, 'sealed', {now}, 0)
             ON CONFLICT (bot_id, user_id) DO UPDATE SET window_opened_at = {now}, window_sends = 0,
                window_closed = NULL, context_token = 'sealed'"
        ))
        .await;
    }

    /// Sets a status as the poller that holds the lease does.
    pub async fn set_status(&self, id: BotId, status: BotStatus, reason: Option<&'static str>) {
        let now = self.clock.now();
        let fence = self.fence(id).await;
        let done = self
            .hub
            .context()
            .store
            .write(move |tx| {
                Box::pin(async move { tx.bots().set_status(id, fence, status, reason, now).await })
            })
            .await
            .unwrap();
        assert!(done.is_some(), "{status:?} is allowed");
    }

    pub async fn fence(&self, id: BotId) -> i64 {
        let mut conn = SqliteConnectOptions::new().filename(&self.path).connect().await.unwrap();
        let fence = sqlx::query_scalar("SELECT lease_fence FROM bots WHERE id = $1").bind(id.to_string());
        fence.fetch_one(&mut conn).await.unwrap()
    }
}
