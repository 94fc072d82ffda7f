//! The settings of a channel's sinks: what is stored, what an update may say, and what makes it acceptable
//! (`contract.md` §5). Secrets are never part of what is stored here: the store keeps them sealed, apart.

use serde::{Deserialize, Deserializer, Serialize};

mod ai;
mod webhook;

pub use ai::{AiSettings, AiSource, AiUpdate};
pub(crate) use webhook::MAX_RETRIES;
pub use webhook::{
    AuthMethod, AuthSettings, AuthUpdate, DEFAULT_AUTH_HEADER, DEFAULT_SCHEDULE_S, Ordering, RetrySettings,
    WebhookSettings, WebhookUpdate,
};

/// What an update does to a value that is not shown: left out keeps it, `null` clears it, a value sets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The field was left out.
    #[default]
    Keep,
    /// The field was `null`.
    Clear,
    /// The field had a value.
    Set(T),
}

impl<T> Change<T> {
    /// The value after the change.
    pub fn apply<'a>(&'a self, stored: Option<&'a T>) -> Option<&'a T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    /// For a field with `#[serde(default)]`, which is what tells "left out" from `null`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

/// The WebSocket sink: as stored, and as an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketSettings {
    /// Whether clients may connect and are sent messages.
    pub enabled: bool,
    /// Whether what the bot sends is shown to the clients too.
    pub include_outbound: bool,
}

impl Default for WebSocketSettings {
    /// A fresh channel has this sink on.
    fn default() -> Self {
        Self { enabled: true, include_outbound: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        secret: Change<Secret>,
    }

    #[test]
    fn left_out_null_and_value_differ() {
        let stored = Secret::from("old");
        for (text, change, after) in [
            ("{}", Change::Keep, Some("old")),
            (r#"{"secret":null}"#, Change::Clear, None),
            (r#"{"secret":"new"}"#, Change::Set(Secret::from("new")), Some("new")),
        ] {
            let body: Body = serde_json::from_str(text).unwrap();
            assert_eq!(body.secret, change);
            assert_eq!(body.secret.apply(Some(&stored)).map(Secret::expose), after);
        }
        assert!(serde_json::from_str::<Body>(r#"{"secret":1}"#).is_err());
    }

    #[test]
    fn websocket_settings_have_defaults_and_no_other_fields() {
        let fresh: WebSocketSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(fresh, WebSocketSettings { enabled: true, include_outbound: false });
        assert!(serde_json::from_str::<WebSocketSettings>(r#"{"on":true}"#).is_err());
    }
}
