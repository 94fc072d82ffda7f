//! URLs from outside.

use std::net::IpAddr;

use url::{Host, Url};

use crate::error::{Error, Result};

/// Longest URL that is stored or dialled, in bytes.
const MAX_URL: usize = 2048;

/// A URL whose scheme, host, port and user part were found acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedUrl(Url);

/// Where a URL leads.
#[derive(Debug, Clone)]
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
    /// Whether the host is a name of this machine by definition.
    pub(super) fn is_localhost(&self) -> bool {
        let name = self.host.strip_suffix('.').unwrap_or(&self.host);
        self.address.is_none() && (name == "localhost" || name.ends_with(".localhost"))
    }
}

impl CheckedUrl {
    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    pub(super) fn target(&self) -> Target {
        let https = self.0.scheme() == "https";
        let (host, address) = match self.0.host() {
            Some(Host::Ipv4(ip)) => (ip.to_string(), Some(ip.into())),
            Some(Host::Ipv6(ip)) => (ip.to_string(), Some(ip.into())),
            Some(Host::Domain(name)) => (name.to_owned(), None),
            None => (String::new(), None),
        };
        let port = self.0.port().unwrap_or(if https { 443 } else { 80 });
        Target { host, address, port, https }
    }
}

/// Checks a URL; `judge` decides about host and port, or returns the reason of the refusal.
pub(super) fn check(text: &str, judge: impl Fn(&Target) -> Result<(), String>) -> Result<CheckedUrl> {
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
    if url.as_str().len() > MAX_URL || url.as_str().parse::<http::Uri>().is_err() {
        return Err(invalid("must be at most 2048 bytes long and made of characters allowed in a URL"));
    }
    let checked = CheckedUrl(url);
    match judge(&checked.target()) {
        Ok(()) => Ok(checked),
        Err(reason) => Err(Error::invalid("url", reason)),
    }
}
