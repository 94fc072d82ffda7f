//! SQLite: a connection that is not one of `sqlx`, which sends each row and each end of a statement from one thread to
//! another. A transaction is one piece of work on a thread that may block, row by row with prepared statements. Only the
//! committer writes, and it uses one of its two connections at a time.
//!
//! Foreign keys to messages, channels and bots are not checked on this connection, as on PostgreSQL: the transaction
//! has read the bot's row, numbered the channel's log and stored the message.

use std::{
    borrow::Cow,
    collections::HashSet,
    path::Path,
    sync::{Arc, Weak},
};

use rusqlite::{CachedStatement, Connection, OpenFlags, OptionalExtension, params};

use super::{
    Plain, Written,
    checkpoint::{self, Checkpoint},
    commit_log::Tail,
};
use crate::{
    error::{Error, Result},
    id::IdText,
    store::{
        backend::BUSY,
        deliveries::{Finished, Successes, count_statement, delete_statement, finish_statement},
        fan_out::{self, Consequences},
        fault::{classify_direct, is_fatal, is_outage},
        inbox::{self, Accept, Accepted, Current, Judged, MessageRow, SKIP_REPEATS, Seqs},
        outbox,
        rows::{self, Row, Values, or_rollback},
        sending::{
            self, Settled,
            at_once::{self, Candidate, PERMIT, Permits},
        },
        traces::{self, TraceUpdate, merge, update_traces},
    },
};

/// Statements that stay prepared: all of this module.
const STATEMENTS: usize = 32;

#[derive(Debug)]
pub(in crate::store) struct Direct {
    /// Ends before the connection is closed: fields are dropped in their order.
    checkpoint: Checkpoint,
    connection: Connection,
    pub(super) texts: Texts,
    pub(super) tail: Tail,
}

#[derive(Debug)]
pub(super) struct Texts {
    pub(super) message: String,
    pub(super) consequences: fan_out::Texts,
    pub(super) success: String,
    pub(super) count: String,
    pub(super) outcome: String,
    pub(super) trace: String,
    pub(super) reply: String,
    pub(super) permit: String,
    pub(super) part: String,
    pub(super) item: String,
}

impl Direct {
    /// Opens a database whose schema is up to date. Blocks.
    fn open(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(classify_direct)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(BUSY).map_err(classify_direct)?;
        // As of the other writer, but for the foreign keys.
        let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;
            PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864";
        connection.execute_batch(settings).map_err(classify_direct)?;
        checkpoint::install(&connection);
        let texts = Texts {
            message: or_rollback(&format!(
                "{} {SKIP_REPEATS}",
                inbox::insert_statement(&rows::single::<MessageRow>())
            )),
            consequences: fan_out::Texts::new(),
            success: delete_statement(&rows::single::<Finished>()),
            count: or_rollback(&count_statement(&rows::single::<Successes>())),
            outcome: or_rollback(&finish_statement(&rows::single::<Finished>())),
            // Its trigger replaces a row, which `OR ROLLBACK` would override.
            trace: update_traces(traces::SQLITE, &rows::single::<TraceUpdate>()),
            reply: or_rollback(&outbox::insert_messages(&rows::single::<outbox::MessageRow<'_>>(), "")),
            permit: or_rollback(&format!(
                "{} {PERMIT}",
                at_once::count_send(&rows::single::<Candidate<'_>>())
            )),
            part: or_rollback(&outbox::insert_parts(&rows::single::<outbox::PartRow<'_>>(), outbox::BEGUN)),
            item: or_rollback(&sending::settle_items(&rows::single::<Settled>())),
        };
        Ok(Self { checkpoint: Checkpoint::default(), connection, texts, tail: Tail::default() })
    }

    /// The entries of the commit log.
    pub(in crate::store) const fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Writes commands in one transaction: as an entry of the commit log if that may have rows. On an error nothing is
    /// stored. Blocks. `caller` is gone when the process is ended at a point of a test.
    fn commit(&mut self, plain: &Plain, most_rows: usize, caller: &Weak<()>) -> Result<Written> {
        failpoint!("commit.begin", called by caller);
        self.transaction(caller, |direct| {
            if most_rows > 0 && direct.may_append(plain, most_rows)? {
                let (mut written, mut tail) = direct.append(plain, caller)?;
                let excess = tail.excess(most_rows);
                if excess > 0 {
                    direct.flush_entries(&tail, excess, caller)?;
                    tail.remove(excess);
                    written.flushed = true;
                }
                return Ok((written, tail));
            }
            if direct.last_entry()? != 0 {
                direct.flush_all(caller)?;
            }
            Ok((direct.write(plain, caller)?, Tail::default()))
        })
    }

    /// Stores in the tables what the commit log has for them.
    fn flush(&mut self, caller: &Weak<()>) -> Result<()> {
        if self.last_entry()? == 0 {
            self.tail = Tail::default();
            return Ok(());
        }
        failpoint!("flush.begin", called by caller);
        self.transaction(caller, |direct| direct.flush_all(caller).map(|()| ((), Tail::default())))
    }

    /// Runs `write` in a transaction; it returns the log's tail after it.
    fn transaction<T>(
        &mut self,
        caller: &Weak<()>,
        write: impl FnOnce(&mut Self) -> Result<(T, Tail)>,
    ) -> Result<T> {
        self.run("BEGIN IMMEDIATE")?;
        let written = write(self).and_then(|written| {
            failpoint!("commit.before", called by caller);
            self.run("COMMIT").map(|()| written)
        });
        // After a failure it may be any.
        let (written, tail) = match written {
            Ok((written, tail)) => (Ok(written), tail),
            Err(error) => (Err(error), Tail::unknown()),
        };
        self.tail = tail;
        if written.is_ok() {
            self.checkpoint.begin_if_due(self.connection.path());
        }
        if written.is_err() && !self.connection.is_autocommit() {
            self.run("ROLLBACK")?;
        }
        written
    }

    fn write(&self, plain: &Plain, caller: &Weak<()>) -> Result<Written> {
        let accepted = self.accept(&plain.accepts, caller)?;
        let permits = self.finish(&plain.finished, caller)?;
        let begun = self.begin(&plain.begun, caller)?;
        let settled = self.settle(&plain.settled, caller)?;
        Ok(Written { accepted, permits, begun, settled, flushed: false })
    }

    fn accept(&self, batches: &[Arc<Accept>], caller: &Weak<()>) -> Result<Vec<Accepted>> {
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let judged = self.judge(batches, caller)?;
        failpoint!("accept.messages", called by caller);
        let rows = judged.rows();
        let stored = self.store(&self.texts.message, &rows)?;
        let inserted: HashSet<_> =
            rows.iter().zip(stored).filter(|(_, stored)| *stored).map(|(row, _)| row.id).collect();
        failpoint!("accept.numbers", called by caller);
        let mut seqs = Seqs::new();
        let mut last =
            self.prepare("UPDATE channels SET last_seq = last_seq + ?2 WHERE id = ?1 RETURNING last_seq")?;
        for (channel, messages) in inbox::taken(&judged.valid, &inserted) {
            let count = i64::try_from(messages.len()).unwrap_or(0);
            let row = last.query_row(params![channel.text().as_str(), count], |row| row.get(0));
            if let Some(last) = row.optional().map_err(classify_direct)? {
                inbox::number(&mut seqs, channel, &messages, last);
            }
        }
        failpoint!("accept.work", called by caller);
        failpoint!("accept.rows", called by caller);
        let texts = &self.texts.consequences;
        let rows = Consequences::new(&judged.valid, &inserted, &seqs);
        self.store(&texts.log, &rows.log)?;
        self.store(&texts.delivery, &rows.deliveries)?;
        self.store(&texts.trace, &rows.traces)?;
        self.store(&texts.contact, &rows.contacts)?;
        self.store(&texts.cursor, &rows.cursors)?;
        Ok(judged.answers(&inserted, &seqs))
    }

    /// Accepts or rejects each batch by its lease and by the revision of the channels' settings.
    pub(super) fn judge<'b>(&self, batches: &'b [Arc<Accept>], caller: &Weak<()>) -> Result<Judged<'b>> {
        failpoint!("commit.accepts", called by caller);
        failpoint!("accept.leases", called by caller);
        let mut current = Current::new();
        let mut lease = self.prepare("SELECT lease_fence, config_rev FROM bots WHERE id = ?1")?;
        for bot in batches.iter().map(|batch| batch.bot_id) {
            let row = lease.query_row([bot.text().as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
            current.extend(row.optional().map_err(classify_direct)?.map(|row| (bot, row)));
        }
        Ok(Judged::new(batches, &current))
    }

    fn finish(&self, finished: &[Arc<Finished>], caller: &Weak<()>) -> Result<Permits> {
        if finished.is_empty() {
            return Ok(Permits::new());
        }
        failpoint!("commit.finished", called by caller);
        failpoint!("finish.state", called by caller);
        let (ended, others): (Vec<&Finished>, Vec<&Finished>) =
            finished.iter().map(|one| &**one).partition(|one| one.is_success());
        let mut stored = self.stored(&self.texts.success, ended)?;
        self.store(&self.texts.count, &Successes::of(stored.iter().copied()))?;
        stored.extend(self.stored(&self.texts.outcome, others)?);
        failpoint!("finish.traces", called by caller);
        failpoint!("trace.update", called by caller);
        self.store(&self.texts.trace, &merge(&stored.iter().map(|one| &one.trace).collect::<Vec<_>>()))?;
        self.enqueue_replies(&stored, caller)
    }

    /// Runs a statement for each outcome; returns those for which it changed something.
    fn stored<'f>(&self, statement: &str, outcomes: Vec<&'f Finished>) -> Result<Vec<&'f Finished>> {
        let stored = self.store(statement, &outcomes)?;
        Ok(outcomes.into_iter().zip(stored).filter(|(_, stored)| *stored).map(|(one, _)| one).collect())
    }

    /// Runs a statement for each row; returns for which it changed something.
    pub(super) fn store<R: Row>(&self, statement: &str, rows: &[R]) -> Result<Vec<bool>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.prepare(statement)?;
        let stored = |row: &R| {
            bind(&mut statement, row)?;
            statement.raw_execute().map(|changes| changes > 0).map_err(classify_direct)
        };
        rows.iter().map(stored).collect()
    }

    pub(super) fn run(&self, statement: &str) -> Result<()> {
        self.prepare(statement)?.execute([]).map(drop).map_err(classify_direct)
    }

    pub(super) fn prepare(&self, statement: &str) -> Result<CachedStatement<'_>> {
        self.connection.prepare_cached(statement).map_err(classify_direct)
    }
}

/// Writes commands with this connection: as an entry of the commit log if that may have rows.
pub(in crate::store) async fn commit(
    connection: &mut Option<Direct>,
    database: &Path,
    plain: Plain,
    most_rows: usize,
) -> Result<Written> {
    blocking(connection, database, move |direct, caller| direct.commit(&plain, most_rows, caller)).await
}

/// Stores in the tables what the commit log has for them.
pub(in crate::store) async fn flush(connection: &mut Option<Direct>, database: &Path) -> Result<()> {
    blocking(connection, database, Direct::flush).await
}

/// Works with this connection, which is opened if there is none, on a thread that may block.
async fn blocking<T: Send + 'static>(
    connection: &mut Option<Direct>,
    database: &Path,
    work: impl FnOnce(&mut Direct, &Weak<()>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (taken, database, caller) = (connection.take(), database.to_owned(), Arc::new(()));
    let called_by = Arc::downgrade(&caller);
    let work = move || {
        let mut direct = taken.map_or_else(|| Direct::open(&database), Ok)?;
        let written = work(&mut direct, &called_by);
        Ok((Some(direct).filter(|direct| direct.connection.is_autocommit()), written))
    };
    let done = tokio::task::spawn_blocking(work).await;
    drop(caller);
    let (direct, written) = done.unwrap_or_else(|_| Err(Error::internal("the writer panicked")))?;
    if !written.as_ref().is_err_and(|error| is_fatal(error) || is_outage(error)) {
        *connection = direct;
    }
    written
}

pub(super) fn bind(statement: &mut CachedStatement<'_>, row: &impl Row) -> Result<()> {
    let mut places = Places { statement, bound: Ok(0) };
    row.write(&mut places);
    places.bound.map(drop).map_err(classify_direct)
}

/// Binds the values of a row in their order.
struct Places<'s, 'c> {
    statement: &'s mut CachedStatement<'c>,
    /// Number of bound values, or the error of the first one that could not be bound.
    bound: rusqlite::Result<usize>,
}

impl Places<'_, '_> {
    fn bind(&mut self, value: impl rusqlite::ToSql) {
        if let Ok(bound) = self.bound {
            let place = bound + 1;
            self.bound = self.statement.raw_bind_parameter(place, value).map(|()| place);
        }
    }
}

impl<'v> Values<'v> for Places<'_, '_> {
    fn text(&mut self, value: Option<Cow<'v, str>>) {
        self.bind(value.as_deref());
    }

    fn id(&mut self, value: Option<IdText>) {
        self.bind(value.as_ref().map(IdText::as_str));
    }

    fn number(&mut self, value: Option<i64>) {
        self.bind(value);
    }

    fn bytes(&mut self, value: &'v [u8]) {
        self.bind(value);
    }
}
