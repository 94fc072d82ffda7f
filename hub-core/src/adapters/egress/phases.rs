//! Durations of the parts of a request, as far as they can be distinguished.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;

use super::EgressFault;
use crate::{time::Stopwatch, words::words};

words! {
    /// Phase of a request.
    #[api(name = "RequestPhase")]
    pub enum Phase {
        /// The check of the address.
        Address = "address",
        /// The resolution of the name.
        Dns = "dns",
        /// The connection, up to the TLS handshake.
        Connect = "connect",
        /// The TLS handshake.
        Tls = "tls",
        /// The wait for the beginning of the response.
        FirstByte = "first_byte",
        /// The rest of the response.
        Response = "response",
    }
}

/// Durations of the parts of a request. A part that did not happen, or cannot be distinguished, is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// Resolution of the name; `None` for an address.
    pub dns: Option<Duration>,
    /// TCP connection and, for https, TLS handshake.
    pub connect: Option<Duration>,
    /// From the connection to the beginning of the response.
    pub first_byte: Option<Duration>,
}

tokio::task_local! {
    /// The marks of the request of this task, if it is measured.
    static MARKS: Marks;
}

/// End times of the parts of a request, measured from its start.
#[derive(Debug, Clone)]
pub(super) struct Marks(Arc<(Stopwatch, Mutex<Ends>)>);

#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    resolving: Option<Duration>,
    resolved: Option<Duration>,
    connected: Option<Duration>,
    answered: Option<Duration>,
}

impl Marks {
    fn new() -> Self {
        Self(Arc::new((Stopwatch::start(), Mutex::default())))
    }

    /// Returns the marks of this task, if its request is measured.
    pub(super) fn of_task() -> Option<Self> {
        MARKS.try_with(Self::clone).ok()
    }

    /// Measures what a request reports while it is made and runs.
    pub(super) fn measure<F: Future>(make: impl FnOnce() -> F) -> impl Future<Output = (F::Output, Self)> {
        let marks = Self::new();
        let run = MARKS.sync_scope(marks.clone(), make);
        MARKS.scope(marks.clone(), run).map(|done| (done, marks))
    }

    fn set(&self, end: impl FnOnce(&mut Ends) -> &mut Option<Duration>) {
        let (watch, ends) = &*self.0;
        let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
        end(&mut ends).get_or_insert(watch.elapsed());
    }

    pub(super) fn resolving(&self) {
        self.set(|ends| &mut ends.resolving);
    }

    pub(super) fn resolved(&self) {
        self.set(|ends| &mut ends.resolved);
    }

    pub(super) fn connected(&self) {
        self.set(|ends| &mut ends.connected);
    }

    pub(super) fn answered(&self) {
        self.set(|ends| &mut ends.answered);
    }

    fn ends(&self) -> Ends {
        *self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phases(&self) -> Phases {
        let ends = self.ends();
        let since = |end: Option<Duration>, start: Option<Duration>| {
            Some(end?.saturating_sub(start.unwrap_or_default()))
        };
        Phases {
            dns: since(ends.resolved, ends.resolving),
            connect: since(ends.connected, ends.resolved),
            first_byte: since(ends.answered, ends.connected),
        }
    }

    /// The part in which a request failed.
    pub(super) fn failed(&self, fault: EgressFault) -> Phase {
        let ends = self.ends();
        match fault {
            EgressFault::BlockedAddress => Phase::Address,
            EgressFault::Dns => Phase::Dns,
            EgressFault::Tls => Phase::Tls,
            EgressFault::TooLarge => Phase::Response,
            EgressFault::Timeout | EgressFault::Broken if ends.answered.is_some() => Phase::Response,
            EgressFault::Timeout | EgressFault::Broken if ends.connected.is_some() => Phase::FirstByte,
            EgressFault::Timeout | EgressFault::Broken
                if ends.resolving.is_some() && ends.resolved.is_none() =>
            {
                Phase::Dns
            }
            EgressFault::Connect | EgressFault::Timeout | EgressFault::Broken => Phase::Connect,
        }
    }
}
