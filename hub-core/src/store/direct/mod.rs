//! The hot path: batches of plain messages and outcomes, each one transaction and one trip to the database.
//!
//! At a few hundred messages per second a transaction holds one or two of them, and the trips of its statements, to a
//! server or to the thread on which `sqlx` runs SQLite, cost several times what the statements cost. Whatever needs more
//! than plain rows, and what is refused here because of its content, is written by the [batch](super::batch).

use std::sync::Arc;

use super::{
    backend::Backend,
    deliveries::Finished,
    due::StoreClock,
    fault::{is_fatal, is_outage},
    inbox::{Accept, Accepted},
    views::{Owned, Tx},
    writer::Command,
};
use crate::error::Result;

mod postgres;
mod sqlite;

pub(super) use sqlite::Direct;

/// Commands that are written in one trip.
#[derive(Debug)]
pub(super) struct Plain {
    accepts: Vec<Arc<Accept>>,
    finished: Vec<Arc<Finished>>,
}

impl Plain {
    /// The commands of a batch, unless one of them needs more than plain rows, or the clock was set.
    pub(super) fn of(batch: &[Command], clock: &StoreClock) -> Option<Self> {
        let now = clock.read();
        let mut plain = Self { accepts: Vec::new(), finished: Vec::new() };
        for command in batch {
            match command {
                Command::Accept(accept, _) if accept.is_plain() => plain.accepts.push(Arc::clone(accept)),
                Command::Finish(finished, _) if finished.is_plain() && finished.stamp.is_current(now) => {
                    plain.finished.push(Arc::clone(finished));
                }
                _ => return None,
            }
        }
        Some(plain)
    }
}

/// Writes commands in one transaction; returns the result of each accepted batch. `None` when they have to be written
/// by statements apart, as nothing is stored yet.
///
/// # Errors
/// The database cannot be written at the moment, or failed.
pub(super) async fn commit(
    backend: &Backend,
    direct: &mut Option<Direct>,
    tx: &mut Tx,
    plain: Plain,
) -> Result<Option<Vec<Accepted>>> {
    let written = match (backend, &mut tx.0) {
        (Backend::Sqlite { write, .. }, _) => {
            sqlite::commit(direct, write.get_filename(), plain).await.map(Some)
        }
        (_, Owned::Postgres(conn)) => postgres::commit(conn, &plain).await,
        _ => Ok(None),
    };
    written.or_else(|error| if is_fatal(&error) || is_outage(&error) { Err(error) } else { Ok(None) })
}
