//! Settings of the domain: plain values with defaults. This crate reads no file and no environment.

#[cfg(feature = "providers")]
pub(crate) mod provider;

use std::time::Duration;

use url::Url;

use crate::network::{Network, WindowRules};

#[cfg(feature = "providers")]
pub use provider::{OAuthEndpoints, Provider, ProviderKind};

/// Registration mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registration {
    /// Everyone.
    #[default]
    Open,
    /// Users with an invitation.
    Invite,
    /// No one.
    Closed,
}

/// Settings of a hub; every limit of the domain is one of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HubConfig {
    /// Registration mode.
    pub registration: Registration,
    /// Whether the first user needs the setup token. Set when the server listens beyond loopback.
    pub setup_token_required: bool,
    /// Public URL of the hub. Passkeys are scoped to its host, providers redirect to it, QR codes and links to files
    /// contain it. It has a path when a reverse proxy serves the hub below one.
    pub public_url: Url,
    /// External providers to sign in with.
    #[cfg(feature = "providers")]
    pub providers: Vec<Provider>,
    /// Time without a request after which a session expires.
    pub session_idle: Duration,
    /// Time after which a session expires in any case.
    pub session_lifetime: Duration,
    /// Password hashes computed at the same time; beyond that, and 64 waiting, logins get `RATE_LIMITED`.
    pub password_hashers: usize,
    /// Maximum number of bots per user; further logins are rejected.
    pub max_bots_per_user: u32,
    /// Maximum number of channels per bot.
    pub max_channels: u32,
    /// Longest text of a message to send, in bytes.
    pub max_text: usize,
    /// Retention of traces and of the logs of apps. A trace is deleted with its message at the latest.
    pub trace_retention: Duration,
    /// Retention of the audit log.
    pub audit_retention: Duration,
    /// Retention of messages with their deliveries, traces and files.
    pub message_retention: Duration,
    /// Lifetime of idempotency keys and of the responses they return.
    pub idempotency_lifetime: Duration,
    /// Name of this node in bot statuses and leases; its id if empty.
    pub node_name: String,
    /// Time after which a node that stops renewing its leases loses them. Leases are renewed three times as often.
    pub lease: Duration,
    /// Deliveries in memory per kind of sink; beyond that the backlog stays in the store.
    pub max_jobs: usize,
    /// Webhook requests in flight, over all channels.
    pub max_in_flight: usize,
    /// Messages being answered by models, over all channels.
    pub max_ai_in_flight: usize,
    /// Time after which an outbox item that could not be sent is abandoned.
    pub outbox_lifetime: Duration,
    /// Maximum number of open outbox items per person; further sends are rejected.
    pub max_outbox_per_peer: u32,
    /// Messages to one person within five minutes; further ones are queued, and those of iLink programs are refused. 0:
    /// the limit of the network's [rules](WindowRules), if it has one.
    pub sends_per_five_minutes: u32,
    /// Time of continuous failure after which a webhook is disabled.
    pub disable_failing_after: Duration,
    /// Time for a poll that the network holds to end by itself at shutdown before it is cut: a cut poll can lose the
    /// response that the network was sending. At most [`drain`](Self::drain).
    pub poll_grace: Duration,
    /// WebSockets of channel clients and of apps on this node; further ones get `RATE_LIMITED`.
    pub max_sockets: usize,
    /// The same on one channel.
    pub max_sockets_per_channel: usize,
    /// The same on all channels of one user.
    pub max_sockets_per_user: usize,
    /// Long polls that wait on this node.
    pub max_polls: usize,
    /// The same on one channel.
    pub max_polls_per_channel: usize,
    /// Time for which `shutdown` waits for work in flight.
    pub drain: Duration,
    /// Limits on files.
    pub media: MediaLimits,
}

impl HubConfig {
    /// Returns the sending rules of a network, with the limit of these settings.
    pub fn window_rules(&self, network: &dyn Network) -> WindowRules {
        let mut rules = network.window_rules();
        if self.sends_per_five_minutes > 0 {
            rules.burst = Some(self.sends_per_five_minutes);
        }
        rules
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl HubConfig {
    /// Returns the public URL of a path of the hub, which begins with `/`.
    pub fn address(&self, path: &str) -> Url {
        let mut url = self.public_url.clone();
        url.set_path(&format!("{}{path}", self.public_url.path().trim_end_matches('/')));
        url.set_query(None);
        url.set_fragment(None);
        url
    }
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            registration: Registration::Open,
            setup_token_required: false,
            public_url: Url::parse("http://localhost:9800").expect("it is a URL"),
            #[cfg(feature = "providers")]
            providers: Vec::new(),
            session_idle: 7 * DAY,
            session_lifetime: 30 * DAY,
            password_hashers: 2,
            max_bots_per_user: 20,
            max_channels: 50,
            max_text: 64 * 1024,
            trace_retention: 7 * DAY,
            audit_retention: 365 * DAY,
            message_retention: 30 * DAY,
            idempotency_lifetime: DAY,
            node_name: String::new(),
            lease: Duration::from_secs(12),
            max_jobs: 20_000,
            max_in_flight: 128,
            max_ai_in_flight: 32,
            outbox_lifetime: DAY,
            max_outbox_per_peer: 200,
            sends_per_five_minutes: 0,
            disable_failing_after: 5 * DAY,
            poll_grace: Duration::from_secs(4),
            max_sockets: 5_000,
            max_sockets_per_channel: 5,
            max_sockets_per_user: 50,
            max_polls: 2_000,
            max_polls_per_channel: 2,
            drain: Duration::from_secs(10),
            media: MediaLimits::default(),
        }
    }
}

/// Limits on files.
#[derive(Debug, Clone)]
pub struct MediaLimits {
    /// Largest file that is fetched from a network, in bytes.
    pub max_inbound: usize,
    /// Largest file that is accepted for sending, in bytes.
    pub max_outbound: usize,
    /// Bytes of all files of one user.
    pub max_per_owner: u64,
    /// Bytes of files in memory while they are fetched, encrypted or uploaded; further ones wait.
    pub max_in_memory: usize,
    /// Maximum wait of a webhook for the files of a message that has no text.
    pub webhook_wait: Duration,
    /// Minimum validity of a link to a file.
    pub link_lifetime: Duration,
    /// Validity of an upload link.
    pub upload_lifetime: Duration,
    /// Time after which an uploaded file that was not sent is deleted.
    pub unsent_lifetime: Duration,
}

impl Default for MediaLimits {
    fn default() -> Self {
        Self {
            max_inbound: 100 << 20,
            max_outbound: 50 << 20,
            max_per_owner: 10 << 30,
            max_in_memory: 256 << 20,
            webhook_wait: Duration::from_secs(5),
            link_lifetime: Duration::from_secs(24 * 3600),
            upload_lifetime: Duration::from_secs(15 * 60),
            unsent_lifetime: Duration::from_secs(24 * 3600),
        }
    }
}
