//! Queue of the committer.
//!
//! Callers hand over a command and wait for its answer, which comes after the commit that holds it. A caller that
//! goes away drops only the answer, never the transaction.

use std::{any::Any, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{mpsc, oneshot};

use super::{
    deliveries::Finished,
    fault::is_fatal,
    hot::Written,
    inbox::{Accept, Accepted},
    sending::{Begun, Permit, Settled},
};
use crate::{
    error::{Error, ErrorCode, Result},
    store::views::Tx,
};

/// Maximum number of queued commands; beyond it callers wait for room.
const MAX_QUEUED: usize = 1024;
/// Interval of probes while writes fail; a probe shows when they succeed again.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Rows that are committed immediately, whenever the last commit was.
pub(super) const ENOUGH_ROWS: usize = 128;

pub(super) type Job =
    Box<dyn for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<Box<dyn Any + Send>>> + Send>;
pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

pub(super) enum Command {
    Accept(Arc<Accept>, Reply<Accepted>),
    Finish(Arc<Finished>, Reply<Option<Permit>>),
    BeginSend(Arc<Begun>, Reply<bool>),
    SettleSend(Arc<Settled>, Reply<bool>),
    Run(Job, Reply<Box<dyn Any + Send>>),
    /// Store in the tables what the commit log has for them.
    Flush(Reply<()>),
}

impl Command {
    /// Returns its weight in rows, by which the committer determines the time of a commit. An API call may wait for a
    /// command in `Run`, so it is committed at once.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Accept(accept, _) => accept.messages.len().max(1),
            Self::Finish(..) | Self::BeginSend(..) | Self::SettleSend(..) => 1,
            Self::Run(..) | Self::Flush(..) => ENOUGH_ROWS,
        }
    }

    /// Whether something waits for the commit: a delivery, a reply, a caller.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Self::Finish(finished, _) => finished.is_followed || !finished.replies.is_empty(),
            Self::SettleSend(..) => false,
            Self::Accept(..) | Self::BeginSend(..) | Self::Run(..) | Self::Flush(..) => true,
        }
    }
}

/// The sending end; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Writer(mpsc::Sender<Command>);

impl Writer {
    pub(super) fn new() -> (Self, Inbox) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        (Self(sender), Inbox(receiver))
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

    /// Hands a command over and waits for its outcome.
    pub(super) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T> {
        let stopped = || Error::new(ErrorCode::Unavailable, "the store is shutting down");
        // The transaction failed, or the committer panicked: a caller that repeats it has to expect both.
        let dropped = || {
            Error::new(ErrorCode::Unavailable, "the write was interrupted").with_retry_after(PROBE_INTERVAL)
        };
        let (reply, answer) = oneshot::channel();
        self.0.send(command(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| dropped())?
    }
}

/// Forgets the type of a command's answer, so that commands of all kinds share one queue.
pub(super) fn boxed<T: Send + 'static>(
    job: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
) -> Job {
    Box::new(move |tx| {
        let run = job(tx);
        async move { run.await.map(|value| Box::new(value) as Box<dyn Any + Send>) }.boxed()
    })
}

/// The receiving end, owned by the committer.
pub(super) struct Inbox(pub(super) mpsc::Receiver<Command>);

/// Answers the commands of a batch that was committed.
pub(super) fn answer(batch: Vec<Command>, written: Written) {
    let Written { accepted, mut permits, begun, settled, .. } = written;
    let (mut accepted, mut begun, mut settled) =
        (accepted.into_iter(), begun.into_iter(), settled.into_iter());
    for command in batch {
        match command {
            Command::Accept(_, reply) => drop(reply.send(Ok(accepted.next().expect("one for each batch")))),
            Command::Finish(one, reply) => drop(reply.send(Ok(permits.remove(&one.id)))),
            Command::BeginSend(_, reply) => drop(reply.send(Ok(begun.next().expect("one for each try")))),
            Command::SettleSend(_, reply) => {
                drop(reply.send(Ok(settled.next().expect("one for each outcome"))));
            }
            Command::Run(..) | Command::Flush(..) => unreachable!("taken out before"),
        }
    }
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
    let copy = Error::new(error.code(), error.message().to_owned());
    match error.retry_after() {
        Some(after) => copy.with_retry_after(after),
        None => copy,
    }
}
