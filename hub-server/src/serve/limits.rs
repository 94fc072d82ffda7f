//! Limits of the listeners. All of them can be set, so that tests need not wait.

use std::time::Duration;

use ipnet::IpNet;

use super::pace::PaceLimits;

/// Maximum number of header fields of a request.
pub const MAX_HEADERS: usize = 100;

/// Maximum number of open files and connections of this process; `None` if the system does not report it.
pub fn descriptors() -> Option<usize> {
    soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Limits of the listeners. Connections and requests beyond them are rejected or closed, and counted in
/// [`ServeStats`](super::ServeStats).
#[derive(Debug, Clone)]
pub struct ServeLimits {
    /// Maximum open connections; a further one gets 503 and is closed.
    pub connections: usize,
    /// Maximum open connections per IPv4 address or IPv6 /64; a further one gets 503 and is closed.
    pub connections_per_network: usize,
    /// Addresses to which the limit per network does not apply: proxies with many clients.
    pub uncapped: Vec<IpNet>,
    /// Time limit of a request head; a new, silent connection has the same limit.
    pub head: Duration,
    /// Time limit of a connection between two requests.
    pub idle: Duration,
    /// Maximum size of a request's head in bytes.
    pub max_head: usize,
    /// Maximum size of a request's target in bytes.
    pub max_target: usize,
    /// Minimum rate of a request's body.
    pub body: PaceLimits,
    /// Minimum rate of a body that is a file.
    pub upload: PaceLimits,
    /// Minimum rate at which a response has to be read.
    pub answer: PaceLimits,
    /// Time for which a connection with unread bytes is read after the last response: closing at once would reset it,
    /// and the client could lose the response.
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
            // 50 MiB at this rate take the validity of an upload link.
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
