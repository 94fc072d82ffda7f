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
    /// A secret has no flag and is masked.
    pub secret: bool,
    /// Whether it may stand in a file of its own (`…_FILE`) or in a systemd credential of its name: secrets, and what
    /// may hold one.
    pub in_file: bool,
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
    Setting { name, value, help, secret: false, in_file: false }
}

const fn secret(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, value, help, secret: true, in_file: true }
}

/// Has a flag although it may hold a secret.
const fn fileable(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, value, help, secret: false, in_file: true }
}

/// Every setting (`contract.md` §11), in the order of help and of `hub.toml`.
pub const SETTINGS: &[Setting] = &[
    plain("listen", "ADDR:PORT,…", "Where to listen; several with commas"),
    plain("public_url", "URL", "Where people reach this hub; https ends development mode"),
    plain("data_dir", "DIR", "Folder of the database and the key"),
    // `hub-server --database-url` is part of the interface; a URL with a password belongs into a file.
    fileable("database_url", "URL", "postgres://… or sqlite://PATH; default: a file in the data folder"),
    plain(
        "media_url",
        "URL",
        "Where files lie: file:///FOLDER or s3://BUCKET/PREFIX; default: in the data folder",
    ),
    plain("media_s3_endpoint", "URL", "Address of the S3 service, when it is not AWS"),
    plain("media_s3_region", "NAME", "Region of the bucket"),
    plain("media_s3_access_key_id", "ID", "Who the hub is there"),
    secret("media_s3_secret_access_key", "KEY", "And the proof"),
    plain(
        "backup_to",
        "DIR|URL",
        "Where nightly backups go: a folder, or s3://BUCKET/PREFIX; default: none are made",
    ),
    plain("backup_at", "HH:MM", "When they are made, in UTC"),
    plain("backup_keep", "COUNT", "How many of them are kept"),
    secret("backup_passphrase", "PASSPHRASE", "What they are sealed with"),
    plain("network", "sim|ilink|both", "Chat networks to offer"),
    plain("ilink_base_url", "URL", "Where logins to the chat network begin"),
    plain("ilink_cdn_url", "URL", "Where the chat network keeps media"),
    plain("text_part_chars", "COUNT", "Longest part of a text that is sent in parts; 200 to 4000"),
    plain("sim_listen", "ADDR:PORT", "Control API of the built-in simulator"),
    plain("sim_url", "URL", "A simulator in another process, instead of the built-in one"),
    plain("egress_allow", "RULE,…", "Private targets webhooks may reach: ranges and host:port"),
    plain("trusted_proxies", "RANGE,…", "Proxies that are believed when they say whom they saw"),
    plain("proxy_header", "x-forwarded-for|forwarded", "Header in which they say it; the other is not read"),
    plain("registration", "open|invite|closed", "Who may register"),
    plain("admin_username", "NAME", "First admin, made when there is none"),
    secret("admin_password", "PASSWORD", "Password of that admin"),
    plain("github_client_id", "ID", "Sign-in with GitHub: the id of your OAuth app there"),
    secret("github_client_secret", "SECRET", "Its secret"),
    plain(
        "github_authorize_url",
        "URL",
        "Another address than GitHub's, of an enterprise server for example",
    ),
    plain("github_token_url", "URL", "The same for tokens"),
    plain("github_profile_url", "URL", "The same for profiles"),
    plain("linuxdo_client_id", "ID", "Sign-in with LINUX DO: the id of your app there"),
    secret("linuxdo_client_secret", "SECRET", "Its secret"),
    plain("linuxdo_authorize_url", "URL", "Another address than LINUX DO's"),
    plain("linuxdo_token_url", "URL", "The same for tokens"),
    plain("linuxdo_profile_url", "URL", "The same for profiles"),
    plain("oidc_issuer", "URL", "Sign-in with an OpenID Connect issuer, exactly as it writes itself"),
    plain("oidc_client_id", "ID", "The hub's id there"),
    secret("oidc_client_secret", "SECRET", "Its secret; none for a public client"),
    plain("oidc_name", "NAME", "Its name in paths: /api/auth/callback/NAME"),
    plain("oidc_display_name", "NAME", "Its name on the button"),
    plain("oidc_scopes", "SCOPES", "What the hub asks to see, with spaces"),
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
    plain(
        "log_format",
        "text|json",
        "Form of the log; default: text at a terminal, else a JSON object per line",
    ),
    plain("demo", "true|false", "Make a demo bot and channel on a fresh simulated hub"),
    plain("migrate", "true|false", "Bring the schema of the database up to date at the start"),
    plain("max_body", "BYTES", "Largest JSON body"),
    plain("max_connections", "COUNT", "HTTP connections at a time"),
    plain(
        "max_connections_per_address",
        "COUNT",
        "The same from one IPv4 address or IPv6 /64; not for proxies",
    ),
    plain("max_sockets", "COUNT", "WebSockets at a time, of channel clients and of apps"),
    plain("max_sockets_per_channel", "COUNT", "The same on one channel"),
    plain("max_sockets_per_user", "COUNT", "The same of one user"),
    plain("max_polls", "COUNT", "Long polls waiting at a time"),
    plain("max_polls_per_channel", "COUNT", "The same on one channel"),
    plain(
        "sends_per_five_minutes",
        "COUNT",
        "Messages to one person within five minutes; further ones are queued; 0 for no limit",
    ),
    plain("rate_default", "PER_MINUTE", "Requests per minute and credential"),
    plain("rate_sends", "PER_MINUTE", "Sends and typing signs per minute and channel key"),
    plain("rate_auth_per_ip", "PER_MINUTE", "Sign-in attempts per minute and address"),
    plain("rate_auth_per_account", "PER_MINUTE", "Sign-in attempts per minute and account name"),
    plain("rate_debug", "PER_MINUTE", "Debug runs of plugins per minute and user"),
    plain("rate_bad_credentials", "PER_MINUTE", "Unknown credentials per minute and address"),
];

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A flag, for example `--listen`.
    Flag(String),
    /// A variable, for example `HUB_LISTEN`.
    Variable(String),
    /// A systemd credential, for example `secret_key`.
    Credential(&'static str),
    /// A key of the configuration file, and the line it is in.
    File(String, usize),
    /// A key file or variable that is the operating system's, or nothing at all.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Variable(name) => f.write_str(name),
            Self::Credential(name) => write!(f, "credential {name}"),
            Self::File(key, line) => write!(f, "{key} in line {line} of the configuration file"),
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
