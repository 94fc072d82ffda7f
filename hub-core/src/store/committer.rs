//! The committer: one task, one transaction for everything that waits.
//!
//! It takes commands as they arrive, batches them with little added latency, and survives every database error until
//! the storage itself fails.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    backend::Backend,
    clock::StoreClock,
    connections::{CommitLog, Connections},
    fault::is_fatal,
    jobs::execute,
    writer::{Command, ENOUGH_ROWS, Inbox, PROBE_INTERVAL, boxed},
};
use crate::{
    counters::{self, Spread},
    error::{Error, Result},
    store::views::Tx,
    time::{Clock, Instant, Stopwatch},
};

/// Most commands of one transaction.
const MAX_BATCH: usize = 256;
/// Pause between a batch that failed as a whole and the next one.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);

/// Determines the start of each transaction: a transaction carries many commands under load and begins at once
/// otherwise.
///
/// A message is delivered only after the commit that accepts it, so that commit begins as soon as the writer is free.
/// Commands that arrive while the writer is busy share the next commit: the higher the load, the larger the commit.
/// An outcome that nothing waits for joins the next commit, or begins one after [`Pacing::longest`].
#[derive(Debug)]
struct Pacing {
    /// Longest wait of an outcome for other commands, and longest pause.
    longest: Duration,
    ready_at: Instant,
}

impl Pacing {
    fn new(backend: &Backend, now: Instant) -> Self {
        let longest = match backend {
            Backend::Sqlite { .. } => Duration::from_millis(10),
            Backend::Postgres { .. } => Duration::from_millis(25),
        };
        Self { longest, ready_at: now }
    }

    /// Records a commit. A commit of many rows shows load: the writer then pauses for as long as the commit took, so
    /// that the next one has more rows. Few rows need no pause: commands gather while a commit is in progress.
    fn note_commit(&mut self, ended: Instant, took: Duration, rows: usize) {
        let pause = if rows >= MANY_ROWS { took.min(self.longest) } else { Duration::ZERO };
        self.ready_at = ended + pause;
    }

    /// Returns the earliest start of a transaction whose first command arrived at `since`.
    fn begins_at(&self, since: Instant, is_awaited: bool) -> Instant {
        if is_awaited { self.ready_at } else { self.ready_at.max(since + self.longest) }
    }
}

/// Rows of a commit after which the writer pauses.
const MANY_ROWS: usize = ENOUGH_ROWS / 2;

/// Counters of the committer, for tests and metrics.
#[derive(Debug)]
pub struct StoreStats {
    /// Connections taken for reading.
    pub reads: AtomicU64,
    /// Transactions committed.
    pub commits: AtomicU64,
    /// Transactions that moved entries of the commit log into the tables.
    pub flushes: AtomicU64,
    /// Commands in the committed transactions.
    pub commands: AtomicU64,
    /// Batches that failed as a whole.
    pub failures: AtomicU64,
    /// Commands per transaction.
    pub batch: Spread<9>,
    /// From the first command of a transaction to its commit, in microseconds.
    pub latency: Spread<12>,
}

impl Default for StoreStats {
    fn default() -> Self {
        Self {
            reads: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            batch: Spread::new([1, 2, 4, 8, 16, 32, 64, 128, MAX_BATCH as u64]),
            latency: Spread::new([
                100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000,
            ]),
        }
    }
}

impl StoreStats {
    fn note_commit(&self, commands: u64, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands, Ordering::Relaxed);
        self.batch.add(commands);
        self.latency.add(counters::micros(took));
    }
}

/// Signals between the store and the committer: a stop request, and a failure of the storage.
pub(super) struct Signals {
    /// Accept no new commands and finish those that wait.
    pub stop: CancellationToken,
    /// Cancelled by the committer when it must not acknowledge commits any more.
    pub fatal: CancellationToken,
    /// Whether the last commit succeeded.
    pub writable: Arc<AtomicBool>,
    pub log: Arc<CommitLog>,
}

/// Runs until it is stopped and nothing waits, or until the storage failed permanently.
pub(super) async fn run(
    backend: Backend,
    mut inbox: Inbox,
    clock: StoreClock,
    stats: Arc<StoreStats>,
    signals: Signals,
) {
    let mut connections = Connections::new(Arc::clone(&signals.log));
    let mut batch = Vec::with_capacity(MAX_BATCH);
    // The database's time, not the hub's: a clock that does not move must not prevent a probe.
    let machine = Clock::system();
    let mut probe_at = machine.instant();
    let mut pacing = Pacing::new(&backend, machine.instant());
    loop {
        let mut probing = false;
        let probe_due = async {
            if machine.instant() < probe_at {
                machine.sleep_until(probe_at).await;
            }
        };
        let flush_at = connections.flush_at(inbox.0.is_empty(), signals.writable.load(Ordering::Relaxed));
        let flush_due = async {
            if let Some(at) = flush_at.filter(|at| machine.instant() < *at) {
                machine.sleep_until(at).await;
            }
        };
        let received = tokio::select! {
            biased;
            () = signals.stop.cancelled(), if !inbox.0.is_closed() => {
                inbox.0.close();
                continue;
            }
            // Before other commands, of which there is no end under load.
            () = probe_due, if !signals.writable.load(Ordering::Relaxed) => {
                probing = true;
                batch.push(Command::Run(boxed(|tx| probe(tx).boxed()), oneshot::channel().0));
                1
            }
            () = flush_due, if flush_at.is_some() => {
                batch.push(Command::Flush(oneshot::channel().0));
                1
            }
            received = inbox.0.recv_many(&mut batch, MAX_BATCH) => received,
        };
        if received == 0 {
            break;
        }
        if !probing {
            gather(&mut inbox, &mut batch, &pacing).await;
        }
        let flushes = batch.iter().filter(|command| matches!(command, Command::Flush(_))).count();
        let rows = batch.iter().map(Command::rows).sum();
        let (commands, begun) = ((batch.len() - flushes) as u64, Stopwatch::start());
        let outcome = connections.write(&backend, &mut batch, &clock, &stats);
        let outcome = AssertUnwindSafe(outcome).catch_unwind().await;
        // Who waited for an answer finds it gone; the committer goes on.
        let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("the committer panicked")));
        // What a panic left here may be stored already, and must not be written again as a repeat.
        batch.clear();
        if outcome.is_err() {
            stats.failures.fetch_add(1, Ordering::Relaxed);
        }
        match outcome {
            Ok(()) => {
                let took = begun.elapsed();
                // After a flush alone there is no pause: what came meanwhile has gathered.
                if commands > 0 {
                    stats.note_commit(commands, took);
                    pacing.note_commit(machine.instant(), took, rows);
                }
                // Only a probe shows it: another command may have had nothing to write.
                if probing {
                    signals.writable.store(true, Ordering::Relaxed);
                    tracing::info!("writes succeed again");
                }
            }
            Err(error) if is_fatal(&error) => {
                signals.writable.store(false, Ordering::Relaxed);
                tracing::error!(error = %error.chain(), "the storage failed; nothing is acknowledged any more");
                signals.fatal.cancel();
                return;
            }
            // A fresh connection next time: the state of this one is unknown.
            Err(error) => {
                probe_at = machine.instant() + PROBE_INTERVAL;
                connections.flush_later();
                // Told once, however often it is tried: a full disk has no room for a long log.
                if signals.writable.swap(false, Ordering::Relaxed) {
                    tracing::warn!(error = %error.chain(), commands, "writes fail; retrying");
                }
                // The database's time, not the hub's: a clock that does not move must not stop the committer.
                Clock::system().sleep(FAILURE_PAUSE).await;
            }
        }
    }
    // What does not succeed now is done by the next process.
    let _ = connections.flush(&backend, &stats).await;
    connections.close().await;
}

/// Waits for more commands until it is time to begin, or the batch is large enough.
async fn gather(inbox: &mut Inbox, batch: &mut Vec<Command>, pacing: &Pacing) {
    // The machine's time here, too.
    let machine = Clock::system();
    let since = machine.instant();
    let (mut seen, mut rows, mut is_awaited) = (0, 0, false);
    while batch.len() < MAX_BATCH {
        rows += batch[seen..].iter().map(Command::rows).sum::<usize>();
        is_awaited |= batch[seen..].iter().any(Command::is_awaited);
        seen = batch.len();
        let left = pacing.begins_at(since, is_awaited).since(machine.instant());
        if rows >= ENOUGH_ROWS || left.is_zero() {
            return;
        }
        match machine.timeout(left, inbox.0.recv_many(batch, MAX_BATCH - seen)).await {
            // Told to stop, and nothing waits any more.
            None | Some(0) => return,
            Some(_) => {}
        }
    }
}

/// A write that changes nothing and takes all that a write takes.
async fn probe(tx: &mut Tx) -> Result<()> {
    let some_bot = "UPDATE bots SET created_at = created_at WHERE id = (SELECT id FROM bots LIMIT 1)";
    execute(tx, some_bot, "PRAGMA user_version = 0").await
}
