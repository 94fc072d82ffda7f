//! The accept loop: poem's endpoint behind hyper, with the limits that neither has.
//!
//! | against | what happens | where |
//! |---|---|---|
//! | too many connections, in all or from one network | 503, closed | `connections` |
//! | no file descriptors left | 503, closed; accepting goes on | `connections` |
//! | a slow head, a slow body | 408, closed | `wire`, `pace` |
//! | an idle connection, a client that does not read | closed | `wire` |
//! | a head that two parsers may read in two ways, too long, with two hosts | 400, 414, 431, closed | `head` |
//! | TRACE, CONNECT | 405, closed | `head` |
//! | HTTP/2 | refused like any other version: 400, closed | `head` |
//!
//! All of these responses have the envelope, with two exceptions in which hyper responds or disconnects itself: a
//! malformed chunked body ends as the application's response to an unreadable body, and a connection that breaks in
//! the middle of a request ends without a response.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{random::Random, tasks::Tasks, time::Clock};
use poem::{Endpoint, Response};
use tokio::net::{TcpListener, TcpStream};

mod connection;
mod connection_count;
mod connection_state;
pub(crate) mod conversation;
mod head;
mod limits;
mod pace;
mod refusal;
mod stats;
#[cfg(test)]
mod tests;
pub mod websocket;
mod wire;

pub(crate) use connection::ClientGone;
use connection_count::{ConnectionCount, Reserve};
pub use limits::{MAX_HEADERS, ServeLimits, descriptors};
pub use pace::PaceLimits;
use stats::RejectReason;
pub use stats::ServeStats;

/// Opens a listener.
///
/// # Errors
/// The error of the operating system; `AddrInUse` if the port is taken.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Listeners that share their limits. Clones refer to the same server.
#[derive(Debug, Clone)]
pub struct Server(Arc<Shared>);

/// Shared state of all connections.
#[derive(Debug)]
struct Shared {
    limits: ServeLimits,
    stats: Arc<ServeStats>,
    connections: Arc<ConnectionCount>,
    tasks: Tasks,
    clock: Clock,
    random: Random,
}

impl Shared {
    fn request_id(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.random.bytes()))
    }
}

impl Server {
    /// A server without listeners. Accept loops and connections are tasks of `tasks`.
    pub fn new(limits: ServeLimits, tasks: Tasks, clock: Clock, random: Random) -> Self {
        let connections = ConnectionCount::new();
        let stats = Arc::new(ServeStats::new(Arc::clone(&connections)));
        Self(Arc::new(Shared { limits, stats, connections, tasks, clock, random }))
    }

    /// Returns the counters.
    pub fn stats(&self) -> Arc<ServeStats> {
        Arc::clone(&self.0.stats)
    }

    /// Serves `endpoint` on all listeners. Stops accepting when the tasks are stopped; idle connections are then
    /// closed at once, the others after the current request.
    pub fn serve<E>(&self, listeners: Vec<TcpListener>, endpoint: E)
    where
        E: Endpoint<Output = Response> + 'static,
    {
        let endpoint = Arc::new(endpoint);
        for listener in listeners {
            let accept = accept(listener, Arc::clone(&endpoint), Arc::clone(&self.0));
            self.0.tasks.spawn("http listener", accept);
        }
    }
}

async fn accept<E>(listener: TcpListener, endpoint: Arc<E>, shared: Arc<Shared>)
where
    E: Endpoint<Output = Response> + 'static,
{
    let stop = shared.tasks.stop_token().clone();
    let mut reserve = Reserve::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => match shared.connections.enter(peer.ip(), &shared.limits) {
                Ok(place) => {
                    shared.stats.accept();
                    let connection =
                        connection::serve(stream, peer, place, Arc::clone(&endpoint), Arc::clone(&shared));
                    shared.tasks.spawn("http connection", connection);
                }
                Err(reason) => shared.turn_away(&stream, reason),
            },
            Err(error) if Reserve::is_wanted(&error) => {
                let refuse = |stream: TcpStream| shared.turn_away(&stream, RejectReason::Descriptors);
                if !reserve.refuse_one(&listener, &shared.clock, refuse).await {
                    tracing::warn!(%error, "cannot accept a connection, nor refuse it");
                    shared.clock.sleep(Duration::from_millis(50)).await;
                }
            }
            Err(error) => {
                // Usually a connection that was closed before it was accepted.
                tracing::debug!(%error, "cannot accept a connection");
                shared.clock.sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

impl Shared {
    /// Writes 503 as far as the socket accepts it immediately: the server does not wait for a client that it rejects.
    fn turn_away(&self, stream: &TcpStream, reason: RejectReason) {
        self.stats.turn(reason);
        // Unread bytes would turn the close into a reset, which may overtake the response.
        let _ = stream.try_read(&mut [0; 1024]);
        let _ = stream.try_write(refusal::busy(&self.request_id()).as_bytes());
    }
}
