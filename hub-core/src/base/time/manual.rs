//! A clock for tests and simulations.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Instant, Timestamp};

/// A value that changes and wakes the tasks that wait for it, in the order in which they began to wait, which
/// `tokio::sync::watch` does not, so that a run under a [`ManualClock`] can be repeated.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn get(&self) -> T {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, value: T) {
        self.update(|current| *current = value);
    }

    fn update(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Waits until the value matches.
    pub(crate) async fn wait_for(&self, matches: impl Fn(T) -> bool) {
        loop {
            // Registered before looking, so that no change is missed.
            let changed = self.changed.notified();
            if matches(self.get()) {
                return;
            }
            changed.await;
        }
    }
}

/// A clock that moves only when it is moved. Clones share the state.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<ManualTime>);

#[derive(Debug)]
struct ManualTime {
    shown: Watched<ClockReading>,
    /// Until when tasks wait; one entry per wait.
    waits: Mutex<Vec<Instant>>,
}

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    wall: Timestamp,
    monotonic: Instant,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        let shown = ClockReading { wall: start, monotonic: Instant::START };
        Self(Arc::new(ManualTime { shown: Watched::new(shown), waits: Mutex::default() }))
    }

    /// What the wall clock shows.
    pub fn now(&self) -> Timestamp {
        self.0.shown.get().wall
    }

    /// What the monotonic clock shows.
    pub fn instant(&self) -> Instant {
        self.0.shown.get().monotonic
    }

    /// Lets time pass on both clocks and wakes the tasks whose time has come.
    pub fn advance(&self, duration: Duration) {
        self.0.shown.update(|shown| {
            *shown = ClockReading { wall: shown.wall + duration, monotonic: shown.monotonic + duration };
        });
    }

    /// Steps the wall clock, forwards or backwards, while no time passes.
    pub fn set(&self, wall: Timestamp) {
        self.0.shown.update(|shown| shown.wall = wall);
    }

    /// Until when tasks wait, soonest first, as the wall clock will show it unless it is stepped: whether a program
    /// is idle, and what it waits for.
    pub fn waits(&self) -> Vec<Timestamp> {
        let shown = self.0.shown.get();
        let as_shown = |at: &Instant| shown.wall + at.since(shown.monotonic) - shown.monotonic.since(*at);
        let mut waits: Vec<_> = self.0.waits().iter().map(as_shown).collect();
        waits.sort_unstable();
        waits
    }

    pub(super) async fn sleep_until(&self, at: Instant) {
        let _wait = Wait::begin(&self.0, at);
        self.0.shown.wait_for(|shown| shown.monotonic >= at).await;
    }
}

impl ManualTime {
    fn waits(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One wait; removed when it ends in any way.
struct Wait<'h> {
    state: &'h ManualTime,
    at: Instant,
}

impl<'h> Wait<'h> {
    fn begin(state: &'h ManualTime, at: Instant) -> Self {
        state.waits().push(at);
        Self { state, at }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.state.waits();
        if let Some(place) = waits.iter().position(|at| *at == self.at) {
            waits.swap_remove(place);
        }
    }
}
