//! The guarded HTTP client: the only place that connects to an address from outside, and the only place that builds an
//! HTTP client.

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::ControlFlow,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};

use crate::{error::Result, local_http::LocalService, words::words};

mod address;
mod client;
mod dial;
mod fault;
pub mod headers;
#[cfg(feature = "s3")]
pub(crate) mod objects;
mod phases;
mod proxy;
mod receipt;
mod resend;
mod target;
#[cfg(test)]
mod tests;

pub use headers::CheckedHeaders;
pub use phases::{Phase, Phases};
pub use proxy::{Direct, OutboundProxy};
pub use receipt::{BodyEnd, Receipt};
pub use target::CheckedUrl;

/// Targets that the client may reach besides public addresses, and its proxy and resolver.
#[derive(Clone, Default)]
pub struct EgressConfig {
    /// Private targets the operator allows (`HUB_EGRESS_ALLOW`).
    pub allow: Vec<AllowRule>,
    /// Addresses this process listens on: refused even where an allow rule covers them.
    pub own_listeners: Vec<SocketAddr>,
    /// The proxy through which requests leave. Without one they leave directly, whatever the environment says.
    pub proxy: Option<OutboundProxy>,
    /// Services inside the process that respond for a host, by name.
    pub in_process: HashMap<String, Arc<dyn LocalService>>,
    /// Finds the addresses of names; the machine's own resolver when there is none.
    pub resolver: Option<Arc<dyn Resolver>>,
}

/// Resolves names in another way than the machine does. The address rule applies to the results, and each connection
/// resolves once.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of `host`.
    ///
    /// # Errors
    /// Fails when the name does not resolve. The reason is not shown to users.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

impl fmt::Debug for EgressConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressConfig")
            .field("allow", &self.allow)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// A private target the operator allows: a range, or one host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowRule {
    /// An address range, at every port that web servers commonly use.
    Range(ipnet::IpNet),
    /// One port of one host, by name or address; the only way to open a port that is not a web server's.
    HostPort(String, u16),
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    /// Method.
    pub method: Method,
    /// Target.
    pub url: CheckedUrl,
    /// Headers. Headers that HTTP needs are added, and where absent `Accept: */*`, `Accept-Encoding: identity` and
    /// the `User-Agent` of the hub.
    pub headers: HeaderMap,
    /// Exact bytes of the body.
    pub body: Bytes,
    /// Time limit for the whole call, including the response body.
    pub deadline: Duration,
    /// Largest answer that is read, counted after it was decoded.
    pub max_answer: usize,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, within [`Call::max_answer`].
    pub body: Bytes,
}

/// Receives a response while it arrives, as an alternative to [`Answer`].
pub trait Reader: Send {
    /// Called when status and headers have arrived.
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap);

    /// Receives the next bytes of the body. After a `Break` nothing more is read.
    fn take(&mut self, piece: &[u8]) -> ControlFlow<()>;
}

words! {
    /// Why a request brought no answer.
    pub enum EgressFault {
        /// The address is not public and not allowed.
        BlockedAddress = "blocked_address",
        /// The name does not resolve.
        Dns = "dns",
        /// No connection.
        Connect = "connect",
        /// The TLS handshake or the certificate failed.
        Tls = "tls",
        /// The deadline ran out.
        Timeout = "timeout",
        /// The response exceeds its limit.
        TooLarge = "too_large",
        /// The connection broke, or what came was not HTTP.
        Broken = "broken",
    }
}

/// A request that brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {message}", fault.as_str())]
pub struct EgressError {
    /// The class, as shown in traces.
    pub fault: EgressFault,
    /// Whether the request may have reached the other side.
    pub written: bool,
    /// A sentence for the trace, without secrets or inner addresses.
    pub message: String,
}

/// The client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Egress(Arc<Shared>);

struct Shared {
    config: Arc<EgressConfig>,
    http: reqwest::Client,
    tls: Arc<rustls::ClientConfig>,
    /// Whether the address rule is skipped.
    trusted: bool,
    /// Whether only idempotent requests are sent again.
    once: bool,
    /// Made when a request is first sent again.
    unpooled: OnceLock<reqwest::Client>,
}

impl Shared {
    /// A client like `http` that keeps no connections.
    fn unpooled(&self) -> &reqwest::Client {
        self.unpooled.get_or_init(|| {
            client::build_unpooled(&self.config, &self.tls, !self.trusted).expect("one like it was built")
        })
    }
}

/// A request that was accepted, and is on its way once it is read.
enum Begun {
    Network(client::Sent),
    InProcess(BoxFuture<'static, Result<Answer, EgressError>>),
}

impl Begun {
    async fn read(&mut self, reader: &mut dyn Reader) -> Result<(), EgressError> {
        match self {
            Self::Network(sent) => sent.read(reader).await,
            Self::InProcess(answer) => {
                let Answer { status, headers, body } = answer.await?;
                reader.begin(status, &headers);
                let _ = reader.take(&body);
                Ok(())
            }
        }
    }
}

impl Egress {
    /// A client under a configuration.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when no TLS client can be made.
    pub fn new(config: EgressConfig) -> Result<Self> {
        Self::build(Arc::new(config), Arc::new(client::tls()?), false, false)
    }

    /// A client for destinations that the operator configured: no address rule, own connections. The caller
    /// checks hosts.
    #[must_use]
    pub fn trusted(&self) -> Self {
        Self::another(Arc::clone(&self.0.config), Arc::clone(&self.0.tls), true, self.0.once)
    }

    /// The same client without pooled connections and without TLS sessions to resume. It costs a few kilobytes.
    #[must_use]
    pub fn fresh(&self) -> Self {
        let Shared { config, tls, trusted, once, .. } = &*self.0;
        Self::another(Arc::clone(config), Arc::new(client::without_sessions(tls)), *trusted, *once)
    }

    /// A client for requests that must not arrive twice: it sends only idempotent ones (RFC 9110 §9.2.2) again when
    /// a kept connection was closed under them. It has own connections.
    #[must_use]
    pub fn once(&self) -> Self {
        Self::another(Arc::clone(&self.0.config), Arc::clone(&self.0.tls), self.0.trusted, true)
    }

    fn build(
        config: Arc<EgressConfig>,
        tls: Arc<rustls::ClientConfig>,
        trusted: bool,
        once: bool,
    ) -> Result<Self> {
        let http = client::build(&config, &tls, !trusted)?;
        Ok(Self(Arc::new(Shared { config, http, tls, trusted, once, unpooled: OnceLock::new() })))
    }

    /// A client like one that exists: what can fail is the TLS and the headers, which are the same.
    fn another(config: Arc<EgressConfig>, tls: Arc<rustls::ClientConfig>, trusted: bool, once: bool) -> Self {
        Self::build(config, tls, trusted, once).expect("one like it was built")
    }

    /// Checks a URL as far as that is possible without resolving its name: at most 2048 bytes, http or https,
    /// no user part, a port where web servers are found, no literal of a private address, not `localhost`. A fragment
    /// is dropped. What other names resolve to is checked when they are dialled.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `url`; for a refused address with the setting that allows it.
    pub fn check_url(&self, text: &str) -> Result<CheckedUrl> {
        target::check(text, |target| match self.in_process(target) {
            Some(_) => Ok(()),
            None => self.judge(target),
        })
    }

    /// Sends one request and reads its answer whole. Redirects are not followed. A request whose kept connection was
    /// closed before the answer began is sent once more, on a new connection (see [`Egress::once`]). A body in gzip, deflate
    /// or brotli is decoded, and its limit counts what comes out. Headers that frame the message (`Host`,
    /// `Content-Length` and the like) are set here and nowhere else.
    ///
    /// # Errors
    /// [`EgressError`], with what is known about whether the request went out.
    pub fn send(&self, call: Call) -> impl Future<Output = Result<Answer, EgressError>> + Send + use<> {
        let mut begun = self.begin(call);
        async move {
            let mut whole = client::Whole::default();
            begun.as_mut().map_err(|refused| refused.clone())?.read(&mut whole).await?;
            Ok(whole.into())
        }
    }

    /// Sends one request as [`Egress::receive`], and measures its parts. Only a client without pooled connections
    /// ([`Egress::fresh`]) opens a new one for certain.
    ///
    /// # Errors
    /// As [`Egress::receive`], with the part in which the request failed.
    pub async fn receive_measured(&self, call: Call) -> (Result<Receipt, (EgressError, Phase)>, Phases) {
        let (answer, marks) = phases::Marks::measure(|| self.receive(call)).await;
        let answer = answer.map_err(|error| {
            let phase = marks.failed(error.fault);
            (error, phase)
        });
        (answer, marks.phases())
    }

    /// Sends one request and gives its answer to `reader` while it comes, under the same rules.
    ///
    /// # Errors
    /// As [`Egress::send`]; the reader may have part of the answer then.
    pub async fn read(&self, call: Call, reader: &mut dyn Reader) -> Result<(), EgressError> {
        self.begin(call)?.read(reader).await
    }

    fn begin(&self, call: Call) -> Result<Begun, EgressError> {
        let target = call.url.target();
        if let Some(service) = self.in_process(target) {
            return Ok(Begun::InProcess(Box::pin(client::call_in_process(Arc::clone(service), call))));
        }
        self.judge(target).map_err(|refusal| EgressError::blocked(refusal.reason))?;
        Ok(Begun::Network(client::send(&self.0, call)))
    }

    fn in_process(&self, target: &target::Target) -> Option<&Arc<dyn LocalService>> {
        let services = &self.0.config.in_process;
        services.get(&target.host).or_else(|| services.get(target.host.strip_suffix('.')?))
    }

    /// The part of the address rule that needs no resolver.
    fn judge(&self, target: &target::Target) -> Result<(), target::Refusal> {
        let target::Target { host, address, port, .. } = target;
        let config = &self.0.config;
        // Every resolver knows what `localhost` means (RFC 6761 §6.3); which of the two it returns depends on the machine.
        let known = match address {
            Some(address) => vec![*address],
            None if target.is_localhost() => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            None => Vec::new(),
        };
        let is_admitted = config.admits_port(host, *address, *port)
            && (known.is_empty() || known.iter().any(|known| config.admits_address(host, *known, *port)));
        if self.0.trusted || is_admitted {
            return Ok(());
        }
        Err(config.refusal(host, *port, known.into_iter()))
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.trusted { "Egress(trusted)" } else { "Egress" })
    }
}
