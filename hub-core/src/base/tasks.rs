//! Background work: spawned in one place, stopped by one token tree, waited for at shutdown.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Semaphore, task::JoinHandle};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::{
    error::{Error, Result},
    time::Clock,
};

/// The running tasks of one owner. Clones share them; a [`child`](Tasks::child) can be stopped alone.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// Shared with parents and children.
    panics: Arc<AtomicU64>,
}

impl Tasks {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A set whose stop signal also fires with the parent's.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { tracker: TaskTracker::new(), stop: self.stop.child_token(), panics: Arc::clone(&self.panics) }
    }

    /// The stop signal: loops watch it between two units of work.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether the tasks were asked to stop.
    pub fn stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Runs a future until it ends. A panic ends that task alone and is logged with its name.
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns")]
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let guarded = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(future));
        let panics = Arc::clone(&self.panics);
        tokio::spawn(self.tracker.track_future(async move {
            let ended = guarded.await.map_err(|_| tracing::error!(task = name, "task panicked"));
            if ended.is_err() {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            ended.ok()
        }))
    }

    /// Counts as a running task until it is dropped.
    pub fn token(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Restarts `make()`'s future whenever it panics, after a second, until the tasks are asked to stop.
    pub fn supervise<F>(&self, name: &'static str, clock: Clock, make: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, panics) = (self.stop.clone(), Arc::clone(&self.panics));
        self.spawn(name, async move {
            loop {
                let run = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(make()));
                if run.await.is_ok() || stop.is_cancelled() {
                    return;
                }
                panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!(task = name, "task panicked and starts again");
                clock.sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// How many tasks of this set, its parents and its children ended with a panic.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Asks all tasks to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until every task has ended; `false` when `limit` ran out first.
    pub async fn wait(&self, clock: &Clock, limit: Duration) -> bool {
        self.tracker.close();
        clock.timeout(limit, self.tracker.wait()).await.is_some()
    }
}

/// Computations that take milliseconds, on threads of their own: a few at a time, the others wait for a place.
/// Those who wait are bounded by what makes them: requests in flight and bots.
#[derive(Debug, Clone)]
pub struct Computations(Option<Arc<Semaphore>>);

impl Computations {
    /// So many at a time.
    pub fn new(at_a_time: usize) -> Self {
        Self(Some(Arc::new(Semaphore::new(at_a_time))))
    }

    /// All of them at once where they are asked for, so that a run under a seed can be repeated.
    #[cfg(test)]
    pub(crate) const fn in_place() -> Self {
        Self(None)
    }

    /// Runs one. Its place is held until it ends, also when the caller has gone away meanwhile.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it panics.
    pub async fn run<T: Send + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let Some(places) = &self.0 else { return Ok(compute()) };
        let place = Arc::clone(places).acquire_owned().await.map_err(Error::internal)?;
        let run = tokio::task::spawn_blocking(move || {
            let _held = place;
            compute()
        });
        run.await.map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_one_task_and_no_other() {
        let tasks = Tasks::new();
        let bad = tasks.spawn("bad", async { panic!("on purpose") });
        let good = tasks.spawn("good", async { 7 });
        assert_eq!(bad.await.unwrap(), None::<()>);
        assert_eq!(good.await.unwrap(), Some(7));
        assert_eq!(tasks.panics(), 1);
        let child = tasks.child();
        assert_eq!(child.panics(), 1);
        tasks.stop();
        assert!(child.stopping());
        assert!(tasks.wait(&Clock::system(), Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn computations_run_elsewhere_and_so_many_at_a_time() {
        let computations = Computations::new(1);
        let here = std::thread::current().id();
        assert_ne!(computations.run(|| std::thread::current().id()).await.unwrap(), here);
        let (go, gate) = std::sync::mpsc::sync_channel::<()>(1);
        let first = computations.run(move || gate.recv().is_ok());
        let second = computations.run(|| 2);
        tokio::pin!(first, second);
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        go.send(()).unwrap();
        assert!(first.await.unwrap());
        assert_eq!(second.await.unwrap(), 2);
        assert!(computations.run(|| panic!("on purpose")).await.is_err());
    }
}
