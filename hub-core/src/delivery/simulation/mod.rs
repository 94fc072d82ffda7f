//! The delivery path under a seed: the engine itself, on one or several nodes, in a world that is made up and goes
//! wrong on purpose.
//!
//! Nothing of the engine is imitated. Poller, inbox, backlog, lanes, worker, outbox and the supervisor of leases
//! run as they do in earnest; what they ask, write and wait for is given to them: the store is a [`tables`]
//! behind [`WorkStore`](crate::delivery::work_store::WorkStore), the chat network a [`chat`], the webhook a [`receiver`],
//! time a clock that the simulation moves. Each node has a runtime of its own on the one thread of a run, so
//! that a crash is the loss of the runtime, and a pause is not running it. One stream of randomness decides
//! everything; the same seed is the same run.
//!
//! `HUB_TEST_SEED=7 cargo test -p hub-core simulation` repeats one run and prints it; `HUB_TEST_SEEDS=10000` makes
//! more of them, and `HUB_TEST_FIRST_SEED` others.

use std::{
    collections::HashMap,
    env, panic,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering as Atomic},
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Builder, Runtime};

use self::{
    chat::Chat,
    receiver::{Behind, Door},
    store::ModelStore,
    tables::Bot,
    world::{Faults, Shared, World},
};
use super::node::Engine;
use crate::{
    accounts::PasswordHasher,
    ai::NoTools,
    bots::credentials,
    channels::{ChannelRecord, OnPluginError},
    config::{HubConfig, MediaLimits},
    delivery::work_store::WorkContext,
    egress::{Egress, EgressConfig},
    filter::Filter,
    id::{BotId, ChannelId, Ids},
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
    secret::Sealer,
    tasks::{Computations, Tasks},
    time::{Clock, Instant, ManualClock, Timestamp},
};

mod chat;
mod receiver;
mod store;
mod tables;
mod world;

const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// Most nodes of a run.
const NODES: usize = 3;
const PEERS: [&str; 3] = ["ann", "bob", "cho"];
/// How long things go wrong, and people talk.
const TROUBLE: Duration = Duration::from_secs(30);
/// How long everything may take to settle afterwards. The longest wait of a schedule is 24 seconds, and a
/// receiver asks for 19.
const PEACE: Duration = Duration::from_secs(900);
/// So short that a pause loses it often.
const LEASE: Duration = Duration::from_secs(6);
/// How far the clock is set, in seconds.
const STEPS_S: [u64; 4] = [3, 120, 3_600, 26 * 3_600];
/// Rounds in which a node does nothing that can be seen: it waits for someone else.
const QUIET: usize = 3;

/// What outlives a run: one client per node, and the door behind it.
struct Doors(Vec<(Arc<Door>, Egress)>);

impl Doors {
    fn new() -> Self {
        let door = || {
            let door = Arc::new(Door::default());
            let service: Arc<dyn LocalService> = door.clone();
            let in_process = HashMap::from([("receiver.sim".to_owned(), service)]);
            let egress = Egress::new(EgressConfig { in_process, ..EgressConfig::default() });
            (door, egress.expect("a client without settings"))
        };
        Self((0..NODES).map(|_| door()).collect())
    }
}

/// A process that works for the hub.
#[derive(Default)]
struct Node {
    /// `None` when it is dead.
    runtime: Option<Runtime>,
    /// Until when it does not move.
    paused_until: Option<Instant>,
    starts_at: Option<Instant>,
}

/// One run.
struct Run<'d> {
    world: Shared,
    doors: &'d Doors,
    nodes: Vec<Node>,
    random: Random,
    clock: ManualClock,
    sealer: Sealer,
    violations: Violations,
    shared: bool,
}

impl<'d> Run<'d> {
    fn new(seed: u64, doors: &'d Doors) -> Self {
        let random = Random::seeded(seed);
        let clock = ManualClock::new(START);
        let kinds = || random.below(2) == 0;
        let faults = Faults {
            crashes: kinds(),
            pauses: kinds(),
            commits: kinds(),
            unheard: kinds(),
            reads: kinds(),
            slow_reads: kinds(),
            network: kinds(),
            repeats: kinds(),
            receiver: kinds(),
            gone: kinds() && kinds() && kinds(),
            clock: kinds(),
        };
        // An outcome that is stored again while the clock is set may keep a time from before the step.
        let faults = Faults { clock: faults.clock && !faults.commits && !faults.unheard, ..faults };
        let shared = random.below(3) > 0;
        let count = if shared { 1 + usize::try_from(random.below(NODES as u64)).unwrap_or(0) } else { 1 };
        let sealer = Sealer::new(&[7; 32], random.clone());
        let world = Shared::new(World::new(random.clone(), clock.clone(), faults));
        let (nodes, violations) = (Vec::new(), Violations::default());
        let mut run = Self { world, doors, nodes, random, clock, sealer, violations, shared };
        run.furnish();
        for node in 0..count {
            run.nodes.push(Node::default());
            run.start(node);
        }
        run
    }

    /// One or two bots with two channels each: one patient, the other gives up soon.
    fn furnish(&mut self) {
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
            let patient = self.channel(id, bot * 10 + 1, vec![1, 2, 4, 8, 16, 20, 20, 20, 20, 20], 10);
            let hasty = self.channel(id, bot * 10 + 2, vec![1, 3], 2);
            let mut world = self.world.lock();
            world.tables.bots.insert(id, row);
            world.tables.channels.extend([(patient.id, patient), (hasty.id, hasty)]);
            world.said.insert(id, Vec::new());
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
            webhook: crate::text::json(&webhook),
            webhook_secret: None,
            webhook_old_secret: None,
            webhook_old_until: None,
            webhook_disabled: None,
            ai: crate::text::json(&AiSettings::default()),
            ai_api_key: None,
            on_plugin_error: OnPluginError::default(),
            lane_hold_s,
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
        let (door, egress) = &self.doors.0[node];
        door.set(Some(Behind { world: self.world.clone(), clock: clock.clone(), node }));
        let chat: Arc<dyn Network> = Arc::new(Chat { world: self.world.clone(), clock: clock.clone() });
        let small = self.random.below(4) == 0;
        let ctx = WorkContext {
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
            networks: Arc::new(HashMap::from([("chat".to_owned(), chat)])),
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
        };
        self.world.lock().note(format_args!("n{node} starts"));
        let tasks = Tasks::new();
        let entered = runtime.enter();
        let started = tasks.clone();
        tasks.spawn("start", async move {
            while Engine::start_work(ctx.clone(), started.clone()).await.is_err() {
                ctx.clock.sleep(Duration::from_secs(1)).await;
            }
        });
        drop(entered);
        self.nodes[node] = Node { runtime: Some(runtime), ..Node::default() };
    }

    fn kill(&mut self, node: usize) {
        self.world.lock().note(format_args!("n{node} dies"));
        self.nodes[node].runtime = None;
        self.world.lock().abandon_writes(node);
        let after = Duration::from_millis(self.random.below(8_000));
        self.nodes[node].starts_at = Some(self.clock.instant() + after);
    }

    /// Plays until everything is settled; the first broken promise, or what never settled.
    fn play(&mut self) -> Result<(), String> {
        self.play_until(self.clock.instant() + TROUBLE, true);
        self.calm();
        let end = self.clock.instant() + PEACE;
        while self.clock.instant() < end && self.world.lock().broken.is_none() {
            self.play_until(self.clock.instant() + Duration::from_secs(5), false);
            if self.world.lock().undone().is_empty() {
                break;
            }
        }
        let mut world = self.world.lock();
        let undone = world.undone();
        if world.broken.is_none() && undone.is_empty() {
            world.check_end();
        }
        let violations = self.violations.count();
        match world.broken.take() {
            None if violations > 0 => Err(format!("{violations} invariant(s) did not hold")),
            Some(promise) => Err(promise),
            None if undone.is_empty() => Ok(()),
            None => Err(format!("never settled: {}", undone.join("; "))),
        }
    }

    fn play_until(&mut self, end: Instant, trouble: bool) {
        while self.clock.instant() < end && self.world.lock().broken.is_none() {
            if trouble {
                self.disturb();
            }
            let quiet = self.run_nodes();
            let waiting = self.world.lock().is_waiting();
            if waiting && (quiet || self.random.below(3) > 0) {
                self.world.lock().commit();
            } else if quiet {
                self.advance(end, trouble);
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
                self.world.lock().note(format_args!("n{node} wakes"));
            }
            let Node { runtime: Some(runtime), paused_until: None, .. } = &self.nodes[node] else { continue };
            let world = &self.world;
            runtime.block_on(async {
                let mut quiet = 0;
                let mut seen = world.lock().activity;
                while quiet < QUIET {
                    tokio::task::yield_now().await;
                    let now = world.lock().activity;
                    quiet = if now == seen { quiet + 1 } else { 0 };
                    seen = now;
                }
            });
        }
        self.world.lock().activity == before
    }

    /// People talk, nodes die and stand still, the clock is set.
    fn disturb(&mut self) {
        let faults = self.world.lock().faults;
        if faults.clock && self.random.below(150) == 0 {
            let by = Duration::from_secs(STEPS_S[usize::try_from(self.random.below(4)).unwrap_or(0)]);
            let (now, back) = (self.clock.now(), self.random.below(2) == 0);
            let wall = if back { now - by } else { now + by };
            self.clock.set(wall);
            self.world.lock().note(format_args!("the clock is set from {now} to {wall}"));
        }
        if self.random.below(14) == 0 {
            let bots: Vec<BotId> = self.world.lock().said.keys().copied().collect();
            let bot = bots[usize::try_from(self.random.below(bots.len() as u64)).unwrap_or(0)];
            let peer = PEERS[usize::try_from(self.random.below(3)).unwrap_or(0)];
            self.world.lock().say(bot, peer);
        }
        let node = usize::try_from(self.random.below(self.nodes.len() as u64)).unwrap_or(0);
        if self.nodes[node].runtime.is_none() {
            return;
        }
        if faults.crashes && self.random.below(120) == 0 {
            self.kill(node);
        } else if faults.pauses && self.random.below(150) == 0 && self.nodes[node].paused_until.is_none() {
            let pause = Duration::from_millis(self.random.below(20_000));
            self.world.lock().note(format_args!("n{node} does not move for {pause:?}"));
            self.nodes[node].paused_until = Some(self.clock.instant() + pause);
        }
    }

    /// Moves the clock to the next moment at which someone wants to act.
    fn advance(&mut self, end: Instant, trouble: bool) {
        let (now, wall) = (self.clock.instant(), self.clock.now());
        let nodes = self
            .nodes
            .iter()
            .flat_map(|node| [node.starts_at.filter(|_| node.runtime.is_none()), node.paused_until]);
        let waits = self.clock.waits().into_iter().map(|at| Some(now + at.since(wall)));
        let timers = waits.chain(nodes).flatten();
        let mut next = timers.filter(|at| *at > now).min().unwrap_or(end).min(end);
        if trouble {
            // People do not wait for timers.
            next = next.min(now + Duration::from_millis(1 + self.random.below(1_500)));
        }
        self.clock.advance(next.since(now).max(Duration::from_millis(1)));
    }

    /// From now on nothing goes wrong.
    fn calm(&mut self) {
        let mut world = self.world.lock();
        world.faults = Faults::default();
        world.note("peace");
        drop(world);
        for node in &mut self.nodes {
            node.paused_until = node.paused_until.map(|_| self.clock.instant());
            node.starts_at = node.starts_at.filter(|_| node.runtime.is_none());
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        for (door, _) in &self.doors.0 {
            door.set(None);
        }
    }
}

/// One run, and what happened in it.
fn play(seed: u64, doors: &Doors) -> (Result<(), String>, Vec<String>) {
    let mut run = Run::new(seed, doors);
    let result = run.play();
    let log = std::mem::take(&mut run.world.lock().log);
    (result, log)
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

#[test]
fn promises_hold_under_a_thousand_seeds() {
    if let Some(seed) = number("HUB_TEST_SEED") {
        let (result, log) = play(seed, &Doors::new());
        println!("{}", log.join("\n"));
        assert_eq!(result, Ok(()), "seed {seed}");
        return;
    }
    let first = number("HUB_TEST_FIRST_SEED").unwrap_or(1);
    let last = first + number("HUB_TEST_SEEDS").unwrap_or(1_000);
    let next = AtomicU64::new(first);
    let worker = || {
        let doors = Doors::new();
        loop {
            let seed = next.fetch_add(1, Atomic::Relaxed);
            if seed >= last {
                return None;
            }
            if let (Err(promise), log) = play(seed, &doors) {
                next.store(last, Atomic::Relaxed);
                let end: Vec<_> = log.iter().rev().take(60).rev().cloned().collect();
                return Some(format!(
                    "{promise}\nrepeat with HUB_TEST_SEED={seed}; it ended:\n{}",
                    end.join("\n")
                ));
            }
        }
    };
    let broken = thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        let ends =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| panic::resume_unwind(p)));
        ends.flatten().collect::<Vec<_>>()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

#[test]
fn a_seed_repeats_itself() {
    let doors = Doors::new();
    for seed in 1..=10 {
        let (first, second) = (play(seed, &doors), play(seed, &doors));
        let differs = first.1.iter().zip(&second.1).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.1.len(), second.1.len(), "seed {seed}");
    }
}
