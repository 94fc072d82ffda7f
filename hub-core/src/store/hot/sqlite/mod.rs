//! SQLite: a connection that is not one of `sqlx`, which sends each row and each end of a statement from one thread to
//! another. A transaction is one piece of work on a thread that may block, row by row with prepared statements. Only the
//! committer writes, and it uses one of its two connections at a time.
//!
//! Foreign keys to messages, channels and bots are not checked on this connection, as on PostgreSQL: the transaction
//! has read the bot's row, numbered the channel's log and stored the message.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::HashMap,
    path::Path,
    sync::{Arc, Weak},
};

use rusqlite::{CachedStatement, Connection, OpenFlags, OptionalExtension};

use self::checkpoint::Checkpoint;
use super::{Hot, Written, log::Tail};
use crate::{
    error::{Error, Result},
    id::IdText,
    store::{
        backend::BUSY,
        due::{self, Reading, StoredClock},
        fault::{classify_direct, is_fatal, is_outage},
        rows::{self, Row, Values},
    },
};

pub(super) mod accept;
mod checkpoint;
pub(super) mod finish;
mod sends;

/// Statements that stay prepared: all of this module.
const STATEMENTS: usize = 48;

/// A statement, out of the expression of its rows.
type Statement = fn(&str) -> String;

#[derive(Debug)]
pub(in crate::store) struct Direct {
    /// Ends before the connection is closed: fields are dropped in their order.
    checkpoint: Checkpoint,
    connection: Connection,
    /// Texts of statements for one row.
    texts: RefCell<HashMap<Statement, Arc<str>>>,
    pub(super) tail: Tail,
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
        Ok(Self {
            checkpoint: Checkpoint::default(),
            connection,
            texts: RefCell::default(),
            tail: Tail::default(),
        })
    }

    /// The entries of the commit log.
    pub(in crate::store) const fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Writes commands in one transaction: as an entry of the commit log if that may have rows. On an error nothing is
    /// stored. Blocks. `caller` is gone when the process is ended at a point of a test.
    fn commit(&mut self, mut hot: Hot, now: Reading, most_rows: usize, caller: &Weak<()>) -> Result<Written> {
        failpoint!("commit.begin", called by caller);
        self.transaction(caller, |direct| {
            if hot.is_around_step(now) {
                hot = hot.following(direct.noted()?, now);
            }
            if most_rows > 0 && direct.may_append(&hot, most_rows)? {
                let (mut written, mut tail) = direct.append(&hot, caller)?;
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
            Ok((direct.write(&hot, caller)?, Tail::default()))
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
        } else if !self.connection.is_autocommit() {
            self.run("ROLLBACK")?;
        }
        written
    }

    fn write(&self, hot: &Hot, caller: &Weak<()>) -> Result<Written> {
        let accepted = self.accept(&hot.accepts, caller)?;
        let permits = self.finish(&hot.finished, caller)?;
        let begun = self.begin(&hot.begun, caller)?;
        let settled = self.settle(&hot.settled, caller)?;
        Ok(Written { accepted, permits, begun, settled, flushed: false })
    }

    /// The stored state of the clock.
    fn noted(&self) -> Result<Option<StoredClock>> {
        let text = self.prepare(due::NOTED[0])?.query_row([], |row| row.get::<_, String>(0)).optional();
        Ok(text.map_err(classify_direct)?.as_deref().and_then(StoredClock::read))
    }

    /// Runs a statement for each row; returns for which it changed something.
    fn store<R: Row>(&self, statement: Statement, rows: &[R]) -> Result<Vec<bool>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut prepared = self.prepare(&self.text::<R>(statement))?;
        let stored = |row: &R| {
            bind(&mut prepared, row)?;
            prepared.raw_execute().map(|changes| changes > 0).map_err(classify_direct)
        };
        rows.iter().map(stored).collect()
    }

    /// Runs a statement for each row; returns what it returns.
    fn returned<R: Row, T>(
        &self,
        statement: Statement,
        rows: &[R],
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for row in rows {
            let mut prepared = self.prepare(&self.text::<R>(statement))?;
            bind(&mut prepared, row)?;
            let mut returned = prepared.raw_query();
            while let Some(row) = returned.next().map_err(classify_direct)? {
                all.push(read(row).map_err(classify_direct)?);
            }
        }
        Ok(all)
    }

    /// The text of a statement for one row.
    pub(super) fn text<R: Row>(&self, statement: Statement) -> Arc<str> {
        let mut texts = self.texts.borrow_mut();
        let text =
            texts.entry(statement).or_insert_with(|| or_rollback(&statement(&rows::single::<R>())).into());
        Arc::clone(text)
    }

    fn run(&self, statement: &str) -> Result<()> {
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
    hot: Hot,
    now: Reading,
    most_rows: usize,
) -> Result<Written> {
    blocking(connection, database, move |direct, caller| direct.commit(hot, now, most_rows, caller)).await
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
    let done = match tokio::task::spawn_blocking(work).await {
        Err(error) if error.is_panic() => Err(Error::internal("the writer panicked")),
        // The runtime shuts down. An answer would let deliveries go on whose predecessors are not stored as over.
        Err(_) => std::future::pending().await,
        Ok(done) => done,
    };
    drop(caller);
    let (direct, written) = done?;
    if !written.as_ref().is_err_and(|error| is_fatal(error) || is_outage(error)) {
        *connection = direct;
    }
    written
}

/// A statement whose failure ends the transaction, as it would anyway: the pages that it changes need not be copied to
/// undo it alone. The trigger of traces replaces a row, which `OR ROLLBACK` would override.
fn or_rollback(statement: &str) -> String {
    match statement.split_once(' ') {
        Some((verb @ ("INSERT" | "UPDATE"), rest))
            if !["traces ", "INTO traces "].iter().any(|table| rest.starts_with(table)) =>
        {
            format!("{verb} OR ROLLBACK {rest}")
        }
        _ => statement.to_owned(),
    }
}

fn bind(statement: &mut CachedStatement<'_>, row: &impl Row) -> Result<()> {
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
