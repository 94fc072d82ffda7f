//! A whole hub on a clock that is moved by hand, with the simulated chat network and a [`Receiver`] under
//! `http://receiver.test/` in the same process. Waiting moves the clock in small steps, so that times between
//! events can be asserted in the hub's own time; [`World::jump`] skips long spans.
//!
//! `hub_core::testing::World` is the small form for programs that embed a hub. This one is for stories that
//! are about time: what the receiver answers depends on the path, and everything notes when it came.

use std::{collections::HashMap, sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::{Actor, UserActor},
    accounts::{ClientInfo, NewUser},
    ai::Tools,
    bots::{BindStatus, BotHealth, NewBind, NewSend, Sent},
    channels::{
        NewChannel,
        sinks::{Change, WebhookUpdate},
    },
    config::HubConfig,
    egress::{Egress, EgressConfig},
    id::{BotId, ChannelId, TraceId},
    local_http::LocalService,
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{Account, Outbound, SIM_HOST, SimConfig, Simulator},
    },
    page::PageRequest,
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    time::{Clock, ManualClock, Timestamp},
    traces::{Trace, TraceQuery},
};

use super::receiver::{Received, Receiver};

/// The host of the [`Receiver`].
pub const RECEIVER_HOST: &str = "receiver.test";
/// Start of the clock in every test: 2026-09-21T14:13:20Z.
pub const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// The secret of the webhooks that [`World::webhook`] makes.
pub const WEBHOOK_SECRET: &str = "a-secret-of-some-length";

/// The clock moves by this much at a time while something is waited for.
const STEP: Duration = Duration::from_millis(100);
/// Real time between two steps; longer than the reads and writes in between take.
const BREATH: Duration = Duration::from_millis(4);
/// Steps until a wait has failed: at least 20 s of real time.
const STEPS: u32 = 5_000;

/// Builder of a [`World`].
#[derive(Debug, Default)]
pub struct WorldBuilder {
    store: Option<StoreConfig>,
    sim: Option<SimConfig>,
    config: Option<HubConfig>,
    tools: Option<Arc<dyn Tools>>,
}

/// A hub and the world around it.
#[derive(Debug)]
pub struct World {
    /// The hub.
    pub hub: Hub,
    /// The chat network.
    pub sim: Simulator,
    /// The other end of every webhook.
    pub receiver: Receiver,
    /// The user who owns everything; an admin, because they registered first.
    pub owner: Actor,
    parts: Parts,
}

/// State that survives a restart.
#[derive(Debug)]
struct Parts {
    clock: Clock,
    store: StoreConfig,
    config: HubConfig,
    ilink: IlinkConfig,
    tools: Option<Arc<dyn Tools>>,
    _folder: Option<tempfile::TempDir>,
}

/// A bot that was bound, and its account on the simulated network.
#[derive(Debug, Clone)]
pub struct TestBot {
    /// The bot.
    pub id: BotId,
    /// Its account.
    pub account: Account,
}

impl WorldBuilder {
    /// Another database than a file in a temporary folder.
    #[must_use]
    pub fn store(mut self, store: StoreConfig) -> Self {
        self.store = Some(store);
        self
    }

    /// Settings of the simulator.
    #[must_use]
    pub fn sim(mut self, change: impl FnOnce(&mut SimConfig)) -> Self {
        change(self.sim.get_or_insert_with(SimConfig::default));
        self
    }

    /// Settings of the hub.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut HubConfig)) -> Self {
        change(self.config.get_or_insert_with(test_config));
        self
    }

    /// Tools that models may call in place of those of installed apps.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Opens the hub and registers its owner. Nothing runs yet.
    pub async fn open(self) -> World {
        let clock = Clock::from(ManualClock::new(START));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let store = self.store.unwrap_or_else(|| StoreConfig::Sqlite(folder.path().join("hub.db")));
        let parts = Parts {
            store,
            config: self.config.unwrap_or_else(test_config),
            ilink: test_ilink(),
            tools: self.tools,
            _folder: Some(folder),
            clock: clock.clone(),
        };
        let sim = Simulator::new(self.sim.unwrap_or_default(), clock.clone(), Random::seeded(1));
        let receiver = Receiver::new(clock);
        let hub = parts.open(&sim, &receiver).await;
        let ada = NewUser {
            username: "ada".to_owned(),
            password: "correct horse battery".into(),
            display_name: None,
            email: None,
        };
        let signed_in = hub
            .accounts()
            .register(ada, None, &ClientInfo::default())
            .await
            .expect("the first user registers");
        let user = signed_in.me.user;
        let owner = Actor::User(UserActor::embedded(user.id, user.role));
        World { hub, sim, receiver, owner, parts }
    }

    /// As [`open`](Self::open), and starts the hub's work.
    pub async fn start(self) -> World {
        let hub = self.open().await;
        hub.hub.start().await.expect("the hub starts");
        hub
    }
}

fn test_config() -> HubConfig {
    let year = Duration::from_secs(365 * 24 * 3600);
    let mut config = HubConfig::default();
    (config.lease, config.poll_grace) = (year, Duration::ZERO);
    config
}

fn test_ilink() -> IlinkConfig {
    let url = |text: String| text.parse().expect("a host makes a URL");
    IlinkConfig {
        login_base_url: url(format!("http://{SIM_HOST}")),
        cdn_base_url: url(format!("http://{SIM_HOST}/c2c")),
        ..IlinkConfig::default()
    }
}

impl Parts {
    async fn open(&self, sim: &Simulator, receiver: &Receiver) -> Hub {
        let in_process: HashMap<String, Arc<dyn LocalService>> = HashMap::from([
            (SIM_HOST.to_owned(), Arc::new(sim.clone()) as Arc<dyn LocalService>),
            (RECEIVER_HOST.to_owned(), Arc::new(receiver.clone()) as Arc<dyn LocalService>),
        ]);
        let egress = EgressConfig { in_process, ..EgressConfig::default() };
        let client = Egress::new(egress.clone()).expect("an HTTP client can be made");
        let (clock, random) = (self.clock.clone(), Random::seeded(2));
        let network = IlinkNetwork::new("sim", self.ilink.clone(), &client, clock.clone(), random)
            .expect("a connector can be made");
        let builder = match &self.tools {
            Some(tools) => Hub::builder().tools(Arc::clone(tools)),
            None => Hub::builder(),
        };
        builder
            .store(self.store.clone())
            .secret_key([7; 32])
            .network(network)
            .egress(egress)
            .sandbox(SandboxConfig::of(WorkerProgram::InProcessTrustedOnly))
            .config(self.config.clone())
            .clock(clock)
            .random(Random::system())
            .open()
            .await
            .expect("the hub opens")
    }
}

impl World {
    /// Returns a builder with the default settings.
    pub fn builder() -> WorldBuilder {
        WorldBuilder::default()
    }

    /// A running hub with nothing special about it.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Shuts the hub down.
    pub async fn stop(&self) {
        let stop = self.hub.shutdown();
        tokio::pin!(stop);
        while futures_util::poll!(&mut stop).is_pending() {
            self.step().await;
        }
    }

    /// Shuts the hub down and starts another one on the same database, network and clock.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.hub = self.parts.open(&self.sim, &self.receiver).await;
        self.hub.start().await.expect("the hub starts again");
    }

    /// Binds a new person's account; returns when the bot is online, if the hub is started.
    pub async fn bot(&self) -> TestBot {
        let bot = self.bind(None).await;
        if self.hub.context().clock.as_manual().is_some() {
            self.until("the bot is online", async || self.is_online(&bot).then_some(())).await;
        }
        bot
    }

    /// Binds an account, a new person's unless `person` is known to the network.
    pub async fn bind(&self, person: Option<&str>) -> TestBot {
        let bots = self.hub.bots();
        let bind = bots.start_bind(&self.owner, NewBind::default()).await.expect("a login starts");
        let account = self.sim.confirm(bind.qr_text.expose(), person).expect("the code is known");
        let id = self
            .until("the login is confirmed", async || {
                let step = bots.confirm_bind(&self.owner, bind.bind_id, None, Duration::ZERO).await;
                let step = step.expect("the login goes on");
                (step.status == BindStatus::Confirmed)
                    .then(|| step.bot.expect("a confirmed login has a bot").id)
            })
            .await;
        TestBot { id, account }
    }

    fn is_online(&self, bot: &TestBot) -> bool {
        let polls = self.sim.accounts();
        polls.iter().any(|known| known.account == bot.account && known.pollers > 0)
    }

    /// The status of a bot.
    pub async fn health(&self, bot: &TestBot) -> BotHealth {
        self.hub.bots().status(&self.owner, bot.id).await.expect("the bot exists")
    }

    /// A webhook to a path of the receiver, signed with [`WEBHOOK_SECRET`].
    pub fn webhook(path: &str) -> WebhookUpdate {
        let mut webhook =
            WebhookUpdate { url: format!("http://{RECEIVER_HOST}{path}"), ..WebhookUpdate::default() };
        webhook.auth.method = hub_core::channels::sinks::AuthMethod::Hmac;
        webhook.auth.secret = Change::Set(WEBHOOK_SECRET.into());
        webhook
    }

    /// A channel with a webhook.
    pub async fn channel(&self, bot: &TestBot, webhook: WebhookUpdate) -> ChannelId {
        self.channel_with(bot, NewChannel { webhook: Some(webhook), ..NewChannel::named("channel") }).await
    }

    /// A channel; the name of a second one of the same name gets a number.
    pub async fn channel_with(&self, bot: &TestBot, mut new: NewChannel) -> ChannelId {
        let page =
            PageRequest::parse("channels", Some(hub_core::page::MAX_LIMIT), None).expect("within the limit");
        let there = self.hub.channels().list(&self.owner, bot.id, &page).await.expect("the bot exists").items;
        if there.iter().any(|channel| channel.name == new.name) {
            new.name = format!("{} {}", new.name, there.len() + 1);
        }
        let made = self.hub.channels().create(&self.owner, bot.id, new, None).await;
        made.expect("the channel is acceptable").channel.id
    }

    /// The bot's own person writes.
    pub fn say(&self, bot: &TestBot, text: &str) {
        self.sim.say(&bot.account.wx_id, None, text).expect("the network takes it");
    }

    /// Another person writes.
    pub fn say_as(&self, bot: &TestBot, person: &str, text: &str) {
        self.sim.say(&bot.account.wx_id, Some(person), text).expect("the network takes it");
    }

    /// Accepts a text for the bot's own person.
    pub async fn send(&self, bot: &TestBot, text: &str) -> hub_core::Result<Sent> {
        self.send_to(bot, None, text).await
    }

    /// Accepts a text for a person.
    pub async fn send_to(&self, bot: &TestBot, person: Option<&str>, text: &str) -> hub_core::Result<Sent> {
        let new =
            NewSend { to_user_id: person.map(str::to_owned), content: text.to_owned(), ..NewSend::default() };
        self.hub.bots().send(&self.owner, bot.id, new, None).await
    }

    /// Sends of a bot that the network received.
    pub fn sent(&self, bot: &TestBot) -> Vec<Outbound> {
        self.sim.outbound(Some(&bot.account.wx_id), 0)
    }

    /// Current time of the test clock.
    pub fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Moves the clock at once, then lets everything that this woke do its work.
    pub async fn jump(&self, by: Duration) {
        if let Some(clock) = self.parts.clock.as_manual() {
            clock.advance(by);
        }
        self.settle().await;
    }

    /// Sets the wall clock while no time passes, then lets everything that this woke do its work.
    pub async fn set_clock(&self, wall: Timestamp) {
        if let Some(clock) = self.parts.clock.as_manual() {
            clock.set(wall);
        }
        self.settle().await;
    }

    /// Runs a statement on the database.
    pub async fn sql(&self, sql: impl Into<String>) {
        let (sql, store) = (sql.into(), &self.hub.context().store);
        let run = store.write(move |tx| Box::pin(async move { tx.channels().execute(sql).await }));
        run.await.expect("the statement is valid");
    }

    /// Lets everything that can go on without the clock go on.
    pub async fn settle(&self) {
        Clock::system().sleep(BREATH * 15).await;
    }

    async fn step(&self) {
        Clock::system().sleep(BREATH).await;
        if let Some(clock) = self.parts.clock.as_manual() {
            clock.advance(STEP);
        }
    }

    /// Moves the clock until `look` finds something.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        for _ in 0..STEPS {
            if let Some(found) = look().await {
                return found;
            }
            self.step().await;
        }
        panic!("waited for in vain until {}: {what}", self.now());
    }

    /// Moves the clock until the receiver got so many requests, and gives them all.
    async fn execute(&self, sql: &'static str) {
        let store = &self.hub.context().store;
        store
            .write(move |tx| Box::pin(async move { tx.channels().execute(sql.to_owned()).await }))
            .await
            .unwrap();
    }

    /// Keeps the rows of deliveries that end well, for [`reopen`](Self::reopen).
    pub async fn keep_ended(&self) {
        self.execute("CREATE TABLE ended AS SELECT * FROM deliveries").await;
        self.execute(
            "CREATE TRIGGER keep_ended BEFORE DELETE ON deliveries
             BEGIN INSERT INTO ended SELECT * FROM deliveries WHERE id = OLD.id; END",
        )
        .await;
    }

    /// Stores deliveries again that ended well: as they were when their sinks had them, and held by a node that is gone.
    pub async fn reopen(&self) {
        self.execute("UPDATE ended SET claim = 12345").await;
        self.execute("INSERT INTO deliveries SELECT * FROM ended").await;
    }

    pub async fn wait_received(&self, count: usize) -> Vec<Received> {
        self.until(&format!("{count} requests"), async || {
            let received = self.receiver.received();
            (received.len() >= count).then_some(received)
        })
        .await
    }

    /// Moves the clock until the network got so many messages of a bot, and gives them all.
    pub async fn wait_sent(&self, bot: &TestBot, count: usize) -> Vec<Outbound> {
        self.until(&format!("{count} messages sent"), async || {
            let sent = self.sent(bot);
            (sent.len() >= count).then_some(sent)
        })
        .await
    }

    /// A bot's traces, newest first, with their steps.
    pub async fn traces(&self, bot: &TestBot) -> Vec<Trace> {
        let page =
            PageRequest::parse("traces", Some(hub_core::page::MAX_LIMIT), None).expect("within the limit");
        let listed = self.hub.traces().list(&self.owner, bot.id, &TraceQuery::default(), &page).await;
        let mut traces = Vec::new();
        for trace in listed.expect("the bot exists").items {
            traces.push(self.trace(bot, trace.trace_id).await);
        }
        traces
    }

    /// One trace with its steps.
    pub async fn trace(&self, bot: &TestBot, id: TraceId) -> Trace {
        self.hub.traces().get(&self.owner, bot.id, id).await.expect("the trace exists")
    }

    /// Moves the clock until a channel has a trace as wanted, the newest one first.
    pub async fn wait_trace(
        &self,
        bot: &TestBot,
        channel: ChannelId,
        wanted: impl Fn(&Trace) -> bool,
    ) -> Trace {
        self.until("the trace", async || {
            let traces = self.traces(bot).await;
            traces.into_iter().find(|trace| trace.channel_id == Some(channel) && wanted(trace))
        })
        .await
    }
}
