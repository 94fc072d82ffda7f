//! The HTTP client: how it is built, and one request through it.

use std::{
    convert::Infallible,
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
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore, client::Resumption};
use rustls_platform_verifier::BuilderVerifierExt;
use tower_layer::layer_fn;
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
/// Most headers of an answer, and their bytes together: far more than any server means to send, since an answer with
/// more has no status.
pub(super) const MAX_ANSWER_HEADERS: usize = 256;
pub(super) const MAX_ANSWER_HEADER_BYTES: u32 = 256 * 1024;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// How long a connection is silent before it is probed, and the time between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Probes without a response after which it is closed.
const PROBES: u32 = 3;

/// `User-Agent` of every request whose caller sets none.
const USER_AGENT: &str = concat!("message-hub/", env!("CARGO_PKG_VERSION"));

tokio::task_local! {
    /// The port that this task dials. The library's resolver hears the name alone, and rules and own listeners are about
    /// ports too.
    pub(super) static PORT: u16;
}

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

/// Begins a client with the TLS, pool and limits that all clients share. Names are resolved under the rules, or freely
/// when it is not `ruled`.
#[expect(clippy::disallowed_methods, reason = "the one place that builds a client")]
pub(super) fn builder(config: &Arc<EgressConfig>, tls: &ClientConfig, ruled: bool) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .connect_timeout(CONNECT_TIMEOUT)
        .connector_layer(layer_fn(Dialler))
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .tcp_keepalive_interval(KEEPALIVE)
        .tcp_keepalive_retries(PROBES)
        .http1_max_headers(MAX_ANSWER_HEADERS)
        .http2_max_header_list_size(MAX_ANSWER_HEADER_BYTES)
        .dns_resolver(CheckedResolver::new(config, ruled))
}

/// Builds a client that reads what common servers write: bodies that are encoded although the hub asks for `identity`, and
/// headers as they were written long ago.
pub(super) fn build(config: &Arc<EgressConfig>, tls: &ClientConfig, ruled: bool) -> Result<reqwest::Client> {
    let defaults = [
        (header::ACCEPT, HeaderValue::from_static("*/*")),
        (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
    ];
    let client = builder(config, tls, ruled)
        .default_headers(defaults.into_iter().collect())
        .gzip(true)
        .brotli(true)
        .deflate(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true);
    client.build().map_err(Error::internal)
}

/// Opens connections with the port of the request that needs one. A connection may be completed by another task when
/// its request has found one that became free.
#[derive(Debug, Clone)]
struct Dialler<S>(S);

impl<R, S> Service<R> for Dialler<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, std::result::Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connected = self.0.call(request);
        match PORT.try_with(|port| *port) {
            Ok(port) => Box::pin(PORT.scope(port, connected)),
            Err(_) => Box::pin(connected),
        }
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

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
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
            Ok(Box::new(found.into_iter()) as Addrs)
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
    response: BoxFuture<'static, reqwest::Result<reqwest::Response>>,
    https: bool,
    deadline: Duration,
    max_answer: usize,
    /// Whether a connection took the request.
    taken: Arc<AtomicBool>,
    marks: Option<Marks>,
}

/// Prepares a request over the network.
pub(super) fn send(http: &reqwest::Client, call: Call) -> Sent {
    let Call { method, url, headers, body, deadline, max_answer } = call;
    // An empty body is never read, so it tells nothing: assume the worse.
    let taken = Arc::new(AtomicBool::new(body.is_empty()));
    let marks = Marks::of_task();
    let mut request = reqwest::Request::new(method, url.as_url().clone());
    *request.headers_mut() = without_framing(headers);
    let body = ObservedBody { bytes: Full::new(body), taken: Arc::clone(&taken), marks: marks.clone() };
    *request.body_mut() = Some(reqwest::Body::wrap(body));
    let response = Box::pin(PORT.scope(url.target().port, http.execute(request)));
    Sent { response, https: url.target().https, deadline, max_answer, taken, marks }
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
            .map_err(|error| EgressError::classify(&error, self.is_taken(), https))?;
        self.marks.as_ref().inspect(|marks| marks.answered());
        // First of all: for some readers the status decides, whatever follows.
        reader.begin(response.status(), response.headers());
        if header_bytes(response.headers()) > MAX_ANSWER_HEADER_BYTES as usize {
            return Err(EgressError::too_large(MAX_ANSWER_HEADER_BYTES as usize));
        }
        if response.content_length().is_some_and(|length| length > max_answer as u64) {
            return Err(EgressError::too_large(max_answer));
        }
        let mut left = max_answer;
        while let Some(chunk) =
            response.chunk().await.map_err(|error| EgressError::classify(&error, true, https))?
        {
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
