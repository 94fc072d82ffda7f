//! The settings of a channel's sinks: what is stored, what an update may say, and what makes it acceptable. Secrets
//! are never part of what is stored here: the store keeps them sealed, apart.

use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use crate::{
    error::{Problems, Result},
    id::{ChannelId, InstallationId},
    words::words,
};

mod ai;
mod ilink;
mod shown;
mod webhook;

pub use crate::input::Change;
pub use ai::{AiSettings, AiSource, AiUpdate};
pub use ilink::IlinkSettings;
pub use shown::{AiSink, WebhookAuth, WebhookSink};
pub use webhook::{
    AuthMethod, AuthSettings, AuthUpdate, DEFAULT_AUTH_HEADER, DEFAULT_SCHEDULE_S, Ordering, RetrySettings,
    WebhookSettings, WebhookUpdate,
};
pub(crate) use webhook::{MAX_RETRIES, MAX_WAIT_S};

words! {
    /// A sink of a channel that gets deliveries. A kind that a channel may have several of carries the id of the one.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum SinkId {
        /// The webhook.
        Webhook = "webhook",
        /// The AI sink.
        Ai = "ai",
    }
}

words! {
    /// The kind of receiver of a delivery.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum SinkKind {
        /// The webhook of a channel.
        Webhook = "webhook",
        /// The AI sink of a channel.
        Ai = "ai",
        /// An app that is installed on the bot.
        App = "app",
    }
}

impl From<SinkId> for SinkKind {
    fn from(sink: SinkId) -> Self {
        match sink {
            SinkId::Webhook => Self::Webhook,
            SinkId::Ai => Self::Ai,
        }
    }
}

impl SinkKind {
    /// The sink of a channel; `None` for an app.
    pub const fn of_channel(self) -> Option<SinkId> {
        match self {
            Self::Webhook => Some(SinkId::Webhook),
            Self::Ai => Some(SinkId::Ai),
            Self::App => None,
        }
    }
}

/// One sink of a bot. Each has a queue of its own, so that none waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SinkKey {
    /// A sink of a channel.
    Channel(ChannelId, SinkId),
    /// An app on the bot.
    App(InstallationId),
}

impl SinkKey {
    /// The channel, or the installation.
    pub const fn owner(self) -> (Option<ChannelId>, Option<InstallationId>) {
        match self {
            Self::Channel(channel, _) => (Some(channel), None),
            Self::App(installation) => (None, Some(installation)),
        }
    }

    /// The kind of the sink.
    pub fn kind(self) -> SinkKind {
        match self {
            Self::Channel(_, sink) => sink.into(),
            Self::App(_) => SinkKind::App,
        }
    }
}

impl Serialize for SinkKey {
    /// The form that statements compare with: `ch_…/webhook`, or `ins_…`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Channel(channel, sink) => serializer.collect_str(&format_args!("{channel}/{sink}")),
            Self::App(installation) => serializer.collect_str(installation),
        }
    }
}

/// The WebSocket sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "WebSocketSink", checked, set("SetWebSocket", "A new configuration of the WebSocket sink."), example = {
    "allowed_origins": ["https://app.example"],
    "enabled": true,
    "include_outbound": false,
})]
pub struct WebSocketSettings {
    /// Whether clients may connect and receive messages.
    pub enabled: bool,
    /// Whether clients also receive what the bot sends.
    pub include_outbound: bool,
    /// Origins of pages, in addition to the hub's own, from which a browser may connect; `*` for any.
    #[api(items = ..=MAX_ORIGINS, chars = 1..=256)]
    pub allowed_origins: Vec<String>,
}

impl Default for WebSocketSettings {
    /// A fresh channel has this sink on.
    fn default() -> Self {
        Self { enabled: true, include_outbound: false, allowed_origins: Vec::new() }
    }
}

/// Most origins of a channel.
const MAX_ORIGINS: usize = 20;

impl WebSocketSettings {
    /// Whether a page of this origin may connect.
    pub fn allows(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == "*" || allowed == origin)
    }

    /// Checks every origin.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming each that is none.
    pub fn validate(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        for (place, origin) in self.allowed_origins.iter().enumerate().take(MAX_ORIGINS) {
            // As browsers send it: scheme and host in lower case, no default port, nothing behind.
            let parsed = Url::parse(origin).map(|url| url.origin());
            let is_origin =
                parsed.is_ok_and(|found| found.is_tuple() && found.ascii_serialization() == *origin);
            let reason = "must be an origin such as https://app.example, or *";
            problems.check(is_origin || origin == "*", format!("allowed_origins.{place}"), reason);
        }
        problems.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn websocket_settings_have_defaults_and_no_other_fields() {
        let fresh: WebSocketSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(fresh, WebSocketSettings::default());
        assert!(serde_json::from_str::<WebSocketSettings>(r#"{"on":true}"#).is_err());
    }
}
