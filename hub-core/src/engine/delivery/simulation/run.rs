//! One run: its nodes, and the faults that it injects.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::runtime::{Builder, Runtime};

use super::{
    START,
    chat::Chat,
    receiver::{Endpoint, Target},
    store::ModelStore,
    tables::{self, Bot, InstalledApp},
    world::{Faults, Shared, World},
};
use crate::{
    access::AppActor,
    accounts::PasswordHasher,
    ai::NoTools,
    apps::{AppEventKind, AppRuntime, AppScope, AppScopes, secret_place},
    bots::credentials,
    channels::{ChannelOptions, ChannelRecord},
    config::{HubConfig, MediaLimits},
    context::Context,
    delivery::{supervisor::Supervisor, work_store::WorkContext},
    egress::{Egress, EgressConfig},
    filter::Filter,
    id::{AppId, BotId, ChannelId, Ids, InstallationId, UserId},
    invariants::Violations,
    local_http::LocalService,
    media::{Links, MediaStore},
    model::{
        bot::BotStatus,
        sinks::{AiSettings, Change, Ordering, RetrySettings, WebSocketSettings, WebhookSettings},
    },
    network::{Credentials, Network},
    random::Random,
    sandbox::{Sandbox, SandboxConfig},
    secret::{KeyMark, Sealer},
    tasks::{Computations, Tasks},
    time::{Clock, Instant, ManualClock},
};

/// Most nodes of a run.
const MAX_NODES: usize = 3;
const PEERS: [&str; 3] = ["ann", "bob", "cho"];
/// Time during which faults occur and people write.
const FAULT_PHASE: Duration = Duration::from_secs(30);
/// Longest time for everything to settle afterwards. The longest wait of a schedule is 24 seconds, and a receiver
/// requests at most 19.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(900);
/// So short that a pause loses it often.
const LEASE: Duration = Duration::from_secs(6);
/// Steps by which the clock is set, in seconds.
const CLOCK_STEPS_S: [u64; 4] = [3, 120, 3_600, 26 * 3_600];
/// Rounds without visible activity after which a node counts as waiting.
const IDLE_ROUNDS: usize = 3;

/// Objects that outlive a run: one client per node, and the endpoint it calls.
pub struct Endpoints(Vec<(Arc<Endpoint>, Egress)>);

impl Endpoints {
    pub fn new() -> Self {
        let endpoint = || {
            let endpoint = Arc::new(Endpoint::default());
            let service: Arc<dyn LocalService> = endpoint.clone();
            let in_process = HashMap::from([("receiver.sim".to_owned(), service)]);
            let egress = Egress::new(EgressConfig { in_process, ..EgressConfig::default() });
            (endpoint, egress.expect("a client without settings"))
        };
        Self((0..MAX_NODES).map(|_| endpoint()).collect())
    }
}

/// A process of the hub.
#[derive(Default)]
struct Node {
    /// `None` when it was killed.
    runtime: Option<Runtime>,
    /// End of its pause.
    paused_until: Option<Instant>,
    starts_at: Option<Instant>,
}

struct Run<'d> {
    world: Shared,
    endpoints: &'d Endpoints,
    nodes: Vec<Node>,
    random: Random,
    clock: ManualClock,
    sealer: Sealer,
    violations: Violations,
    shared: bool,
}

impl<'d> Run<'d> {
    fn new(seed: u64, endpoints: &'d Endpoints) -> Self {
        let random = Random::seeded(seed);
        let clock = ManualClock::new(START);
        let coin = || random.below(2) == 0;
        let faults = Faults {
            crashes: coin(),
            pauses: coin(),
            commits: coin(),
            unacknowledged: coin(),
            reads: coin(),
            slow_reads: coin(),
            network: coin(),
            repeats: coin(),
            receiver: coin(),
            gone: coin() && coin() && coin(),
            clock: coin(),
        };
        let shared = random.below(3) > 0;
        let count = if shared { 1 + usize::try_from(random.below(MAX_NODES as u64)).unwrap_or(0) } else { 1 };
        let sealer = Sealer::new(&[7; 32], random.clone());
        let world = Shared::new(World::new(random.clone(), clock.clone(), faults));
        let (nodes, violations) = (Vec::new(), Violations::default());
        let mut run = Self { world, endpoints, nodes, random, clock, sealer, violations, shared };
        run.create_bots();
        for node in 0..count {
            run.nodes.push(Node::default());
            run.start(node);
        }
        run
    }

    /// One or two bots with two channels each, and with an app in every second run: one channel retries for long, the other soon abandons.
    fn create_bots(&mut self) {
        for bot in 1..=1 + u128::from(self.random.below(2)) {
            let id = BotId::from_u128(bot);
            let login = Credentials::new("token", &id.to_string(), "owner");
            let sealed = credentials::seal(&self.sealer, id, &login);
            let row = Bot {
                credentials: sealed,
                fence: 0,
                owner: None,
                until: tables::FREE,
                cursor: String::new(),
                config_rev: 1,
                status: BotStatus::Connecting,
            };
            let retrying = self.channel(id, bot * 10 + 1, vec![1, 2, 4, 8, 16, 20, 20, 20, 20, 20], 10);
            let abandoning = self.channel(id, bot * 10 + 2, vec![1, 3], 2);
            let has_app = self.random.below(2) == 0;
            let mut world = self.world.lock();
            world.tables.bots.insert(id, row);
            world.tables.channels.extend([(retrying.id, retrying), (abandoning.id, abandoning)]);
            world.messages.insert(id, Vec::new());
            if has_app {
                let app = self.app(id, bot * 10 + 3);
                world.tables.apps.insert(app.runtime.app.installation_id, app);
            }
        }
    }

    /// An app that gets every message.
    fn app(&self, bot_id: BotId, id: u128) -> InstalledApp {
        let (installation_id, app_id) = (InstallationId::from_u128(id), AppId::from_u128(id));
        let app = AppActor {
            installation_id,
            app_id,
            bot_id,
            owner_id: UserId::from_u128(0),
            is_own: true,
            scopes: AppScopes::default().with(AppScope::MessageRead).with(AppScope::MessageWrite),
            token: KeyMark::default(),
        };
        InstalledApp {
            runtime: AppRuntime {
                app,
                handle: "app".parse().expect("a handle"),
                events: vec![AppEventKind::Message],
                commands: Vec::new(),
                has_webhook: true,
            },
            webhook_url: format!("http://receiver.sim/{installation_id}"),
            webhook_secret: self.sealer.seal(&secret_place(app_id), &"a-secret-of-some-length".into()),
        }
    }

    fn channel(&self, bot_id: BotId, id: u128, schedule_s: Vec<u32>, lane_hold_s: u32) -> ChannelRecord {
        let id = ChannelId::from_u128(id);
        let webhook = WebhookSettings {
            enabled: true,
            url: format!("http://receiver.sim/{id}"),
            retry: RetrySettings { schedule_s },
            ordering: if self.random.below(6) == 0 { Ordering::None } else { Ordering::Conversation },
            max_concurrency: 1 + u32::try_from(self.random.below(4)).unwrap_or(0),
            auto_reply: true,
            ..WebhookSettings::default()
        };
        let mut record = ChannelRecord {
            id,
            bot_id,
            name: "channel".to_owned(),
            handle: None,
            enabled: true,
            key_last4: String::new(),
            filter: crate::text::json(&Filter::default()),
            websocket: crate::text::json(&WebSocketSettings::default()),
            ilink: "{}".to_owned(),
            webhook: crate::text::json(&webhook),
            webhook_secret: None,
            webhook_old_secret: None,
            webhook_old_until: None,
            webhook_disabled: None,
            ai: crate::text::json(&AiSettings::default()),
            ai_api_key: None,
            options: ChannelOptions { lane_hold_s, ..ChannelOptions::default() },
            last_seq: 0,
            created_at: START,
            updated_at: START,
        };
        let secret = Change::Set("a-secret-of-some-length".into());
        record.change_webhook_secret(&secret, &self.sealer, START).expect("nothing is replaced");
        record
    }

    fn start(&mut self, node: usize) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime without I/O");
        let clock = Clock::from(self.clock.clone());
        let random = Random::seeded(u64::from_le_bytes(self.random.bytes()));
        let (endpoint, egress) = &self.endpoints.0[node];
        endpoint.set(Some(Target { world: self.world.clone(), clock: clock.clone(), node }));
        let chat: Arc<dyn Network> = Arc::new(Chat { world: self.world.clone(), clock: clock.clone() });
        let small = self.random.below(4) == 0;
        let ctx: WorkContext = Arc::new(Context {
            store: Arc::new(ModelStore {
                world: self.world.clone(),
                node,
                clock: clock.clone(),
                shared: self.shared,
            }),
            ids: Ids::new(clock.clone(), random.clone()),
            sealer: self.sealer.clone(),
            passwords: PasswordHasher::new(1, random.clone()),
            computations: Computations::in_place(),
            egress: egress.clone(),
            sandbox: Sandbox::new(SandboxConfig::default(), clock.clone()),
            tools: Arc::new(NoTools),
            networks: Arc::new(HashMap::from([(tables::NETWORK.to_owned(), chat)])),
            config: Arc::new(HubConfig {
                // So few that the backlog is needed.
                max_jobs: if small { 4 } else { 1_000 },
                max_in_flight: if small { 2 } else { 16 },
                lease: LEASE,
                ..HubConfig::default()
            }),
            media: MediaStore::open(None, egress, Links::new(&[0; 32], ""), &MediaLimits::default())
                .expect("no store is always there"),
            node: crate::node::Node { violations: self.violations.clone(), ..Default::default() },
            clock,
            random,
        });
        self.world.lock().note(format_args!("n{node} starts"));
        let tasks = Tasks::new();
        let entered = runtime.enter();
        let started = tasks.clone();
        tasks.spawn("start", async move {
            while Supervisor::start_work(ctx.clone(), started.clone()).await.is_err() {
                ctx.clock.sleep(Duration::from_secs(1)).await;
            }
        });
        drop(entered);
        self.nodes[node] = Node { runtime: Some(runtime), ..Node::default() };
    }

    fn kill(&mut self, node: usize) {
        self.world.lock().note(format_args!("n{node} is killed"));
        self.nodes[node].runtime = None;
        self.world.lock().abandon_writes(node);
        let after = Duration::from_millis(self.random.below(8_000));
        self.nodes[node].starts_at = Some(self.clock.instant() + after);
    }

    /// Runs until everything is settled. Returns the first violation, or the items that never settled.
    fn run(&mut self) -> Result<(), String> {
        self.run_until(self.clock.instant() + FAULT_PHASE, true);
        self.end_faults();
        let end = self.clock.instant() + MAX_SETTLE_TIME;
        while self.clock.instant() < end && self.world.lock().violation.is_none() {
            self.run_until(self.clock.instant() + Duration::from_secs(5), false);
            if self.world.lock().unsettled().is_empty() {
                break;
            }
            self.world.lock().answer_silence();
        }
        let mut world = self.world.lock();
        let unsettled = world.unsettled();
        if world.violation.is_none() && unsettled.is_empty() {
            world.check_end();
        }
        let violations = self.violations.count();
        match world.violation.take() {
            None if violations > 0 => Err(format!("{violations} invariant(s) did not hold")),
            Some(violation) => Err(violation),
            None if unsettled.is_empty() => Ok(()),
            None => Err(format!("never settled: {}", unsettled.join("; "))),
        }
    }

    fn run_until(&mut self, end: Instant, with_faults: bool) {
        while self.clock.instant() < end && self.world.lock().violation.is_none() {
            if with_faults {
                self.inject_faults();
            }
            let idle = self.run_nodes();
            let waiting = self.world.lock().is_waiting();
            if waiting && (idle || self.random.below(3) > 0) {
                self.world.lock().commit();
            } else if idle {
                self.advance(end, with_faults);
            }
        }
    }

    /// Lets every node do what it can; `true` when none did anything.
    fn run_nodes(&mut self) -> bool {
        let now = self.clock.instant();
        let before = self.world.lock().activity;
        for node in 0..self.nodes.len() {
            if self.nodes[node].starts_at.is_some_and(|at| at <= now) {
                self.start(node);
            }
            if self.nodes[node].paused_until.is_some_and(|until| until <= now) {
                self.nodes[node].paused_until = None;
                self.world.lock().note(format_args!("n{node} continues"));
            }
            let Node { runtime: Some(runtime), paused_until: None, .. } = &self.nodes[node] else { continue };
            let world = &self.world;
            runtime.block_on(async {
                let mut idle = 0;
                let mut seen = world.lock().activity;
                while idle < IDLE_ROUNDS {
                    tokio::task::yield_now().await;
                    let now = world.lock().activity;
                    idle = if now == seen { idle + 1 } else { 0 };
                    seen = now;
                }
            });
        }
        self.world.lock().activity == before
    }

    /// Lets people write, kills and pauses nodes, and sets the clock.
    fn inject_faults(&mut self) {
        let faults = self.world.lock().faults;
        if faults.clock && self.random.below(150) == 0 {
            let by = Duration::from_secs(CLOCK_STEPS_S[usize::try_from(self.random.below(4)).unwrap_or(0)]);
            let (now, back) = (self.clock.now(), self.random.below(2) == 0);
            let wall = if back { now - by } else { now + by };
            self.clock.set(wall);
            let is_long = !back && by > HubConfig::default().outbox_lifetime;
            self.world.lock().tables.long_steps.set(self.clock.instant(), is_long);
            self.world.lock().note(format_args!("the clock is set from {now} to {wall}"));
            self.write_back();
        }
        if self.random.below(14) == 0 {
            let bots: Vec<BotId> = self.world.lock().messages.keys().copied().collect();
            let bot = bots[usize::try_from(self.random.below(bots.len() as u64)).unwrap_or(0)];
            let peer = PEERS[usize::try_from(self.random.below(3)).unwrap_or(0)];
            self.world.lock().write(bot, peer);
        }
        let node = usize::try_from(self.random.below(self.nodes.len() as u64)).unwrap_or(0);
        if self.nodes[node].runtime.is_none() {
            return;
        }
        if faults.crashes && self.random.below(120) == 0 {
            self.kill(node);
        } else if faults.pauses && self.random.below(150) == 0 && self.nodes[node].paused_until.is_none() {
            let pause = Duration::from_millis(self.random.below(20_000));
            self.world.lock().note(format_args!("n{node} is paused for {pause:?}"));
            self.nodes[node].paused_until = Some(self.clock.instant() + pause);
        }
    }

    /// Lets everyone write to every bot, so that items that wait for a person can be sent by any clock.
    fn write_back(&self) {
        let mut world = self.world.lock();
        let bots: Vec<BotId> = world.messages.keys().copied().collect();
        for (bot, peer) in bots.into_iter().flat_map(|bot| PEERS.map(|peer| (bot, peer))) {
            world.write(bot, peer);
        }
    }

    /// Moves the clock to the next moment at which someone wants to act.
    fn advance(&mut self, end: Instant, with_faults: bool) {
        let (now, wall) = (self.clock.instant(), self.clock.now());
        let nodes = self
            .nodes
            .iter()
            .flat_map(|node| [node.starts_at.filter(|_| node.runtime.is_none()), node.paused_until]);
        let waits = self.clock.waits().into_iter().map(|at| Some(now + at.since(wall)));
        let timers = waits.chain(nodes).flatten();
        let mut next = timers.filter(|at| *at > now).min().unwrap_or(end).min(end);
        if with_faults {
            // People do not wait for timers.
            next = next.min(now + Duration::from_millis(1 + self.random.below(1_500)));
        }
        self.clock.advance(next.since(now).max(Duration::from_millis(1)));
    }

    /// No faults from now on. The apps' webhooks are verified again, as the schedule of their events lasts for days.
    fn end_faults(&mut self) {
        let mut world = self.world.lock();
        world.faults = Faults::default();
        let now = world.now();
        world.tables.hasten_events(now);
        world.note("no faults");
        drop(world);
        for node in &mut self.nodes {
            node.paused_until = node.paused_until.map(|_| self.clock.instant());
            node.starts_at = node.starts_at.filter(|_| node.runtime.is_none());
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        for (endpoint, _) in &self.endpoints.0 {
            endpoint.set(None);
        }
    }
}

/// One run, and what happened in it.
pub fn play(seed: u64, endpoints: &Endpoints) -> (Result<(), String>, Vec<String>) {
    let mut run = Run::new(seed, endpoints);
    let result = run.run();
    let log = std::mem::take(&mut run.world.lock().log);
    (result, log)
}
