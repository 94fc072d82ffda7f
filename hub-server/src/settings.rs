//! What the endpoints need to know of the configuration.

use std::sync::Arc;

use hub_core::{secret::Secret, tasks::Tasks};
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
    /// Where people reach this hub; links and the OpenAPI document name it.
    pub public_url: Url,
    /// Further origins from which a browser may change things: on loopback, the same port under its other
    /// names.
    pub other_origins: Vec<String>,
    /// Proxies that are believed when they say whom they saw.
    pub trusted_proxies: Vec<IpNet>,
    /// Where they say it.
    pub proxy_header: ProxyHeader,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// Rate limits.
    pub rate_limits: RateLimitSettings,
    /// Loopback only and not https: the start page shows more.
    pub development: bool,
    /// Control address of the built-in simulator, when there is one.
    pub sim_control: Option<std::net::SocketAddr>,
    /// What the HTTP layer counts.
    pub metrics: Metrics,
    /// With it, the application serves `/metrics` to whoever presents it; without, it has no such path.
    pub metrics_token: Option<Secret>,
    /// Open WebSockets and what they began: they end when the process drains.
    pub sockets: Tasks,
    /// Fires when the process drains: `/readyz` says no from then on, long polls and WebSockets end.
    pub draining: CancellationToken,
}

impl Values {
    /// Settings for a hub that people reach at `public_url`; everything else has its default.
    pub fn new(public_url: Url) -> Self {
        Self {
            public_url,
            other_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            proxy_header: ProxyHeader::default(),
            max_body: 1024 * 1024,
            rate_limits: RateLimitSettings::default(),
            development: true,
            sim_control: None,
            metrics: Metrics::default(),
            metrics_token: None,
            sockets: Tasks::new(),
            draining: CancellationToken::new(),
        }
    }

    /// Whether people reach the hub by https: cookies are `Secure` then.
    pub fn is_https(&self) -> bool {
        self.public_url.scheme() == "https"
    }

    /// Whether a page of this origin may change things with the browser's cookie.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        self.public_url.origin().ascii_serialization() == origin
            || self.other_origins.iter().any(|own| own == origin)
    }
}
