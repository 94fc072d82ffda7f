//! The proxy through which requests leave, where an operator has one.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use url::{Host, Url};

use super::{address::same_name, target::Target};
use crate::{
    error::{Error, Result},
    secret::Secret,
};

/// A proxy for outbound requests (`HUB_EGRESS_PROXY`).
#[derive(Debug, Clone)]
pub struct OutboundProxy {
    /// The address, with user and password.
    url: Secret,
    host: String,
    except: Vec<Direct>,
    /// Whether names are left to it.
    resolves: bool,
}

/// Targets that are reached without the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Direct {
    /// A host and its subdomains.
    Domain(String),
    /// The addresses of a range, where a URL has one instead of a name.
    Range(IpNet),
}

impl OutboundProxy {
    /// A proxy at `http://`, `https://` or `socks5://`, with user and password where it asks for them.
    ///
    /// Names are resolved by the hub, and their addresses checked, before a connection is asked for. A SOCKS proxy then
    /// gets the address that was checked. An HTTP proxy gets the name and resolves it again. If the proxy `resolves`,
    /// the hub does not, and checks only addresses that are in the URL.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `egress_proxy`; the reason does not repeat the URL, which may hold a password.
    pub fn new(url: &Secret, except: Vec<Direct>, resolves: bool) -> Result<Self> {
        let invalid = |reason: &'static str| Error::invalid("egress_proxy", reason);
        let mut parsed = Url::parse(url.expose()).map_err(|_| invalid("is not a URL"))?;
        let is_socks = match parsed.scheme() {
            "http" | "https" => false,
            "socks5" => true,
            _ => return Err(invalid("must start with http://, https:// or socks5://")),
        };
        let host = parsed.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid("has no host"))?;
        let host = host.trim_matches(['[', ']']).to_owned();
        if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(invalid("must have a host and a port and nothing after them"));
        }
        if is_socks && resolves {
            // The library's name for it.
            parsed.set_scheme("socks5h").map_err(|()| invalid("is not a URL"))?;
        }
        if is_socks && parsed.port().is_none() {
            parsed.set_port(Some(1080)).map_err(|()| invalid("has no host"))?;
        }
        Ok(Self { url: Secret::new(parsed.to_string()), host, except, resolves })
    }

    /// Whether requests to this target go through it. This machine is always reached directly.
    pub(super) fn takes(&self, target: &Target) -> bool {
        let is_here =
            target.is_localhost() || target.address.is_some_and(|at| at.to_canonical().is_loopback());
        !is_here && !self.except.iter().any(|direct| direct.covers(&target.host, target.address))
    }

    /// Whether the hub resolves `host` and checks its addresses before it asks for a connection.
    pub(super) fn needs_check(&self) -> bool {
        !self.resolves
    }

    /// Whether this is its own host.
    pub(super) fn is_at(&self, host: &str) -> bool {
        same_name(&self.host, host)
    }

    /// The same as a rule of the library.
    pub(super) fn rule(&self) -> reqwest::Proxy {
        let proxy = self.clone();
        reqwest::Proxy::custom(move |url| {
            proxy.takes(&Target::of(url)).then(|| proxy.url.expose().to_owned())
        })
    }
}

impl Direct {
    fn covers(&self, host: &str, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Range(range), Some(address)) => range.contains(&address.to_canonical()),
            (Self::Domain(domain), None) => {
                let host = host.strip_suffix('.').unwrap_or(host);
                let before = host.len().checked_sub(domain.len());
                before.is_some_and(|before| {
                    host.get(before..).is_some_and(|end| end.eq_ignore_ascii_case(domain))
                        && (before == 0 || host.as_bytes().get(before - 1) == Some(&b'.'))
                })
            }
            _ => false,
        }
    }
}

impl FromStr for Direct {
    type Err = Error;

    /// Reads `example.com`, `.example.com` and `*.example.com`, which mean the same, `10.0.0.1` and `10.0.0.0/8`.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `egress_proxy_except`.
    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            || Error::invalid("egress_proxy_except", "is neither a domain, nor an address, nor a range");
        let range = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        if let Some(range) = range {
            return Ok(Self::Range(range.trunc()));
        }
        let bare = text.strip_prefix('*').unwrap_or(text);
        let bare = bare.strip_prefix('.').unwrap_or(bare);
        match Host::parse(bare.strip_suffix('.').unwrap_or(bare)) {
            Ok(Host::Domain(name)) if name.split('.').all(|label| !label.is_empty()) => {
                Ok(Self::Domain(name))
            }
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => f.write_str(name),
            Self::Range(range) => range.fmt(f),
        }
    }
}
