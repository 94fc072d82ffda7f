//! The hub's side of a worker process.

use std::{borrow::Cow, collections::HashSet, io, process::ExitStatus, time::Duration};

use bytes::{Buf as _, BytesMut};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{
    Deadline, SandboxFault, Task,
    fetch_gate::{FetchGate, NoFetch},
    frame::{self, FRAME_TIME, FromWorker, MAX_FROM_WORKER, MAX_TO_WORKER, Malformed, ToWorker},
    hook::{ErrorKind, HookInput, HookOutcome, Limits, MAX_FETCHES, ScriptError, Source},
    watchdog::TIMED_OUT,
};
use crate::time::Clock;

/// Time after the deadline at which a worker that did not end by itself is killed.
const GRACE: Duration = Duration::from_millis(200);
/// Time limit for a worker to start, or to clean up after a run.
const READY: Duration = Duration::from_secs(10);
/// Time limit for a worker to exit after it closed its pipe.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);
/// Runs after which a worker is replaced.
const MAX_RUNS: u32 = 1_000;
/// Sources after which a worker is replaced: it keeps what it compiled.
const MAX_SOURCES: usize = 64;
/// Signals from outside: HUP, INT, QUIT, KILL and TERM are sent by an operator or by a system short of memory. A
/// process does not cause them itself.
#[cfg(unix)]
const SENT: [i32; 5] = [1, 2, 3, 9, 15];
/// Bytes read of a dead worker's standard error.
const MAX_COMPLAINT: u64 = 2 * 1024;

/// A worker process that makes one run after another. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: ChildStdin,
    output: Frames<ChildStdout>,
    /// Hashes of the sources sent to it.
    known: HashSet<[u8; 32]>,
    runs: u32,
    /// Whether its system calls are filtered.
    filtered: bool,
    /// Whether it is idle and accepts a job.
    ready: bool,
    /// Whether it may be used again.
    sound: bool,
}

impl Worker {
    pub(super) async fn start(mut command: Command, clock: &Clock) -> Result<Self, SandboxFault> {
        let unavailable = |error: io::Error| SandboxFault::Unavailable(error.to_string());
        let mut child = command.spawn().map_err(unavailable)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SandboxFault::Unavailable("it has no pipes".to_owned()));
        };
        let (known, output) = (HashSet::new(), Frames { source: output, buffer: BytesMut::new() });
        let mut worker =
            Self { child, input, output, known, runs: 0, filtered: false, ready: false, sound: true };
        worker.get_ready(clock).await?;
        Ok(worker)
    }

    /// Whether it can make another run of this source.
    pub(super) fn suits(&self, source: &Source) -> bool {
        self.sound
            && self.runs < MAX_RUNS
            && (self.known.len() < MAX_SOURCES || self.known.contains(&source.hash()))
    }

    /// Whether its system calls are filtered.
    pub(super) fn is_filtered(&self) -> bool {
        self.filtered
    }

    /// Its process, while that lives.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether it may be kept.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }

    /// Waits until the worker has started or has cleaned up after its last run.
    pub(super) async fn get_ready(&mut self, clock: &Clock) -> Result<(), SandboxFault> {
        if self.ready {
            return Ok(());
        }
        match clock.timeout(READY, self.output.next()).await {
            Some(Ok(FromWorker::Ready { filtered })) => {
                (self.filtered, self.ready) = (filtered, true);
                Ok(())
            }
            Some(Ok(_)) => Err(self.terminate("it did not wait for work", clock).await.fault),
            Some(Err(reason)) => Err(self.terminate(&reason, clock).await.fault),
            None => Err(self.terminate("it did not get ready", clock).await.fault),
        }
    }

    pub(super) async fn run(
        &mut self,
        source: &Source,
        task: &Task,
        gate: &dyn FetchGate,
        clock: &Clock,
    ) -> Result<HookOutcome, SandboxFault> {
        let input = task.input();
        let job = match task {
            Task::Names => self.search(source),
            Task::Run(_) | Task::Compile => self.job(source, input.as_slice()),
        };
        let Ok(job) = job else {
            let error = ScriptError::new(ErrorKind::Output, "the message is too large for a plugin");
            return Ok(HookOutcome { error: Some(error), ..HookOutcome::default() });
        };
        let limit = input.map_or(Limits::default().timeout, |input| input.limits.timeout);
        let (deadline, mut outcomes) = (Deadline::in_(limit), Vec::with_capacity(1));
        let run = self.converse(&job, gate, deadline, &mut outcomes);
        match clock.timeout(limit + GRACE, run).await {
            Some(Ok(())) => Ok(outcomes.pop().unwrap_or_default()),
            Some(Err(reason)) => match self.terminate(&reason, clock).await {
                Termination { ended: Ended::TimedOut, .. } => {
                    Ok(failed(deadline, ScriptError::timeout(limit)))
                }
                Termination { ended: Ended::Crashed(how), .. } => {
                    Ok(failed(deadline, ScriptError::crash(&how)))
                }
                Termination { fault, .. } => Err(fault),
            },
            None => {
                let _ = self.child.kill().await;
                Ok(failed(deadline, ScriptError::timeout(limit)))
            }
        }
    }

    /// Makes runs that fetch nothing, in one frame. Returns the outcomes of the first ones: the others were not made,
    /// or one of them ended the worker.
    pub(super) async fn run_together(
        &mut self,
        source: &Source,
        inputs: &[&HookInput],
        clock: &Clock,
    ) -> Vec<HookOutcome> {
        let (Ok(job), mut outcomes) = (self.job(source, inputs), Vec::with_capacity(inputs.len())) else {
            return Vec::new();
        };
        let longest = inputs.iter().map(|input| input.limits.timeout).max().unwrap_or_default();
        let limit = FRAME_TIME + longest + GRACE;
        let run = self.converse(&job, &NoFetch, Deadline::in_(limit), &mut outcomes);
        match clock.timeout(limit, run).await {
            Some(Ok(())) => {}
            Some(Err(reason)) => drop(self.terminate(&reason, clock).await),
            None => drop(self.child.kill().await),
        }
        outcomes
    }

    /// Encodes a search for names as a frame. The search counts as a run.
    fn search(&mut self, source: &Source) -> Result<Job, Malformed> {
        self.runs = self.runs.saturating_add(1);
        let first = u64::from(self.runs);
        let frame = ToWorker::Names { id: first, source: source.text().into() };
        Ok(Job { first, runs: 1, frame: frame::encode(&frame, MAX_TO_WORKER)? })
    }

    /// Encodes runs as a frame and counts them as made.
    fn job(&mut self, source: &Source, inputs: &[&HookInput]) -> Result<Job, Malformed> {
        let first = u64::from(self.runs) + 1;
        let runs = inputs.len().max(1);
        let new = self.known.insert(source.hash());
        let frame = ToWorker::Run {
            id: first,
            hash: source.hash(),
            source: new.then(|| source.text().into()),
            inputs: inputs.iter().map(|input| Cow::Borrowed(*input)).collect(),
        };
        let frame = frame::encode(&frame, MAX_TO_WORKER);
        if frame.is_err() && new {
            self.known.remove(&source.hash());
        }
        self.runs = self.runs.saturating_add(u32::try_from(runs).unwrap_or(u32::MAX));
        Ok(Job { first, runs, frame: frame? })
    }

    /// Sends the job, answers fetches, waits for the outcomes.
    async fn converse(
        &mut self,
        job: &Job,
        gate: &dyn FetchGate,
        deadline: Deadline,
        outcomes: &mut Vec<HookOutcome>,
    ) -> Result<(), String> {
        // Unset until the worker has responded, also when the future is dropped before.
        self.ready = false;
        self.sound = false;
        let mut to_write = BytesMut::from(&*job.frame);
        let mut fetches = FuturesUnordered::new();
        let mut count = 0;
        loop {
            tokio::select! {
                message = self.output.next() => match message? {
                    FromWorker::Done { id, outcome } if id == job.first + outcomes.len() as u64 => {
                        outcome.check().map_err(|malformed| malformed.to_string())?;
                        let kind = outcome.error.as_ref().map(|error| error.kind);
                        // The worker then ends by itself.
                        let is_broken = matches!(kind, Some(ErrorKind::Timeout | ErrorKind::Memory));
                        outcomes.push(outcome);
                        if is_broken || outcomes.len() == job.runs {
                            self.sound = !is_broken;
                            return Ok(());
                        }
                    }
                    // The worker makes no more runs of this frame.
                    FromWorker::Ready { .. } if !outcomes.is_empty() => {
                        (self.ready, self.sound) = (true, true);
                        return Ok(());
                    }
                    FromWorker::Fetch { id, fetch, call } if id == job.first && job.runs == 1 && count < MAX_FETCHES => {
                        count += 1;
                        fetches.push(async move { (fetch, gate.fetch(call, deadline.left()).await) });
                    }
                    _ => return Err("it sent a frame that was not due".to_owned()),
                },
                // Read and write at the same time: with full pipes each side would wait for the other.
                written = self.input.write_buf(&mut to_write), if !to_write.is_empty() => {
                    written.map_err(|error| error.to_string())?;
                }
                Some((fetch, answer)) = fetches.next() => {
                    let answer = ToWorker::Answer { id: job.first, fetch, answer };
                    let frame = frame::encode(&answer, MAX_TO_WORKER).map_err(|malformed| malformed.to_string())?;
                    to_write.extend_from_slice(&frame);
                }
            }
        }
    }

    /// Ends the process if it still runs, and returns how it ended.
    async fn terminate(&mut self, reason: &str, clock: &Clock) -> Termination {
        self.sound = false;
        // Wait first: an exit code of its own says more than the signal that kills it.
        let status = if let Some(status) = clock.timeout(EXIT_TIMEOUT, self.child.wait()).await {
            status.ok()
        } else {
            let _ = self.child.kill().await;
            None
        };
        let how = Ended::of(status, reason);
        let mut complaint = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            // Another process may hold the pipe open.
            let mut stderr = stderr.take(MAX_COMPLAINT);
            let _ = Box::pin(clock.timeout(EXIT_TIMEOUT, stderr.read_to_end(&mut complaint))).await;
        }
        let ended = status.map_or_else(|| "killed".to_owned(), |status| status.to_string());
        let complaint = String::from_utf8_lossy(&complaint).into_owned();
        tracing::warn!(reason, ended, complaint, "a plugin worker ended");
        Termination { ended: how, fault: SandboxFault::Crashed(format!("{reason} ({ended})")) }
    }
}

struct Job {
    /// Number of the first one.
    first: u64,
    /// Number of runs; 1 when the source is only compiled.
    runs: usize,
    frame: Vec<u8>,
}

struct Termination {
    ended: Ended,
    fault: SandboxFault,
}

enum Ended {
    /// Ended by its own watchdog.
    TimedOut,
    /// Ended by what the script did to the engine, with the reason.
    Crashed(String),
    /// Ended by a signal from another process.
    Killed,
}

impl Ended {
    /// Classifies an exit. No `status` means that the worker still ran after it closed its pipe or broke the protocol
    /// and was killed by the hub.
    fn of(status: Option<ExitStatus>, reason: &str) -> Self {
        let Some(status) = status else { return Self::Crashed(reason.to_owned()) };
        if status.code() == Some(TIMED_OUT) {
            return Self::TimedOut;
        }
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&status).is_some_and(|n| SENT.contains(&n)) {
            return Self::Killed;
        }
        Self::Crashed(status.to_string())
    }
}

fn failed(deadline: Deadline, error: ScriptError) -> HookOutcome {
    HookOutcome { error: Some(error), duration: deadline.elapsed(), ..HookOutcome::default() }
}

/// Reads frames. A frame read in part stays in the buffer when the read is cancelled.
#[derive(Debug)]
struct Frames<R> {
    source: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    async fn next(&mut self) -> Result<FromWorker, String> {
        loop {
            if let Some(head) = self.buffer.first_chunk::<4>() {
                let length =
                    frame::length(*head, MAX_FROM_WORKER).map_err(|malformed| malformed.to_string())?;
                if let Some(json) = self.buffer.get(4..4 + length) {
                    let message = frame::decode(json).map_err(|malformed| malformed.to_string())?;
                    self.buffer.advance(4 + length);
                    return Ok(message);
                }
                self.buffer.reserve(4 + length - self.buffer.len());
            }
            match self.source.read_buf(&mut self.buffer).await {
                Ok(0) => return Err("it closed its pipe".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}
