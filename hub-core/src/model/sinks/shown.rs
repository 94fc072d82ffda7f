//! Sinks as callers see them: the stored settings, and what is known of secrets and keys.

use serde::{Deserialize, Serialize};

use super::{AiSettings, AuthSettings, WebhookSettings};
use crate::{secret::ShownOnce, time::Timestamp};

/// The webhook sink, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct WebhookSink {
    /// Its settings.
    #[api(flatten)]
    pub settings: WebhookSettings,
    /// How the hub authenticates itself.
    pub auth: WebhookAuth,
}

/// How the hub authenticates itself to the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct WebhookAuth {
    /// Method and header.
    #[api(flatten)]
    pub settings: AuthSettings,
    /// Whether there is a secret.
    pub has_secret: bool,
    /// The generated secret, shown only in this response.
    pub secret: Option<ShownOnce>,
    /// Until when the previous secret signs in addition.
    pub old_secret_expires_at: Option<Timestamp>,
}

/// The AI sink, without its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
pub struct AiSink {
    /// Its settings.
    #[api(flatten)]
    pub settings: AiSettings,
    /// Whether there is a key.
    pub has_api_key: bool,
    /// Why the model cannot respond yet; only in the response to a change of the sink.
    #[api(cause)]
    pub warning: Option<String>,
}
