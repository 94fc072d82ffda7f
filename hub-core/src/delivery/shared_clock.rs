//! The clock that all nodes of a database share, and its steps: what is stored under a time of before is moved along.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::work_store::WorkStore;
use crate::{
    store::due::{Followed, Reading, Step},
    time::Clock,
};

/// The shared clock as this node reads it.
#[derive(Debug)]
pub(super) struct SharedClock {
    store: Arc<dyn WorkStore>,
    clock: Clock,
    /// The reading that due times in the store go by.
    followed: Mutex<Option<Followed>>,
}

impl SharedClock {
    pub(super) fn new(store: Arc<dyn WorkStore>, clock: Clock) -> Self {
        Self { store, clock, followed: Mutex::default() }
    }

    pub(super) fn read(&self) -> Reading {
        Reading { at: self.clock.instant(), wall: self.store.now() }
    }

    /// The step of the clock since a reading, which is taken again then. A step by which times in the store have
    /// still to be moved does not count: it moves what is stored before.
    pub(super) fn step_since(&self, read: &mut Reading) -> Option<Step> {
        if self.has_unfollowed_step() {
            return None;
        }
        let before = std::mem::replace(read, self.read());
        before.step_to(*read)
    }

    /// Whether the clock was set and due times in the store are not moved along yet.
    pub(super) fn has_unfollowed_step(&self) -> bool {
        self.followed().is_some_and(|followed| followed.reading.step_to(self.read()).is_some())
    }

    pub(super) fn followed(&self) -> Option<Followed> {
        *self.lock()
    }

    /// Due times in the store are moved along.
    pub(super) fn follow(&self, followed: Followed) {
        *self.lock() = Some(followed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
