//! One row of the table: the behaviour of a receiver, and the expected outcome.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use hub_core::egress::EgressFault;

use super::Peer;

/// Handler of a connection.
pub type Act = Arc<dyn Fn(Peer) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Outcome of the attempt in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A response with this status.
    Status(u16),
    /// No response, and a fault of this class.
    Class(EgressFault),
}

/// The outcome of the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is over, successfully.
    Delivered,
    /// Another attempt by the channel's schedule.
    Retried,
    /// Another attempt after exactly this number of seconds, which the receiver requested.
    RetriedIn(u64),
    /// It is over, and so is the sink.
    Final,
}

/// The most time an attempt may hold its slot, in terms of the channel's `timeout_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// It ends by itself long before the timeout.
    Own,
    /// It lasts until the timeout ends it.
    Timeout,
}

/// Behaviour of the port before a connection is established.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// Accepts connections.
    Accepts,
    /// Refuses connections.
    Refuses,
    /// Does not respond to connection attempts.
    Ignores,
}

/// One behaviour.
#[derive(Clone)]
pub struct Behaviour {
    /// Its name, unique in the table.
    pub name: String,
    /// Human-readable description.
    pub does: &'static str,
    /// Behaviour of the port.
    pub listening: Listening,
    /// Handler of every connection.
    pub act: Act,
    /// Expected outcome of the attempt.
    pub seen: Seen,
    /// The outcome for a caller that needs the whole response.
    pub whole: Seen,
    /// Alternative outcome, if the result depends on the order of packets.
    pub or: Option<Seen>,
    /// The outcome of the delivery.
    pub then: Then,
    /// Time for which the slot is held.
    pub slot: Slot,
}

impl Behaviour {
    /// A behaviour of connections. Whether it is delivered and how long it takes follow from what is seen: the
    /// exceptions are set afterwards.
    pub fn new<F>(
        name: impl Into<String>,
        does: &'static str,
        seen: Seen,
        act: impl Fn(Peer) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let then = match seen {
            Seen::Status(200..=299) => Then::Delivered,
            Seen::Status(410) => Then::Final,
            _ => Then::Retried,
        };
        let slot = if seen == Seen::Class(EgressFault::Timeout) { Slot::Timeout } else { Slot::Own };
        let act: Act = Arc::new(move |peer| Box::pin(act(peer)));
        Self {
            name: name.into(),
            does,
            listening: Listening::Accepts,
            act,
            seen,
            whole: seen,
            or: None,
            then,
            slot,
        }
    }

    /// A behaviour that is one answer to the first request, and the end of the connection.
    pub fn saying(
        name: impl Into<String>,
        does: &'static str,
        seen: Seen,
        answer: impl Into<Vec<u8>>,
    ) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::new(name, does, seen, move |mut peer| {
            let answer = Arc::clone(&answer);
            async move {
                peer.read_request().await;
                peer.send(&answer).await;
            }
        })
    }

    /// The same with another look that it may have.
    #[must_use]
    pub fn or(mut self, seen: Seen) -> Self {
        self.or = Some(seen);
        self
    }

    /// The same with a status of 200 before what goes wrong: only a caller that needs the whole response fails.
    #[must_use]
    pub fn after_its_status(mut self) -> Self {
        (self.seen, self.then) = (Seen::Status(200), Then::Delivered);
        self
    }

    /// The same with another state of the port.
    #[must_use]
    pub fn listening(mut self, listening: Listening) -> Self {
        self.listening = listening;
        self
    }

    /// The same with another end of the delivery.
    #[must_use]
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour").field("name", &self.name).finish_non_exhaustive()
    }
}
