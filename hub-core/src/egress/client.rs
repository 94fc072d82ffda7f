//! The HTTP client: how it is built, and one request through it.

use std::{
    convert::Infallible,
    error::Error as StdError,
    net::SocketAddr,
    ops::ControlFlow,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{
        Client, ResponseFuture,
        connect::{HttpConnector, dns::Name},
    },
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, client::Resumption};
use rustls_platform_verifier::BuilderVerifierExt;
use tower_service::Service;

use super::{
    Answer, Call, EgressConfig, EgressError, EgressFault, Reader, Resolver,
    fault::{Blocked, Unresolved},
    phases::Marks,
};
use crate::{
    error::{Error, Result},
    local_http::{Cut, LocalService},
};

/// Limit for resolving, connecting and the TLS handshake together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection waits for its next request: less than common servers wait, so that they seldom
/// close it under a request.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections kept per host: as many as requests may be in flight, since channels often share a receiver and a
/// connection that is closed between two messages costs more than the message.
pub(super) const MAX_IDLE_PER_HOST: usize = 128;
/// TLS sessions that a client without earlier ones keeps: there may be one client for each bot.
const FRESH_SESSIONS: usize = 16;
/// Most headers of an answer, and their bytes together.
pub(super) const MAX_ANSWER_HEADERS: usize = 100;
pub(super) const MAX_ANSWER_HEADER_BYTES: u32 = 32 * 1024;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// How long a connection is silent before it is probed, and the time between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Probes without a response after which it is closed.
const PROBES: u32 = 3;

tokio::task_local! {
    /// The port that this task dials. The library's resolver hears the name alone, and rules and own listeners are about
    /// ports too.
    pub(super) static PORT: u16;
}

/// A client with its connections.
pub(super) type Http = Client<Connector, ObservedBody>;

/// The TLS of all clients, so that the CA certificates of this machine are read and kept once. A machine without any,
/// a slim container for example, gets the ones that are built in.
pub(super) fn tls() -> Result<ClientConfig> {
    let builder = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
    };
    let mut tls = match builder().and_then(BuilderVerifierExt::with_platform_verifier) {
        Ok(verified) => verified.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "this machine's CA certificates cannot be read; the built-in ones are used");
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
            builder().map_err(Error::internal)?.with_root_certificates(roots).with_no_client_auth()
        }
    };
    tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Ok(tls)
}

/// The same TLS without what earlier connections left, so that certificates are checked again.
pub(super) fn without_sessions(tls: &ClientConfig) -> ClientConfig {
    let mut tls = tls.clone();
    tls.resumption = Resumption::in_memory_sessions(FRESH_SESSIONS);
    tls
}

/// Builds a client; names are resolved under the rules, or freely when it is not `ruled`.
#[expect(clippy::disallowed_methods, reason = "the one place that builds a client")]
pub(super) fn build(config: &Arc<EgressConfig>, tls: &Arc<ClientConfig>, ruled: bool) -> Http {
    let mut http = HttpConnector::new_with_resolver(CheckedResolver::new(config, ruled));
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_keepalive_interval(Some(KEEPALIVE));
    http.set_keepalive_retries(Some(PROBES));
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .http1_max_headers(MAX_ANSWER_HEADERS)
        .http2_max_header_list_size(MAX_ANSWER_HEADER_BYTES)
        .build(Connector((http, Arc::clone(tls)).into()))
}

/// Opens connections within their time limit.
#[derive(Debug, Clone)]
pub(super) struct Connector(HttpsConnector<HttpConnector<CheckedResolver>>);

type Connection = <HttpsConnector<HttpConnector<CheckedResolver>> as Service<Uri>>::Response;
type AnyError = Box<dyn StdError + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = AnyError;
    type Future = BoxFuture<'static, std::result::Result<Connection, AnyError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), AnyError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let default = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, PORT.scope(port, self.0.call(uri)));
        Box::pin(async move { connected.await? })
    }
}

/// Resolves a name and, where there are rules, refuses it when any of its addresses may not be dialled. What is
/// returned is what is dialled: there is no second lookup to be answered differently.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    rules: Option<Arc<EgressConfig>>,
    resolver: Option<Arc<dyn Resolver>>,
}

impl CheckedResolver {
    pub(super) fn new(config: &Arc<EgressConfig>, ruled: bool) -> Self {
        Self { rules: ruled.then(|| Arc::clone(config)), resolver: config.resolver.clone() }
    }
}

impl std::fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckedResolver").finish_non_exhaustive()
    }
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = AnyError;
    type Future = BoxFuture<'static, std::result::Result<Self::Response, AnyError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), AnyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (rules, resolver, marks) = (self.rules.clone(), self.resolver.clone(), Marks::of_task());
        // Without a port nothing can be decided, so nothing is dialled.
        let port = PORT.try_with(|port| *port).map_err(|_| Blocked("has no known port".to_owned()));
        Box::pin(async move {
            let (host, port) = (name.as_str(), port?);
            marks.as_ref().inspect(|marks| marks.resolving());
            let mut found: Vec<SocketAddr> = match resolver {
                Some(resolver) => {
                    let found = resolver.resolve(host).await.map_err(|_| Unresolved)?;
                    found.into_iter().map(|address| (address, port).into()).collect()
                }
                None => tokio::net::lookup_host((host, port)).await.map_err(|_| Unresolved)?.collect(),
            };
            if found.is_empty() {
                return Err(Unresolved.into());
            }
            marks.as_ref().inspect(|marks| marks.resolved());
            if let Some(rules) = rules
                && !found.iter().all(|at| rules.admits_address(host, at.ip(), port))
            {
                return Err(Blocked(rules.refusal(host, port, found.iter().map(SocketAddr::ip))).into());
            }
            found.truncate(MAX_ADDRESSES);
            Ok(found.into_iter())
        })
    }
}

/// A request body that notes when it is first read, which happens once a connection takes the request:
/// before that, nothing was written.
#[derive(Debug)]
pub(super) struct ObservedBody {
    bytes: Full<Bytes>,
    taken: Arc<AtomicBool>,
    marks: Option<Marks>,
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken.store(true, Ordering::Relaxed);
        self.marks.as_ref().inspect(|marks| marks.connected());
        Pin::new(&mut self.bytes).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.bytes.size_hint()
    }
}

/// Keeps an answer whole.
#[derive(Debug, Default)]
pub(super) struct Whole {
    status: StatusCode,
    headers: HeaderMap,
    body: BytesMut,
}

impl Reader for Whole {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status;
        self.headers = headers.clone();
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.body.extend_from_slice(piece);
        ControlFlow::Continue(())
    }
}

impl From<Whole> for Answer {
    fn from(Whole { status, headers, body }: Whole) -> Self {
        Self { status, headers, body: body.freeze() }
    }
}

/// A request that is on its way once it is read. What it is made of is in the library's future already, so that a caller's
/// future, which may wait for half a minute, keeps no copy.
pub(super) struct Sent {
    response: ResponseFuture,
    https: bool,
    deadline: Duration,
    max_answer: usize,
    /// Whether a connection took the request.
    taken: Arc<AtomicBool>,
    marks: Option<Marks>,
}

/// Prepares a request over the network.
pub(super) fn send(http: &Http, call: Call) -> Sent {
    let Call { method, url, headers, body, deadline, max_answer } = call;
    // An empty body is never read, so it tells nothing: assume the worse.
    let taken = Arc::new(AtomicBool::new(body.is_empty()));
    let marks = Marks::of_task();
    let body = ObservedBody { bytes: Full::new(body), taken: Arc::clone(&taken), marks: marks.clone() };
    let mut request = http::Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.uri().clone();
    *request.headers_mut() = without_framing(headers);
    request.headers_mut().entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    Sent { response: http.request(request), https: url.target().https, deadline, max_answer, taken, marks }
}

impl Sent {
    /// Sends it and reads its answer, within its deadline.
    pub(super) async fn read(&mut self, reader: &mut dyn Reader) -> Result<(), EgressError> {
        let deadline = self.deadline;
        let outcome = tokio::time::timeout(deadline, self.exchange(reader)).await;
        outcome.unwrap_or_else(|_| Err(out_of_time(deadline, self.is_taken())))
    }

    fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    async fn exchange(&mut self, reader: &mut dyn Reader) -> Result<(), EgressError> {
        let (https, max_answer) = (self.https, self.max_answer);
        let mut response = (&mut self.response)
            .await
            .map_err(|error| EgressError::classify(&error, error.is_connect(), self.is_taken(), https))?;
        self.marks.as_ref().inspect(|marks| marks.answered());
        if header_bytes(response.headers()) > MAX_ANSWER_HEADER_BYTES as usize {
            return Err(EgressError::too_large(MAX_ANSWER_HEADER_BYTES as usize));
        }
        if response.body().size_hint().lower() > max_answer as u64 {
            return Err(EgressError::too_large(max_answer));
        }
        reader.begin(response.status(), response.headers());
        let mut left = max_answer;
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| EgressError::classify(&error, false, true, https))?;
            // What else there may be are trailers.
            let Ok(chunk) = frame.into_data() else { continue };
            left = left.checked_sub(chunk.len()).ok_or_else(|| EgressError::too_large(max_answer))?;
            if reader.take(&chunk).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Calls a service inside the process under the same limits.
pub(super) async fn call_in_process(
    service: Arc<dyn LocalService>,
    call: Call,
) -> Result<Answer, EgressError> {
    let (deadline, max_answer) = (call.deadline, call.max_answer);
    let url = call.url.as_url();
    let mut request = http::Request::new(call.body);
    *request.method_mut() = call.method;
    *request.uri_mut() = call.url.uri().clone();
    *request.headers_mut() = without_framing(call.headers);
    if let Ok(host) = url[url::Position::BeforeHost..url::Position::AfterPort].parse() {
        request.headers_mut().insert(header::HOST, host);
    }
    let answered = tokio::time::timeout(deadline, service.call(request)).await;
    let (parts, body) = answered
        .map_err(|_| out_of_time(deadline, true))?
        .map_err(|Cut| EgressError::new(EgressFault::Broken, true, "the connection broke"))?
        .into_parts();
    if body.len() > max_answer {
        return Err(EgressError::too_large(max_answer));
    }
    Marks::of_task().inspect(Marks::answered);
    Ok(Answer { status: parts.status, headers: parts.headers, body })
}

fn out_of_time(deadline: Duration, written: bool) -> EgressError {
    let message = format!("no complete response within {} ms", deadline.as_millis());
    EgressError::new(EgressFault::Timeout, written, message)
}

/// The library would believe a caller's framing headers and cut or smuggle bodies accordingly.
fn without_framing(mut headers: HeaderMap) -> HeaderMap {
    for name in [
        header::HOST,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::EXPECT,
    ] {
        headers.remove(name);
    }
    headers
}

/// Names, values and the four bytes of `: ` and line end around them.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
