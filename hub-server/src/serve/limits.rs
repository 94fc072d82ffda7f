//! What the listeners allow (reliability N6, N7). Every figure can be set, so that tests need not wait.

use std::time::Duration;

use ipnet::IpNet;

use super::pace::PaceLimits;

/// Most header fields of a request (reliability N6).
pub const MAX_HEADERS: usize = 100;

/// What the listeners allow. What goes beyond is refused or closed, and counted in
/// [`ServeStats`](super::ServeStats).
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// Connections at a time; a further one is told 503 and closed.
    pub connections: usize,
    /// Connections at a time from one IPv4 address or IPv6 /64; a further one is told 503 and closed.
    pub connections_per_network: usize,
    /// Addresses that the cap per network does not bind: proxies, which speak for many.
    pub uncapped: Vec<IpNet>,
    /// How long a request's head may take in all; a new connection that says nothing has as long.
    pub head: Duration,
    /// How long a connection may stay between two requests.
    pub idle: Duration,
    /// Most bytes of a request's head.
    pub max_head: usize,
    /// Most bytes of a request's target.
    pub max_target: usize,
    /// How fast a body has to come.
    pub body: PaceLimits,
    /// How fast an answer has to be taken.
    pub answer: PaceLimits,
    /// How long a connection with an unread rest is read on after the last answer: closing at once would
    /// reset it, and the answer with it.
    pub linger: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            connections: 10_000,
            connections_per_network: 200,
            uncapped: Vec::new(),
            head: 5 * second,
            idle: 60 * second,
            max_head: 32 * 1024,
            max_target: 8 * 1024,
            body: PaceLimits { grace: 5 * second, interval: second, bytes: 1024, total: Some(30 * second) },
            answer: PaceLimits { grace: 20 * second, interval: second, bytes: 1024, total: None },
            linger: second,
        }
    }
}
