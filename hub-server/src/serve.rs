//! The accept loop: poem's endpoint behind hyper, since poem's own server neither sets TCP_NODELAY nor gives
//! up on a client that never finishes its request's head. The next issue gives this edge its other limits.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{tasks::Tasks, time::Clock};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use poem::{
    Addr, Endpoint, Request, Response,
    http::uri::Scheme,
    web::{LocalAddr, RemoteAddr},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

/// What the listeners allow.
#[derive(Debug, Clone, Copy)]
pub struct ServeLimits {
    /// Connections at a time; further ones wait in the system's backlog.
    pub connections: usize,
    /// How long a connection may stay without a complete request head.
    pub head: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self { connections: 10_000, head: Duration::from_secs(5) }
    }
}

/// Opens a listener.
///
/// # Errors
/// What the operating system says; `AddrInUse` when the port is taken.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves `endpoint` on all listeners. Stops accepting when `tasks` are asked to stop; connections then finish
/// the request in hand. Accept loops and connections are tasks of `tasks`.
pub fn serve<E>(listeners: Vec<TcpListener>, endpoint: E, limits: ServeLimits, tasks: &Tasks, clock: &Clock)
where
    E: Endpoint<Output = Response> + 'static,
{
    let endpoint = Arc::new(endpoint);
    let slots = Arc::new(Semaphore::new(limits.connections));
    for listener in listeners {
        let accept =
            accept(listener, Arc::clone(&endpoint), Arc::clone(&slots), limits, tasks.clone(), clock.clone());
        tasks.spawn("http listener", accept);
    }
}

async fn accept<E>(
    listener: TcpListener,
    endpoint: Arc<E>,
    slots: Arc<Semaphore>,
    limits: ServeLimits,
    tasks: Tasks,
    clock: Clock,
) where
    E: Endpoint<Output = Response> + 'static,
{
    let stop = tasks.stop_token().clone();
    loop {
        let next = async {
            // The semaphore is never closed.
            let slot = Arc::clone(&slots).acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = connection(stream, peer, Arc::clone(&endpoint), limits, stop.clone());
                tasks.spawn("http connection", async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: a pause instead of a busy loop.
                tracing::warn!(%error, "cannot accept a connection");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection<E>(
    stream: TcpStream,
    peer: SocketAddr,
    endpoint: Arc<E>,
    limits: ServeLimits,
    stop: CancellationToken,
) where
    E: Endpoint<Output = Response> + 'static,
{
    // Without this two small frames in a row wait 40 ms for the peer's acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's delay");
    }
    let local = LocalAddr(stream.local_addr().map_or_else(|_| Addr::default(), Addr::from));
    let remote = RemoteAddr(Addr::from(peer));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let request = Request::from((request, local.clone(), remote.clone(), Scheme::HTTP));
        let endpoint = Arc::clone(&endpoint);
        async move {
            let response = endpoint.get_response(request).await;
            // poem's body is not a hyper body, the boxed one inside is.
            Ok::<_, Infallible>(hyper::Response::<
                http_body_util::combinators::BoxBody<bytes::Bytes, io::Error>,
            >::from(response))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // The client's doing, as a rule: gone, too slow, or not HTTP.
        tracing::debug!(%error, "connection ended");
    }
}

#[cfg(test)]
mod tests {
    use poem::{EndpointExt, endpoint::make};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::Notify,
    };

    use super::*;

    async fn start<E>(endpoint: E, limits: ServeLimits) -> (SocketAddr, Tasks)
    where
        E: Endpoint<Output = Response> + 'static,
    {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = Tasks::new();
        serve(vec![listener], endpoint, limits, &tasks, &Clock::system());
        (address, tasks)
    }

    async fn read_all(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .expect("the server ends the connection")
            .unwrap();
        text
    }

    #[tokio::test]
    async fn a_drain_finishes_the_request_in_hand_and_takes_no_other() {
        let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gates = (Arc::clone(&entered), Arc::clone(&leave));
        let endpoint = make(move |_| {
            let (entered, leave) = gates.clone();
            async move {
                entered.notify_one();
                leave.notified().await;
                "finished"
            }
        });
        let (address, tasks) = start(endpoint.map_to_response(), ServeLimits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n").await.unwrap();
        entered.notified().await;
        tasks.stop();
        leave.notify_one();
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("finished"), "{answer}");
        assert!(tasks.wait(&Clock::system(), Duration::from_secs(20)).await);
        assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
    }

    #[tokio::test]
    async fn a_client_that_never_finishes_its_head_is_sent_away() {
        let limits = ServeLimits { head: Duration::from_millis(50), ..ServeLimits::default() };
        let (address, _tasks) = start(make(|_| async { "ok" }).map_to_response(), limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTT").await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
}
