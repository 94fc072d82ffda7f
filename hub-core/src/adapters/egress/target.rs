//! URLs from outside.

use std::{net::IpAddr, sync::Arc};

use url::{Host, Url};

use crate::error::{Advice, Error, Result};

/// Longest URL that is stored or dialled, in bytes.
const MAX_URL: usize = 2048;

/// A URL whose scheme, host, port and user part were found acceptable. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedUrl(Arc<Checked>);

#[derive(Debug, PartialEq, Eq)]
struct Checked {
    url: Url,
    /// The URL in the type of the HTTP client.
    uri: http::Uri,
    target: Target,
}

/// Host, address, port and scheme of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Host as the URL standard writes it; IPv6 without brackets.
    pub(super) host: String,
    /// The host as an address, when it is one: the parser knows the decimal, hexadecimal, short and
    /// full-width spellings.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    pub(super) https: bool,
}

impl Target {
    pub(super) fn of(url: &Url) -> Self {
        let https = url.scheme() == "https";
        let (host, address) = match url.host() {
            Some(Host::Ipv4(ip)) => (ip.to_string(), Some(ip.into())),
            Some(Host::Ipv6(ip)) => (ip.to_string(), Some(ip.into())),
            Some(Host::Domain(name)) => (name.to_owned(), None),
            None => (String::new(), None),
        };
        let port = url.port().unwrap_or(if https { 443 } else { 80 });
        Self { host, address, port, https }
    }

    /// Whether the host is a name of this machine by definition.
    pub(super) fn is_localhost(&self) -> bool {
        let name = self.host.strip_suffix('.').unwrap_or(&self.host);
        self.address.is_none() && (name == "localhost" || name.ends_with(".localhost"))
    }
}

impl CheckedUrl {
    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0.url
    }

    pub(super) fn uri(&self) -> &http::Uri {
        &self.0.uri
    }

    pub(super) fn target(&self) -> &Target {
        &self.0.target
    }
}

/// The refusal of a target.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: String,
    /// The setting that allows it.
    pub(super) advice: Option<Advice>,
}

/// Checks a URL; `judge` decides about host and port, or returns the reason of the refusal.
pub(super) fn check(text: &str, judge: impl Fn(&Target) -> Result<(), Refusal>) -> Result<CheckedUrl> {
    let invalid = |reason: &'static str| Error::invalid("url", reason);
    if text.len() > MAX_URL {
        return Err(invalid("must be at most 2048 bytes long"));
    }
    // The parser would quietly drop them, and the stored text would not be what the person sees.
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(invalid("must not contain spaces or control characters"));
    }
    let mut url =
        Url::parse(text).map_err(|_| invalid("is not a complete URL like https://example.com/hook"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must not contain a user name or password"));
    }
    url.set_fragment(None);
    let Some(uri) = url.as_str().parse().ok().filter(|_| url.as_str().len() <= MAX_URL) else {
        return Err(invalid("must be at most 2048 bytes long and made of characters allowed in a URL"));
    };
    let target = Target::of(&url);
    match judge(&target) {
        Ok(()) => Ok(CheckedUrl(Arc::new(Checked { url, uri, target }))),
        Err(Refusal { reason, advice }) => Err(Error::invalid("url", reason).with_advice(advice)),
    }
}
