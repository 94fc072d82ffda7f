//! The configuration of the server: flag before `HUB_…` variable before systemd credential before `hub.toml`. All
//! problems are found in one pass and reported together.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, str::FromStr};

use hub_core::{
    config::HubConfig,
    data_dir,
    egress::{AllowRule, OutboundProxy},
    media::MediaConfig,
    network::ilink::TEXT_LIMITS,
    sandbox::{SandboxConfig, WorkerProgram},
    secret::Secret,
    store::StoreConfig,
};
use ipnet::IpNet;
use url::Url;

mod buckets;
mod home;
mod limits;
mod mask;
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
use mask::MASK;
pub use mask::mask_url;
pub use report::Report;
pub use schema::schema;
pub use setting::{Origin, SETTINGS, Setting};
pub use sources::Sources;
use sources::{Findings, Given};
pub use values::parse_duration;
use values::{
    check_admin, number_in, read_connections, read_direct, read_egress_rule, read_filter, read_key,
    read_listen, read_log, read_log_format, read_networks, read_proxy_header, read_public_url, read_range,
    read_url, reason,
};
pub use warnings::{Warning, is_this_machine};

/// The file that `config init` writes, which is also the manual: every setting with its default, commented out.
pub const DEFAULT_FILE: &str = include_str!("default.toml");

/// Chat networks of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Networks {
    /// The simulator.
    pub sim: bool,
    /// The real network.
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
    /// Whether `listen` is the default. Its IPv6 loopback address may be missing on the machine.
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
    /// Base URL of its CDN.
    pub ilink_cdn_url: Option<Url>,
    /// Maximum characters of one part of a long text.
    pub text_part_chars: usize,
    /// Control API of the built-in simulator.
    pub sim_listen: SocketAddr,
    /// A simulator in another process.
    pub sim_url: Option<Url>,
    /// Private targets of outbound requests.
    pub egress_allow: Vec<AllowRule>,
    /// Proxy of outbound requests.
    pub egress_proxy: Option<OutboundProxy>,
    /// Trusted proxies.
    pub trusted_proxies: Vec<IpNet>,
    /// Header with the client address.
    pub proxy_header: ProxyHeader,
    /// Settings of the domain.
    pub hub: HubConfig,
    /// Limits and confinement of plugins.
    pub sandbox: SandboxConfig,
    /// The first administrator.
    pub admin: Option<(String, Secret)>,
    /// The key from a setting. When absent, the file in the data folder is used.
    pub secret_key: Option<Secret>,
    /// Log filter.
    pub log: String,
    /// Format of the log. When absent, text at a terminal and otherwise JSON.
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
    /// Every setting with its value as text, secrets masked, and its origin.
    pub effective: Vec<(&'static str, String, Origin)>,
    /// Settings that are accepted and probably mistakes.
    pub warnings: Vec<Warning>,
}

/// All problems of a configuration.
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

/// Minimum length of `metrics_token` in bytes: the token is the only protection of the page.
const MIN_TOKEN: usize = 16;

/// Reads typed values from the given texts. It collects problems and the effective settings.
///
/// It is not built on a crate for layered configuration: those stop at the first invalid value and do not know the
/// line of a key, while here every problem is reported at once, with its origin.
struct Reader {
    given: Given,
    /// From `default.toml`; the defaults that depend on other settings are added.
    defaults: BTreeMap<String, String>,
    findings: Findings,
    effective: Vec<(&'static str, String, Origin)>,
}

impl Reader {
    /// Returns a setting as text, empty if there is neither a value nor a default.
    fn text(&mut self, name: &'static str) -> String {
        let origin = self.origin(name);
        let text = match self.given.values.get(name) {
            Some(found) => found.text.expose().to_owned(),
            None => self.defaults.get(name).cloned().unwrap_or_default(),
        };
        let shown = if origin == Origin::Default { text.clone() } else { shown(name, &text) };
        self.effective.push((name, shown, origin));
        text
    }

    fn secret(&mut self, name: &'static str) -> Option<Secret> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(Secret::new)
    }

    fn origin(&self, name: &str) -> Origin {
        self.given.values.get(name).map_or(Origin::Default, |found| found.origin.clone())
    }

    fn problem(&mut self, name: &str, reason: impl fmt::Display) {
        let origin = self.origin(name);
        self.findings.problem(format!("{origin}: {reason}"));
    }

    /// Parses an optional setting. A value that `read` rejects is a problem, and counts as absent.
    fn optional<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(name);
        if text.is_empty() {
            return None;
        }
        read(&text).map_err(|reason| self.problem(name, format!("{:?} {reason}", shown(name, &text)))).ok()
    }

    /// Parses a setting with a default, which also replaces a rejected value.
    fn value<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Result<T, String>) -> T {
        let value = self.optional(name, &read);
        value.unwrap_or_else(|| read(&self.defaults[name]).expect("the defaults are valid"))
    }

    fn number<T: FromStr>(&mut self, name: &'static str, rule: &str) -> T {
        self.value(name, |text| text.parse().map_err(|_| format!("must be {rule}")))
    }

    fn url(&mut self, name: &'static str) -> Option<Url> {
        self.optional(name, read_url)
    }

    fn list<T>(&mut self, name: &'static str, read: impl Fn(&str) -> Result<Vec<T>, String>) -> Vec<T> {
        let text = self.text(name);
        let mut items = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match read(part) {
                Ok(read) => items.extend(read),
                Err(reason) => self.problem(name, format!("{:?} {reason}", shown(name, part))),
            }
        }
        items
    }
}

/// Returns a given value as it may be displayed.
fn shown(name: &str, text: &str) -> String {
    let is_secret = SETTINGS.iter().any(|setting| setting.name == name && setting.secret);
    if is_secret { MASK.to_owned() } else { mask_url(text) }
}

impl Config {
    /// Reads all sources.
    ///
    /// # Errors
    /// Every problem of the configuration at once.
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        let given = sources::gather(sources, &mut findings);
        let mut reader = Reader { given, defaults: sources::defaults(), findings, effective: Vec::new() };
        let mut config = Self::read(&mut reader, &sources.env);
        let Findings { problems, mut warnings } = reader.findings;
        if !problems.is_empty() {
            return Err(Problems { problems, warnings });
        }
        warnings.extend(warnings::find(&config));
        (config.effective, config.warnings) = (reader.effective, warnings);
        Ok(config)
    }

    fn read(reader: &mut Reader, env: &BTreeMap<String, String>) -> Self {
        let listen = reader.list("listen", read_listen);
        let public_url = reader.optional("public_url", read_public_url);
        let development = listen.iter().all(|address| address.ip().is_loopback())
            && public_url.as_ref().is_none_or(|url| url.scheme() != "https");
        let network = if development { "sim" } else { "ilink" };
        let data_dir = data_dir::default_path(|name| env.get(name).cloned()).display().to_string();
        let filter = if development { "optional" } else { "required" };
        let dynamic =
            [("network", network.to_owned()), ("data_dir", data_dir), ("sandbox_filter", filter.to_owned())];
        reader.defaults.extend(dynamic.map(|(name, default)| (name.to_owned(), default)));
        let data_dir = reader.value("data_dir", data_dir::path);
        let store = reader
            .optional("database_url", |text| StoreConfig::from_url(&text.into()).map_err(reason))
            .unwrap_or_else(|| StoreConfig::Sqlite(data_dir::database(&data_dir)));
        let egress_proxy = read_egress_proxy(reader);
        let s3 = S3Service::read(reader, egress_proxy.clone());
        let media = reader.optional("media_url", |text| s3.media(text));
        Self {
            listen,
            listen_is_default: reader.origin("listen") == Origin::Default,
            public_url,
            media: media.unwrap_or_else(|| MediaConfig::Folder(data_dir.join("media"))),
            data_dir,
            backup: BackupSettings::read(reader, &s3, &store),
            store,
            s3,
            networks: reader.value("network", read_networks),
            ilink_base_url: reader.url("ilink_base_url"),
            ilink_cdn_url: reader.url("ilink_cdn_url"),
            text_part_chars: reader.value("text_part_chars", number_in(TEXT_LIMITS[0]..=TEXT_LIMITS[1])),
            sim_listen: reader.number("sim_listen", "an address with a port"),
            sim_url: reader.url("sim_url"),
            egress_allow: reader.list("egress_allow", read_egress_rule),
            egress_proxy,
            trusted_proxies: reader.list("trusted_proxies", read_range),
            proxy_header: reader.value("proxy_header", read_proxy_header),
            hub: limits::hub(reader, development),
            sandbox: SandboxConfig {
                filter: reader.value("sandbox_filter", read_filter),
                ..SandboxConfig::of(WorkerProgram::SelfExe)
            },
            admin: read_admin(reader),
            secret_key: read_secret_key(reader),
            log: reader.value("log", read_log),
            log_format: reader.optional("log_format", read_log_format),
            demo: reader.number("demo", "true or false"),
            migrate: reader.number("migrate", "true or false"),
            max_body: reader.number("max_body", "a number of bytes"),
            max_connections: reader.value("max_connections", read_connections),
            max_connections_per_address: reader.value("max_connections_per_address", read_connections),
            rate_limits: limits::rates(reader),
            metrics_listen: reader.optional("metrics_listen", |text| {
                text.parse().map_err(|_| "must be an address with a port, like 127.0.0.1:9802".to_owned())
            }),
            metrics_token: read_metrics_token(reader),
            otlp_endpoint: read_otlp_endpoint(reader),
            development,
            file: reader.given.file.clone(),
            effective: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

fn read_secret_key(reader: &mut Reader) -> Option<Secret> {
    let key = reader.secret("secret_key")?;
    if let Err(reason) = read_key(&key) {
        reader.problem("secret_key", reason);
    }
    Some(key)
}

fn read_metrics_token(reader: &mut Reader) -> Option<Secret> {
    let token = reader.secret("metrics_token")?;
    if token.expose().len() < MIN_TOKEN {
        reader.problem("metrics_token", format!("must have at least {MIN_TOKEN} characters"));
    }
    Some(token)
}

fn read_otlp_endpoint(reader: &mut Reader) -> Option<Url> {
    let endpoint = reader.url("otlp_endpoint")?;
    if !cfg!(feature = "otel") {
        let reason = "this server was built without OpenTelemetry; build it with --features otel";
        reader.problem("otlp_endpoint", reason);
    }
    Some(endpoint)
}

fn read_egress_proxy(reader: &mut Reader) -> Option<OutboundProxy> {
    let except = reader.list("egress_proxy_except", read_direct);
    let resolves = reader.number("egress_proxy_resolves", "true or false");
    reader.optional("egress_proxy", |url| {
        OutboundProxy::new(&url.into(), except.clone(), resolves).map_err(reason)
    })
}

fn read_admin(reader: &mut Reader) -> Option<(String, Secret)> {
    let (username, password) = (reader.text("admin_username"), reader.secret("admin_password"));
    match (username.is_empty(), password) {
        (false, Some(password)) => {
            for (setting, reason) in check_admin(&username, &password) {
                reader.problem(setting, reason);
            }
            return Some((username, password));
        }
        (false, None) => {
            reader.problem("admin_username", "needs admin_password or admin_password_file too");
        }
        (true, Some(_)) => reader.problem("admin_password", "needs admin_username too"),
        (true, None) => {}
    }
    None
}

#[cfg(test)]
mod tests;
