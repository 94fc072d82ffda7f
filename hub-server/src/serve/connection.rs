//! One connection: hyper between the wire and the endpoint.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, combinators::BoxBody};
use hub_core::{Error, ErrorCode};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use poem::{
    Addr, Endpoint, Request, Response,
    http::{HeaderValue, Method, StatusCode, header, uri::Scheme},
    web::{LocalAddr, RemoteAddr},
};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    connection_count::ConnectionSlot,
    connection_state::{Busy, ConnectionState, Passed},
    limits::MAX_HEADERS,
    pace::Paced,
    refusal::Refusal,
    wire::Wire,
};
use crate::{envelope::ApiError, files, paths::with_single_slashes};

/// State that serves every request of a connection.
struct Conversation<E> {
    endpoint: Arc<E>,
    shared: Arc<Shared>,
    state: Arc<ConnectionState>,
    local: LocalAddr,
    remote: RemoteAddr,
}

/// Serves a connection until it ends, or until the server stops and the current request is answered.
pub(super) async fn serve<E>(
    stream: TcpStream,
    peer: SocketAddr,
    place: ConnectionSlot,
    endpoint: Arc<E>,
    shared: Arc<Shared>,
) where
    E: Endpoint<Output = Response> + 'static,
{
    // With Nagle's algorithm two small frames in a row wait 40 ms for the peer's acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot turn off Nagle's delay");
    }
    let state = Arc::new(ConnectionState::default());
    let conversation = Arc::new(Conversation {
        endpoint,
        shared: Arc::clone(&shared),
        state: Arc::clone(&state),
        local: LocalAddr(stream.local_addr().map_or_else(|_| Addr::default(), Addr::from)),
        remote: RemoteAddr(Addr::from(peer)),
    });
    let max_head = shared.limits.max_head;
    let stop = shared.tasks.stop_token().clone();
    let service = service_fn(move |request| respond(Arc::clone(&conversation), request));
    // HTTP/1.1 only: this builder does not know HTTP/2. The wire keeps the deadlines of heads.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(max_head.max(8 * 1024))
        .serve_connection(TokioIo::new(Wire::new(stream, place, state, shared)), service)
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
        // Usually caused by the client: disconnected, too slow, or not HTTP.
        tracing::debug!(%error, "connection ended");
    }
}

async fn respond<E>(
    conversation: Arc<Conversation<E>>,
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Answer>, Infallible>
where
    E: Endpoint<Output = Response> + 'static,
{
    let (passed, busy) = conversation.state.begin();
    let response = match passed {
        Passed::Request { last } => {
            let mut response = conversation.ask(request).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                conversation.state.upgrade();
            } else if last {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
        Passed::Refused(refusal) => conversation.refuse(refusal),
    };
    // poem's body is not a hyper body, the boxed one inside is.
    let response = hyper::Response::<BoxBody<Bytes, io::Error>>::from(response);
    Ok(response.map(|body| Answer { body, _busy: busy }))
}

impl<E: Endpoint<Output = Response> + 'static> Conversation<E> {
    async fn ask(&self, request: hyper::Request<Incoming>) -> Response {
        let has_body = !request.body().is_end_stream();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let mut request = Request::from((request, self.local.clone(), self.remote.clone(), Scheme::HTTP));
        let too_slow = Arc::new(AtomicBool::new(false));
        if has_body {
            let Shared { limits, clock, .. } = &*self.shared;
            let body: BoxBody<Bytes, io::Error> = request.take_body().into();
            let content_type = request.header(header::CONTENT_TYPE);
            let path = with_single_slashes(request.uri().path());
            let file = files::brings_file(request.method(), &path, content_type);
            let pace = if file { limits.upload } else { limits.body };
            let paced = Paced::new(body, pace, clock, Arc::clone(&too_slow));
            request.set_body(poem::Body::from(paced.boxed()));
        }
        let response = if is_read {
            self.endpoint.get_response(request).await
        } else {
            // A separate task: hyper drops its future when the client disconnects, but a started change has to
            // finish. `ClientGone` ends handlers that only wait.
            let gone = CancellationToken::new();
            request.set_data(ClientGone(gone.clone()));
            let _gone = gone.drop_guard();
            let endpoint = Arc::clone(&self.endpoint);
            let handler =
                self.shared.tasks.spawn("http request", async move { endpoint.get_response(request).await });
            match handler.await {
                Ok(Some(response)) => response,
                _ => self.refuse(Refusal::Lost),
            }
        };
        if too_slow.load(Ordering::Relaxed) && !response.status().is_success() {
            return self.refuse(Refusal::SlowBody);
        }
        response
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        self.shared.stats.refuse(refusal);
        tracing::debug!(?refusal, peer = %self.remote.0, "request refused");
        refusal.answer(&self.shared.request_id())
    }
}

/// Cancelled when the client of a request has disconnected, and when its response is complete. Requests with effects
/// outlive their clients; a handler that waits for another server, only for its response, ends with its client.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientGone(CancellationToken);

impl ClientGone {
    /// Returns the token of a request. It is never cancelled for a request that hyper drops with its client, and for
    /// one of the same process.
    pub(crate) fn of(request: &Request) -> Self {
        request.data().cloned().unwrap_or_default()
    }

    /// The token, for work that ends itself where it can.
    pub(crate) fn token(&self) -> CancellationToken {
        self.0.clone()
    }

    /// Whether no one reads the response.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Runs `work` and drops it when the client disconnects.
    ///
    /// Only for work that may stop at any await. Waiting for another server may: the connection to it is closed. A
    /// write may too: the writer of the store has it from the first poll on and commits it, whether or not its outcome
    /// is awaited. What `work` does after a write may be left out, so it must be no more than a hint.
    ///
    /// # Errors
    /// Those of `work`; `UNAVAILABLE` when the client has disconnected, which no one reads.
    pub(crate) async fn while_connected<T, E: Into<ApiError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ApiError> {
        match self.0.run_until_cancelled(work).await {
            Some(done) => done.map_err(Into::into),
            None => Err(Error::new(ErrorCode::Unavailable, "the client disconnected").into()),
        }
    }
}

/// The body of a response. While it exists, the client may be silent.
struct Answer {
    body: BoxBody<Bytes, io::Error>,
    _busy: Busy,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
