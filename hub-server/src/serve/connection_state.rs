//! State shared by the two ends of a connection: the [wire](super::wire), which reads the bytes before hyper does,
//! and the service, which gets the requests after it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Context,
};

use futures_util::task::AtomicWaker;

use super::refusal::Refusal;

/// Head that the wire passed to hyper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// A request. After one whose end only hyper can find, the connection cannot carry another.
    Request { last: bool },
    /// A placeholder for a head that was refused.
    Refused(Refusal),
}

/// Shared by both ends.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    /// Passed heads, in the order of the requests. At most two: hyper reads one head ahead, and only to detect a
    /// disconnect.
    passed: Mutex<VecDeque<Passed>>,
    /// Number of passed requests whose responses are not complete.
    open: AtomicUsize,
    upgraded: AtomicBool,
    /// Task of the connection, while its wire waits for the end of a response: hyper requests no further bytes by
    /// itself.
    waiting: AtomicWaker,
}

impl ConnectionState {
    /// The wire passes a head on.
    pub(super) fn pass(&self, head: Passed) {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).push_back(head);
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts the next request in the service.
    pub(super) fn begin(self: &Arc<Self>) -> (Passed, Busy) {
        let head = self.passed.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let head = head.unwrap_or(Passed::Refused(Refusal::BadHead("the head is not HTTP/1.1")));
        (head, Busy(Arc::clone(self)))
    }

    /// Whether a request is being processed, so that the client may be silent. The task is woken when that changes.
    pub(super) fn is_busy(&self, cx: &Context<'_>) -> bool {
        self.waiting.register(cx.waker());
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Marks the connection as upgraded to another protocol, which has its own limits.
    pub(super) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }
}

/// Marks a response as in progress until dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<ConnectionState>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.waiting.wake();
    }
}
