//! The `reqwest` client: how it is built, and one request through it.

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
use http::{HeaderMap, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore, client::Resumption};
use rustls_platform_verifier::BuilderVerifierExt;

use super::{
    Answer, Call, EgressConfig, EgressError, EgressFault, Reader, Resolver,
    fault::{Blocked, Unresolved},
    phases::Marks,
    target::Target,
};
use crate::{
    error::{Error, Result},
    local_http::{Cut, LocalService},
};

/// Limit for resolving, connecting and the TLS handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection waits for its next request: less than common servers wait, so that they seldom
/// close it under a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest pause within an answer, unless another is configured.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Connections kept per host: as many as requests may be in flight, since channels often share a receiver and a
/// connection that is closed between two messages costs more than the message.
const MAX_IDLE_PER_HOST: usize = 128;
/// TLS sessions that a client without earlier ones keeps: there may be one client for each bot.
const FRESH_SESSIONS: usize = 16;
/// Most headers of an answer, and their bytes together.
const MAX_ANSWER_HEADERS: usize = 100;
const MAX_ANSWER_HEADER_BYTES: u32 = 32 * 1024;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

tokio::task_local! {
    /// The port that the request of this task dials. The library's resolver hears the name alone, and
    /// rules and own listeners are about ports too.
    static PORT: u16;
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

/// Builds a client; names are resolved under the rules, or freely when it is not `ruled`.
#[expect(clippy::disallowed_methods, reason = "the one place that builds a client")]
pub(super) fn build(config: &Arc<EgressConfig>, tls: ClientConfig, ruled: bool) -> Result<reqwest::Client> {
    let (rules, resolver) = (ruled.then(|| Arc::clone(config)), config.resolver.clone());
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(config.read_timeout.unwrap_or(READ_TIMEOUT))
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .tcp_nodelay(true)
        .http1_max_headers(MAX_ANSWER_HEADERS)
        .http2_max_header_list_size(MAX_ANSWER_HEADER_BYTES)
        .dns_resolver(CheckedResolver { rules, resolver });
    client.build().map_err(Error::internal)
}

/// Resolves a name and, where there are rules, refuses it when any of its addresses may not be dialled. What is
/// returned is what is dialled: there is no second lookup to be answered differently.
struct CheckedResolver {
    rules: Option<Arc<EgressConfig>>,
    resolver: Option<Arc<dyn Resolver>>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, resolver, marks) = (self.rules.clone(), self.resolver.clone(), Marks::of_task());
        // Without a port nothing can be decided, so nothing is dialled.
        let port = PORT.try_with(|port| *port).map_err(|_| Blocked("has no known port".to_owned()));
        Box::pin(async move {
            let (host, port) = (name.as_str(), port?);
            marks.as_ref().inspect(|marks| marks.resolving());
            let found: Vec<SocketAddr> = match resolver {
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
            Ok(Box::new(found.into_iter().take(MAX_ADDRESSES)) as Addrs)
        })
    }
}

/// A request body that notes when it is first read, which happens once a connection takes the request:
/// before that, nothing was written.
struct ObservedBody {
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

/// Runs something that dials this port.
#[cfg(feature = "s3")]
pub(super) async fn with_port<F: Future>(port: u16, run: F) -> F::Output {
    PORT.scope(port, run).await
}

/// Sends one request over the network.
pub(super) async fn call(
    http: &reqwest::Client,
    call: Call,
    target: &Target,
    reader: &mut dyn Reader,
) -> Result<(), EgressError> {
    // An empty body is never read, so it tells nothing: assume the worse.
    let taken = Arc::new(AtomicBool::new(call.body.is_empty()));
    let deadline = call.deadline;
    let exchange = PORT.scope(target.port, exchange(http, call, target.https, &taken, reader));
    let outcome = tokio::time::timeout(deadline, exchange).await;
    outcome.unwrap_or_else(|_| Err(out_of_time(deadline, taken.load(Ordering::Relaxed))))
}

async fn exchange(
    http: &reqwest::Client,
    call: Call,
    https: bool,
    taken: &Arc<AtomicBool>,
    reader: &mut dyn Reader,
) -> Result<(), EgressError> {
    let marks = Marks::of_task();
    let mut request = reqwest::Request::new(call.method, call.url.as_url().clone());
    *request.headers_mut() = without_framing(call.headers);
    if !call.body.is_empty() {
        let body =
            ObservedBody { bytes: Full::new(call.body), taken: Arc::clone(taken), marks: marks.clone() };
        *request.body_mut() = Some(reqwest::Body::wrap(body));
    }
    let sent = http.execute(request).await;
    let mut response =
        sent.map_err(|error| EgressError::classify(&error, taken.load(Ordering::Relaxed), https))?;
    marks.inspect(Marks::answered);
    if header_bytes(response.headers()) > MAX_ANSWER_HEADER_BYTES as usize {
        return Err(EgressError::too_large(MAX_ANSWER_HEADER_BYTES as usize));
    }
    let announced = response.content_length().unwrap_or(0);
    if announced > call.max_answer as u64 {
        return Err(EgressError::too_large(call.max_answer));
    }
    reader.begin(response.status(), response.headers());
    let mut left = call.max_answer;
    while let Some(chunk) =
        response.chunk().await.map_err(|error| EgressError::classify(&error, true, https))?
    {
        let Some(rest) = left.checked_sub(chunk.len()) else {
            return Err(EgressError::too_large(call.max_answer));
        };
        left = rest;
        if reader.take(&chunk).is_break() {
            break;
        }
    }
    Ok(())
}

/// Calls a service inside the process under the same limits.
pub(super) async fn call_in_process(
    service: Arc<dyn LocalService>,
    call: Call,
    reader: &mut dyn Reader,
) -> Result<(), EgressError> {
    let (deadline, max_answer) = (call.deadline, call.max_answer);
    let url = call.url.as_url();
    let mut request = http::Request::new(call.body);
    *request.method_mut() = call.method;
    *request.uri_mut() = url
        .as_str()
        .parse()
        .map_err(|_| EgressError::new(EgressFault::Broken, false, "the URL cannot be sent"))?;
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
    reader.begin(parts.status, &parts.headers);
    let _ = reader.take(&body);
    Ok(())
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
