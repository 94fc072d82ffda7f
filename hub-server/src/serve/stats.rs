//! Counters of the listeners.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{connection_count::ConnectionCount, refusal::Refusal};

/// Reason that a connection was rejected without a response of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectReason {
    /// The limit of all connections.
    Total,
    /// The limit of its network.
    Network,
    /// The process has no descriptors left.
    Descriptors,
}

/// Counters of one [`Server`](super::Server).
#[derive(Debug)]
pub struct ServeStats {
    connections: Arc<ConnectionCount>,
    accepted: AtomicU64,
    turned_away: [AtomicU64; 3],
    refused: [AtomicU64; Refusal::REASONS.len()],
    idle: AtomicU64,
    slow_readers: AtomicU64,
}

impl ServeStats {
    pub(super) fn new(connections: Arc<ConnectionCount>) -> Self {
        Self {
            connections,
            accepted: AtomicU64::new(0),
            turned_away: Default::default(),
            refused: Default::default(),
            idle: AtomicU64::new(0),
            slow_readers: AtomicU64::new(0),
        }
    }

    pub(super) fn accept(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turn(&self, reason: RejectReason) {
        self.turned_away[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.refused[refusal.place()].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn close_idle(&self) {
        self.idle.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cut_slow_reader(&self) {
        self.slow_readers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.connections.count()
    }

    /// Returns the number of connections served so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of rejected connections by reason: `total`, `network`, `descriptors`.
    pub fn turned_away(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.turned_away.iter().map(|count| count.load(Ordering::Relaxed));
        ["total", "network", "descriptors"].into_iter().zip(counts)
    }

    /// Returns the number of connections that were ended because of their client, by reason. All but `idle` and
    /// `slow_reader` got a response.
    pub fn ended_early(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let refused = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        let closed = [("idle", &self.idle), ("slow_reader", &self.slow_readers)];
        let closed = closed.into_iter().map(|(reason, count)| (reason, count.load(Ordering::Relaxed)));
        Refusal::REASONS.into_iter().zip(refused).chain(closed)
    }
}
