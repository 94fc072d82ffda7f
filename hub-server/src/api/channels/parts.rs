//! Wire types that requests and answers share.

use hub_core::channels::{self, sinks};
use poem_openapi::{Enum, Object};

use crate::wire::enumeration;

enumeration! {
    /// What happens to a delivery whose plugin failed before the request.
    OnPluginError = channels::OnPluginError {
        /// Nothing is sent; the delivery is tried again.
        Retry,
        /// The request is sent as it was before the plugin.
        Send,
        /// Nothing is sent, and the delivery is over.
        Drop,
    }
}

enumeration! {
    /// How the lists of a filter combine.
    Match = channels::filter::Match {
        /// Every list that is not empty has to match.
        All,
        /// One of the lists that are not empty has to match.
        Any,
    }
}

enumeration! {
    /// How the hub authenticates itself to the receiver.
    AuthMethod = sinks::AuthMethod {
        /// Not at all.
        None,
        /// `Authorization: Bearer <secret>`.
        Bearer,
        /// A header of the channel's choice holds the secret.
        Header,
        /// `X-Signature` over the body.
        Hmac,
    }
}

enumeration! {
    /// Which deliveries of a channel wait for each other.
    Ordering = sinks::Ordering {
        /// Those of one conversation, strictly in the order they arrived.
        Conversation,
        /// None.
        None,
    }
}

enumeration! {
    /// Whose model endpoint answers.
    AiSource = sinks::AiSource {
        /// The one the administrator configured, with its key.
        Global,
        /// The channel's own; never called with the administrator's key.
        Custom,
    }
}

/// Whose model endpoint is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum AiSourceChoice {
    /// The one the administrator configured, with its key.
    Global,
    /// The same, in the word of older clients.
    Builtin,
    /// The channel's own; never called with the administrator's key.
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

/// When failed deliveries are tried again.
#[derive(Debug, Clone, Object)]
#[oai(deny_unknown_fields)]
pub struct Retry {
    /// Seconds before each retry, 1 to 20 of them; after the last the delivery is dead.
    #[oai(validator(min_items = 1, max_items = 20))]
    pub schedule_s: Vec<u32>,
}
