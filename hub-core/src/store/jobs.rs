//! One transaction of the committer for commands that are not of the [hot path](super::hot), each answered after the
//! commit. Every command runs in a savepoint of its own, so that its failure undoes nothing of its neighbours.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    fault::{classify, is_fatal, is_outage},
    writer::{Command, Reply, copy_of, refuse},
};
use crate::{
    error::{Error, Result},
    store::views::{Owned, Tx},
};

/// The result of a command, and who waits for it.
type Done = (Reply<Box<dyn Any + Send>>, Box<dyn Any + Send>);

/// Writes commands. `false`, and nothing was written, when another process has committed to the log meanwhile, for which
/// is looked unless this one `owns_log`. `Err` means the connection must not be used again; every caller has its result.
pub(super) async fn commit(tx: &mut Tx, jobs: &mut Vec<Command>, owns_log: bool) -> Result<bool> {
    match begin(tx, owns_log).await {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        Err(error) => {
            refuse(jobs, &error);
            return Err(error);
        }
    }
    let mut done = Vec::with_capacity(jobs.len());
    let outcome = match run_all(tx, jobs, &mut done).await {
        Ok(()) => end(tx).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        let _ = execute(tx, "ROLLBACK", "ROLLBACK").await;
        refuse(jobs, error);
    }
    for (reply, value) in done {
        let _ = reply.send(match &outcome {
            Ok(()) => Ok(value),
            Err(error) => Err(copy_of(error)),
        });
    }
    outcome.map(|()| true)
}

/// Begins the transaction; `false`, and none begun, when the commit log has entries of another process.
async fn begin(tx: &mut Tx, owns_log: bool) -> Result<bool> {
    failpoint!("commit.begin");
    execute(tx, "BEGIN", "BEGIN IMMEDIATE").await?;
    if !owns_log && has_log(tx).await? {
        execute(tx, "ROLLBACK", "ROLLBACK").await?;
        return Ok(false);
    }
    Ok(true)
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

async fn end(tx: &mut Tx) -> Result<()> {
    failpoint!("commit.before");
    execute(tx, "COMMIT", "COMMIT").await?;
    // As when the answer of the database is lost.
    failpoint!("commit.after");
    Ok(())
}

/// Runs commands in their order; `done` gets the results that wait for the commit.
async fn run_all(tx: &mut Tx, jobs: &mut Vec<Command>, done: &mut Vec<Done>) -> Result<()> {
    for command in jobs.drain(..) {
        let Command::Run(job, reply) = command else { unreachable!("of the hot path") };
        failpoint!("commit.command");
        match in_savepoint(tx, job).await? {
            Ok(value) => done.push((reply, value)),
            Err(error) => drop(reply.send(Err(error))),
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

pub(super) async fn execute(tx: &mut Tx, postgres: &'static str, sqlite: &'static str) -> Result<()> {
    let statement = match &tx.0 {
        Owned::Sqlite(_) => sqlite,
        Owned::Postgres(_) => postgres,
    };
    tx.conn().script(statement).await
}
