//! Wire types that requests and responses share.

use hub_core::channels::{self, sinks};
use poem_openapi::{Enum, Object};

use crate::wire::enumeration;

enumeration! {
    /// What happens to a delivery if a plugin fails before the request.
    OnPluginError = channels::OnPluginError {
        /// Nothing is sent; the delivery is retried.
        Retry,
        /// The request is sent without the changes of the plugin.
        Send,
        /// Nothing is sent, and the delivery ends.
        Drop,
    }
}

enumeration! {
    /// How the lists of a filter combine.
    Match = channels::filter::Match {
        /// Every list that is not empty must match.
        All,
        /// One list that is not empty must match.
        Any,
    }
}

enumeration! {
    /// How the hub authenticates itself to the receiver.
    AuthMethod = sinks::AuthMethod {
        /// No authentication.
        None,
        /// `Authorization: Bearer <secret>`.
        Bearer,
        /// A header with a configurable name contains the secret.
        Header,
        /// `X-Signature` over the body.
        Hmac,
    }
}

enumeration! {
    /// Order of the deliveries of a channel.
    Ordering = sinks::Ordering {
        /// Deliveries of one conversation in order of arrival, one at a time.
        Conversation,
        /// No order.
        None,
    }
}

enumeration! {
    /// The model endpoint that is used.
    AiSource = sinks::AiSource {
        /// The endpoint that the administrator configured, with its key.
        Global,
        /// An endpoint of the channel; never called with the administrator's key.
        Custom,
    }
}

/// The model endpoint to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum AiSourceChoice {
    /// The endpoint that the administrator configured, with its key.
    Global,
    /// Alias of `global`, for older clients.
    Builtin,
    /// An endpoint of the channel; never called with the administrator's key.
    Custom,
}

impl From<AiSourceChoice> for sinks::AiSource {
    fn from(source: AiSourceChoice) -> Self {
        match source {
            AiSourceChoice::Global | AiSourceChoice::Builtin => Self::Global,
            AiSourceChoice::Custom => Self::Custom,
        }
    }
}

/// Schedule of retries.
#[derive(Debug, Clone, Object)]
#[oai(deny_unknown_fields)]
pub struct Retry {
    /// Seconds before each retry, 1 to 20 entries; after the last one the delivery is dead.
    #[oai(validator(min_items = 1, max_items = 20))]
    pub schedule_s: Vec<u32>,
}
