//! HTTP services inside the process: the simulator, the demo's receiver, receivers of tests. They are called
//! directly, without a port, or [served](serve) on a listener.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use hub_core::{
//!     local_http::{Cut, Limits, LocalService, serve},
//!     tasks::Tasks,
//! };
//!
//! /// Returns the body of each request.
//! struct Echo;
//!
//! #[async_trait::async_trait]
//! impl LocalService for Echo {
//!     async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
//!         Ok(Response::new(request.into_body()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Without a port; as the receiver of a hub's webhooks: `Dev::receiver("echo.example", service)`.
//! let service = Arc::new(Echo);
//! let response = service.call(Request::new("hello".into())).await?;
//! assert_eq!(response.body(), "hello");
//!
//! // On a port, until the tasks are stopped.
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let tasks = Tasks::new();
//! tasks.spawn("echo", serve(listener, service, Limits::default(), tasks.clone()));
//! tasks.stop();
//! # Ok(())
//! # }
//! ```

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

use crate::{tasks::Tasks, time::Clock};

mod browser;

pub use browser::cannot_be_rebound;
pub(crate) use browser::{refuse_other_pages, require_json};

/// Default limit of a request body: 16 MiB.
pub const DEFAULT_MAX_BODY: usize = 16 << 20;

/// Closes the connection without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was cut on purpose")]
pub struct Cut;

/// Responds to HTTP requests.
#[async_trait]
pub trait LocalService: Send + Sync + 'static {
    /// Responds to one request, or closes the connection.
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut>;

    /// Returns the largest body that this service accepts for a request, in bytes. [`serve`] responds with 413 above
    /// it, without calling the service.
    fn max_body(&self, head: &Parts) -> usize {
        let _ = head;
        DEFAULT_MAX_BODY
    }
}

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time. Further ones wait in the system's backlog.
    pub connections: usize,
    /// Time limit for a complete request head. It also applies to an idle connection.
    pub idle: Duration,
    /// Time limit for a request's body.
    pub body: Duration,
    /// Time limit for requests in flight after the stop signal.
    pub drain: Duration,
}

impl Default for Limits {
    /// 1 024 connections, 2 minutes idle, 2 minutes for a body, 1 second to drain.
    fn default() -> Self {
        Self {
            connections: 1024,
            idle: Duration::from_secs(120),
            body: Duration::from_secs(120),
            drain: Duration::from_secs(1),
        }
    }
}

/// Serves `service` over HTTP/1.1 until `tasks` are stopped. Connections are tasks of `tasks`, kept alive, with
/// `TCP_NODELAY`.
///
/// A [`Cut`] closes the TCP connection without a response. A body over [`LocalService::max_body`] gets 413, one that
/// takes longer than [`Limits::body`] gets 408; both close the connection.
pub async fn serve(listener: TcpListener, service: Arc<dyn LocalService>, limits: Limits, tasks: Tasks) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let stop = tasks.stop_token().clone();
    loop {
        let next = async {
            // The semaphore is never closed.
            let slot = slots.clone().acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = serve_connection(stream, service.clone(), limits, stop.clone());
                tasks.spawn("local connection", async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, mostly: a pause instead of a busy loop.
                tracing::warn!(%error, "cannot accept a connection");
                Clock::system().sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    service: Arc<dyn LocalService>,
    limits: Limits,
    stop: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's delay");
    }
    let answer = service_fn(move |request| respond(service.clone(), limits.body, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            Clock::system().timeout(limits.drain, connection).await
        }
    };
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "local connection broke");
    }
}

async fn respond(
    service: Arc<dyn LocalService>,
    timeout: Duration,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, service.max_body(&head));
    let body = match Clock::system().timeout(timeout, body.collect()).await {
        Some(Ok(body)) => body.to_bytes(),
        Some(Err(error)) if error.is::<LengthLimitError>() => {
            return Ok(refusal(StatusCode::PAYLOAD_TOO_LARGE));
        }
        // The client disconnected in the middle of its body, so no response can be sent.
        Some(Err(_)) => return Err(Cut),
        None => return Ok(refusal(StatusCode::REQUEST_TIMEOUT)),
    };
    Ok(service.call(Request::from_parts(head, body)).await?.map(Full::new))
}

/// A response to a request whose body was not read to its end, so the connection cannot be reused.
fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Responds with the path and the body's length; closes the connection on `/cut`, never responds on `/hold`.
    struct Echo;

    #[async_trait]
    impl LocalService for Echo {
        async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
            match request.uri().path() {
                "/cut" => Err(Cut),
                "/hold" => std::future::pending().await,
                path => Ok(Response::new(format!("{path} {}", request.body().len()).into())),
            }
        }

        fn max_body(&self, head: &Parts) -> usize {
            if head.uri.path() == "/large" { 32 } else { 8 }
        }
    }

    async fn start(limits: Limits) -> (SocketAddr, Tasks) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = Tasks::new();
        tasks.spawn("echo", serve(listener, Arc::new(Echo), limits, tasks.clone()));
        (address, tasks)
    }

    /// Sends bytes and reads until `end` has been seen or the connection ends.
    async fn exchange(stream: &mut TcpStream, request: &str, end: &str) -> String {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let mut buffer = [0; 1024];
        while !text.contains(end) {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                n => text.push_str(std::str::from_utf8(&buffer[..n]).unwrap()),
            }
        }
        text
    }

    #[tokio::test]
    async fn one_connection_carries_several_requests() {
        let (address, _tasks) = start(Limits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let first = exchange(&mut stream, "GET /a HTTP/1.1\r\nhost: x\r\n\r\n", "/a 0").await;
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
        let post = "POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";
        assert!(exchange(&mut stream, post, "/b 3").await.ends_with("/b 3"));
    }

    #[tokio::test]
    async fn a_cut_closes_the_connection_without_a_byte() {
        let (address, _tasks) = start(Limits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(exchange(&mut stream, "GET /cut HTTP/1.1\r\nhost: x\r\n\r\n", "never").await, "");
    }

    #[tokio::test]
    async fn a_body_over_the_cap_of_its_path_is_refused_and_the_connection_closed() {
        let (address, _tasks) = start(Limits::default()).await;
        for request in [
            "POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123456789",
            "POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let answer = exchange(&mut stream, request, "never").await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        let large = "POST /large HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123456789";
        assert!(exchange(&mut stream, large, "/large 9").await.starts_with("HTTP/1.1 200 "));
    }

    #[tokio::test]
    async fn a_connection_over_the_cap_waits_for_a_free_place() {
        let (address, _tasks) = start(Limits { connections: 1, ..Limits::default() }).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        exchange(&mut first, "GET /a HTTP/1.1\r\nhost: x\r\n\r\n", "/a 0").await;
        let mut second = TcpStream::connect(address).await.unwrap();
        let answer = exchange(&mut second, "GET /b HTTP/1.1\r\nhost: x\r\n\r\n", "/b 0");
        tokio::pin!(answer);
        assert!(futures_util::poll!(&mut answer).is_pending());
        drop(first);
        assert!(answer.await.ends_with("/b 0"));
    }

    #[tokio::test]
    async fn stop_ends_idle_and_held_connections() {
        let limits = Limits { drain: Duration::from_millis(1), ..Limits::default() };
        let (address, tasks) = start(limits).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        exchange(&mut idle, "GET /a HTTP/1.1\r\nhost: x\r\n\r\n", "/a 0").await;
        let mut held = TcpStream::connect(address).await.unwrap();
        held.write_all(b"GET /hold HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        tasks.stop();
        assert!(tasks.wait(&Clock::system(), Duration::from_secs(10)).await);
        assert_eq!(exchange(&mut idle, "", "never").await, "");
    }
}
