//! Counts connections, in all and per network, and keeps a descriptor back for the moment when there are none left.

use std::{
    collections::HashMap,
    fs::File,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hub_core::time::Clock;
use tokio::net::{TcpListener, TcpStream};

use super::{ServeLimits, stats::RejectReason};
use crate::client;

/// The connections of one server.
#[derive(Debug)]
pub(super) struct ConnectionCount {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// Only networks with connections: never more entries than connections.
    per_network: HashMap<IpAddr, usize>,
}

/// The slot of one connection, which is released when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connections: Arc<ConnectionCount>,
    network: IpAddr,
}

impl ConnectionCount {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { open: Mutex::default() })
    }

    pub(super) fn count(&self) -> usize {
        self.open().all
    }

    pub(super) fn enter(
        self: &Arc<Self>,
        peer: IpAddr,
        limits: &ServeLimits,
    ) -> Result<ConnectionSlot, RejectReason> {
        let peer = peer.to_canonical();
        let network = client::network(peer);
        let capped = !limits.uncapped.iter().any(|range| range.contains(&peer));
        let mut open = self.open();
        if open.all >= limits.connections {
            return Err(RejectReason::Total);
        }
        let count = open.per_network.get(&network).copied().unwrap_or(0);
        if capped && count >= limits.connections_per_network {
            return Err(RejectReason::Network);
        }
        open.per_network.insert(network, count + 1);
        open.all += 1;
        Ok(ConnectionSlot { connections: Arc::clone(self), network })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.all -= 1;
        if let Some(count) = open.per_network.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.per_network.remove(&self.network);
            }
        }
    }
}

/// A descriptor for bad times. Without one, a process at its limit can neither accept a waiting connection nor
/// refuse it.
#[derive(Debug)]
pub(super) struct Reserve(Option<File>);

impl Reserve {
    pub(super) fn new() -> Self {
        Self(Self::open())
    }

    fn open() -> Option<File> {
        File::open("/dev/null").ok()
    }

    /// Whether accepting failed for want of descriptors: EMFILE and ENFILE on every Unix.
    pub(super) fn is_wanted(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(23 | 24))
    }

    /// Takes one waiting connection with the reserve's descriptor, hands it to `refuse`, and takes the
    /// descriptor back; `false` if another task was faster.
    pub(super) async fn refuse_one(
        &mut self,
        listener: &TcpListener,
        clock: &Clock,
        refuse: impl FnOnce(TcpStream),
    ) -> bool {
        let had_one = self.0.take().is_some();
        let accepted = clock.timeout(Duration::from_millis(10), listener.accept()).await;
        let took = matches!(accepted, Some(Ok(_)));
        if let Some(Ok((stream, _))) = accepted {
            refuse(stream);
        }
        self.0 = Self::open();
        had_one && took && self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_per_network() {
        let limits = ServeLimits {
            connections: 4,
            connections_per_network: 2,
            uncapped: vec!["10.0.0.0/8".parse().unwrap()],
            ..ServeLimits::default()
        };
        let connections = ConnectionCount::new();
        let enter = |peer: &str| connections.enter(peer.parse().unwrap(), &limits);
        let first = enter("2001:db8:1:2::1").unwrap();
        let second = enter("2001:db8:1:2:ffff::1").unwrap();
        assert_eq!(enter("2001:db8:1:2::3").unwrap_err(), RejectReason::Network);
        let proxy = [enter("10.0.0.1").unwrap(), enter("::ffff:10.0.0.1").unwrap()];
        assert_eq!(enter("10.0.0.1").unwrap_err(), RejectReason::Total);
        assert_eq!(connections.count(), 4);
        drop(first);
        let again = enter("2001:db8:1:2::3").unwrap();
        drop(again);
        drop(second);
        drop(proxy);
        assert_eq!(
            (connections.count(), connections.open().per_network.len()),
            (0, 0),
            "nothing is kept of who left"
        );
    }
}
