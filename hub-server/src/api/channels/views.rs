//! What callers see.

use hub_core::channels::{
    Channel, ChannelStats, CreatedChannel, Filter, RegeneratedKey,
    sinks::{AiSettings, AuthMethod as CoreAuthMethod, WebSocketSettings, WebhookSettings},
};
use poem_openapi::{Object, types::Example};

use super::parts::{AiSource, AuthMethod, Match, OnPluginError, Ordering, Retry};
use crate::{
    api::plugins::InstalledPluginView,
    wire::{BotId, ChannelId, ShownOnce, Time},
};

/// A channel.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ChannelView {
    /// Id.
    pub id: ChannelId,
    /// The bot whose messages it gets.
    pub bot_id: BotId,
    /// Name for people.
    pub name: String,
    /// Handle without the `@`; with one the channel gets only messages that mention it.
    pub handle: Option<String>,
    /// Whether it gets messages, and its key opens anything.
    pub enabled: bool,
    /// Prefix and last four characters of the API key.
    pub api_key_prefix: String,
    /// Which messages it gets.
    pub filter: FilterRules,
    /// The WebSocket sink.
    pub websocket: WebSocketSink,
    /// The webhook sink.
    pub webhook: WebhookSink,
    /// Why the hub switched the webhook sink off by itself; configuring it again starts it.
    pub webhook_disabled_reason: Option<String>,
    /// The AI sink.
    pub ai: AiSink,
    /// Installed plugins, in the order they run.
    pub plugins: Vec<InstalledPluginView>,
    /// What became of its messages.
    pub stats: Stats,
    /// What happens to a delivery whose plugin failed before the request.
    pub on_plugin_error: OnPluginError,
    /// How long a failing delivery may hold back its conversation, in seconds.
    pub lane_hold_s: u32,
    /// When it was made.
    pub created_at: Time,
    /// When its settings last changed.
    pub updated_at: Time,
}

/// The webhook sink, without its secret.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct WebhookSink {
    /// Whether messages are sent.
    pub enabled: bool,
    /// Where to; absent until it is set.
    pub url: Option<String>,
    /// How the hub authenticates itself.
    pub auth: WebhookAuth,
    /// Limit of one attempt in milliseconds.
    pub timeout_ms: u32,
    /// When failed deliveries are tried again.
    pub retry: Retry,
    /// Which deliveries wait for each other.
    pub ordering: Ordering,
    /// Most requests at the same time.
    pub max_concurrency: u32,
    /// Most requests per second; absent for any number.
    pub rate_limit_per_s: Option<u32>,
    /// Whether a JSON answer with a text `reply` is sent to the sender.
    pub auto_reply: bool,
}

/// How the hub authenticates itself to the receiver.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct WebhookAuth {
    /// The method.
    pub method: AuthMethod,
    /// Header of the method `header`.
    pub header_name: Option<String>,
    /// Whether there is a secret.
    pub has_secret: bool,
    /// The secret, shown this once: the hub generated it with this request.
    pub secret: Option<ShownOnce>,
    /// Until when the secret before this one signs too.
    pub old_secret_expires_at: Option<Time>,
}

/// The AI sink, without its key.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AiSink {
    /// Whether messages are answered.
    pub enabled: bool,
    /// Whose endpoint answers.
    pub source: AiSource,
    /// Base URL of a custom endpoint.
    pub base_url: Option<String>,
    /// Whether there is a key.
    pub has_api_key: bool,
    /// Name of the model; absent for the global endpoint's default.
    pub model: Option<String>,
    /// What the model is told first.
    pub system_prompt: String,
    /// Turns of the conversation that the model is shown.
    pub max_history: u32,
    /// Longest answer in tokens; absent for the model's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; absent for the model's default.
    pub temperature: Option<f64>,
    /// Whether what the model thought aloud is taken out of the answer.
    pub hide_thinking: bool,
    /// Whether Markdown is taken out of the answer.
    pub strip_markdown: bool,
    /// Limit of one answer in milliseconds, tools included.
    pub timeout_ms: u32,
    /// Whether the model may use the tools of installed apps.
    pub tools: bool,
    /// What the sender gets when the model fails permanently or returns an empty answer; absent for nothing.
    pub error_reply: Option<String>,
    /// What keeps the model from answering for now; only in the response to a change of the sink.
    pub warning: Option<String>,
}

/// What became of a channel's messages.
#[derive(Debug, Object)]
pub struct Stats {
    /// Messages the channel received since it exists.
    pub received: u64,
    /// Deliveries to webhook and model that ended well, of those still kept.
    pub delivered: u64,
    /// Deliveries that were given up.
    pub failed: u64,
    /// Deliveries that wait for an attempt.
    pub pending: u64,
}

/// A channel just made.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct CreatedChannelView {
    /// The channel.
    #[oai(flatten)]
    pub channel: ChannelView,
    /// Its API key, shown this once.
    pub api_key: ShownOnce,
}

/// A new API key.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct RegeneratedKeyView {
    /// The key, shown this once.
    pub api_key: ShownOnce,
    /// Until when the old key stays valid; absent when it ended at once.
    pub old_key_expires_at: Option<Time>,
}

impl From<Channel> for ChannelView {
    fn from(channel: Channel) -> Self {
        let old_secret_expires_at = channel.webhook_old_secret_expires_at.map(Time);
        let secret = channel.webhook_generated_secret.map(ShownOnce);
        Self {
            id: channel.id.into(),
            bot_id: channel.bot_id.into(),
            name: channel.name,
            handle: channel.handle.map(String::from),
            enabled: channel.enabled,
            api_key_prefix: channel.api_key_prefix,
            filter: channel.filter.into(),
            websocket: channel.websocket.into(),
            webhook: WebhookSink::new(
                channel.webhook,
                channel.webhook_has_secret,
                secret,
                old_secret_expires_at,
            ),
            webhook_disabled_reason: channel.webhook_disabled_reason,
            ai: AiSink::new(channel.ai, channel.ai_has_api_key),
            plugins: channel.plugins.into_iter().map(Into::into).collect(),
            stats: channel.stats.into(),
            on_plugin_error: channel.on_plugin_error.into(),
            lane_hold_s: channel.lane_hold_s,
            created_at: channel.created_at.into(),
            updated_at: channel.updated_at.into(),
        }
    }
}

impl WebhookSink {
    fn new(
        settings: WebhookSettings,
        has_secret: bool,
        secret: Option<ShownOnce>,
        old: Option<Time>,
    ) -> Self {
        let names_header = settings.auth.method == CoreAuthMethod::Header;
        let header_name = names_header.then(|| settings.auth.header_name_or_default().to_owned());
        let method = settings.auth.method.into();
        Self {
            enabled: settings.enabled,
            url: Some(settings.url).filter(|url| !url.is_empty()),
            auth: WebhookAuth { method, header_name, has_secret, secret, old_secret_expires_at: old },
            timeout_ms: settings.timeout_ms,
            retry: Retry { schedule_s: settings.retry.schedule_s },
            ordering: settings.ordering.into(),
            max_concurrency: settings.max_concurrency,
            rate_limit_per_s: settings.rate_limit_per_s,
            auto_reply: settings.auto_reply,
        }
    }
}

impl AiSink {
    fn new(settings: AiSettings, has_api_key: bool) -> Self {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            enabled: settings.enabled,
            source: settings.source.into(),
            base_url: text(settings.base_url),
            has_api_key,
            model: text(settings.model),
            system_prompt: settings.system_prompt,
            max_history: settings.max_history,
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            hide_thinking: settings.hide_thinking,
            strip_markdown: settings.strip_markdown,
            timeout_ms: settings.timeout_ms,
            tools: settings.tools,
            error_reply: text(settings.error_reply),
            warning: None,
        }
    }
}

impl From<ChannelStats> for Stats {
    fn from(stats: ChannelStats) -> Self {
        Self {
            received: stats.received,
            delivered: stats.delivered,
            failed: stats.failed,
            pending: stats.pending,
        }
    }
}

impl From<CreatedChannel> for CreatedChannelView {
    fn from(created: CreatedChannel) -> Self {
        Self { channel: created.channel.into(), api_key: ShownOnce(created.api_key) }
    }
}

impl From<RegeneratedKey> for RegeneratedKeyView {
    fn from(key: RegeneratedKey) -> Self {
        Self { api_key: ShownOnce(key.api_key), old_key_expires_at: key.old_key_expires_at.map(Time) }
    }
}

/// Which messages a channel gets. Inside a list one entry is enough; an empty list has no say.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct FilterRules {
    /// Ids of senders.
    pub user_ids: Vec<String>,
    /// Texts that the content contains, without regard to case and width of letters.
    pub keywords: Vec<String>,
    /// `text`, `image`, `voice`, `video`, `file`, `other`.
    pub message_types: Vec<String>,
    /// How the lists combine.
    #[oai(rename = "match")]
    pub mode: Match,
    /// A CEL expression over the fields of the webhook's payload that has to be true in any case.
    pub expression: Option<String>,
}

impl Example for FilterRules {
    fn example() -> Self {
        Self {
            user_ids: Vec::new(),
            keywords: vec!["order".to_owned()],
            message_types: vec!["text".to_owned()],
            mode: Match::All,
            expression: Some("size(content) < 500".to_owned()),
        }
    }
}

impl From<Filter> for FilterRules {
    fn from(filter: Filter) -> Self {
        Self {
            user_ids: filter.user_ids,
            keywords: filter.keywords,
            message_types: filter.message_types,
            mode: filter.mode.into(),
            expression: filter.expression,
        }
    }
}

/// The WebSocket sink.
#[derive(Debug, Object)]
#[oai(example)]
pub struct WebSocketSink {
    /// Whether clients may connect and are sent messages.
    pub enabled: bool,
    /// Whether what the bot sends is shown to the clients too.
    pub include_outbound: bool,
    /// Origins of pages, beside the hub's own, from which a browser may connect; `*` stands for any.
    pub allowed_origins: Vec<String>,
}

impl Example for WebSocketSink {
    fn example() -> Self {
        let allowed_origins = vec!["https://app.example".to_owned()];
        Self { enabled: true, include_outbound: false, allowed_origins }
    }
}

impl From<WebSocketSettings> for WebSocketSink {
    fn from(settings: WebSocketSettings) -> Self {
        let WebSocketSettings { enabled, include_outbound, allowed_origins } = settings;
        Self { enabled, include_outbound, allowed_origins }
    }
}
