//! One transaction of the committer: a batch of commands, each answered after the commit.
//!
//! Commands of the hot path are merged into multi-row statements; every other command runs in a savepoint of
//! its own, so that its failure undoes nothing of its neighbours.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    clock::StoreClock,
    deliveries::{self, Finished},
    direct::Written,
    fault::{classify, is_fatal, is_outage},
    inbox::{self, Accept, Accepted},
    sending::{self, Begun, Permit, Settled},
    writer::{Command, PROBE_INTERVAL, Reply},
};
use crate::{
    error::{Error, ErrorCode, Result},
    store::views::{Owned, Tx},
};

/// An answer that waits for the commit.
type Pending = Box<dyn FnOnce(Option<&Error>) + Send>;

/// Writes one batch. `false`, and nothing was written, when another process has committed to the log meanwhile, for which
/// is looked unless this one `owns_log`. `Err` means the connection must not be used again; every caller has its result.
pub(super) async fn commit(
    tx: &mut Tx,
    batch: &mut Vec<Command>,
    clock: &StoreClock,
    owns_log: bool,
) -> Result<bool> {
    let begun = async {
        begin(tx).await?;
        if !owns_log && has_log(tx).await? {
            execute(tx, "ROLLBACK", "ROLLBACK").await?;
            return Ok(false);
        }
        follow_clock(tx, batch, clock).await.map(|()| true)
    };
    match begun.await {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        Err(error) => {
            refuse(batch, &error);
            return Err(error);
        }
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
    outcome.map(|()| true)
}

/// Answers the commands of a batch that [`direct`](super::direct) has committed.
pub(super) async fn end_direct(batch: &mut Vec<Command>, written: Written) -> Result<()> {
    // As when the answer of the database is lost.
    let heard = async {
        failpoint!("commit.after");
        Ok(())
    };
    heard.await.inspect_err(|error| refuse(batch, error))?;
    let Written { accepted, mut permits, begun, settled, .. } = written;
    let (mut accepted, mut begun, mut settled) =
        (accepted.into_iter(), begun.into_iter(), settled.into_iter());
    for command in batch.drain(..) {
        match command {
            Command::Accept(_, reply) => drop(reply.send(Ok(accepted.next().expect("one for each batch")))),
            Command::Finish(one, reply) => drop(reply.send(Ok(permits.remove(&one.id)))),
            Command::BeginSend(_, reply) => drop(reply.send(Ok(begun.next().expect("one for each try")))),
            Command::SettleSend(_, reply) => {
                drop(reply.send(Ok(settled.next().expect("one for each outcome"))));
            }
            Command::Run(..) | Command::Flush(..) => unreachable!("no job is written directly"),
        }
    }
    Ok(())
}

/// Whether the commit log has entries.
async fn has_log(tx: &mut Tx) -> Result<bool> {
    match &mut tx.0 {
        Owned::Sqlite(conn) => {
            let exists = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM commit_log)");
            exists.fetch_one(conn).await.map_err(classify)
        }
        Owned::Postgres(_) => Ok(false),
    }
}

async fn begin(tx: &mut Tx) -> Result<()> {
    failpoint!("commit.begin");
    execute(tx, "BEGIN", "BEGIN IMMEDIATE").await
}

/// Moves outcomes to the clock that due times in the store go by.
async fn follow_clock(tx: &mut Tx, batch: &mut [Command], clock: &StoreClock) -> Result<()> {
    let now = clock.read();
    for command in batch {
        match command {
            Command::Finish(finished, _) => {
                if let Some(step) = tx.due().step_for(finished.stamp, now).await? {
                    Arc::make_mut(finished).follow(step);
                }
            }
            Command::SettleSend(settled, _) => {
                if let Some(step) = tx.due().step_for(settled.stamp, now).await? {
                    Arc::make_mut(settled).follow(step);
                }
            }
            Command::Accept(..) | Command::BeginSend(..) | Command::Run(..) | Command::Flush(..) => {}
        }
    }
    Ok(())
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

/// Commands of one kind, which are written together, with those who wait for their answers.
struct Merged<C, A> {
    commands: Vec<Arc<C>>,
    replies: Vec<Reply<A>>,
}

impl<C, A: Send + 'static> Merged<C, A> {
    const fn new() -> Self {
        Self { commands: Vec::new(), replies: Vec::new() }
    }

    fn push(&mut self, command: Arc<C>, reply: Reply<A>) {
        self.commands.push(command);
        self.replies.push(reply);
    }

    fn answer(self, answers: Vec<A>, pending: &mut Vec<Pending>) {
        pending
            .extend(self.replies.into_iter().zip(answers).map(|(reply, answer)| answer_with(reply, answer)));
    }

    fn fail(self, error: &Error) {
        for reply in self.replies {
            fail(reply, error);
        }
    }

    /// Writes them one by one, so that a bad one fails alone.
    async fn write_apart(
        self,
        tx: &mut Tx,
        pending: &mut Vec<Pending>,
        write: impl for<'a> Fn(&'a mut Tx, Arc<C>) -> BoxFuture<'a, Result<Vec<A>>>,
    ) -> Result<()> {
        for (one, reply) in self.commands.into_iter().zip(self.replies) {
            match in_savepoint(tx, |tx| write(tx, one)).await? {
                Ok(mut answers) => pending.push(answer_with(reply, answers.remove(0))),
                Err(error) => fail(reply, &error),
            }
        }
        Ok(())
    }
}

async fn write_all(tx: &mut Tx, batch: &mut Vec<Command>, pending: &mut Vec<Pending>) -> Result<()> {
    let (mut accepts, mut finished) = (Merged::new(), Merged::new());
    let (mut begun, mut settled) = (Merged::new(), Merged::new());
    let mut jobs = Vec::new();
    for command in batch.drain(..) {
        match command {
            Command::Accept(accept, reply) => accepts.push(accept, reply),
            Command::Finish(one, reply) => finished.push(one, reply),
            Command::BeginSend(one, reply) => begun.push(one, reply),
            Command::SettleSend(one, reply) => settled.push(one, reply),
            Command::Run(job, reply) => jobs.push((job, reply)),
            Command::Flush(_) => unreachable!("answered before the batch"),
        }
    }
    // Failures are rare, so what is merged is written without savepoints at first. Nothing else is in the transaction
    // yet when it has to be restarted.
    let merged = async {
        let accepts = write_accepts(tx, &accepts.commands).await?;
        let finished = write_finished(tx, &finished.commands).await?;
        let begun = write_begun(tx, &begun.commands).await?;
        Ok((accepts, finished, begun, write_settled(tx, &settled.commands).await?))
    };
    match guarded(merged).await {
        Ok(answers) => {
            accepts.answer(answers.0, pending);
            finished.answer(answers.1, pending);
            begun.answer(answers.2, pending);
            settled.answer(answers.3, pending);
        }
        Err(error) => {
            if is_fatal(&error) || is_outage(&error) || begin_again(tx).await.is_err() {
                accepts.fail(&error);
                finished.fail(&error);
                begun.fail(&error);
                settled.fail(&error);
                for (_, reply) in jobs {
                    fail(reply, &error);
                }
                return Err(error);
            }
            let one_by_one = accepts
                .write_apart(tx, pending, |tx, one| async move { write_accepts(tx, &[one]).await }.boxed());
            one_by_one.await?;
            let one_by_one = finished
                .write_apart(tx, pending, |tx, one| async move { write_finished(tx, &[one]).await }.boxed());
            one_by_one.await?;
            let one_by_one = begun
                .write_apart(tx, pending, |tx, one| async move { write_begun(tx, &[one]).await }.boxed());
            one_by_one.await?;
            let one_by_one = settled
                .write_apart(tx, pending, |tx, one| async move { write_settled(tx, &[one]).await }.boxed());
            one_by_one.await?;
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

async fn write_accepts(tx: &mut Tx, accepts: &[Arc<Accept>]) -> Result<Vec<Accepted>> {
    if accepts.is_empty() {
        return Ok(Vec::new());
    }
    failpoint!("commit.accepts");
    inbox::write(tx, accepts).await
}

async fn write_finished(tx: &mut Tx, finished: &[Arc<Finished>]) -> Result<Vec<Option<Permit>>> {
    if finished.is_empty() {
        return Ok(Vec::new());
    }
    failpoint!("commit.finished");
    let mut permits = deliveries::finish(tx, finished).await?;
    Ok(finished.iter().map(|one| permits.remove(&one.id)).collect())
}

async fn write_begun(tx: &mut Tx, begun: &[Arc<Begun>]) -> Result<Vec<bool>> {
    if begun.is_empty() {
        return Ok(Vec::new());
    }
    sending::begin(tx, begun).await
}

async fn write_settled(tx: &mut Tx, settled: &[Arc<Settled>]) -> Result<Vec<bool>> {
    if settled.is_empty() {
        return Ok(Vec::new());
    }
    sending::settle(tx, settled).await
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
            Some(error) => Err(copy_of(error)),
        });
    })
}

fn fail<T>(reply: Reply<T>, error: &Error) {
    let _ = reply.send(Err(copy_of(error)));
}

/// Answers every command still in the batch with the failure of the whole batch.
pub(super) fn refuse(batch: &mut Vec<Command>, error: &Error) {
    for command in batch.drain(..) {
        match command {
            Command::Accept(_, reply) => drop(reply.send(Err(copy_of(error)))),
            Command::Finish(_, reply) => drop(reply.send(Err(copy_of(error)))),
            Command::Flush(reply) => drop(reply.send(Err(copy_of(error)))),
            Command::BeginSend(_, reply) | Command::SettleSend(_, reply) => {
                drop(reply.send(Err(copy_of(error))));
            }
            Command::Run(_, reply) => drop(reply.send(Err(copy_of(error)))),
        }
    }
}

/// The same failure for another caller; the cause was logged once, by the committer.
pub(super) fn copy_of(error: &Error) -> Error {
    if is_fatal(error) {
        // To the caller the store is gone; what it was doing may be right, and is done after the next start.
        return Error::new(ErrorCode::Unavailable, "the storage failed").with_retry_after(PROBE_INTERVAL);
    }
    let told = Error::new(error.code(), error.message().to_owned());
    match error.retry_after() {
        Some(after) => told.with_retry_after(after),
        None => told,
    }
}

pub(super) async fn execute(tx: &mut Tx, postgres: &'static str, sqlite: &'static str) -> Result<()> {
    let statement = match &tx.0 {
        Owned::Sqlite(_) => sqlite,
        Owned::Postgres(_) => postgres,
    };
    tx.conn().script(statement).await
}
