//! A channel as it is stored: settings as JSON text, secrets sealed, each bound to its column and row.

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId},
    model::{
        handle::Handle,
        sinks::{AiSettings, Change, WebhookSettings},
    },
    secret::{Sealed, Sealer, Secret, TokenHash},
    time::Timestamp,
    words::words,
};

/// The default of [`ChannelOptions::lane_hold_s`].
pub const DEFAULT_LANE_HOLD_S: u32 = 60;
/// Maximum of [`ChannelOptions::lane_hold_s`].
pub const MAX_LANE_HOLD_S: u32 = 3600;

/// Time during which a replaced webhook secret signs in addition to the new one.
pub const OLD_SECRET_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A stored channel, for the workers. Callers see it as a [`Channel`](crate::channels::Channel).
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "channels")]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `Channel`")]
pub struct ChannelRecord {
    pub id: ChannelId,
    pub bot_id: BotId,
    pub name: String,
    pub handle: Option<String>,
    pub enabled: bool,
    pub key_last4: String,
    /// JSON of the filter.
    pub filter: String,
    /// JSON of the WebSocket sink's settings.
    pub websocket: String,
    /// JSON of the iLink sink's settings.
    pub ilink: String,
    /// JSON of the webhook sink's settings.
    pub webhook: String,
    pub webhook_secret: Option<Sealed>,
    pub webhook_old_secret: Option<Sealed>,
    pub webhook_old_until: Option<Timestamp>,
    /// Reason why the hub switched the webhook off by itself.
    pub webhook_disabled: Option<String>,
    /// JSON of the AI sink's settings.
    pub ai: String,
    pub ai_api_key: Option<Sealed>,
    #[row(flatten)]
    pub options: ChannelOptions,
    /// Number of the newest message in the channel's log.
    pub last_seq: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Settings that a channel carries as they were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "channels")]
#[api(checked, set("SetChannelOptions", ""))]
pub struct ChannelOptions {
    /// What happens to a delivery if a plugin fails before the request.
    pub on_plugin_error: OnPluginError,
    /// How long a failing delivery may block its conversation, in seconds.
    #[row(number)]
    #[api(range = 0..=MAX_LANE_HOLD_S)]
    pub lane_hold_s: u32,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self { on_plugin_error: OnPluginError::default(), lane_hold_s: DEFAULT_LANE_HOLD_S }
    }
}

impl ChannelRecord {
    /// The handle. The stored value was validated when it was saved.
    pub fn handle(&self) -> Result<Option<Handle>> {
        self.handle.as_deref().map(|handle| handle.parse().map_err(Error::internal)).transpose()
    }

    /// The webhook's settings as they work: off also when the hub switched the sink off by itself.
    pub fn webhook(&self) -> Result<WebhookSettings> {
        let mut settings: WebhookSettings = decode(&self.webhook)?;
        settings.enabled &= self.webhook_disabled.is_none();
        Ok(settings)
    }

    /// The AI sink's settings.
    pub fn ai(&self) -> Result<AiSettings> {
        decode(&self.ai)
    }

    /// The current webhook secret.
    pub fn webhook_secret(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        open(sealer, &self.place("webhook_secret"), self.webhook_secret.as_ref())
    }

    /// The webhook secret before the current one; it signs until `webhook_old_until`.
    pub fn webhook_old_secret(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        open(sealer, &self.place("webhook_old_secret"), self.webhook_old_secret.as_ref())
    }

    /// The key of the AI sink's own endpoint.
    pub fn ai_api_key(&self, sealer: &Sealer) -> Result<Option<Secret>> {
        open(sealer, &self.place("ai_api_key"), self.ai_api_key.as_ref())
    }

    /// Keeps, clears or replaces the webhook secret. A replaced one goes on signing for [`OLD_SECRET_LIFE`];
    /// setting the same one again replaces nothing.
    pub fn change_webhook_secret(
        &mut self,
        change: &Change<Secret>,
        sealer: &Sealer,
        now: Timestamp,
    ) -> Result<()> {
        match change {
            Change::Keep => {}
            Change::Clear => {
                self.webhook_secret = None;
                self.webhook_old_secret = None;
                self.webhook_old_until = None;
            }
            Change::Set(new) => {
                let current = self.webhook_secret(sealer)?;
                if current.as_ref() == Some(new) {
                    return Ok(());
                }
                if let Some(current) = current {
                    self.webhook_old_secret = Some(sealer.seal(&self.place("webhook_old_secret"), &current));
                    self.webhook_old_until = Some(now + OLD_SECRET_LIFE);
                }
                self.webhook_secret = Some(sealer.seal(&self.place("webhook_secret"), new));
            }
        }
        Ok(())
    }

    /// Keeps, clears or replaces the key of the AI sink's own endpoint.
    pub fn change_ai_api_key(&mut self, change: &Change<Secret>, sealer: &Sealer) {
        match change {
            Change::Keep => {}
            Change::Clear => self.ai_api_key = None,
            Change::Set(new) => self.ai_api_key = Some(sealer.seal(&self.place("ai_api_key"), new)),
        }
    }

    /// Everything a caller said about a new channel but its secrets, for comparing two calls.
    pub(crate) fn wanted(&self) -> impl Serialize + '_ {
        (
            (self.bot_id, &self.name, &self.handle, self.enabled, &self.options),
            (&self.filter, &self.websocket, &self.ilink, &self.webhook, &self.ai),
        )
    }

    /// The place a secret is sealed for: a value copied to another column or row does not open.
    pub(crate) fn place(&self, column: &str) -> String {
        format!("channels.{column}:{}", self.id)
    }
}

fn open(sealer: &Sealer, place: &str, sealed: Option<&Sealed>) -> Result<Option<Secret>> {
    sealed.map(|sealed| sealer.open(place, sealed)).transpose()
}

/// Settings as JSON text.
pub(crate) fn encode<T: Serialize>(settings: &T) -> Result<String> {
    serde_json::to_string(settings).map_err(Error::internal)
}

/// Decodes settings from the JSON text of a row. Corrupt text is an internal error.
pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(Error::internal)
}

words! {
    /// What happens to a delivery if a plugin fails before the request.
    #[derive(Default)]
    pub enum OnPluginError {
        /// Nothing is sent; the delivery is retried.
        #[default]
        Retry = "retry",
        /// The request is sent without the changes of the plugin.
        Send = "send",
        /// Nothing is sent, and the delivery ends.
        Drop = "drop",
    }
}

/// A key on its way into the store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Hash by which a presented key is looked up.
    pub hash: TokenHash,
    /// Last four characters, shown in lists.
    pub last4: String,
    /// Time of creation.
    pub at: Timestamp,
    /// Until when the key before it stays valid; `None` ends it at once.
    pub old_until: Option<Timestamp>,
}

/// How the deliveries of a channel are doing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, hub_macros::FromRow, hub_macros::Api,
)]
#[row(table = "channels")]
pub struct ChannelHealth {
    /// Since when every attempt at the webhook failed; absent if the last one succeeded.
    pub failing_since: Option<Timestamp>,
    /// When the newest successful delivery ended, also after its message was deleted; absent if there was none.
    pub last_ok_at: Option<Timestamp>,
    /// When the next attempt is due; absent if no delivery waits.
    pub next_attempt_at: Option<Timestamp>,
    /// Deliveries that left their lane and wait for a retry.
    #[row(number)]
    pub parked: u64,
    /// Deliveries that failed permanently, of those still retained.
    #[row(number)]
    pub dead: u64,
}

/// A channel in the statistics.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "channels")]
pub struct ChannelTotals {
    /// Id of the channel.
    pub id: ChannelId,
    /// Id of its bot.
    pub bot_id: BotId,
    /// Name of the channel.
    pub name: String,
    /// Messages received since the channel was created.
    #[row(number)]
    pub received: u64,
    /// Deliveries in their lane.
    #[row(number)]
    pub pending: u64,
    /// How its deliveries are doing.
    #[row(flatten)]
    pub health: ChannelHealth,
}

/// Effect of a change in addition to writing the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterChange {
    /// Nothing.
    Nothing,
    /// A webhook that the hub switched off by itself starts over.
    RestartWebhook,
}
