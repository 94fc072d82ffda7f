//! Named points at which tests make the hub fail: at every commit, claim, send and record. They exist only with the
//! feature `testing`, which no shipped program has; without it they are nothing.
//!
//! The registry is one per process, so a test that uses it is alone in its program. It is forty lines of our
//! own rather than the crate `fail`: that one sleeps by blocking the thread, which stalls more than the point,
//! does not tell which points were reached, and brings a second family of random number generators.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use crate::{
    error::{Error, ErrorCode, Result},
    time::Clock,
};

/// Effect of an armed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The step fails as if the store were unavailable; where nothing can fail, nothing happens.
    Fail,
    /// The task panics.
    Panic,
    /// The step takes this much longer.
    Stall(Duration),
    /// The task stops here permanently, so that a test can end the whole process.
    Freeze,
}

/// All points, in the order of the delivery pipeline. An unlisted name panics when it is reached.
pub const POINTS: &[&str] = &[
    "lease.void",
    "lease.acquire",
    "lease.renew",
    "lease.work",
    "lease.look",
    "lease.release",
    "bind.begin",
    "bind.settle",
    "poll.before",
    "poll.answered",
    "intake.before",
    "intake.committed",
    "accept.leases",
    "accept.messages",
    "accept.numbers",
    "accept.work",
    "accept.rows",
    "commit.connect",
    "commit.begin",
    "commit.accepts",
    "commit.finished",
    "commit.command",
    "commit.before",
    "commit.after",
    "flush.begin",
    "flush.entries",
    "flush.outcomes",
    "flush.delete",
    "backlog.read",
    "backlog.claim",
    "backlog.claimed",
    "attempt.before",
    "attempt.answered",
    "attempt.stored",
    "finish.state",
    "finish.traces",
    "finish.replies",
    "finish.window",
    "finish.health",
    "enqueue.items",
    "send.accept",
    "send.accepted",
    "idempotency.store",
    "outbox.open",
    "outbox.people",
    "outbox.token",
    "outbox.begin",
    "outbox.window",
    "outbox.begun",
    "outbox.answered",
    "outbox.settle",
    "outbox.message",
    "outbox.settled",
    "trace.insert",
    "trace.update",
    "retention.round",
    "retention.traces",
    "retention.messages",
];

#[derive(Debug, Default)]
struct Registry {
    hits: BTreeMap<&'static str, u64>,
    armed: Option<(&'static str, Act, u64)>,
    fired: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { hits: BTreeMap::new(), armed: None, fired: false });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Arms a point to act once, after it was passed `after` times.
///
/// # Panics
/// If the point does not exist.
pub fn arm(point: &str, act: Act, after: u64) {
    let name = POINTS.iter().find(|name| **name == point).expect("the point exists");
    let mut registry = registry();
    registry.armed = Some((name, act, after));
    registry.fired = false;
}

/// Disarms the armed point.
pub fn disarm() {
    registry().armed = None;
}

/// Whether the armed point has acted.
pub fn has_fired() -> bool {
    registry().fired
}

/// Returns how often each point was reached since the process started.
pub fn hits() -> BTreeMap<&'static str, u64> {
    registry().hits.clone()
}

/// Passes a point, and acts if it is armed.
///
/// # Errors
/// `UNAVAILABLE` for [`Act::Fail`].
///
/// # Panics
/// If it is armed with [`Act::Panic`], and for a name that is not in [`POINTS`].
pub(crate) async fn reach(point: &'static str) -> Result<()> {
    match act_at(point) {
        None => Ok(()),
        Some(Act::Fail) => Err(Error::new(ErrorCode::Unavailable, format!("failpoint {point}"))
            .with_retry_after(Duration::from_secs(1))),
        Some(Act::Panic) => panic!("failpoint {point}"),
        Some(Act::Stall(pause)) => {
            Clock::system().sleep(pause).await;
            Ok(())
        }
        Some(Act::Freeze) => std::future::pending().await,
    }
}

/// Passes a point on a thread that may block. [`Act::Freeze`] blocks until the caller is gone and then fails.
///
/// # Errors
/// `UNAVAILABLE` for [`Act::Fail`] and [`Act::Freeze`].
///
/// # Panics
/// As [`reach`].
pub(crate) fn reach_blocking(point: &'static str, caller: &Weak<()>) -> Result<()> {
    let failed = || Error::new(ErrorCode::Unavailable, format!("failpoint {point}"));
    match act_at(point) {
        None => Ok(()),
        Some(Act::Fail) => Err(failed()),
        Some(Act::Panic) => panic!("failpoint {point}"),
        Some(Act::Stall(pause)) => {
            std::thread::sleep(pause);
            Ok(())
        }
        Some(Act::Freeze) => {
            while caller.strong_count() > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(failed())
        }
    }
}

fn act_at(point: &'static str) -> Option<Act> {
    assert!(POINTS.contains(&point), "{point} is not in the list");
    let mut registry = registry();
    *registry.hits.entry(point).or_default() += 1;
    let (name, act, after) = registry.armed?;
    if name != point {
        return None;
    }
    if after > 0 {
        registry.armed = Some((name, act, after - 1));
        return None;
    }
    registry.armed = None;
    registry.fired = true;
    Some(act)
}
