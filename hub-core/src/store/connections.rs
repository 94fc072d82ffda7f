//! The writer's connections, and how a batch is written with them.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;

use super::{
    backend::Backend,
    clock::StoreClock,
    committer::StoreStats,
    fault::{is_fatal, is_outage},
    hot::{self, Direct, Hot, Written},
    jobs,
    writer::{Command, answer, copy_of, refuse},
};
use crate::{
    error::{Error, Result},
    store::views::{Owned, Tx},
    time::{Clock, Instant},
};

/// State of the commit log of a SQLite file that callers and the committer share (`hot/log`).
#[derive(Debug, Default)]
pub(super) struct CommitLog {
    /// Maximum number of rows; 0 unless this process has claimed the file.
    pub most_rows: AtomicUsize,
    /// Whether the log may have entries that are not in the tables yet.
    pub is_unflushed: AtomicBool,
}

/// Longest time until a commit of the log is stored in its tables.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Delay before a log of many rows is flushed while there is nothing else to write.
const LONG_FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The writer's connections, opened when they are needed. After a failure a fresh one is opened: the state of the old
/// one is unknown.
pub(super) struct Connections {
    tx: Option<Tx>,
    direct: Option<Direct>,
    log: Arc<CommitLog>,
    /// Since when the commit log has entries of this process, or when the oldest ones were flushed, or a flush failed.
    unflushed_since: Option<Instant>,
}

impl Connections {
    pub(super) const fn new(log: Arc<CommitLog>) -> Self {
        Self { tx: None, direct: None, log, unflushed_since: None }
    }

    /// Writes one batch: the hot path in one transaction, then everything else in another. Every caller has its result.
    pub(super) async fn write(
        &mut self,
        backend: &Backend,
        batch: &mut Vec<Command>,
        clock: &StoreClock,
        stats: &StoreStats,
    ) -> Result<()> {
        let flushes: Vec<_> = batch.extract_if(.., |command| matches!(command, Command::Flush(_))).collect();
        let mut jobs = batch.extract_if(.., |command| matches!(command, Command::Run(..))).collect();
        let written = async {
            self.answer_flushes(backend, flushes, stats).await?;
            self.write_hot(backend, batch, clock, stats).await?;
            self.run_jobs(backend, &mut jobs, stats).await
        };
        let written = written.await;
        if let Err(error) = &written {
            refuse(batch, error);
            refuse(&mut jobs, error);
        }
        written
    }

    async fn answer_flushes(
        &mut self,
        backend: &Backend,
        flushes: Vec<Command>,
        stats: &StoreStats,
    ) -> Result<()> {
        if flushes.is_empty() {
            return Ok(());
        }
        let flushed = self.flush(backend, stats).await;
        for command in flushes {
            if let Command::Flush(reply) = command {
                let _ = reply.send(flushed.as_ref().copied().map_err(copy_of));
            }
        }
        flushed
    }

    /// Writes the hot path. If one command is refused for what it contains, each is written alone.
    async fn write_hot(
        &mut self,
        backend: &Backend,
        batch: &mut Vec<Command>,
        clock: &StoreClock,
        stats: &StoreStats,
    ) -> Result<()> {
        let mut parts = VecDeque::from_iter(Some(std::mem::take(batch)).filter(|batch| !batch.is_empty()));
        while let Some(mut part) = parts.pop_front() {
            let commit = AssertUnwindSafe(self.commit_hot(backend, Hot::of(&part), clock)).catch_unwind();
            match commit.await.unwrap_or_else(|_| Err(Error::internal("a write panicked"))) {
                Ok(written) => {
                    if written.flushed {
                        stats.flushes.fetch_add(1, Ordering::Relaxed);
                        self.flush_later();
                    }
                    self.note_log();
                    if let Err(error) = answer_lost().await {
                        batch.extend(part.into_iter().chain(parts.into_iter().flatten()));
                        return Err(error);
                    }
                    answer(part, written);
                }
                Err(error) if is_fatal(&error) || is_outage(&error) => {
                    batch.extend(part.into_iter().chain(parts.into_iter().flatten()));
                    return Err(error);
                }
                Err(error) if part.len() == 1 => refuse(&mut part, &error),
                Err(_) => parts.extend(part.into_iter().map(|command| vec![command])),
            }
        }
        Ok(())
    }

    async fn commit_hot(&mut self, backend: &Backend, hot: Hot, clock: &StoreClock) -> Result<Written> {
        let written = match backend {
            Backend::Sqlite { write, .. } => {
                let most_rows = self.log.most_rows.load(Ordering::Relaxed);
                if most_rows > 0 {
                    // Before any caller has its response.
                    self.log.is_unflushed.store(true, Ordering::Release);
                    self.unflushed_since.get_or_insert_with(|| Clock::system().instant());
                }
                let (file, now) = (write.get_filename(), clock.read());
                hot::sqlite::commit(&mut self.direct, file, hot, now, most_rows).await?
            }
            Backend::Postgres { .. } => {
                let mut tx = self.connection(backend).await?;
                let Owned::Postgres(conn) = &mut tx.0 else {
                    unreachable!("the connection of another database")
                };
                let written = hot::postgres::commit(conn, &hot, clock.read()).await?;
                self.tx = Some(tx);
                written
            }
        };
        Ok(written)
    }

    /// Runs what is not of the hot path, after a flush of the commit log.
    async fn run_jobs(
        &mut self,
        backend: &Backend,
        jobs: &mut Vec<Command>,
        stats: &StoreStats,
    ) -> Result<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut tx = self.connection(backend).await?;
        let owns_log = self.log.most_rows.load(Ordering::Relaxed) > 0;
        loop {
            self.flush(backend, stats).await?;
            if jobs::commit(&mut tx, jobs, owns_log).await? {
                self.tx = Some(tx);
                return Ok(());
            }
        }
    }

    /// The connection of `sqlx`, which the caller puts back if it may be used again.
    async fn connection(&mut self, backend: &Backend) -> Result<Tx> {
        match self.tx.take() {
            Some(tx) => Ok(tx),
            None => connect(backend).await,
        }
    }

    /// Returns the time of the next flush of the commit log.
    pub(super) fn flush_at(&self, is_idle: bool, is_writable: bool) -> Option<Instant> {
        let since = self.unflushed_since?;
        Some(match self.direct.as_ref().map(Direct::tail).filter(|_| is_writable) {
            Some(tail) if is_idle && tail.is_long() => since + LONG_FLUSH_INTERVAL,
            _ => since + FLUSH_INTERVAL,
        })
    }

    /// Restarts the flush interval, after a failure or a flush of the oldest entries.
    pub(super) fn flush_later(&mut self) {
        if let Some(since) = &mut self.unflushed_since {
            *since = Clock::system().instant();
        }
    }

    /// Stores the commit log in the tables if it has entries. A process that does not own the log has to look for
    /// them.
    pub(super) async fn flush(&mut self, backend: &Backend, stats: &StoreStats) -> Result<()> {
        let is_known = self.log.most_rows.load(Ordering::Relaxed) > 0;
        if is_known && !self.log.is_unflushed.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Backend::Sqlite { write, .. } = backend {
            hot::sqlite::flush(&mut self.direct, write.get_filename()).await?;
        }
        if self.log.is_unflushed.load(Ordering::Relaxed) {
            stats.flushes.fetch_add(1, Ordering::Relaxed);
        }
        self.note_log();
        Ok(())
    }

    fn note_log(&mut self) {
        if self.direct.as_ref().is_none_or(|direct| direct.tail().is_empty()) {
            self.unflushed_since = None;
            self.log.is_unflushed.store(false, Ordering::Release);
        }
    }

    pub(super) async fn close(self) {
        if let Some(direct) = self.direct {
            let _ = tokio::task::spawn_blocking(|| drop(direct)).await;
        }
        if let Some(tx) = self.tx {
            close(tx).await;
        }
    }
}

/// Fails in a test as when the answer of the database is lost.
async fn answer_lost() -> Result<()> {
    failpoint!("commit.after");
    Ok(())
}

async fn connect(backend: &Backend) -> Result<Tx> {
    failpoint!("commit.connect");
    backend.connect_writer().await.map(Tx)
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
