//! The clock that all nodes of a database share, and its steps: what is stored under a time of before is moved along.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::work_store::WorkStore;
use crate::{
    store::due::{Followed, Reading, Stamp},
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

    fn read(&self) -> Reading {
        Reading { at: self.clock.instant(), wall: self.store.now() }
    }

    /// The time for an outcome; the store moves it along with steps until it is stored.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { read: self.read(), followed: self.followed() }
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
