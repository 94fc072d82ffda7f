//! The part of the configuration that the endpoints need.

use std::sync::Arc;

use hub_core::{demo::Playground, secret::Secret, tasks::Tasks};
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{client::ProxyHeader, metrics::Metrics, rate_limit::RateLimitSettings};

/// Settings of the HTTP layer. Cheap to clone; handlers take `Data<&AppSettings>`.
#[derive(Debug, Clone)]
pub struct AppSettings(Arc<Values>);

impl std::ops::Deref for AppSettings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.0
    }
}

impl From<Values> for AppSettings {
    fn from(values: Values) -> Self {
        Self(Arc::new(values))
    }
}

/// The settings themselves.
#[derive(Debug, Clone)]
pub struct Values {
    /// URL of the hub; links and the OpenAPI document contain it.
    pub public_url: Url,
    /// Further origins from which a browser may make changes: on loopback, the same port under its other names.
    pub other_origins: Vec<String>,
    /// Trusted proxies, which report the client address.
    pub trusted_proxies: Vec<IpNet>,
    /// Header with the client address.
    pub proxy_header: ProxyHeader,
    /// Maximum size of a request body in bytes.
    pub max_body: usize,
    /// Rate limits.
    pub rate_limits: RateLimitSettings,
    /// Address of the control API of the built-in simulator, if there is one.
    pub sim_control: Option<std::net::SocketAddr>,
    /// The simulator and the receiver of this process, if it runs them.
    pub playground: Option<Playground>,
    /// Metrics of the HTTP layer.
    pub metrics: Metrics,
    /// With it, the application serves `/metrics` to callers that present it; without, it has no such path.
    pub metrics_token: Option<Secret>,
    /// Open WebSockets and their tasks: they end when the process drains.
    pub sockets: Tasks,
    /// Cancelled when the process drains: from then on `/readyz` fails, long polls and WebSockets end.
    pub draining: CancellationToken,
}

impl Values {
    /// Settings for a hub at `public_url`; everything else has its default.
    pub fn new(public_url: Url) -> Self {
        Self {
            public_url,
            other_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            proxy_header: ProxyHeader::default(),
            max_body: 1024 * 1024,
            rate_limits: RateLimitSettings::default(),
            sim_control: None,
            playground: None,
            metrics: Metrics::default(),
            metrics_token: None,
            sockets: Tasks::new(),
            draining: CancellationToken::new(),
        }
    }

    /// The path of the public URL, which a reverse proxy strips, without the `/` at its end: empty or `/hub`.
    pub(crate) fn path_prefix(&self) -> &str {
        self.public_url.path().trim_end_matches('/')
    }

    /// Whether users reach the hub by https: cookies are then `Secure`.
    pub fn is_https(&self) -> bool {
        self.public_url.scheme() == "https"
    }

    /// Whether a page of this origin may make changes with the browser's cookie.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        self.public_url.origin().ascii_serialization() == origin
            || self.other_origins.iter().any(|own| own == origin)
    }
}
