//! The committer: one task, one connection, one transaction for everything that waits.
//!
//! Callers hand over a command and wait for its answer, which comes after the commit that holds it. A caller
//! that goes away drops only the answer, never the transaction (design rules D1 and D4). Commands of the hot
//! path are merged into multi-row statements; every other command runs in a savepoint of its own, so that its
//! failure undoes nothing of its neighbours.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    backend::Backend,
    conn::{Conn, Owned, Tx, on},
    deliveries::{self, Finished},
    fault::{is_fatal, is_outage},
    inbox::{self, Accept, Accepted},
};
use crate::{
    counters::{self, Spread},
    error::{Error, ErrorCode, Result},
    time::{Clock, Stopwatch},
};

/// Most commands of one transaction.
const BATCH: usize = 256;
/// Commands that may wait; beyond that callers wait for room.
const QUEUE: usize = 1024;
/// Between a batch that failed as a whole and the next one.
const PAUSE: Duration = Duration::from_millis(100);
/// As long as writes fail, one is tried this often, so that it shows when they work again (reliability P8).
const PROBE: Duration = Duration::from_secs(1);
/// Under load, commits on the way of messages begin this far apart: what comes meanwhile shares one. After a
/// quiet moment a commit begins at once.
const PACE: Duration = Duration::from_millis(10);
/// Rows that are worth a commit of their own, whenever the last one was.
const WORTHWHILE: usize = 128;

type Job = Box<dyn for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<Box<dyn Any + Send>>> + Send>;
type Reply<T> = oneshot::Sender<Result<T>>;

enum Command {
    Accept(Accept, Reply<Accepted>),
    Finish(Arc<Finished>, Reply<()>),
    Run(Job, Reply<Box<dyn Any + Send>>),
}

impl Command {
    /// How many rows it brings, as far as that decides when to commit. What somebody may be waiting for at the
    /// API is worth a commit alone.
    fn worth(&self) -> usize {
        match self {
            Self::Accept(accept, _) => accept.messages.len().max(1),
            Self::Finish(..) => 1,
            Self::Run(..) => WORTHWHILE,
        }
    }
}

/// The sending end; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Writer(mpsc::Sender<Command>);

/// What the committer counted, for tests and metrics.
#[derive(Debug)]
pub struct WriterStats {
    /// Transactions committed.
    pub commits: AtomicU64,
    /// Commands inside them.
    pub commands: AtomicU64,
    /// Batches that failed as a whole.
    pub failures: AtomicU64,
    /// Commands per transaction.
    pub batch: Spread<9>,
    /// From the first command of a transaction to its commit, in microseconds.
    pub latency: Spread<12>,
}

impl Default for WriterStats {
    fn default() -> Self {
        Self {
            commits: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            batch: Spread::new([1, 2, 4, 8, 16, 32, 64, 128, BATCH as u64]),
            latency: Spread::new([
                100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_500_000,
            ]),
        }
    }
}

impl WriterStats {
    fn note_commit(&self, commands: u64, took: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.commands.fetch_add(commands, Ordering::Relaxed);
        self.batch.add(commands);
        self.latency.add(counters::micros(took));
    }
}

impl Writer {
    pub(super) fn new() -> (Self, Inbox) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), Inbox(receiver))
    }

    pub(super) async fn accept(&self, accept: Accept) -> Result<Accepted> {
        self.ask(|reply| Command::Accept(accept, reply)).await
    }

    pub(super) async fn finish(&self, finished: Arc<Finished>) -> Result<()> {
        self.ask(|reply| Command::Finish(finished, reply)).await
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let answer = self.ask(|reply| Command::Run(boxed(job), reply)).await?;
        Ok(*answer.downcast().expect("the job made this very type"))
    }

    /// Hands a command over without waiting for anything; a full queue drops it.
    pub(super) fn run_later<T: Send + 'static>(
        &self,
        job: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) {
        let (reply, _) = oneshot::channel();
        let _ = self.0.try_send(Command::Run(boxed(job), reply));
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        let stopped = || Error::new(ErrorCode::Unavailable, "the store is shutting down");
        // The transaction failed, or the committer panicked: whoever repeats it has to be ready for both.
        let dropped =
            || Error::new(ErrorCode::Unavailable, "the write was interrupted").with_retry_after(PROBE);
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| dropped())?
    }
}

/// Forgets the type of a command's answer, so that commands of all kinds share one queue.
fn boxed<T: Send + 'static>(
    job: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
) -> Job {
    Box::new(move |tx| {
        let run = job(tx);
        async move { run.await.map(|value| Box::new(value) as Box<dyn Any + Send>) }.boxed()
    })
}

/// The receiving end, owned by the committer.
pub(super) struct Inbox(mpsc::Receiver<Command>);

/// How the committer is told to stop, and how it tells that the storage failed.
pub(super) struct Signals {
    /// Take nothing new; finish what waits.
    pub stop: CancellationToken,
    /// Cancelled by the committer when nothing may be acknowledged any more.
    pub fatal: CancellationToken,
    /// Whether the last commit succeeded.
    pub writable: Arc<AtomicBool>,
}

/// Runs until it is told to stop and nothing waits, or until the storage failed for good.
pub(super) async fn run(backend: Backend, mut inbox: Inbox, stats: Arc<WriterStats>, signals: Signals) {
    let mut connection = None;
    let mut batch = Vec::with_capacity(BATCH);
    // The database's time, not the hub's: a clock that stands still must not keep a probe from being made.
    let machine = Clock::system();
    let mut probe_at = machine.now();
    let mut last = machine.now() - PACE;
    loop {
        let mut probing = false;
        let probe_due = async {
            if machine.now() < probe_at {
                machine.sleep_until(probe_at).await;
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
            received = inbox.0.recv_many(&mut batch, BATCH) => received,
        };
        if received == 0 {
            break;
        }
        if !probing {
            gather(&mut inbox, &mut batch, PACE.saturating_sub(machine.now().since(last))).await;
        }
        last = machine.now();
        let (commands, begun) = (batch.len() as u64, Stopwatch::start());
        let tx = match connection.take() {
            Some(tx) => Ok(tx),
            None => connect(&backend).await,
        };
        let outcome = match tx {
            Ok(mut tx) => {
                let committed = AssertUnwindSafe(commit(&mut tx, &mut batch)).catch_unwind().await;
                // Who waited for an answer finds it gone; the committer goes on.
                let committed = committed.unwrap_or_else(|_| Err(Error::internal("the committer panicked")));
                committed.map(|()| tx)
            }
            Err(error) => {
                refuse(&mut batch, &error);
                Err(error)
            }
        };
        if outcome.is_err() {
            stats.failures.fetch_add(1, Ordering::Relaxed);
        }
        match outcome {
            Ok(tx) => {
                connection = Some(tx);
                stats.note_commit(commands, begun.elapsed());
                // Only a probe shows it: another command may have had nothing to write.
                if probing {
                    signals.writable.store(true, Ordering::Relaxed);
                    tracing::info!("writes succeed again");
                }
            }
            Err(error) if is_fatal(&error) => {
                signals.writable.store(false, Ordering::Relaxed);
                tracing::error!(error = %chain(&error), "the storage failed; nothing is acknowledged any more");
                signals.fatal.cancel();
                return;
            }
            // A fresh connection next time: the state of this one is unknown.
            Err(error) => {
                probe_at = machine.now() + PROBE;
                // Told once, however often it is tried: a full disk has no room for a long log.
                if signals.writable.swap(false, Ordering::Relaxed) {
                    tracing::warn!(error = %chain(&error), commands, "writes fail; trying again");
                }
                // The database's time, not the hub's: a clock that stands still must not stop the committer.
                Clock::system().sleep(PAUSE).await;
            }
        }
    }
    if let Some(tx) = connection {
        close(tx).await;
    }
}

/// Waits for more commands, at most this long, unless the batch is worth its commit or somebody waits for it.
async fn gather(inbox: &mut Inbox, batch: &mut Vec<Command>, at_most: Duration) {
    let worth = |commands: &[Command]| commands.iter().map(Command::worth).sum::<usize>();
    let mut gathered = worth(batch);
    let more = async {
        while gathered < WORTHWHILE && batch.len() < BATCH {
            let known = batch.len();
            if inbox.0.recv_many(batch, BATCH - known).await == 0 {
                return; // Told to stop, and nothing waits any more.
            }
            gathered += worth(&batch[known..]);
        }
    };
    // The machine's time here, too.
    Clock::system().timeout(at_most, more).await;
}

async fn connect(backend: &Backend) -> Result<Tx> {
    failpoint!("commit.connect");
    backend.connect_writer().await.map(Tx)
}

/// An answer that waits for the commit.
type Pending = Box<dyn FnOnce(Option<&Error>) + Send>;

/// Writes one batch. `Err` means the connection must not be used again; every caller was told.
async fn commit(tx: &mut Tx, batch: &mut Vec<Command>) -> Result<()> {
    if let Err(error) = begin(tx).await {
        refuse(batch, &error);
        return Err(error);
    }
    let mut pending: Vec<Pending> = Vec::with_capacity(batch.len());
    let outcome = write_all(tx, batch, &mut pending).await;
    let outcome = match outcome {
        Ok(()) => end(tx).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        let _ = execute(tx, "ROLLBACK", "ROLLBACK").await;
        refuse(batch, error);
    }
    for answer in pending {
        answer(outcome.as_ref().err());
    }
    outcome
}

async fn begin(tx: &mut Tx) -> Result<()> {
    failpoint!("commit.begin");
    execute(tx, "BEGIN", "BEGIN IMMEDIATE").await
}

async fn begin_again(tx: &mut Tx) -> Result<()> {
    execute(tx, "ROLLBACK", "ROLLBACK").await?;
    begin(tx).await
}

async fn end(tx: &mut Tx) -> Result<()> {
    failpoint!("commit.before");
    execute(tx, "COMMIT", "COMMIT").await?;
    // As when the answer of the database is lost.
    failpoint!("commit.after");
    Ok(())
}

async fn write_all(tx: &mut Tx, batch: &mut Vec<Command>, pending: &mut Vec<Pending>) -> Result<()> {
    let (mut accepts, mut accept_replies) = (Vec::new(), Vec::new());
    let (mut finished, mut finish_replies) = (Vec::new(), Vec::new());
    let mut jobs = Vec::new();
    for command in batch.drain(..) {
        match command {
            Command::Accept(accept, reply) => {
                accepts.push(Arc::new(accept));
                accept_replies.push(reply);
            }
            Command::Finish(one, reply) => {
                finished.push(one);
                finish_replies.push(reply);
            }
            Command::Run(job, reply) => jobs.push((job, reply)),
        }
    }
    // Failures are rare, so what is merged is written without savepoints at first. Nothing else stands in the
    // transaction yet when it has to be begun anew.
    match guarded(write_merged(tx, &accepts, &finished)).await {
        Ok(answers) => {
            let accepted = accept_replies.into_iter().zip(answers);
            pending.extend(accepted.map(|(reply, answer)| answer_with(reply, answer)));
            pending.extend(finish_replies.into_iter().map(|reply| answer_with(reply, ())));
        }
        Err(error) => {
            if is_fatal(&error) || is_outage(&error) || begin_again(tx).await.is_err() {
                for reply in accept_replies {
                    fail(reply, &error);
                }
                for reply in finish_replies {
                    fail(reply, &error);
                }
                for (_, reply) in jobs {
                    fail(reply, &error);
                }
                return Err(error);
            }
            write_accepts(tx, accepts, accept_replies, pending).await?;
            write_finished(tx, finished, finish_replies, pending).await?;
        }
    }
    for (job, reply) in jobs {
        failpoint!("commit.command");
        match in_savepoint(tx, job).await? {
            Ok(value) => pending.push(answer_with(reply, value)),
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }
    Ok(())
}

/// Writes inbound batches, then outcomes, in as few statements as there are.
async fn write_merged(
    tx: &mut Tx,
    accepts: &[Arc<Accept>],
    finished: &[Arc<Finished>],
) -> Result<Vec<Accepted>> {
    let mut accepted = Vec::new();
    if !accepts.is_empty() {
        failpoint!("commit.accepts");
        accepted = inbox::write(tx, accepts).await?;
    }
    if !finished.is_empty() {
        failpoint!("commit.finished");
        deliveries::finish(tx, finished).await?;
    }
    Ok(accepted)
}

/// Writes inbound batches one by one, so that a bad one fails alone.
async fn write_accepts(
    tx: &mut Tx,
    accepts: Vec<Arc<Accept>>,
    replies: Vec<Reply<Accepted>>,
    pending: &mut Vec<Pending>,
) -> Result<()> {
    for (one, reply) in accepts.into_iter().zip(replies) {
        match in_savepoint(tx, |tx| async move { inbox::write(tx, &[one]).await }.boxed()).await? {
            Ok(mut answers) => pending.push(answer_with(reply, answers.remove(0))),
            Err(error) => fail(reply, &error),
        }
    }
    Ok(())
}

/// Writes outcomes one by one.
async fn write_finished(
    tx: &mut Tx,
    finished: Vec<Arc<Finished>>,
    replies: Vec<Reply<()>>,
    pending: &mut Vec<Pending>,
) -> Result<()> {
    for (one, reply) in finished.into_iter().zip(replies) {
        match in_savepoint(tx, |tx| async move { deliveries::finish(tx, &[one]).await }.boxed()).await? {
            Ok(()) => pending.push(answer_with(reply, ())),
            Err(error) => fail(reply, &error),
        }
    }
    Ok(())
}

/// A panic becomes a failure of what panicked.
async fn guarded<T>(write: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = AssertUnwindSafe(write).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(Error::internal("a write panicked")))
}

/// Runs a command between `SAVEPOINT` and `RELEASE`. The outer error means the transaction is lost, the inner
/// one that the command failed and was undone.
async fn in_savepoint<T>(
    tx: &mut Tx,
    command: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>>,
) -> Result<Result<T>> {
    execute(tx, "SAVEPOINT command", "SAVEPOINT command").await?;
    match guarded(command(tx)).await {
        Ok(value) => execute(tx, "RELEASE SAVEPOINT command", "RELEASE command").await.map(|()| Ok(value)),
        Err(error) if is_fatal(&error) || is_outage(&error) => Err(error),
        // A full disk may have undone the whole transaction: then what failed is the cause, not the undoing.
        Err(error) => match execute(tx, "ROLLBACK TO SAVEPOINT command", "ROLLBACK TO command").await {
            Ok(()) => Ok(Err(error)),
            Err(undoing) if is_fatal(&undoing) => Err(undoing),
            Err(_) => Err(error),
        },
    }
}

fn answer_with<T: Send + 'static>(reply: Reply<T>, value: T) -> Pending {
    Box::new(move |failure| {
        let _ = reply.send(match failure {
            None => Ok(value),
            Some(error) => Err(retell(error)),
        });
    })
}

fn fail<T>(reply: Reply<T>, error: &Error) {
    let _ = reply.send(Err(retell(error)));
}

/// Answers every command still in the batch with the failure of the whole batch.
fn refuse(batch: &mut Vec<Command>, error: &Error) {
    for command in batch.drain(..) {
        match command {
            Command::Accept(_, reply) => drop(reply.send(Err(retell(error)))),
            Command::Finish(_, reply) => drop(reply.send(Err(retell(error)))),
            Command::Run(_, reply) => drop(reply.send(Err(retell(error)))),
        }
    }
}

/// The same failure for another caller; the cause was logged once, by the committer.
fn retell(error: &Error) -> Error {
    if is_fatal(error) {
        // To the caller the store is gone; what it was doing may be right, and is done after the next start.
        return Error::new(ErrorCode::Unavailable, "the storage failed").with_retry_after(PROBE);
    }
    let told = Error::new(error.code(), error.message().to_owned());
    match error.retry_after() {
        Some(after) => told.with_retry_after(after),
        None => told,
    }
}

async fn execute(tx: &mut Tx, postgres: &'static str, sqlite: &'static str) -> Result<()> {
    let statement = match &tx.0 {
        Owned::Sqlite(_) => sqlite,
        Owned::Postgres(_) => postgres,
    };
    let mut conn: Conn<'_> = tx.conn();
    on!(conn, |conn| sqlx::Executor::execute(conn, statement).await.map(|_| ()))
}

/// A write that changes nothing and takes all that a write takes.
async fn probe(tx: &mut Tx) -> Result<()> {
    let some_bot = "UPDATE bots SET created_at = created_at WHERE id = (SELECT id FROM bots LIMIT 1)";
    execute(tx, some_bot, "PRAGMA user_version = 0").await
}

async fn close(tx: Tx) {
    let closed = match tx.0 {
        Owned::Sqlite(connection) => sqlx::Connection::close(connection).await,
        Owned::Postgres(connection) => sqlx::Connection::close(connection).await,
    };
    if let Err(error) = closed {
        tracing::warn!(%error, "closing the writer's connection failed");
    }
}

/// The error with its causes, for the log.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
