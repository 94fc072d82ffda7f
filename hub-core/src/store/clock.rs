//! The clock that all nodes of a database share.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::due::Reading;
use crate::time::{Clock, Timestamp};

/// The database has no clock, or it was not read yet.
const UNSYNCED: i64 = i64::MIN;

/// The clock that all nodes of a database share.
#[derive(Debug, Clone)]
pub(super) struct StoreClock {
    machine: Clock,
    /// Offset of the database's clock from this machine's monotonic clock, in milliseconds. Nodes compare due times
    /// and leases by this shared clock, so a step of the machine's wall clock changes nothing. [`UNSYNCED`] until
    /// measured, and on SQLite.
    offset: Arc<AtomicI64>,
}

impl StoreClock {
    pub(super) fn new(machine: Clock) -> Self {
        Self { machine, offset: Arc::new(AtomicI64::new(UNSYNCED)) }
    }

    /// The clock of the process.
    pub(super) const fn machine(&self) -> &Clock {
        &self.machine
    }

    pub(super) fn now(&self) -> Timestamp {
        match self.offset.load(Ordering::Relaxed) {
            UNSYNCED => self.machine.now(),
            offset => Timestamp::from_millis(self.machine.instant().as_millis() + offset),
        }
    }

    pub(super) fn read(&self) -> Reading {
        Reading { at: self.machine.instant(), wall: self.now() }
    }

    /// Goes by this reading from now on.
    pub(super) fn set(&self, Reading { at, wall }: Reading) {
        self.offset.store(wall.as_millis() - at.as_millis(), Ordering::Relaxed);
    }
}
