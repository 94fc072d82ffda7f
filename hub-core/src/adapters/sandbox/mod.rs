//! Sandbox for plugins: untrusted JavaScript in processes that can be killed.
//!
//! A worker is the hub's own program started with [`WORKER_ARGUMENT`], without environment, files, network or
//! descriptors. It makes one run at a time, each in a new engine. Input and output are JSON. The hub makes the
//! fetches of a plugin, through a [`FetchGate`].
//!
//! Under load, runs of one tenant and source that fetch nothing are sent to a worker together, up to 16, and reported
//! together; each still has a new engine. When one of them ends the worker, the runs without an outcome are repeated,
//! each alone, which shows the cause.
//!
//! A plugin is an ES module: strict code, no imports, and no code generation from text, because its context has no
//! compiler. The worker compiles the bytecode from the source, and the bytecode never leaves it.
//!
//! On Linux a worker may make no system call but those for memory, threads, clocks and its pipes. Where this filter
//! cannot be installed, on another system or under a strict container profile, a worker has limits and an empty
//! environment only, and no plugin runs unless [`SandboxConfig::filter`] is [`CallFilter::Optional`].
//!
//! | what | cap | at the cap |
//! |---|---|---|
//! | wall time of a run | [`Limits::timeout`], at most 10 s | the engine is interrupted, 50 ms later the worker ends itself, 200 ms after the deadline the hub kills it: `timeout` |
//! | memory of a run | [`Limits::memory`], 32 MiB; the process 256 MiB more than it starts with | `memory`, or `crash` when the engine does not survive it |
//! | calls | 1000 levels, less for large frames | `RangeError` in the plugin |
//! | source | 256 KiB | `syntax` |
//! | replies | 10, texts of 64 KiB | dropped with a log line; a `RangeError` in the plugin |
//! | log | 100 lines, 8 KiB | the rest is dropped |
//! | replies, request and state together | 512 KiB, 64 headers, 64 KiB of state, 64 levels of JSON | `output` |
//! | fetches of a run | 5, sending 256 KiB each | a `RangeError` in the plugin |
//! | runs of one worker | 1,000, and 64 sources | it is replaced; also after a timeout or a full heap |
//! | runs sent together | 16, 20 ms and 256 KiB of outcomes; none of a tenant whose last run did not end in time | the rest waits |
//! | runs at a time | [`SandboxConfig::workers`] | they wait |
//! | runs waiting | [`SandboxConfig::queue`], and a quarter of that per tenant | [`SandboxFault::Busy`] |
//!
//! A failure of a plugin is the [`error`](HookOutcome::error) of its outcome, also when it crashes its worker. A
//! failure of the sandbox is a [`SandboxFault`], after which a retry is always possible.

mod engine;
mod fault;
mod fetch_gate;
mod frame;
mod hook;
mod in_process;
mod launcher;
mod lockdown;
mod pool;
mod process;
mod tokens;
mod watchdog;
mod worker;

use std::{sync::Arc, time::Duration};

pub use self::{
    fault::SandboxFault,
    fetch_gate::{FetchAnswer, FetchCall, FetchGate, NoFetch},
    frame::Malformed,
    hook::*,
    launcher::{CallFilter, Confinement},
    tokens::{Token, tokens},
    worker::run_worker_if_asked,
};
use self::{
    launcher::Launcher,
    pool::{Joined, Offer, Pool, Turn},
    process::Worker,
};
use crate::{
    tasks::Tasks,
    time::{Clock, Stopwatch, Timestamp},
};

/// The first argument of a program that is started as a worker.
pub const WORKER_ARGUMENT: &str = "__sandbox";

/// Program that is started as a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WorkerProgram {
    /// None: no plugin can run.
    #[default]
    None,
    /// This program. Its `main` must begin with [`run_worker_if_asked`].
    SelfExe,
    /// Another program whose `main` begins with [`run_worker_if_asked`].
    Path(std::path::PathBuf),
    /// No program: plugins run in this process, where one of them can stop it, fill its memory and read it. Only for
    /// plugins you wrote yourself.
    InProcessTrustedOnly,
}

/// Settings of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Program that is started as a worker.
    pub worker: WorkerProgram,
    /// Whether plugins run where system calls cannot be filtered.
    pub filter: CallFilter,
    /// Runs at a time; each worker is a process, started when it is needed.
    pub workers: usize,
    /// Maximum number of waiting runs; one tenant may have a quarter of them.
    pub queue: usize,
}

impl Default for SandboxConfig {
    /// No program, a required filter, as many workers as processors, at least 2, and a queue of 256 runs.
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
        Self { worker: WorkerProgram::None, filter: CallFilter::Required, workers, queue: 256 }
    }
}

impl SandboxConfig {
    /// Workers of a program, everything else at its default.
    pub fn of(worker: WorkerProgram) -> Self {
        Self { worker, ..Self::default() }
    }
}

/// Makes the runs of plugins. Clones share the workers.
#[derive(Debug, Clone)]
pub struct Sandbox {
    launcher: Arc<Launcher>,
    pool: Arc<Pool>,
    clock: Clock,
    /// Runs the starts of spare workers.
    tasks: Tasks,
}

impl Sandbox {
    /// A sandbox; workers are started when they are needed.
    pub fn new(config: SandboxConfig, clock: Clock) -> Self {
        let SandboxConfig { worker, filter, workers, queue } = config;
        let launcher = Arc::new(Launcher::new(worker, filter));
        Self { launcher, pool: Pool::new(workers, queue), clock, tasks: Tasks::new() }
    }

    /// Makes one run: waits for a worker, calls the hook, makes its fetches. Failures of the plugin are in the
    /// outcome. Dropping the future kills the worker.
    ///
    /// # Errors
    /// [`SandboxFault`]: no run was made, or its outcome is unknown. It can be repeated.
    pub async fn run(&self, run: HookRun, gate: &dyn FetchGate) -> Result<HookOutcome, SandboxFault> {
        let HookRun { tenant, source, input } = run;
        self.work(&tenant, &source, Task::Run(Arc::new(input)), gate).await
    }

    /// Compiles a plugin without running it. Returns the error if the source is not JavaScript.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn check(&self, tenant: &str, source: &Source) -> Result<Option<ScriptError>, SandboxFault> {
        self.work(tenant, source, Task::Compile, &NoFetch).await.map(|outcome| outcome.error)
    }

    /// Finds the names that a source uses although neither it nor the sandbox declares them, at most 64, sorted:
    /// using one throws a `ReferenceError`, except within `typeof`. `ctx`, which only the published dialect has as a
    /// global, and `eval` are excluded. The search ends after two seconds with the names found so far. Empty for a
    /// source that is not JavaScript.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn unknown_names(&self, tenant: &str, source: &Source) -> Result<Vec<String>, SandboxFault> {
        self.work(tenant, source, Task::Names, &NoFetch).await.map(|outcome| outcome.unknown_names)
    }

    /// Starts a worker to learn how plugins are confined, and ends it. The result is logged for the operator.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn probe(&self) -> Result<(), SandboxFault> {
        if self.launcher.runs_in_process() {
            return Ok(());
        }
        self.launcher.start(&self.clock).await.map(drop)
    }

    /// The confinement of plugins, as the last started worker reported it.
    pub fn confinement(&self) -> Confinement {
        self.launcher.confinement()
    }

    /// Rejects waiting runs and ends the idle workers. Busy workers end after their run.
    pub fn close(&self) {
        self.pool.close();
    }

    /// Process ids of idle workers.
    pub fn idle_workers(&self) -> Vec<u32> {
        self.pool.idle_workers()
    }

    async fn work(
        &self,
        tenant: &str,
        source: &Source,
        task: Task,
        gate: &dyn FetchGate,
    ) -> Result<HookOutcome, SandboxFault> {
        self.launcher.check()?;
        let queued = self.clock.now();
        let together = match &task {
            Task::Run(input) => Some(input).filter(|input| input.may_run_together()),
            Task::Compile | Task::Names => None,
        };
        let mut offer = together.map(|input| Offer { source: source.hash(), input: Arc::clone(input) });
        let slot = loop {
            match self.pool.turn(tenant, offer.clone()).await? {
                Turn::Slot(slot) => break slot,
                Turn::Ran(outcome, began) => {
                    return Ok(HookOutcome { waited: began.since(queued), ..*outcome });
                }
                Turn::Alone => offer = None,
            }
        };
        let (mut began, mut well) = (self.clock.now(), true);
        let mut made = if self.launcher.runs_in_process() {
            in_process::run(source.clone(), task, gate).await
        } else {
            let mut worker = self.worker(source).await?;
            began = self.clock.now();
            let together = match offer.map(|offer| (self.pool.join(&slot, &offer.source), offer.input)) {
                Some((joined, input)) if !joined.is_empty() => {
                    let (own, ended) = self.run_together(&mut worker, source, &input, joined, began).await;
                    well = ended;
                    own
                }
                _ => None,
            };
            let made = if let Some(outcome) = together {
                Ok(outcome)
            } else {
                if !worker.is_sound() {
                    worker = self.worker(source).await?;
                }
                worker.run(source, &task, gate, &self.clock).await
            };
            if !self.pool.keep(worker) {
                self.start_spare();
            }
            made
        };
        if let Ok(outcome) = &mut made {
            outcome.waited = began.since(queued);
        }
        slot.judge(well && made.as_ref().is_ok_and(|outcome| !outcome.is_overrun()));
        made
    }

    /// Makes a run together with waiting ones and hands them their outcomes. Returns its own outcome, without which
    /// it has to be made alone, and whether all runs ended by themselves.
    async fn run_together(
        &self,
        worker: &mut Worker,
        source: &Source,
        input: &HookInput,
        joined: Joined,
        began: Timestamp,
    ) -> (Option<HookOutcome>, bool) {
        let inputs: Vec<&HookInput> = std::iter::once(input).chain(joined.inputs()).collect();
        let outcomes = worker.run_together(source, &inputs, &self.clock).await;
        let well = !outcomes.iter().any(HookOutcome::is_overrun);
        let mut outcomes = outcomes.into_iter();
        let own = outcomes.next();
        joined.ran(outcomes, began);
        (own, well)
    }

    /// Starts a worker to replace a lost one, so that the next run need not wait for the start.
    fn start_spare(&self) {
        let Some(start) = self.pool.spare() else { return };
        let (launcher, clock) = (Arc::clone(&self.launcher), self.clock.clone());
        self.tasks.spawn("spare plugin worker", async move {
            // If the start fails, the next run reports the error.
            if let Ok(worker) = launcher.start(&clock).await {
                start.done(worker);
            }
        });
    }

    /// An idle worker that is ready, or a new one.
    async fn worker(&self, source: &Source) -> Result<Worker, SandboxFault> {
        while let Some(mut worker) = self.pool.idle(source) {
            // A worker that died while it cleaned up is a consequence of its last run, so this run takes another one.
            if worker.get_ready(&self.clock).await.is_ok() {
                return Ok(worker);
            }
        }
        self.launcher.start(&self.clock).await
    }
}

#[derive(Debug, Clone)]
enum Task {
    Run(Arc<HookInput>),
    Compile,
    Names,
}

impl Task {
    fn input(&self) -> Option<&HookInput> {
        match self {
            Self::Run(input) => Some(input),
            Self::Compile | Self::Names => None,
        }
    }
}

/// Deadline of a run. It uses real time in the worker and in the hub: the loop of a plugin does not wait for a test
/// clock.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    watch: Stopwatch,
    limit: Duration,
}

impl Deadline {
    fn in_(limit: Duration) -> Self {
        Self { watch: Stopwatch::start(), limit }
    }

    fn elapsed(self) -> Duration {
        self.watch.elapsed()
    }

    fn left(self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    fn over(self) -> bool {
        self.elapsed() >= self.limit
    }
}
