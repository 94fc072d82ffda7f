//! The HTTP client: how it is built, and one request through it.

use std::{
    convert::Infallible,
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
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use rustls::{ClientConfig, RootCertStore, client::Resumption};
use rustls_platform_verifier::BuilderVerifierExt;
use tower_layer::layer_fn;

use super::{
    Answer, Call, EgressConfig, EgressError, EgressFault, Reader, Shared,
    dial::{CheckedResolver, DIAL, Dial, Dialler},
    fault::RequestRoute,
    phases::Marks,
    resend,
};
use crate::{
    error::{Error, Result},
    local_http::{Cut, LocalService},
};

/// Limit for resolving, connecting and the TLS handshake together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that an idle connection is kept for its next request: shorter than on common servers, so that they seldom
/// close it under a request.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections kept per host: as many as requests may be in flight, since channels often share a receiver and a
/// connection that is closed between two messages costs more than the message.
pub(super) const MAX_IDLE_PER_HOST: usize = 128;
/// TLS sessions that a client without earlier ones keeps: there may be one client for each bot.
const FRESH_SESSIONS: usize = 16;
/// Maximum number of headers of a response, and of their bytes: far more than servers send on purpose, because a
/// response above the limit has no status.
pub(super) const MAX_ANSWER_HEADERS: usize = 256;
pub(super) const MAX_ANSWER_HEADER_BYTES: u32 = 256 * 1024;

/// Time without traffic after which a connection is probed, and time between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Probes without a response after which it is closed.
const PROBES: u32 = 3;

/// `User-Agent` of every request whose caller sets none.
const USER_AGENT: &str = concat!("message-hub/", env!("CARGO_PKG_VERSION"));

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

/// Returns the same TLS settings without the sessions of earlier connections, so that certificates are checked again.
pub(super) fn without_sessions(tls: &ClientConfig) -> ClientConfig {
    let mut tls = tls.clone();
    tls.resumption = Resumption::in_memory_sessions(FRESH_SESSIONS);
    tls
}

/// Starts a client builder with the TLS, pool and limits that all clients share. The address rules apply to resolved
/// names unless `ruled` is false.
#[expect(clippy::disallowed_methods, reason = "the one place that builds a client")]
pub(super) fn builder(config: &Arc<EgressConfig>, tls: &ClientConfig, ruled: bool) -> reqwest::ClientBuilder {
    let resolver = CheckedResolver::new(config, ruled);
    let checker = resolver.clone();
    // The proxy variables of the environment are ignored.
    let client = reqwest::Client::builder().no_proxy();
    let client = match &config.proxy {
        Some(proxy) => client.proxy(proxy.rule()),
        None => client,
    };
    client
        .tls_backend_preconfigured(tls.clone())
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .connect_timeout(CONNECT_TIMEOUT)
        .connector_layer(layer_fn(move |connector| Dialler::new(connector, &checker)))
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .tcp_keepalive_interval(KEEPALIVE)
        .tcp_keepalive_retries(PROBES)
        .http1_max_headers(MAX_ANSWER_HEADERS)
        .http2_max_header_list_size(MAX_ANSWER_HEADER_BYTES)
        .dns_resolver(resolver)
}

/// Builds the client for requests.
pub(super) fn build(config: &Arc<EgressConfig>, tls: &ClientConfig, ruled: bool) -> Result<reqwest::Client> {
    reading_leniently(builder(config, tls, ruled)).build().map_err(Error::internal)
}

/// Sets up lenient reading: bodies that are encoded although the hub asks for `identity`, and obsolete forms of
/// headers.
fn reading_leniently(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    let defaults = [
        (header::ACCEPT, HeaderValue::from_static("*/*")),
        (header::ACCEPT_ENCODING, HeaderValue::from_static("identity")),
        (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
    ];
    builder
        .default_headers(defaults.into_iter().collect())
        .gzip(true)
        .brotli(true)
        .deflate(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
}

/// Builds the client for requests that are sent again: each uses a new connection.
pub(super) fn build_unpooled(
    config: &Arc<EgressConfig>,
    tls: &ClientConfig,
    ruled: bool,
) -> Result<reqwest::Client> {
    reading_leniently(builder(config, tls, ruled)).pool_max_idle_per_host(0).build().map_err(Error::internal)
}

/// A request body that records when it is first read, which happens once a connection takes the request: before that,
/// nothing was written.
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

/// Collects a whole response.
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

/// The parts of a request, from which it can be built twice.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    method: Method,
    url: url::Url,
    headers: HeaderMap,
    body: Bytes,
    /// Whether a connection took the request.
    taken: Arc<AtomicBool>,
    marks: Option<Marks>,
}

impl From<Prepared> for reqwest::Request {
    fn from(Prepared { method, url, headers, body, taken, marks }: Prepared) -> Self {
        let mut request = Self::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() =
            Some(reqwest::Body::wrap(ObservedBody { bytes: Full::new(body), taken, marks }));
        request
    }
}

/// A request that is sent once it is read. Its parts are in the library's future already, so that a caller's future,
/// which may wait for half a minute, holds no copy.
pub(super) struct Sent {
    response: BoxFuture<'static, reqwest::Result<reqwest::Response>>,
    route: RequestRoute,
    deadline: Duration,
    max_answer: usize,
    /// Whether a connection took the request.
    taken: Arc<AtomicBool>,
    marks: Option<Marks>,
}

/// Prepares a request over the network.
pub(super) fn send(clients: &Arc<Shared>, call: Call) -> Sent {
    let Call { method, url, headers, body, deadline, max_answer } = call;
    // An empty body is never read and reports nothing: assume that it was written.
    let taken = Arc::new(AtomicBool::new(body.is_empty()));
    let dial = Dial::of(url.target(), &clients.config);
    let route = RequestRoute { https: url.target().https, proxied: dial.is_proxied() };
    let marks = Marks::of_task();
    let may_repeat = !clients.once || method.is_idempotent();
    let prepared = Prepared {
        method,
        url: url.as_url().clone(),
        headers: without_framing(headers),
        body,
        taken: Arc::clone(&taken),
        marks: marks.clone(),
    };
    let response: BoxFuture<'static, _> = if may_repeat {
        let clients = Arc::clone(clients);
        Box::pin(DIAL.scope(dial, async move { resend::execute(&clients, prepared).await }))
    } else {
        Box::pin(DIAL.scope(dial, clients.http.execute(prepared.into())))
    };
    Sent { response, route, deadline, max_answer, taken, marks }
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
        let (route, max_answer) = (self.route, self.max_answer);
        let mut response = (&mut self.response)
            .await
            .map_err(|error| EgressError::classify(&error, self.is_taken(), route))?;
        self.marks.as_ref().inspect(|marks| marks.answered());
        // Call this first: some readers need only the status.
        reader.begin(response.status(), response.headers());
        if header_bytes(response.headers()) > MAX_ANSWER_HEADER_BYTES as usize {
            return Err(EgressError::too_large(MAX_ANSWER_HEADER_BYTES as usize));
        }
        if response.content_length().is_some_and(|length| length > max_answer as u64) {
            return Err(EgressError::too_large(max_answer));
        }
        let mut left = max_answer;
        while let Some(chunk) =
            response.chunk().await.map_err(|error| EgressError::classify(&error, true, route))?
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

/// The HTTP library would trust a caller's framing headers and truncate or smuggle bodies accordingly.
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
