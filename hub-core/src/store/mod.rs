//! The store: the only place with SQL. One concrete [`Store`] over two databases, each statement written once.
//!
//! *Reading*: `store.read().await?` lends a pooled connection; ask its views: `read.bots().find(…)`.
//! *Writing*: `store.write(move |tx| Box::pin(async move { tx.bots().insert(…).await })).await?` hands a
//! command to the one committer, which runs everything that waits in one transaction and answers after the
//! commit. Nothing else opens a transaction, and no command awaits anything but the database.
//!
//! To add a table: twin migrations under `migrations/`, a view here with the statements, a test in
//! `tests/store_contract/mod.rs` that runs on both databases.
//! On PostgreSQL, texts that are in an index have `COLLATE "C"`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::{clock::StoreClock, due::Reading, writer::Command};
use crate::{
    error::{Error, ErrorCode, Result},
    private_files::Locked,
    tasks::Tasks,
    time::{Clock, Timestamp},
};

pub mod accounts;
pub mod ai;
pub mod app_calls;
pub mod app_codes;
pub mod app_events;
pub mod app_sockets;
pub mod apps;
pub mod audit;
mod backend;
mod batched_delete;
pub mod binds;
pub mod bots;
pub mod channel_plugins;
pub mod channels;
mod clock;
mod committer;
pub(crate) mod conn;
mod connections;
pub mod contacts;
pub mod deliveries;
pub mod demo;
pub mod due;
pub mod external_accounts;
mod fan_out;
pub mod fault;
mod hot;
pub mod idempotency;
pub mod ilink;
pub mod inbox;
pub mod installations;
mod jobs;
pub mod leases;
mod list_ids;
pub mod log;
pub mod media;
pub mod messages;
mod notices;
pub mod outbox;
pub mod passkeys;
#[cfg(feature = "testing")]
pub mod plans;
pub mod plugins;
mod postgres;
pub mod qr_logins;
#[cfg(feature = "testing")]
pub mod recording;
mod refusal;
pub mod replays;
pub mod revocations;
mod rows;
mod sealed;
pub mod sending;
pub mod sign_in_flows;
pub mod stats;
pub mod traces;
mod upkeep;
pub mod user_keys;
pub mod users;
mod views;
mod writer;

pub use backend::{StoreConfig, claim_file};
pub use batched_delete::DeletedBatch;
pub use committer::StoreStats;
pub use notices::Notices;
pub use sealed::{SEALED_COLUMNS, SealedColumn, SealedRow, SealedValues};
pub use upkeep::{Schema, Upkeep};
pub(crate) use upkeep::{inspect, refuse_emptied};
pub use views::{Read, Tx};

/// Maximum distance of the time in an id from the time of its row: they come from the clocks of a node and of the
/// database. A list of a period also reads the rows within this distance of it.
const CLOCK_SKEW: Duration = Duration::from_secs(10);
/// Longest time that closing takes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The conditions whose values a request gives. A condition that also allows for a missing value, such as
/// `$1 IS NULL OR peer = $1`, cannot bound what the database reads.
fn given(conditions: &[(bool, &'static str)]) -> String {
    conditions.iter().filter(|(given, _)| *given).map(|(_, condition)| *condition).collect()
}

/// The database of a hub. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    backend: backend::Backend,
    writer: writer::Writer,
    tasks: Tasks,
    clock: StoreClock,
    stats: Arc<StoreStats>,
    fatal: CancellationToken,
    writable: Arc<AtomicBool>,
    log: Arc<connections::CommitLog>,
}

/// The right to work on a SQLite file, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    log: Arc<connections::CommitLog>,
    _file: Locked,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.log.most_rows.store(0, Ordering::Relaxed);
    }
}

impl Store {
    /// Opens a database and brings its schema up to date.
    ///
    /// # Errors
    /// `UNAVAILABLE` when it cannot be reached or written, or was written by a newer program.
    pub async fn open(config: &StoreConfig, clock: Clock) -> Result<Self> {
        Ok(Self::start(backend::Backend::open(config, true).await?, clock))
    }

    /// Opens a database whose schema must be up to date already.
    ///
    /// # Errors
    /// As [`Store::open`], and `UNAVAILABLE` when a migration is missing.
    pub async fn open_existing(config: &StoreConfig, clock: Clock) -> Result<Self> {
        Ok(Self::start(backend::Backend::open(config, false).await?, clock))
    }

    fn start(backend: backend::Backend, clock: Clock) -> Self {
        let (writer, inbox) = writer::Writer::new();
        let store = Self {
            backend,
            writer,
            tasks: Tasks::new(),
            clock: StoreClock::new(clock),
            stats: Arc::default(),
            fatal: CancellationToken::new(),
            writable: Arc::new(AtomicBool::new(true)),
            log: Arc::default(),
        };
        // The process before may have been killed before it flushed.
        store.log.is_unflushed.store(!store.is_shared(), Ordering::Relaxed);
        store.tasks.spawn(
            "store writer",
            committer::run(
                store.backend.clone(),
                inbox,
                store.clock.clone(),
                Arc::clone(&store.stats),
                committer::Signals {
                    stop: store.tasks.stop_token().clone(),
                    fatal: store.fatal.clone(),
                    writable: Arc::clone(&store.writable),
                    log: Arc::clone(&store.log),
                },
            ),
        );
        store
    }

    /// Now, by the clock that all nodes of this database share.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A connection for reading, which sees every commit of this process. Take one per unit of work and pass it down.
    ///
    /// # Errors
    /// `UNAVAILABLE` when none becomes free within five seconds.
    pub async fn read(&self) -> Result<Read> {
        if self.log.is_unflushed.load(Ordering::Acquire) {
            // While writes fail, the tables are read as they are.
            let _ = self.writer.ask(Command::Flush).await;
        }
        self.stats.reads.fetch_add(1, Ordering::Relaxed);
        self.backend.read().await
    }

    /// Runs a command in the committer's next transaction and returns after its commit. When the command
    /// fails, what it wrote is undone and nothing else is.
    ///
    /// # Errors
    /// The command's own error, or `UNAVAILABLE` when the commit failed.
    pub async fn write<T: Send + 'static>(
        &self,
        command: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.writer.run(command).await
    }

    /// Passes on a command without waiting for its outcome, such as recording a use. It is dropped if the committer's
    /// queue is full.
    pub fn write_later<T: Send + 'static>(
        &self,
        command: impl for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T>> + Send + 'static,
    ) {
        self.writer.run_later(command);
    }

    /// Stores a batch of inbound messages, the work that follows from it and the network's cursor, in one
    /// transaction.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the commit failed; then nothing of the batch is stored.
    pub async fn accept(&self, batch: inbox::Accept) -> Result<inbox::Accepted> {
        self.writer.ask(|reply| Command::Accept(Arc::new(batch), reply)).await
    }

    /// Stores the outcome of an attempt: state, trace, replies and next due time in one transaction.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the commit failed; then nothing is stored.
    pub async fn finish(&self, finished: Arc<deliveries::Finished>) -> Result<Option<sending::Permit>> {
        self.writer.ask(|reply| Command::Finish(finished, reply)).await
    }

    /// Stores the outcome of an attempt to deliver an event to an app; see [`deliveries::Deliveries::finish_event`].
    ///
    /// # Errors
    /// `UNAVAILABLE` when the commit failed; then nothing is stored.
    pub async fn finish_event(&self, finished: deliveries::FinishedEvent) -> Result<bool> {
        let clock = self.clock.clone();
        let write = self.write(move |tx| {
            Box::pin(async move { tx.deliveries().finish_event(&finished, clock.read()).await })
        });
        write.await
    }

    /// Notes that an item is about to be written to the network, and counts the send; `false` when the bot has
    /// changed hands or the item was concluded.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the commit failed; then nothing is noted.
    pub async fn begin_send(&self, begun: sending::Begun) -> Result<bool> {
        self.writer.ask(|reply| Command::BeginSend(Arc::new(begun), reply)).await
    }

    /// Stores the outcome of writing an item to the network; `false`, and nothing stored, when another try has
    /// begun meanwhile.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the commit failed; then nothing is stored.
    pub async fn settle_send(&self, settled: sending::Settled) -> Result<bool> {
        self.writer.ask(|reply| Command::SettleSend(Arc::new(settled), reply)).await
    }

    /// Measures how far the database's clock is ahead of our monotonic clock; does nothing on SQLite.
    pub async fn sync_clock(&self) -> Result<()> {
        let at = self.clock().instant();
        if let Some(wall) = self.read().await?.leases().database_now().await? {
            self.set_clock(Reading { at, wall });
        }
        Ok(())
    }

    /// Goes by this reading of the shared clock from now on; does nothing on SQLite.
    pub(crate) fn set_clock(&self, reading: Reading) {
        if self.is_shared() {
            self.clock.set(reading);
        }
    }

    /// Tells every process that shares the database something, now and without a promise. Nothing happens on
    /// SQLite.
    pub async fn notify(&self, text: &str) -> Result<()> {
        notices::send(&self.backend, text).await
    }

    /// Hears what processes that share the database tell each other.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` on SQLite.
    pub async fn notices(&self) -> Result<Notices> {
        Notices::of(&self.backend).await
    }

    /// Cancelled when the storage failed permanently: the process must stop acknowledging and end.
    pub fn failed(&self) -> &CancellationToken {
        &self.fatal
    }

    /// The clock of the process.
    pub(crate) const fn clock(&self) -> &Clock {
        self.clock.machine()
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// `UNAVAILABLE` when it does not answer, or when the last write failed for the database's sake.
    pub async fn ping(&self) -> Result<()> {
        if !self.writable.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorCode::Unavailable, "the store cannot write at the moment"));
        }
        self.read().await?.leases().ping().await
    }

    /// Commits and commands so far.
    pub fn stats(&self) -> &StoreStats {
        &self.stats
    }

    /// Takes the right to work on the database: to poll, to deliver and to send. Several nodes share a PostgreSQL
    /// database under leases; a SQLite file is worked on by one process, as long as the returned claim lives. Reading
    /// and writing need no claim.
    ///
    /// # Errors
    /// `UNAVAILABLE` when another process has the file.
    pub fn claim(&self) -> Result<Option<Claim>> {
        Ok(self.backend.claim()?.map(|file| self.work_on(file)))
    }

    /// As [`claim`](Self::claim), with the lock of a file that was claimed before it was opened.
    pub(crate) fn work_on(&self, file: Locked) -> Claim {
        self.log.most_rows.store(hot::MOST_ROWS, Ordering::Relaxed);
        Claim { log: Arc::clone(&self.log), _file: file }
    }

    /// Limits the commit log after a [`claim`](Self::claim) to so many rows.
    #[cfg(feature = "testing")]
    pub fn limit_log(&self, most_rows: usize) {
        self.log.most_rows.store(most_rows, Ordering::Relaxed);
    }

    /// Whether this is PostgreSQL, which several nodes may share.
    pub fn is_shared(&self) -> bool {
        matches!(self.backend, backend::Backend::Postgres { .. })
    }

    /// Completes the commands in the queue and closes every connection; later calls are rejected. The wait for a
    /// database that does not respond ends after [`CLOSE_TIMEOUT`].
    pub async fn close(&self) {
        self.tasks.stop();
        let closed = async {
            self.tasks.wait(self.clock(), CLOSE_TIMEOUT).await;
            self.backend.close().await;
        };
        if self.clock().timeout(CLOSE_TIMEOUT, closed).await.is_none() {
            tracing::warn!("the database could not be closed in time");
        }
    }
}
