//! The hot path: batches of plain messages, outcomes and sends, each one transaction and one trip to the database.
//!
//! At a few hundred messages per second a transaction holds one or two of them, and the trips of its statements, to a
//! server or to the thread on which `sqlx` runs SQLite, cost several times what the statements cost. Whatever needs more
//! than plain rows, and what is refused here because of its content, is written by the [batch](super::batch).

use std::{path::Path, sync::Arc};

use super::{
    backend::Backend,
    clock::StoreClock,
    deliveries::Finished,
    fault::{is_fatal, is_outage},
    inbox::{Accept, Accepted},
    outbox::NewOutbound,
    sending::{Begun, Settled, at_once::Permits},
    views::{Owned, Tx},
    writer::Command,
};
use crate::error::{Error, Result};

mod checkpoint;
mod commit_log;
mod entry;
mod postgres;
mod previous;
mod sends;
mod sqlite;

pub(super) use commit_log::MOST_ROWS;
pub(super) use sqlite::Direct;

/// Commands that are written in one trip. On PostgreSQL, sends are only among them if they complete their message:
/// otherwise a part of the statement would have to read rows that another part stores.
#[derive(Debug, Default)]
pub(super) struct Plain {
    accepts: Vec<Arc<Accept>>,
    finished: Vec<Arc<Finished>>,
    begun: Vec<Arc<Begun>>,
    settled: Vec<Arc<Settled>>,
}

/// The results of commands, in their order; those of outcomes by their deliveries.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) accepted: Vec<Accepted>,
    pub(super) permits: Permits,
    pub(super) begun: Vec<bool>,
    pub(super) settled: Vec<bool>,
    /// Whether the oldest entries of the commit log were stored in the tables with them.
    pub(super) flushed: bool,
}

impl Plain {
    /// The commands of a batch, unless one of them needs more than plain rows, or the clock was set.
    pub(super) fn of(batch: &[Command], backend: &Backend, clock: &StoreClock) -> Option<Self> {
        let (now, is_sqlite) = (clock.read(), matches!(backend, Backend::Sqlite { .. }));
        let mut plain = Self::default();
        for command in batch {
            match command {
                Command::Accept(one, _) if one.is_plain() => plain.accepts.push(Arc::clone(one)),
                Command::Finish(one, _)
                    if one.is_plain()
                        && one.stamp.is_current(now)
                        && one.replies.iter().all(NewOutbound::is_plain) =>
                {
                    plain.finished.push(Arc::clone(one));
                }
                Command::BeginSend(one, _) if is_sqlite && one.is_plain() => {
                    plain.begun.push(Arc::clone(one));
                }
                Command::SettleSend(one, _)
                    if one.stamp.is_current(now)
                        && if is_sqlite { one.is_plain() } else { one.is_whole() } =>
                {
                    plain.settled.push(Arc::clone(one));
                }
                _ => return None,
            }
        }
        Some(plain)
    }
}

/// Writes commands in one transaction, which may be an entry of a commit log of so many rows. `None` when they have to be
/// written by statements apart, as nothing is stored yet.
///
/// # Errors
/// The database cannot be written at the moment, or failed.
pub(super) async fn commit(
    backend: &Backend,
    direct: &mut Option<Direct>,
    tx: &mut Tx,
    plain: Plain,
    most_rows: usize,
) -> Result<Option<Written>> {
    let written = match (backend, &mut tx.0) {
        (Backend::Sqlite { write, .. }, _) => {
            sqlite::commit(direct, write.get_filename(), plain, most_rows).await.map(Some)
        }
        (_, Owned::Postgres(conn)) => postgres::commit(conn, &plain).await,
        _ => Ok(None),
    };
    written.or_else(|error| if is_fatal(&error) || is_outage(&error) { Err(error) } else { Ok(None) })
}

/// As [`flush`], for a file that this process does not work on.
pub(super) async fn flush_file(database: &Path) -> Result<()> {
    sqlite::flush(&mut None, database).await
}

/// Checks that this program can read an entry of the commit log.
///
/// # Errors
/// `UNAVAILABLE` naming the entry, its problem, and the fix.
pub(super) fn check_entry(id: i64, entry: Vec<u8>) -> Result<()> {
    let read = entry::current(entry).and_then(|entry| entry::Rows::default().read(&entry));
    read.map_err(|error| {
        let message = format!("{} (entry {id})", error.message());
        Error::new(error.code(), message).with_hint_of(&error)
    })
}

/// Stores in the tables what the commit log has for them; nothing on PostgreSQL.
pub(super) async fn flush(backend: &Backend, direct: &mut Option<Direct>) -> Result<()> {
    match backend {
        Backend::Sqlite { write, .. } => sqlite::flush(direct, write.get_filename()).await,
        Backend::Postgres { .. } => Ok(()),
    }
}
