//! The configuration of the server: flag before `HUB_…` variable before systemd credential before `hub.toml`. All
//! problems are found in one pass and reported together.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use hub_core::{
    config::HubConfig, data_dir, egress::AllowRule, media::MediaConfig, network::ilink::TEXT_LIMITS,
    secret::Secret, store::StoreConfig,
};
use ipnet::IpNet;
use url::Url;

mod buckets;
mod home;
mod limits;
mod media;
mod providers;
#[cfg(test)]
mod reference;
mod report;
mod schema;
mod setting;
mod sources;
mod values;
mod warnings;

use crate::{client::ProxyHeader, rate_limit::RateLimitSettings};
pub use buckets::{BackupSettings, S3Service};
use providers::read_providers;
pub use report::Report;
pub use schema::schema;
pub use setting::{Origin, SETTINGS, Setting};
pub use sources::Sources;
use sources::{Findings, Given};
use values::{
    read_admin, read_connections, read_key, read_listen, read_log, read_log_format, read_networks,
    read_proxy_header, read_public_url, read_registration, read_url,
};
pub use warnings::{Warning, is_this_machine};

/// The file that `config init` writes: every setting with its default, commented out. It is the manual.
pub const DEFAULT_FILE: &str = include_str!("default.toml");

/// Which chat networks the hub offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Networks {
    /// The simulator.
    pub sim: bool,
    /// The real one.
    pub ilink: bool,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For reading.
    Text,
    /// A JSON object per line.
    Json,
}

/// The settings, typed and checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Whether the addresses were configured; a default IPv6 loopback may be missing on the machine.
    pub listen_is_default: bool,
    /// URL of the hub; derived from the address if absent.
    pub public_url: Option<Url>,
    /// Directory of the database, the key and the setup link.
    pub data_dir: PathBuf,
    /// The database.
    pub store: StoreConfig,
    /// Storage of files.
    pub media: MediaConfig,
    /// The S3 service.
    pub s3: S3Service,
    /// Nightly backups.
    pub backup: Option<BackupSettings>,
    /// Chat networks.
    pub networks: Networks,
    /// Base URL for logins to the real chat network.
    pub ilink_base_url: Option<Url>,
    /// Its CDN.
    pub ilink_cdn_url: Option<Url>,
    /// Maximum characters of one part of a long text.
    pub text_part_chars: usize,
    /// Control API of the built-in simulator.
    pub sim_listen: SocketAddr,
    /// A simulator in another process.
    pub sim_url: Option<Url>,
    /// Private targets of outbound requests.
    pub egress_allow: Vec<AllowRule>,
    /// Trusted proxies.
    pub trusted_proxies: Vec<IpNet>,
    /// Header with the client address.
    pub proxy_header: ProxyHeader,
    /// Settings of the domain.
    pub hub: HubConfig,
    /// The first administrator.
    pub admin: Option<(String, Secret)>,
    /// The key from a setting; absent means: the file in the data folder.
    pub secret_key: Option<Secret>,
    /// Log filter.
    pub log: String,
    /// Format of the log; absent: text at a terminal, otherwise JSON.
    pub log_format: Option<LogFormat>,
    /// Whether to seed the demo.
    pub demo: bool,
    /// Whether to migrate the database schema at startup.
    pub migrate: bool,
    /// Maximum size of a JSON body.
    pub max_body: usize,
    /// Maximum open connections.
    pub max_connections: usize,
    /// Maximum open connections per network.
    pub max_connections_per_address: usize,
    /// Rate limits.
    pub rate_limits: RateLimitSettings,
    /// A listener for `/metrics` alone.
    pub metrics_listen: Option<SocketAddr>,
    /// Bearer token that `/metrics` requires.
    pub metrics_token: Option<Secret>,
    /// A collector of traces.
    pub otlp_endpoint: Option<Url>,
    /// Loopback only and not https: sim network, plain cookie, no setup token.
    pub development: bool,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    /// Every setting with its value as text, secrets masked, and where it came from.
    pub effective: Vec<(&'static str, String, Origin)>,
    /// Settings that are accepted and probably mistakes.
    pub warnings: Vec<Warning>,
}

/// Everything that is wrong with a configuration.
#[derive(Debug)]
pub struct Problems {
    /// One line each.
    pub problems: Vec<String>,
    /// As in [`Config::warnings`].
    pub warnings: Vec<Warning>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problems.iter().try_for_each(|problem| writeln!(f, "error: {problem}"))?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

/// Minimum length of `metrics_token` in bytes: it is the only protection of the page.
const MIN_TOKEN: usize = 16;

const DEFAULT_LISTEN: &str = "127.0.0.1:9800,[::1]:9800";

/// Reads values out of what was given, noting what is wrong and remembering what is in force.
struct Reader {
    given: Given,
    findings: Findings,
    effective: Vec<(&'static str, String, Origin)>,
}

impl Reader {
    /// A setting as text, `default` when it was not given.
    fn text(&mut self, name: &'static str, default: &str) -> (String, Origin) {
        let found = self.given.values.get(name);
        let text = found.map_or(default, |found| found.text.expose()).to_owned();
        let origin = found.map_or(Origin::Default, |found| found.origin.clone());
        let is_secret = SETTINGS.iter().any(|setting| setting.name == name && setting.secret);
        let shown = if is_secret && found.is_some() { "***".to_owned() } else { mask_password(&text) };
        self.effective.push((name, shown, origin.clone()));
        (text, origin)
    }

    /// What was given for a setting, and where; nothing is noted.
    fn given(&self, name: &str) -> (String, Origin) {
        let found = self.given.values.get(name);
        found.map_or((String::new(), Origin::Default), |found| {
            (found.text.expose().to_owned(), found.origin.clone())
        })
    }

    fn problem(&mut self, origin: &Origin, reason: impl fmt::Display) {
        self.findings.problem(format!("{origin}: {reason}"));
    }

    /// A setting read by `read`; a problem, and the default in its place, when that fails.
    fn value<T>(
        &mut self,
        name: &'static str,
        default: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (text, origin) = self.text(name, default);
        if text.is_empty() {
            return None;
        }
        read(&text)
            .map_err(|reason| self.problem(&origin, format!("{:?} {reason}", mask_password(&text))))
            .ok()
    }

    fn number<T: FromStr>(&mut self, name: &'static str, default: &str, rule: &str) -> Option<T> {
        self.value(name, default, |text| text.parse().map_err(|_| format!("must be {rule}")))
    }

    fn url(&mut self, name: &'static str) -> Option<Url> {
        self.value(name, "", read_url)
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        default: &str,
        read: impl Fn(&str) -> Result<Vec<T>, String>,
    ) -> Vec<T> {
        let (text, origin) = self.text(name, default);
        let mut items = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match read(part) {
                Ok(read) => items.extend(read),
                Err(reason) => self.problem(&origin, format!("{part:?} {reason}")),
            }
        }
        items
    }
}

/// A URL's password is a secret also where the URL is not.
fn mask_password(text: &str) -> String {
    if let Ok(mut url) = Url::parse(text)
        && url.password().is_some()
        && url.set_password(Some("***")).is_ok()
    {
        return url.to_string();
    }
    text.to_owned()
}

impl Config {
    /// Reads all sources.
    ///
    /// # Errors
    /// Every problem of the configuration at once.
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        let given = sources::gather(sources, &mut findings);
        let mut reader = Reader { given, findings, effective: Vec::new() };
        let config = Self::read(&mut reader, &sources.env);
        let Findings { problems, warnings } = reader.findings;
        match config {
            Some(config) if problems.is_empty() => {
                let mut warnings = warnings;
                warnings.extend(warnings::find(&config));
                Ok(Self { effective: reader.effective, warnings, ..config })
            }
            _ => Err(Problems { problems, warnings }),
        }
    }

    /// Every setting is read before any failure ends it, so that all problems are noted.
    fn read(reader: &mut Reader, env: &BTreeMap<String, String>) -> Option<Self> {
        let listen_is_default = !reader.given.values.contains_key("listen");
        let listen = reader.list("listen", DEFAULT_LISTEN, read_listen);
        if listen.is_empty() && listen_is_default {
            return None;
        }
        let public_url = reader.value("public_url", "", read_public_url);
        let development = listen.iter().all(|address| address.ip().is_loopback())
            && public_url.as_ref().is_none_or(|url| url.scheme() != "https");
        let default_data_dir = data_dir::default_path(|name| env.get(name).cloned()).display().to_string();
        let data_dir = PathBuf::from(reader.text("data_dir", &default_data_dir).0);
        let store = reader.value("database_url", "", |text| {
            StoreConfig::from_url(&text.into()).map_err(|error| {
                error.details().first().map_or_else(|| error.to_string(), |detail| detail.reason.to_string())
            })
        });
        let store = store.unwrap_or_else(|| StoreConfig::Sqlite(data_dir::database(&data_dir)));
        let s3 = S3Service::read(reader);
        let media = media::read(reader, &s3, &data_dir);
        let backup = BackupSettings::read(reader, &s3, &store);
        let networks = reader.value("network", if development { "sim" } else { "ilink" }, read_networks);
        let ilink_base_url = reader.url("ilink_base_url");
        let ilink_cdn_url = reader.url("ilink_cdn_url");
        let text_part_chars = reader.value("text_part_chars", "2000", |text| {
            let chars = text.parse().ok().filter(|chars| (TEXT_LIMITS[0]..=TEXT_LIMITS[1]).contains(chars));
            chars.ok_or_else(|| format!("must be from {} to {}", TEXT_LIMITS[0], TEXT_LIMITS[1]))
        });
        let sim_listen = reader.number("sim_listen", "127.0.0.1:9801", "an address with a port");
        let sim_url = reader.url("sim_url");
        let egress_allow = reader.list("egress_allow", "", |part| {
            part.parse::<AllowRule>().map(|rule| vec![rule]).map_err(|error| {
                let reason = error.details().first().map(|detail| detail.reason.to_string());
                // The rule repeats the text it refuses; the report names it already.
                reason.map_or_else(
                    || error.to_string(),
                    |reason| reason.trim_start_matches(&format!("{part:?} ")).to_owned(),
                )
            })
        });
        let trusted_proxies = reader.list("trusted_proxies", "", |part| {
            let net = part.parse::<IpNet>().or_else(|_| part.parse::<std::net::IpAddr>().map(IpNet::from));
            net.map(|net| vec![net])
                .map_err(|_| "is neither an address nor a range like 10.0.0.0/8".to_owned())
        });
        let proxy_header = reader.value("proxy_header", "x-forwarded-for", read_proxy_header);
        let registration = reader.value("registration", "open", read_registration);
        let (username, name_origin) = reader.text("admin_username", "");
        let (password, password_origin) = reader.text("admin_password", "");
        let (secret_key, _) = reader.text("secret_key", "");
        let node_name = reader.text("node_name", "").0;
        let log = reader.value("log", "info", read_log);
        let log_format = reader.value("log_format", "", read_log_format);
        let demo = reader.number("demo", "true", "true or false");
        let migrate = reader.number("migrate", "true", "true or false");
        let max_body = reader.number("max_body", "1048576", "a number of bytes");
        let max_connections = reader.value("max_connections", "10000", read_connections);
        let max_connections_per_address =
            reader.value("max_connections_per_address", "200", read_connections);
        let clients = limits::clients(reader);
        let metrics_listen = reader.value("metrics_listen", "", |text| {
            text.parse().map_err(|_| "must be an address with a port, like 127.0.0.1:9802".to_owned())
        });
        let (metrics_token, token_origin) = reader.text("metrics_token", "");
        if !metrics_token.is_empty() && metrics_token.len() < MIN_TOKEN {
            reader.problem(&token_origin, format!("must have at least {MIN_TOKEN} characters"));
        }
        let otlp_endpoint = reader.url("otlp_endpoint");
        if otlp_endpoint.is_some() && !cfg!(feature = "otel") {
            let origin = reader.given.values["otlp_endpoint"].origin.clone();
            reader.problem(
                &origin,
                "this server was built without OpenTelemetry; build it with --features otel",
            );
        }
        let rate_limits = limits::rates(reader);
        let admin = match (username.is_empty(), password.is_empty()) {
            (false, false) => {
                let password = Secret::new(password);
                for (is_name, reason) in read_admin(&username, &password) {
                    reader.problem(if is_name { &name_origin } else { &password_origin }, reason);
                }
                Some((username, password))
            }
            (false, true) => {
                reader.problem(&name_origin, "needs admin_password or admin_password_file too");
                None
            }
            (true, false) => {
                reader.problem(&password_origin, "needs admin_username too");
                None
            }
            (true, true) => None,
        };
        let secret_key = (!secret_key.is_empty()).then(|| Secret::new(secret_key));
        if let Some(key) = &secret_key
            && let Err(reason) = read_key(key)
        {
            let origin = reader.given.values["secret_key"].origin.clone();
            reader.problem(&origin, reason);
        }
        let providers = read_providers(reader);
        let mut hub = clients;
        hub.providers = providers;
        hub.registration = registration?;
        hub.setup_token_required = !development;
        hub.node_name = node_name;
        Some(Self {
            listen,
            listen_is_default,
            public_url,
            data_dir,
            store,
            media,
            s3,
            backup,
            networks: networks?,
            ilink_base_url,
            ilink_cdn_url,
            text_part_chars: text_part_chars?,
            sim_listen: sim_listen?,
            sim_url,
            egress_allow,
            trusted_proxies,
            proxy_header: proxy_header?,
            hub,
            admin,
            secret_key,
            log: log?,
            log_format,
            demo: demo?,
            migrate: migrate?,
            max_body: max_body?,
            max_connections: max_connections?,
            max_connections_per_address: max_connections_per_address?,
            rate_limits,
            metrics_listen,
            metrics_token: (!metrics_token.is_empty()).then(|| Secret::new(metrics_token)),
            otlp_endpoint,
            development,
            file: reader.given.file.clone(),
            effective: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
