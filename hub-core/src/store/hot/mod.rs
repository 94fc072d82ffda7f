//! The hot path: the messages, outcomes and sends of a batch in one transaction. Each database has one writer for them:
//! [`sqlite`] runs prepared statements row by row, [`postgres`] sends one large statement.
//!
//! At a few hundred messages per second a transaction holds one or two commands, and the trips of its statements, to a
//! server or to the thread on which `sqlx` runs SQLite, cost several times what the statements cost.

use std::{path::Path, sync::Arc};

use super::{
    deliveries::Finished,
    due::{Reading, Stamp, StoredClock},
    inbox::{Accept, Accepted},
    sending::{Begun, Settled, immediate_send::Permits},
    writer::Command,
};
use crate::error::{Error, Result};

mod log;
pub(super) mod postgres;
pub(super) mod sqlite;

pub(super) use log::MOST_ROWS;
pub(super) use sqlite::Direct;

/// The commands of one transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Hot {
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

impl Hot {
    /// The commands of a batch, which has no others.
    pub(super) fn of(batch: &[Command]) -> Self {
        let mut hot = Self::default();
        for command in batch {
            match command {
                Command::Accept(one, _) => hot.accepts.push(Arc::clone(one)),
                Command::Finish(one, _) => hot.finished.push(Arc::clone(one)),
                Command::BeginSend(one, _) => hot.begun.push(Arc::clone(one)),
                Command::SettleSend(one, _) => hot.settled.push(Arc::clone(one)),
                Command::Run(..) | Command::Flush(..) => unreachable!("taken out before"),
            }
        }
        hot
    }

    /// Whether an outcome was determined by another clock than that of due times in the store.
    fn is_around_step(&self, now: Reading) -> bool {
        !self.finished.iter().all(|one| one.stamp.is_current(now))
            || !self.settled.iter().all(|one| one.stamp.is_current(now))
    }

    /// The same commands, with outcomes moved to the clock of due times in the store.
    fn following(&self, noted: Option<StoredClock>, now: Reading) -> Self {
        let mut hot = self.clone();
        let step_for = |stamp: Stamp| {
            noted.filter(|_| !stamp.is_current(now)).and_then(|noted| noted.step_for(stamp, now))
        };
        for one in &mut hot.finished {
            if let Some(step) = step_for(one.stamp) {
                Arc::make_mut(one).follow(step);
            }
        }
        for one in &mut hot.settled {
            if let Some(step) = step_for(one.stamp) {
                Arc::make_mut(one).follow(step);
            }
        }
        hot
    }
}

/// Checks that this program can read an entry of the commit log.
///
/// # Errors
/// `UNAVAILABLE` naming the entry, its problem, and the fix.
pub(super) fn check_entry(id: i64, entry: Vec<u8>) -> Result<()> {
    log::check(entry).map_err(|error| {
        let message = format!("{} (entry {id})", error.message());
        Error::new(error.code(), message).with_hint_of(&error)
    })
}

/// Stores in the tables what the commit log of a file has for them, which this process does not work on.
pub(super) async fn flush_file(database: &Path) -> Result<()> {
    sqlite::flush(&mut None, database).await
}
