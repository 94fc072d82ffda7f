//! The table of settings. Flags, variables, keys of the file and help are derived from its rows.

use std::fmt;

/// A setting. Its name is the key in `hub.toml`, from which flag and variable are derived.
#[derive(Debug)]
pub struct Setting {
    /// Key in `hub.toml`, for example `data_dir`.
    pub name: &'static str,
    /// Placeholder of the value in help.
    pub value: &'static str,
    /// One line for help and for the reader of `config check`.
    pub help: &'static str,
    /// Whether the value is secret: it has no flag and is masked.
    pub secret: bool,
    /// Whether the value may be in a separate file (`…_FILE`) or in a systemd credential of its name: secrets, and
    /// values that may contain one.
    pub in_file: bool,
}

impl Setting {
    /// `HUB_DATA_DIR`.
    pub fn variable(&self) -> String {
        crate::advice::variable_of(self.name)
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

/// A setting with a flag although it may contain a secret.
const fn fileable(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, value, help, secret: false, in_file: true }
}

/// Every setting, in the order of help and of `hub.toml`.
pub const SETTINGS: &[Setting] = &[
    plain("listen", "ADDR:PORT,…", "Addresses to listen on, separated by commas"),
    plain(
        "public_url",
        "URL",
        "URL at which users reach the hub, with a path if a proxy strips one; https ends development mode",
    ),
    plain("data_dir", "DIR", "Directory of the database and the key"),
    // The flag `--database-url` is part of the interface; a URL with a password belongs in a file.
    fileable("database_url", "URL", "postgres://… or sqlite://PATH; default: a file in the data directory"),
    plain(
        "media_url",
        "URL",
        "Storage of files: file:///FOLDER or s3://BUCKET/PREFIX; default: the data directory",
    ),
    plain("media_s3_endpoint", "URL", "Endpoint of the S3 service if it is not AWS"),
    plain("media_s3_region", "NAME", "Region of the bucket"),
    plain("media_s3_access_key_id", "ID", "S3 access key id"),
    secret("media_s3_secret_access_key", "KEY", "S3 secret access key"),
    plain(
        "backup_to",
        "DIR|URL",
        "Target of nightly backups: a directory or s3://BUCKET/PREFIX; default: no backups",
    ),
    plain("backup_at", "HH:MM", "Time of the nightly backup, in UTC"),
    plain("backup_keep", "COUNT", "Number of nightly backups to keep"),
    secret("backup_passphrase", "PASSPHRASE", "Passphrase that encrypts backups"),
    plain("network", "sim|ilink|both", "Chat networks to offer"),
    plain("ilink_base_url", "URL", "Base URL for logins to the chat network"),
    plain("ilink_cdn_url", "URL", "CDN of the chat network"),
    plain("text_part_chars", "COUNT", "Maximum characters per message; longer texts are split; 200 to 4000"),
    plain("sim_listen", "ADDR:PORT", "Address of the control API of the built-in simulator"),
    plain("sim_url", "URL", "Simulator in another process, instead of the built-in one"),
    plain("egress_allow", "RULE,…", "Private targets that outbound requests may reach: ranges and host:port"),
    fileable(
        "egress_proxy",
        "URL",
        "Proxy of outbound requests: http://, https:// or socks5://, with user and password if it needs them",
    ),
    plain(
        "egress_proxy_except",
        "HOST,…",
        "Domains, addresses and ranges that are reached without the proxy",
    ),
    plain("egress_proxy_resolves", "true|false", "Leave the resolution of names to the proxy"),
    plain(
        "sandbox_filter",
        "required|optional",
        "Filter of the system calls of plugins: without it no plugin runs, or they do; \
         default: optional in development mode",
    ),
    plain("trusted_proxies", "RANGE,…", "Trusted reverse proxies, which report the client address"),
    plain(
        "proxy_header",
        "x-forwarded-for|forwarded",
        "Header with the client address; the other one is ignored",
    ),
    plain("message_retention", "TIME", "Retention of messages with their traces and files; 1h to 3650d"),
    plain("trace_retention", "TIME", "Retention of traces and of the logs of apps; 1h to 3650d"),
    plain("audit_retention", "TIME", "Retention of the audit log; 1d to 3650d"),
    plain("idempotency_lifetime", "TIME", "Lifetime of idempotency keys; 1m to 30d"),
    plain("outbox_lifetime", "TIME", "Time after which a message that could not be sent expires; 1m to 30d"),
    plain(
        "disable_failing_after",
        "TIME",
        "Time after which a webhook that fails every delivery is switched off; 1h to 365d",
    ),
    plain("webhook_wait", "TIME", "Maximum wait of a webhook for the files of a message; 0s to 1m"),
    plain("poll_grace", "TIME", "Maximum wait for polls of the chat network at shutdown; 0s to 1m"),
    plain("drain", "TIME", "Maximum wait for work in flight at shutdown; 0s to 5m"),
    plain("registration", "open|invite|closed", "Who may register"),
    plain("admin_username", "NAME", "First administrator, created if there is none"),
    secret("admin_password", "PASSWORD", "Password of the first administrator"),
    plain("github_client_id", "ID", "Sign-in with GitHub: client id of your OAuth app"),
    secret("github_client_secret", "SECRET", "Client secret of your GitHub OAuth app"),
    plain(
        "github_authorize_url",
        "URL",
        "Authorization URL if it is not GitHub's, for example of an enterprise server",
    ),
    plain("github_token_url", "URL", "Token URL if it is not GitHub's"),
    plain("github_profile_url", "URL", "Profile URL if it is not GitHub's"),
    plain("linuxdo_client_id", "ID", "Sign-in with LINUX DO: client id of your app"),
    secret("linuxdo_client_secret", "SECRET", "Client secret of your LINUX DO app"),
    plain("linuxdo_authorize_url", "URL", "Authorization URL if it is not LINUX DO's"),
    plain("linuxdo_token_url", "URL", "Token URL if it is not LINUX DO's"),
    plain("linuxdo_profile_url", "URL", "Profile URL if it is not LINUX DO's"),
    plain("oidc_issuer", "URL", "Sign-in with OpenID Connect: issuer, exactly as in its metadata"),
    plain("oidc_client_id", "ID", "Client id at the issuer"),
    secret("oidc_client_secret", "SECRET", "Client secret at the issuer; none for a public client"),
    plain("oidc_name", "NAME", "Name of the issuer in paths: /api/auth/callback/NAME"),
    plain("oidc_display_name", "NAME", "Name of the issuer on the sign-in button"),
    plain("oidc_scopes", "SCOPES", "Requested scopes, separated by spaces"),
    secret("secret_key", "KEY", "Key that encrypts secrets at rest: 32 bytes, as 64 hex digits or base64"),
    plain("metrics_listen", "ADDR:PORT", "Separate listener for /metrics"),
    secret(
        "metrics_token",
        "TOKEN",
        "Bearer token that /metrics requires; without metrics_listen, enables /metrics",
    ),
    plain("otlp_endpoint", "URL", "OpenTelemetry collector for traces, for example http://localhost:4318"),
    plain("node_name", "NAME", "Name of this node in statuses and leases"),
    plain("log", "FILTER", "Log filter, for example info or warn,hub_core=debug"),
    plain(
        "log_format",
        "text|json",
        "Format of the log; default: text at a terminal, otherwise a JSON object per line",
    ),
    plain("demo", "true|false", "Create a demo bot and channel on a new simulated hub"),
    plain("migrate", "true|false", "Migrate the database schema at startup"),
    plain("max_body", "BYTES", "Maximum size of a JSON body"),
    plain("max_connections", "COUNT", "Maximum open HTTP connections"),
    plain(
        "max_connections_per_address",
        "COUNT",
        "Maximum open HTTP connections per IPv4 address or IPv6 /64, except trusted proxies",
    ),
    plain("max_sockets", "COUNT", "Maximum open WebSockets, of channel clients and apps"),
    plain("max_sockets_per_channel", "COUNT", "Maximum open WebSockets per channel"),
    plain("max_sockets_per_user", "COUNT", "Maximum open WebSockets per user"),
    plain("max_polls", "COUNT", "Maximum waiting long polls"),
    plain("max_polls_per_channel", "COUNT", "Maximum waiting long polls per channel"),
    plain("max_bots_per_user", "COUNT", "Maximum bots per user"),
    plain("max_text", "BYTES", "Maximum text of a message to send; 1000 to 1048576"),
    plain("max_outbox_per_peer", "COUNT", "Maximum unsent parts of messages per recipient; 1 to 10000"),
    plain("max_jobs", "COUNT", "Maximum deliveries in memory per kind of sink; 100 to 1000000"),
    plain("max_in_flight", "COUNT", "Maximum webhook requests in flight; 1 to 10000"),
    plain("max_ai_in_flight", "COUNT", "Maximum messages in progress at models; 1 to 1000"),
    plain(
        "sends_per_five_minutes",
        "COUNT",
        "Maximum messages per recipient and five minutes; further ones are queued; 0: the network decides",
    ),
    plain("rate_default", "PER_MINUTE", "Requests per minute and valid credential, otherwise per address"),
    plain("rate_sends", "PER_MINUTE", "Sends and typing indicators per minute and channel key"),
    plain("rate_auth_per_ip", "PER_MINUTE", "Sign-in attempts per minute and address"),
    plain("rate_auth_per_account", "PER_MINUTE", "Sign-in attempts per minute and account name"),
    plain("rate_debug", "PER_MINUTE", "Debug runs of plugins per minute and user"),
    plain("rate_bad_credentials", "PER_MINUTE", "Unknown credentials per minute and address"),
];

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A flag, for example `--listen`.
    Flag(String),
    /// A variable, for example `HUB_LISTEN`.
    Variable(String),
    /// A systemd credential, for example `secret_key`.
    Credential(&'static str),
    /// A key of the configuration file, and its line.
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
