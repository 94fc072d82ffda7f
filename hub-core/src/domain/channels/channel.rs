//! The record of a channel, and what a caller may say about one.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::keys::key_prefix;
use crate::{
    context::Context,
    error::{Problems, Result},
    filter::Filter,
    id::{BotId, ChannelId},
    model::{
        channel::{
            ChannelHealth, ChannelOptions, ChannelRecord, MAX_LANE_HOLD_S, NewKey, OnPluginError, decode,
            encode,
        },
        handle::Handle,
        sinks::{
            AiSettings, AiSink, AiUpdate, Change, IlinkSettings, WebSocketSettings, WebhookAuth,
            WebhookSettings, WebhookSink, WebhookUpdate,
        },
        trace::DeliveryState,
    },
    plugins::InstalledPlugin,
    random::Random,
    secret::{Secret, ShownOnce, TokenHash},
    time::Timestamp,
};

/// Longest name of a channel, in characters.
const MAX_NAME: usize = 64;
/// A channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
pub struct Channel {
    /// Id of the channel.
    pub id: ChannelId,
    /// Id of its bot.
    pub bot_id: BotId,
    /// Display name.
    pub name: String,
    /// Handle without the `@`; with a handle, the channel receives only messages that mention it.
    pub handle: Option<Handle>,
    /// Whether it receives messages and its key is valid.
    pub enabled: bool,
    /// Prefix and last four characters of the API key.
    pub api_key_prefix: String,
    /// Filter.
    pub filter: Filter,
    /// The WebSocket sink.
    pub websocket: WebSocketSettings,
    /// The iLink sink.
    #[serde(default)]
    pub ilink: IlinkSettings,
    /// The webhook sink.
    pub webhook: WebhookSink,
    /// Why the hub switched the webhook sink off; configuring the sink switches it on.
    #[api(cause)]
    pub webhook_disabled_reason: Option<String>,
    /// The AI sink.
    pub ai: AiSink,
    /// Installed plugins, in order of execution.
    #[serde(default)]
    pub plugins: Vec<InstalledPlugin>,
    /// Number of messages and deliveries.
    pub stats: ChannelStats,
    /// How its deliveries are doing.
    #[serde(default)]
    pub health: ChannelHealth,
    /// What it carries as given.
    #[serde(flatten)]
    pub options: ChannelOptions,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub updated_at: Timestamp,
}

/// Numbers of messages and deliveries of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "Stats")]
pub struct ChannelStats {
    /// Messages received since the channel was created; with `include_outbound` also those that the bot sent.
    pub received: u64,
    /// Successful deliveries to webhook and model since the channel was created; they remain counted when their
    /// messages are deleted.
    pub delivered: u64,
    /// Deliveries that failed permanently, of those still retained.
    pub failed: u64,
    /// Deliveries that wait for an attempt.
    pub pending: u64,
}

impl ChannelStats {
    /// Counts in the deliveries of a state. What a plugin skipped counts nowhere.
    pub(super) fn add(&mut self, state: DeliveryState, count: u64) {
        match state {
            DeliveryState::Done => self.delivered += count,
            DeliveryState::Dead => self.failed += count,
            DeliveryState::Pending | DeliveryState::Parked => self.pending += count,
            DeliveryState::Skipped => {}
        }
    }
}

/// A channel to create.
#[derive(Debug, Clone, PartialEq, hub_macros::Api)]
#[api(name = "CreateChannel", input, checked, like = Channel, example = {
    "handle": "orders",
    "name": "orders",
    "webhook": {
        "auth": { "method": "hmac", "secret": "a key of at least 16 bytes" },
        "enabled": true,
        "timeout_ms": 10000,
        "url": "https://example.com/hook",
    },
})]
#[expect(missing_docs, reason = "the other fields are those of `Channel`")]
pub struct NewChannel {
    #[api(line = 1..=MAX_NAME)]
    pub name: String,
    /// Handle without the `@`, 2 to 32 of `a-z0-9_-`, unique per bot. With a handle, the channel receives only
    /// messages that mention it.
    #[api(length = 2..=32)]
    pub handle: Option<String>,
    #[api(absent = true)]
    pub enabled: bool,
    /// Filter; all messages if absent.
    #[api(set, absent = Filter::default())]
    pub filter: Filter,
    /// The WebSocket sink; on if absent.
    #[api(set, absent = WebSocketSettings::default())]
    pub websocket: WebSocketSettings,
    /// The iLink sink; off if absent.
    #[api(set, absent = IlinkSettings::default())]
    pub ilink: IlinkSettings,
    /// The webhook sink; off if absent.
    pub webhook: Option<WebhookUpdate>,
    /// The AI sink; off if absent.
    pub ai: Option<AiUpdate>,
    /// Settings that the channel has as they are given.
    #[api(flatten, set)]
    pub options: ChannelOptions,
}

impl NewChannel {
    /// A channel with nothing but a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            handle: None,
            enabled: true,
            filter: Filter::default(),
            websocket: WebSocketSettings::default(),
            ilink: IlinkSettings::default(),
            webhook: None,
            ai: None,
            options: ChannelOptions::default(),
        }
    }

    /// The secrets that came with it, as hashes: with the row they say whether two calls want the same.
    pub(super) fn secret_hashes(&self) -> [Option<TokenHash>; 2] {
        let secrets = [
            self.webhook.as_ref().map(|webhook| &webhook.auth.secret),
            self.ai.as_ref().map(|ai| &ai.api_key),
        ];
        secrets.map(|change| change?.apply(None).map(|secret| TokenHash::of(secret.expose())))
    }

    /// Generates the webhook's secret where its method needs one and none was given.
    pub(super) fn generate_secret(&mut self, random: &Random) -> Option<Secret> {
        self.webhook.as_mut().and_then(|webhook| webhook.auth.generate(None, random))
    }

    /// Checks everything at once, and gives the row to store.
    pub(super) fn into_record(self, ctx: &Context, bot_id: BotId, key: &NewKey) -> Result<ChannelRecord> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        check_handle(&mut problems, self.handle.as_deref());
        self.options.check_bounds(&mut problems);
        note(&mut problems, "filter", self.filter.compile().map(|_| ()));
        let webhook = self.webhook.as_ref().map(|webhook| webhook.validate(&ctx.egress, None));
        let webhook =
            note(&mut problems, "webhook", webhook.unwrap_or_else(|| Ok(WebhookSettings::default())));
        note(&mut problems, "websocket", self.websocket.validate());
        note(&mut problems, "ilink", self.ilink.validate());
        let ai = self.ai.as_ref().map(|ai| ai.validate(&ctx.egress));
        let ai = note(&mut problems, "ai", ai.unwrap_or_else(|| Ok(AiSettings::default())));
        problems.finish()?;
        let mut record = ChannelRecord {
            id: ctx.ids.next(),
            bot_id,
            name: self.name,
            handle: self.handle,
            enabled: self.enabled,
            key_last4: key.last4.clone(),
            filter: encode(&self.filter)?,
            websocket: encode(&self.websocket)?,
            ilink: encode(&self.ilink)?,
            webhook: encode(&webhook)?,
            webhook_secret: None,
            webhook_old_secret: None,
            webhook_old_until: None,
            webhook_disabled: None,
            ai: encode(&ai)?,
            ai_api_key: None,
            options: self.options,
            last_seq: 0,
            created_at: key.at,
            updated_at: key.at,
        };
        if let Some(webhook) = &self.webhook {
            record.change_webhook_secret(&webhook.auth.secret, &ctx.sealer, key.at)?;
        }
        if let Some(ai) = &self.ai {
            record.change_ai_api_key(&ai.api_key, &ctx.sealer);
        }
        Ok(record)
    }
}

/// A created channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
pub struct CreatedChannel {
    /// The channel.
    #[api(flatten)]
    #[serde(deserialize_with = "channel_or_older")]
    pub channel: Channel,
    /// Its API key, shown only in this response.
    pub api_key: ShownOnce,
}

/// Reads a channel also in the form in which version 0.1 kept the response to an `Idempotency-Key`, where what
/// is known of secrets and keys was not part of the sinks.
fn channel_or_older<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Channel, D::Error> {
    let mut channel = Value::deserialize(deserializer)?;
    if channel.get("webhook_has_secret").is_some() {
        let (webhook, ai) = (channel["webhook"].take(), channel["ai"].take());
        channel["webhook"] = json!({
            "auth": {
                "settings": webhook["auth"],
                "has_secret": channel["webhook_has_secret"],
                "secret": channel["webhook_generated_secret"],
                "old_secret_expires_at": channel["webhook_old_secret_expires_at"],
            },
            "settings": webhook,
        });
        channel["ai"] = json!({ "settings": ai, "has_api_key": channel["ai_has_api_key"], "warning": null });
    }
    Channel::deserialize(channel).map_err(serde::de::Error::custom)
}

/// A change of a channel; absent fields keep their values.
#[derive(Debug, Clone, PartialEq, Eq, Default, hub_macros::Api)]
#[api(name = "UpdateChannel", input, checked, like = Channel, example = {
    "enabled": true,
    "handle": null,
    "lane_hold_s": 60,
    "name": "orders",
    "on_plugin_error": "retry",
})]
#[expect(missing_docs, reason = "the other fields are those of `Channel`")]
pub struct ChannelPatch {
    #[api(line = 1..=MAX_NAME)]
    pub name: Option<String>,
    /// Handle without the `@`, 2 to 32 of `a-z0-9_-`, unique per bot; `null` removes it.
    #[api(length = 2..=32)]
    pub handle: Change<String>,
    pub enabled: Option<bool>,
    pub on_plugin_error: Option<OnPluginError>,
    #[api(range = 0..=MAX_LANE_HOLD_S)]
    pub lane_hold_s: Option<u32>,
}

impl ChannelPatch {
    /// Checks everything at once.
    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        if let Change::Set(handle) = &self.handle {
            check_handle(&mut problems, Some(handle));
        }
        problems.finish()
    }

    /// Changes a row. The patch was checked.
    pub(super) fn apply(self, record: &mut ChannelRecord) {
        record.options = self.options(&record.options);
        record.name = self.name.unwrap_or_else(|| std::mem::take(&mut record.name));
        record.handle = self.handle.apply(record.handle.as_ref()).cloned();
        record.enabled = self.enabled.unwrap_or(record.enabled);
    }

    /// The options after the change.
    fn options(&self, current: &ChannelOptions) -> ChannelOptions {
        ChannelOptions {
            on_plugin_error: self.on_plugin_error.unwrap_or(current.on_plugin_error),
            lane_hold_s: self.lane_hold_s.unwrap_or(current.lane_hold_s),
        }
    }
}

pub(super) fn show(
    record: ChannelRecord,
    (stats, health): (ChannelStats, ChannelHealth),
    plugins: Vec<InstalledPlugin>,
    now: Timestamp,
) -> Result<Channel> {
    let settings = record.webhook()?;
    let auth = WebhookAuth {
        settings: settings.auth.clone(),
        has_secret: record.webhook_secret.is_some(),
        secret: None,
        old_secret_expires_at: record.webhook_old_until.filter(|until| now < *until),
    };
    Ok(Channel {
        handle: record.handle()?,
        webhook: WebhookSink { settings, auth },
        filter: decode(&record.filter)?,
        websocket: decode(&record.websocket)?,
        ilink: decode(&record.ilink)?,
        ai: AiSink { settings: decode(&record.ai)?, has_api_key: record.ai_api_key.is_some(), warning: None },
        api_key_prefix: key_prefix(&record.key_last4),
        webhook_disabled_reason: record.webhook_disabled,
        plugins,
        stats,
        health,
        id: record.id,
        bot_id: record.bot_id,
        name: record.name,
        enabled: record.enabled,
        options: record.options,
        created_at: record.created_at,
        updated_at: record.updated_at,
    })
}

fn check_handle(problems: &mut Problems, handle: Option<&str>) {
    if let Some(Err(error)) = handle.map(str::parse::<Handle>) {
        problems.take(&error);
    }
}

/// Takes over the fields of a part that is not acceptable, and goes on with the part's default.
fn note<T: Default>(problems: &mut Problems, part: &str, checked: Result<T>) -> T {
    checked.unwrap_or_else(|error| {
        problems.merge(part, &error);
        T::default()
    })
}
