//! The clock that all nodes of a database share, and its steps. Stored times are shifted when the clock steps.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::work_store::WorkStore;
use crate::{
    store::due::{Followed, Reading, Stamp},
    time::{Clock, Instant},
};

/// The shared clock as this node reads it.
#[derive(Debug)]
pub(super) struct SharedClock {
    store: Arc<dyn WorkStore>,
    clock: Clock,
    /// The reading that due times in the store go by.
    followed: Mutex<Option<Followed>>,
    started: Instant,
    lease: Duration,
}

impl SharedClock {
    /// The clock of a node that starts now.
    pub(super) fn new(store: Arc<dyn WorkStore>, clock: Clock, lease: Duration) -> Self {
        let started = clock.instant();
        Self { store, clock, followed: Mutex::default(), started, lease }
    }

    /// Whether every living node has read the clock since this one started. Until then an item may seem to have expired
    /// because of a step before the start, by which a node that ran through it still moves the item.
    pub(super) fn was_read_by_all(&self) -> bool {
        self.clock.instant().since(self.started) > self.lease
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
