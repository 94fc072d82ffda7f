//! One WebSocket of a channel, as its owner sees it.

use std::sync::atomic::{AtomicI64, Ordering};

use tokio_util::sync::CancellationToken;

use crate::{id::SocketId, model::session::ClientInfo, time::Timestamp};

/// A client that is connected to a channel over a WebSocket.
#[derive(Debug)]
pub(crate) struct ConnectedClient {
    pub id: SocketId,
    pub client: ClientInfo,
    pub since: Timestamp,
    /// Everything up to this number was sent.
    sent: AtomicI64,
    /// Everything up to this number was acknowledged by it; negative if it never did.
    acknowledged: AtomicI64,
    /// Cancelled when the owner closes the connection.
    pub closed: CancellationToken,
}

impl ConnectedClient {
    pub fn new(id: SocketId, client: ClientInfo, since: Timestamp) -> Self {
        let (sent, acknowledged) = (AtomicI64::new(0), AtomicI64::new(-1));
        Self { id, client, since, sent, acknowledged, closed: CancellationToken::new() }
    }

    pub fn sent(&self) -> i64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn acknowledged(&self) -> Option<i64> {
        Some(self.acknowledged.load(Ordering::Relaxed)).filter(|seq| *seq >= 0)
    }

    pub fn set_sent(&self, seq: i64) {
        self.sent.store(seq, Ordering::Relaxed);
    }

    pub fn acknowledge(&self, seq: i64) {
        self.acknowledged.fetch_max(seq, Ordering::Relaxed);
    }
}
