//! A hub for tests of programs that embed one: a store in a temporary folder, a clock that is moved by hand, a
//! simulated chat network and receivers of webhooks, all inside the process.
//!
//! ```
//! use std::sync::Arc;
//! use hub_core::{channels::sinks::WebhookUpdate, testing::{Receiver, TestHub}};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let receiver = Receiver::new();
//! let hub = TestHub::builder().receiver("shop.test", &receiver).start().await;
//! let ada = hub.register("ada").await;
//! let bot = hub.bind(&ada).await;
//! let webhook = WebhookUpdate {
//!     url: "http://shop.test/orders".to_owned(),
//!     auto_reply: true,
//!     ..WebhookUpdate::default()
//! };
//! hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
//! receiver.answer(200, r#"{"reply":"on its way"}"#);
//! hub.say(&bot, "where is order 42?");
//! assert_eq!(hub.sent(&bot, 1).await[0].text, "on its way");
//! assert_eq!(receiver.bodies()[0]["content"], "where is order 42?");
//! # });
//! ```
//!
//! Everything here panics when something does not work: a test that cannot go on has failed. Waits are for
//! conditions and end after half a minute of real time; nothing waits for time to pass.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Hub,
    access::Actor,
    accounts::NewUser,
    bots::{BindStatus, BotHealth, BotStatus, NewBind, NewSend, Sent},
    channels::NewChannel,
    error::Result,
    id::{BotId, ChannelId},
    model::{
        session::ClientInfo,
        sinks::WebhookUpdate,
        trace::{Trace, TraceStatus},
    },
    network::sim::{Account, Outbound, Simulator},
    page::PageRequest,
    store::StoreConfig,
    time::{Clock, ManualClock},
    traces::TraceQuery,
};

mod authenticator;
mod builder;
pub mod conformance;
pub mod ledger;
mod receiver;

pub use authenticator::Authenticator;
pub use builder::{START, TestHubBuilder};
pub use receiver::Receiver;

/// Interval of the checks of a condition, and their maximum number.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLLS: u32 = 3_000;

/// A hub, its network and its clock. It runs on a thread of its own, so that it can be killed.
#[derive(Debug)]
pub struct TestHub {
    settings: TestHubBuilder,
    sim: Simulator,
    running: Option<(Runtime, Hub)>,
    runs: u64,
    _folder: Option<TempDir>,
}

/// A bound account.
#[derive(Debug, Clone)]
pub struct TestBot {
    /// The bot.
    pub id: BotId,
    /// Its id on the network.
    pub wx_id: String,
    /// The person it belongs to, who has not written yet.
    pub person: String,
}

impl TestHub {
    /// A hub to be configured.
    pub fn builder() -> TestHubBuilder {
        TestHubBuilder::default()
    }

    /// Starts a hub with every default.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// The hub under test. After [`restart`](Self::restart) it is another one; in between there is none.
    pub fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("the hub was stopped").1
    }

    /// The chat network.
    pub fn sim(&self) -> &Simulator {
        &self.sim
    }

    /// Returns the manual clock.
    pub fn clock(&self) -> &ManualClock {
        self.settings.clock.as_manual().expect("the test chose the machine's clock")
    }

    /// Returns the store's settings, for a second hub or for direct access to the store.
    pub fn store(&self) -> &StoreConfig {
        self.settings.store.as_ref().unwrap()
    }

    /// A hub to be configured on the same store, network and clock. It needs a seed of its own.
    pub fn another(&self) -> TestHubBuilder {
        self.settings.clone()
    }

    /// Stops the hub in order.
    pub async fn shutdown(&mut self) {
        self.hub().shutdown().await;
        self.end().await;
    }

    /// Stops the hub abruptly: no shutdown, no release of its leases.
    pub async fn kill(&mut self) {
        self.end().await;
    }

    /// Whether the hub works from its next start on, or is only open.
    pub fn work(&mut self, works: bool) {
        self.settings.works = works;
    }

    /// Starts the hub again on the same store, network and clock; stops it first if it runs.
    pub async fn restart(&mut self) {
        if self.running.is_some() {
            self.shutdown().await;
        }
        self.running = Some(run(&self.settings, self.runs).await.unwrap());
        self.runs += 1;
    }

    /// As [`restart`](Self::restart) of a hub that does not run, for one that may be refused.
    ///
    /// # Errors
    /// Errors of opening or starting the hub, which does not run then.
    pub async fn try_restart(&mut self) -> Result<()> {
        self.runs += 1;
        self.running = Some(run(&self.settings, self.runs).await?);
        Ok(())
    }

    async fn end(&mut self) {
        let Some((runtime, hub)) = self.running.take() else { return };
        drop(hub);
        let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)));
        ended.await.unwrap();
    }

    /// Registers a user and signs them in. The first one is the hub's admin.
    pub async fn register(&self, username: &str) -> Actor {
        let user = NewUser {
            username: username.to_owned(),
            password: "correct horse".into(),
            display_name: None,
            email: None,
        };
        let signed_in = self.hub().accounts().register(user, None, &ClientInfo::default()).await.unwrap();
        self.hub().accounts().authenticate_session(signed_in.token.expose()).await.unwrap()
    }

    /// Binds the account of a new person.
    pub async fn bind(&self, actor: &Actor) -> TestBot {
        self.bind_person(actor, None).await
    }

    /// Binds the account of a person, who may have been bound before: that ends the former login.
    pub async fn bind_person(&self, actor: &Actor, person: Option<&str>) -> TestBot {
        let bots = self.hub().bots();
        let bind = bots.start_bind(actor, NewBind::default()).await.unwrap();
        let Account { wx_id, owner_user_id } = self.sim.confirm(bind.qr_text.expose(), person).unwrap();
        // The network has its answer ready, so one request is enough.
        let step = bots.confirm_bind(actor, bind.bind_id, None, Duration::ZERO).await.unwrap();
        assert_eq!(step.status, BindStatus::Confirmed, "{step:?}");
        TestBot { id: step.bot.unwrap().id, wx_id, person: owner_user_id }
    }

    /// Makes a channel.
    pub async fn channel(&self, actor: &Actor, bot: BotId, new: NewChannel) -> ChannelId {
        self.hub().channels().create(actor, bot, new, None).await.unwrap().channel.id
    }

    /// Makes a channel with a webhook.
    pub async fn webhook_channel(
        &self,
        actor: &Actor,
        bot: BotId,
        name: &str,
        webhook: WebhookUpdate,
    ) -> ChannelId {
        self.channel(actor, bot, NewChannel { webhook: Some(webhook), ..NewChannel::named(name) }).await
    }

    /// The bot's person writes. Answers the network's id of the message.
    pub fn say(&self, bot: &TestBot, text: &str) -> String {
        self.sim.say(&bot.wx_id, None, text).unwrap()
    }

    /// The bot writes to its person.
    ///
    /// # Errors
    /// Those of [`Bots::send`](crate::bots::Bots::send).
    pub async fn send(&self, actor: &Actor, bot: &TestBot, text: &str) -> Result<Sent> {
        let new = NewSend { content: text.to_owned(), ..NewSend::default() };
        self.hub().bots().send(actor, bot.id, new, None).await
    }

    /// Waits until `poll` returns a value. `what` is for the error message if it does not.
    pub async fn until<T>(&self, what: &str, poll: impl AsyncFnMut() -> Option<T>) -> T {
        until(what, poll).await
    }

    /// As [`until`](Self::until), moving the clock by `step` before each further check.
    pub async fn advance_until<T>(
        &self,
        what: &str,
        step: Duration,
        mut poll: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let mut moves = false;
        until(what, async || {
            if std::mem::replace(&mut moves, true) {
                self.clock().advance(step);
                // Tasks that waited for this time get the chance to run.
                Clock::system().sleep(POLL_INTERVAL).await;
            }
            poll().await
        })
        .await
    }

    /// Waits until the bot has a status.
    pub async fn bot_status(&self, actor: &Actor, bot: BotId, wanted: BotStatus) -> BotHealth {
        let what = format!("status {}", wanted.as_str());
        self.until(&what, async || {
            let health = self.hub().bots().status(actor, bot).await.unwrap();
            (health.bot.status == wanted).then_some(health)
        })
        .await
    }

    /// Waits until the bot has sent so many messages, and answers all of them.
    pub async fn sent(&self, bot: &TestBot, count: usize) -> Vec<Outbound> {
        self.until(&format!("{count} sends"), async || {
            let sent = self.sim.outbound(Some(&bot.wx_id), 0);
            (sent.len() >= count).then_some(sent)
        })
        .await
    }

    /// The newest traces of a bot, at most 100, with their steps.
    pub async fn traces(&self, actor: &Actor, bot: BotId, query: &TraceQuery) -> Vec<Trace> {
        let request = PageRequest::parse(&query.list_name(bot), Some(100), None).unwrap();
        let page = self.hub().traces().list(actor, bot, query, &request).await.unwrap();
        let mut traces = Vec::with_capacity(page.items.len());
        for trace in page.items {
            traces.push(self.hub().traces().get(actor, bot, trace.trace_id).await.unwrap());
        }
        traces
    }

    /// Waits until a channel has a trace that looks like this, and answers the newest.
    pub async fn trace(&self, actor: &Actor, bot: BotId, channel: ChannelId, status: TraceStatus) -> Trace {
        let query = TraceQuery { channel_id: Some(channel), status: Some(status), ..TraceQuery::default() };
        self.until(&format!("a trace that is {}", status.as_str()), async || {
            let mut traces = self.traces(actor, bot, &query).await;
            (!traces.is_empty()).then(|| traces.swap_remove(0))
        })
        .await
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        if let Some((runtime, _)) = self.running.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits until `poll` returns a value, at most half a minute of real time.
pub async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..MAX_POLLS {
        if let Some(found) = poll().await {
            return found;
        }
        Clock::system().sleep(POLL_INTERVAL).await;
    }
    panic!("did not happen: {what}");
}

/// Runs a hub on a thread of its own.
async fn run(settings: &TestHubBuilder, runs: u64) -> Result<(Runtime, Hub)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut runtime = Starting(Some(runtime));
    let settings = settings.clone();
    let hub = runtime.0.as_ref().unwrap().spawn(settings.run(runs)).await.unwrap()?;
    Ok((runtime.0.take().unwrap(), hub))
}

/// A thread whose hub is not up yet. When it never comes up, or no one waits for it any more, it ends by itself.
struct Starting(Option<Runtime>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
