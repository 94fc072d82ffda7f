//! The table of settings: one row each, from which flags, variables, keys of the file and help are made.

use std::fmt;

/// One setting. Its name is the key in `hub.toml`; the flag and the variable are the same in their spelling.
#[derive(Debug)]
pub struct Setting {
    /// Key in `hub.toml`, for example `data_dir`.
    pub name: &'static str,
    /// How the value looks in help.
    pub value: &'static str,
    /// One line for help and for the reader of `config check`.
    pub help: &'static str,
    /// A secret has no flag, may stand in a file of its own (`…_FILE`), and is masked.
    pub secret: bool,
}

impl Setting {
    /// `HUB_DATA_DIR`.
    pub fn variable(&self) -> String {
        format!("HUB_{}", self.name.to_uppercase())
    }

    /// `data-dir`, without the dashes in front.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

const fn plain(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, value, help, secret: false }
}

const fn secret(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, value, help, secret: true }
}

/// Every setting (`contract.md` §11), in the order of help and of `hub.toml`.
pub const SETTINGS: &[Setting] = &[
    plain("listen", "ADDR:PORT,…", "Where to listen; several with commas"),
    plain("public_url", "URL", "Where people reach this hub; https ends development mode"),
    plain("data_dir", "DIR", "Folder of the database and the key"),
    // Has a flag although it may hold a password: `hub-server --database-url` is part of the interface.
    plain("database_url", "URL", "postgres://… or sqlite://PATH; default: a file in the data folder"),
    plain("network", "sim|ilink|both", "Chat networks to offer"),
    plain("ilink_base_url", "URL", "Where logins to the chat network begin"),
    plain("ilink_cdn_url", "URL", "Where the chat network keeps media"),
    plain("sim_listen", "ADDR:PORT", "Control API of the built-in simulator"),
    plain("sim_url", "URL", "A simulator in another process, instead of the built-in one"),
    plain("egress_allow", "RULE,…", "Private targets webhooks may reach: ranges and host:port"),
    plain("trusted_proxies", "RANGE,…", "Proxies whose X-Forwarded-For is believed"),
    plain("registration", "open|invite|closed", "Who may register"),
    plain("admin_username", "NAME", "First admin, made when there is none"),
    secret("admin_password", "PASSWORD", "Password of that admin"),
    secret("secret_key", "KEY", "Seals secrets at rest: 32 bytes, as 64 hex digits or base64"),
    plain("metrics_listen", "ADDR:PORT", "A listener of its own for /metrics"),
    secret(
        "metrics_token",
        "TOKEN",
        "Bearer token that /metrics asks for; without metrics_listen, turns it on",
    ),
    plain("otlp_endpoint", "URL", "OpenTelemetry collector that gets traces, like http://localhost:4318"),
    plain("node_name", "NAME", "Name of this node in statuses and leases"),
    plain("log", "FILTER", "Log filter, for example info or warn,hub_core=debug"),
    plain("demo", "true|false", "Make a demo bot and channel on a fresh simulated hub"),
    plain("max_body", "BYTES", "Largest JSON body"),
    plain("max_connections", "COUNT", "HTTP connections at a time"),
    plain(
        "max_connections_per_address",
        "COUNT",
        "The same from one IPv4 address or IPv6 /64; not for proxies",
    ),
    plain("rate_default", "PER_MINUTE", "Requests per minute and credential"),
    plain("rate_auth_per_ip", "PER_MINUTE", "Sign-in attempts per minute and address"),
    plain("rate_auth_per_account", "PER_MINUTE", "Sign-in attempts per minute and account name"),
];

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A flag, for example `--listen`.
    Flag(String),
    /// A variable, for example `HUB_LISTEN`.
    Variable(String),
    /// A key of the configuration file.
    File(String),
    /// A key file or variable that is the operating system's, or nothing at all.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Variable(name) => f.write_str(name),
            Self::File(key) => write!(f, "{key} in the configuration file"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The name most like `unknown`, if any is alike enough to be meant.
pub fn nearest<'n>(unknown: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = |name: &str| strsim::jaro_winkler(unknown, name);
    let best = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.8).then_some(best)
}
