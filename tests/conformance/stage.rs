//! A hub with one bot and one channel, the network it talks to, and what passed between them.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use hub_core::{
    access::Actor,
    bots::{BotStatus, Message, MessageFilter, Sent},
    channels::sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
    id::{ChannelId, MessageId},
    network::{
        ilink::IlinkConfig,
        sim::{Action, Endpoint, Fault, Outbound, SimConfig},
    },
    page::PageRequest,
    store::{Store, StoreConfig},
    testing::{Receiver, START, TestBot, TestHub, TestHubBuilder},
    time::{Clock, ManualClock},
};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::ilink::stage::{Stage, Tap};

pub const SECOND: Duration = Duration::from_secs(1);
/// Longer than the gap between two sends to one person.
const STEP: Duration = Duration::from_millis(400);

pub struct World {
    pub stage: Stage,
    pub hub: TestHub,
    pub receiver: Arc<Receiver>,
    pub ada: Actor,
    pub bot: TestBot,
    pub channel: ChannelId,
}

/// The network on a loopback port, on a manual clock; and a builder for hubs on it.
pub async fn network(sim: SimConfig) -> (Stage, TestHubBuilder) {
    let clock = ManualClock::new(START);
    let stage = Stage::start(sim, IlinkConfig::default(), clock.clone().into()).await;
    let url = format!("http://{}", stage.address).parse().unwrap();
    let hub = TestHub::builder().clock(clock).simulator(stage.sim.clone()).network_url(url);
    (stage, hub)
}

impl World {
    pub async fn new() -> Self {
        Self::with(SimConfig::default(), |hub| hub).await
    }

    pub async fn with(sim: SimConfig, change: impl FnOnce(TestHubBuilder) -> TestHubBuilder) -> Self {
        let holds = !sim.hold.is_zero();
        let (stage, builder) = network(sim).await;
        let receiver = Receiver::new();
        let hub = change(builder.receiver("receiver.test", &receiver)).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let channel = hub.webhook_channel(&ada, bot.id, "all", hook()).await;
        let world = Self { stage, hub, receiver, ada, bot, channel };
        if holds {
            world.polling().await;
        }
        world
    }

    /// With a person who has written: the bot may answer.
    pub async fn greeted() -> Self {
        let world = Self::new().await;
        world.hear("hello").await;
        world.polling().await;
        world
    }

    /// Waits until the network holds a poll of a bot.
    pub async fn polling(&self) {
        self.until("a poll is held", async || {
            self.stage.sim.accounts().iter().any(|account| !account.expired && account.pollers > 0)
        })
        .await;
    }

    /// Waits until the network's answers make the bot online.
    pub async fn online(&self) {
        self.hub.bot_status(&self.ada, self.bot.id, BotStatus::Online).await;
    }

    /// The person writes, and the channel's receiver gets it.
    pub async fn hear(&self, text: &str) {
        self.hub.say(&self.bot, text);
        self.heard(text).await;
    }

    /// Waits for the receiver.
    pub async fn heard(&self, text: &str) {
        self.until(&format!("the receiver gets {text}"), async || {
            self.receiver.texts().iter().any(|seen| seen == text)
        })
        .await;
    }

    pub async fn until(&self, what: &str, mut look: impl AsyncFnMut() -> bool) {
        self.hub.until(what, async || look().await.then_some(())).await;
    }

    pub async fn advance_until(&self, what: &str, step: Duration, mut look: impl AsyncFnMut() -> bool) {
        self.hub.advance_until(what, step, async || look().await.then_some(())).await;
    }

    /// Moves the clock by so much in small steps, and checks that nothing happened.
    pub async fn nothing_for(&self, span: Duration, mut happened: impl FnMut() -> bool) {
        let end = self.hub.clock().now() + span;
        self.advance_until("the time passes", span / 20, async || {
            let left = end.since(self.hub.clock().now());
            assert!(!happened(), "{left:?} before the end of {span:?}");
            left.is_zero()
        })
        .await;
    }

    /// Waits until someone waits for so many milliseconds, and answers until when.
    pub async fn pause(&self, millis: RangeInclusive<u64>) -> Duration {
        self.hub
            .until(&format!("a pause of {millis:?} ms"), async || {
                let now = self.hub.clock().now();
                let left = |at: hub_core::time::Timestamp| at.since(now);
                let mut waits = self.hub.clock().waits().into_iter().map(left);
                waits.find(|left| millis.contains(&u64::try_from(left.as_millis()).unwrap()))
            })
            .await
    }

    /// The bot writes to its person.
    pub async fn send(&self, text: &str) -> Sent {
        self.hub.send(&self.ada, &self.bot, text).await.unwrap()
    }

    /// Moves the clock until the network has accepted `count` sends of the bot.
    pub async fn sent(&self, count: usize) -> Vec<Outbound> {
        self.advance_until(&format!("{count} sends"), STEP, async || self.shown().len() >= count).await;
        self.shown()
    }

    /// Sends that the network has accepted so far.
    pub fn shown(&self) -> Vec<Outbound> {
        self.stage.sim.outbound(Some(&self.bot.wx_id), 0)
    }

    /// Moves the clock until an endpoint has received `count` requests.
    pub async fn asked(&self, endpoint: &str, count: usize, step: Duration) {
        let what = format!("request {count} for {endpoint}");
        self.advance_until(&what, step, async || self.count(endpoint) >= count).await;
    }

    pub fn count(&self, endpoint: &str) -> usize {
        self.tap().requests(endpoint).len()
    }

    pub fn tap(&self) -> &Tap {
        &self.stage.tap
    }

    pub fn fault(&self, fault: Fault) {
        self.stage.sim.add_fault(fault).unwrap();
    }

    pub async fn messages(&self) -> Vec<Message> {
        let filter = MessageFilter::default();
        let bots = self.hub.hub().bots();
        let request = PageRequest::parse("messages", Some(100), None).unwrap();
        let page = bots.messages(&self.ada, self.bot.id, &filter, &request).await.unwrap();
        let mut messages = page.items;
        messages.reverse();
        messages
    }

    pub async fn status_of(&self, id: MessageId) -> String {
        let messages = self.messages().await;
        messages.into_iter().find(|message| message.id == id).unwrap().status.to_string()
    }

    /// Moves the clock until a message is as far.
    pub async fn becomes(&self, sent: &Sent, status: &str) {
        let what = format!("the message is {status}");
        self.advance_until(&what, STEP, async || self.status_of(sent.message_id).await == status).await;
    }

    /// A connection behind the hub's back, after the commit log was flushed as another process does it.
    pub async fn database(&self) -> SqliteConnection {
        let store = Store::open_existing(self.hub.store(), Clock::system()).await.unwrap();
        store.read().await.unwrap();
        store.close().await;
        let StoreConfig::Sqlite(path) = self.hub.store() else { panic!("a test on SQLite") };
        SqliteConnectOptions::new().filename(path).connect().await.unwrap()
    }

    pub async fn number(&self, sql: &str) -> i64 {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_one(&mut self.database().await).await.unwrap()
    }

    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        sql.fetch_all(&mut self.database().await).await.unwrap()
    }

    pub async fn cursor(&self) -> String {
        self.texts("SELECT cursor FROM bots").await.remove(0)
    }
}

/// A webhook to the receiver.
pub fn hook() -> WebhookUpdate {
    WebhookUpdate {
        url: "http://receiver.test/hook".to_owned(),
        auth: AuthUpdate {
            method: AuthMethod::Bearer,
            secret: Change::Set("a-secret-of-some-length".into()),
            ..AuthUpdate::default()
        },
        ..WebhookUpdate::default()
    }
}

/// A refusal of an endpoint.
pub fn refusal(endpoint: Endpoint, code: i64, message: &str) -> Fault {
    let errmsg = Some(message.to_owned());
    let action = if code == -14 {
        Action::Error { ret: None, errcode: Some(code), errmsg, effect: false }
    } else {
        Action::Error { ret: Some(code), errcode: None, errmsg, effect: false }
    };
    Fault::on(endpoint, action)
}

/// The ids under which messages were sent, in order.
pub fn client_ids(tap: &Tap) -> Vec<String> {
    let id = |body: &serde_json::Value| body["msg"]["client_id"].as_str().unwrap().to_owned();
    tap.bodies("sendmessage").iter().map(id).collect()
}
