//! Warnings about settings with which the hub starts, but which are probably a mistake.

use std::fmt;

use hub_core::{config::Registration, media::MediaConfig, store::StoreConfig};
use url::{Host, Url};

use super::Config;

/// A setting that is accepted and probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The check of `hub-cli doctor` that reports it.
    pub check: &'static str,
    /// Problem and fix.
    pub text: String,
}

impl Warning {
    /// A warning of this check.
    pub(super) fn new(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, text: text.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Finds probable mistakes that no single setting shows.
pub(super) fn find(config: &Config) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |check, text: String| found.push(Warning::new(check, text));
    let shared = matches!(config.store, StoreConfig::Postgres(_));
    if shared && config.secret_key.is_none() {
        let key = config.data_dir.join("secret.key");
        let text =
            format!("secret_key is not set: other nodes on this database need the key in {}", key.display());
        warn("store.shared", text);
    }
    if shared && matches!(config.media, MediaConfig::Folder(_)) {
        let text = "files are in a folder: nodes that share this database need a shared folder, or media_url with s3://";
        warn("store.shared", text.to_owned());
    }
    if let Some(url) =
        config.public_url.as_ref().filter(|url| url.scheme() == "http" && !is_this_machine(url))
    {
        let mode = if config.development {
            "the hub runs in development mode (simulated network, the first user becomes administrator)"
        } else {
            "passwords and sessions are sent unencrypted"
        };
        let host = url.host_str().unwrap_or_default();
        warn("public-url.https", format!("public_url {url} is plain http: {mode}; use https://{host}"));
    }
    if let Some(all) = config.trusted_proxies.iter().find(|range| range.prefix_len() == 0) {
        let text = format!(
            "trusted_proxies has {all}, which trusts every client: anyone can forge their address; name the proxies"
        );
        warn("proxy.forwarded-headers", text);
    }
    if config.hub.registration == Registration::Open && !config.development {
        let text = "registration is open: anyone who reaches the hub can create an account; \
                    set registration to invite or closed";
        warn("registration.open", text.to_owned());
    }
    found
}

/// Whether a URL leads to this machine only.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
