//! One transaction of the committer: a batch of commands, each answered after the commit.
//!
//! Commands of the hot path are merged into multi-row statements; every other command runs in a savepoint of
//! its own, so that its failure undoes nothing of its neighbours.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    conn::{Conn, Owned, Tx, on},
    deliveries::{self, Finished},
    fault::{is_fatal, is_outage},
    inbox::{self, Accept, Accepted},
    writer::{Command, PROBE, Reply},
};
use crate::error::{Error, ErrorCode, Result};

/// An answer that waits for the commit.
type Pending = Box<dyn FnOnce(Option<&Error>) + Send>;

/// Writes one batch. `Err` means the connection must not be used again; every caller was told.
pub(super) async fn commit(tx: &mut Tx, batch: &mut Vec<Command>) -> Result<()> {
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
pub(super) fn refuse(batch: &mut Vec<Command>, error: &Error) {
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

pub(super) async fn execute(tx: &mut Tx, postgres: &'static str, sqlite: &'static str) -> Result<()> {
    let statement = match &tx.0 {
        Owned::Sqlite(_) => sqlite,
        Owned::Postgres(_) => postgres,
    };
    let mut conn: Conn<'_> = tx.conn();
    on!(conn, |conn| sqlx::Executor::execute(conn, statement).await.map(|_| ()))
}
