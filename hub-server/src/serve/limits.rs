//! What the listeners allow (reliability N6, N7). Every figure can be set, so that tests need not wait.

use std::time::Duration;

use ipnet::IpNet;

use super::pace::PaceLimits;

/// Most header fields of a request (reliability N6).
pub const MAX_HEADERS: usize = 100;

/// How many files and connections this process may have open; `None` where the system does not say.
pub fn descriptors() -> Option<usize> {
    soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

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
    /// How fast a body that is a file has to come.
    pub upload: PaceLimits,
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
            // 50 MiB at this pace take what a link for an upload lives.
            upload: PaceLimits {
                grace: 5 * second,
                interval: second,
                bytes: 4 * 1024,
                total: Some(900 * second),
            },
            answer: PaceLimits { grace: 20 * second, interval: second, bytes: 1024, total: None },
            linger: second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_descriptors_is_the_soft_one() {
        let limits = "Limit             Soft Limit   Hard Limit   Units\n\
                      Max processes     15           16           processes\n\
                      Max open files    1024         524288       files\n";
        assert_eq!(soft_limit(limits), Some(1024));
        assert_eq!(soft_limit("Max open files    unlimited    unlimited    files\n"), None);
        assert_eq!(soft_limit(""), None);
    }
}
