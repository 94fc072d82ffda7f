//! Response bodies.

use hub_core::channels::{
    Channel, ChannelHealth, ChannelStats, CreatedChannel, Filter, FilterVerdict, RegeneratedKey,
    sinks::{AiSettings, AuthMethod as CoreAuthMethod, WebSocketSettings, WebhookSettings},
};
use poem_openapi::{Object, types::Example};

use super::parts::{AiSource, AuthMethod, Match, OnPluginError, Ordering, Retry};
use crate::{
    api::{ilink::IlinkSink, plugins::InstalledPluginView},
    wire::{BotId, ChannelId, MessageId, ShownOnce, Time, view},
};

/// A channel.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ChannelView {
    /// Id of the channel.
    pub id: ChannelId,
    /// Id of its bot.
    pub bot_id: BotId,
    /// Display name.
    pub name: String,
    /// Handle without the `@`; with a handle, the channel receives only messages that mention it.
    pub handle: Option<String>,
    /// Whether it receives messages and its key is valid.
    pub enabled: bool,
    /// Prefix and last four characters of the API key.
    pub api_key_prefix: String,
    /// Filter.
    pub filter: FilterRules,
    /// The WebSocket sink.
    pub websocket: WebSocketSink,
    /// The iLink sink.
    pub ilink: IlinkSink,
    /// The webhook sink.
    pub webhook: WebhookSink,
    /// Why the hub switched the webhook sink off; configuring the sink switches it on.
    pub webhook_disabled_reason: Option<String>,
    /// The AI sink.
    pub ai: AiSink,
    /// Installed plugins, in order of execution.
    pub plugins: Vec<InstalledPluginView>,
    /// Number of messages and deliveries.
    pub stats: Stats,
    /// How its deliveries are doing.
    pub health: ChannelHealthView,
    /// What happens to a delivery if a plugin fails before the request.
    pub on_plugin_error: OnPluginError,
    /// How long a failing delivery may block its conversation, in seconds.
    pub lane_hold_s: u32,
    /// When it was created.
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
    /// URL; absent until it is set.
    pub url: Option<String>,
    /// How the hub authenticates itself.
    pub auth: WebhookAuth,
    /// Timeout of one attempt in milliseconds.
    pub timeout_ms: u32,
    /// Schedule of retries.
    pub retry: Retry,
    /// Order of deliveries.
    pub ordering: Ordering,
    /// Maximum requests in flight.
    pub max_concurrency: u32,
    /// Maximum requests per second; absent for no limit.
    pub rate_limit_per_s: Option<u32>,
    /// Whether a text `reply` in a JSON response is sent to the sender.
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
    /// The generated secret, shown only in this response.
    pub secret: Option<ShownOnce>,
    /// Until when the previous secret signs in addition.
    pub old_secret_expires_at: Option<Time>,
}

/// The AI sink, without its key.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AiSink {
    /// Whether a model responds to messages.
    pub enabled: bool,
    /// The endpoint that is used.
    pub source: AiSource,
    /// Base URL of a custom endpoint.
    pub base_url: Option<String>,
    /// Header of the key; absent for `Authorization: Bearer`.
    pub key_header: Option<String>,
    /// Whether there is a key.
    pub has_api_key: bool,
    /// Name of the model; absent for the default of the global endpoint.
    pub model: Option<String>,
    /// System prompt.
    pub system_prompt: String,
    /// Turns of the conversation that the model receives.
    pub max_history: u32,
    /// Maximum tokens of a response; absent for the model's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; absent for the model's default.
    pub temperature: Option<f64>,
    /// Whether the reasoning of the model is removed from the response.
    pub hide_thinking: bool,
    /// Whether Markdown is removed from the response.
    pub strip_markdown: bool,
    /// Longest silence of the model, and longest run of a tool, in milliseconds.
    pub timeout_ms: u32,
    /// Whether the model may use tools of installed apps.
    pub tools: bool,
    /// Text that the sender receives if the model fails permanently or returns an empty response; absent for none.
    pub error_reply: Option<String>,
    /// Why the model cannot respond yet; only in the response to a change of the sink.
    pub warning: Option<String>,
}

view! {
    /// Numbers of messages and deliveries of a channel.
    #[derive(Debug, Object)]
    pub struct Stats from stats: ChannelStats {
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
}

view! {
    /// How the deliveries of a channel are doing.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct ChannelHealthView from health: ChannelHealth {
        /// Since when every attempt at the webhook failed; absent if the last one succeeded.
        pub failing_since: Option<Time>,
        /// When the newest successful delivery ended, also after its message was deleted; absent if there was none.
        pub last_ok_at: Option<Time>,
        /// When the next attempt is due; absent if no delivery waits.
        pub next_attempt_at: Option<Time>,
        /// Deliveries that left their lane and wait for a retry.
        pub parked: u64,
        /// Deliveries that failed permanently, of those still retained.
        pub dead: u64,
    }
}

view! {
    /// A created channel.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct CreatedChannelView from created: CreatedChannel {
        /// The channel.
        #[oai(flatten)]
        pub channel: ChannelView = created.channel.into(),
        /// Its API key, shown only in this response.
        pub api_key: ShownOnce,
    }
}

view! {
    /// A new API key.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct RegeneratedKeyView from key: RegeneratedKey {
        /// The key, shown only in this response.
        pub api_key: ShownOnce,
        /// Until when the old key stays valid; absent if it is invalid already.
        pub old_key_expires_at: Option<Time>,
    }
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
            ilink: channel.ilink.into(),
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
            health: channel.health.into(),
            on_plugin_error: channel.options.on_plugin_error.into(),
            lane_hold_s: channel.options.lane_hold_s,
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
            key_header: text(settings.key_header),
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

view! {
    /// A filter. A list matches if one of its entries matches; an empty list is ignored.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct FilterRules from filter: Filter {
        /// Ids of senders.
        pub user_ids: Vec<String>,
        /// Texts that the content contains, regardless of case and width of letters.
        pub keywords: Vec<String>,
        /// `text`, `image`, `voice`, `video`, `file`, `other`.
        pub message_types: Vec<String>,
        /// How the lists combine.
        #[oai(rename = "match")]
        pub mode: Match,
        /// A CEL expression over the fields of the webhook payload, which must be true in addition to the lists.
        pub expression: Option<String>,
    }
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

view! {
    /// What a filter decides about a message.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct FilterVerdictView from verdict: FilterVerdict {
        /// The message.
        pub message_id: MessageId,
        /// Id of the sender.
        pub from_user_id: String,
        /// Beginning of the text, at most 200 characters.
        pub excerpt: String,
        /// When the hub received the message.
        pub created_at: Time,
        /// Whether the channel would receive the message.
        pub passed: bool,
        /// The same words as in traces: `passed`, or what did not match: `handle`, `sender`, `keyword`, `type` (several
        /// separated by commas), `expression`, or `expression error: …`.
        pub reason: String,
    }
}

impl Example for FilterVerdictView {
    fn example() -> Self {
        let id = 0x019a_a52c_a2c0_0000_0000_0000_0000_0005;
        Self {
            message_id: hub_core::id::MessageId::from_u128(id).into(),
            from_user_id: "ann@im.wechat".to_owned(),
            excerpt: "hello".to_owned(),
            created_at: Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000)),
            passed: false,
            reason: "keyword".to_owned(),
        }
    }
}

/// What a filter decides about the last messages of a bot.
#[derive(Debug, Object)]
#[oai(example)]
pub struct TestedFilter {
    /// Number of messages that pass.
    pub passed: u32,
    /// The messages, newest first.
    pub messages: Vec<FilterVerdictView>,
}

impl From<Vec<FilterVerdict>> for TestedFilter {
    fn from(verdicts: Vec<FilterVerdict>) -> Self {
        let messages: Vec<_> = verdicts.into_iter().map(FilterVerdictView::from).collect();
        let passed = messages.iter().filter(|message| message.passed).count();
        Self { passed: u32::try_from(passed).unwrap_or(u32::MAX), messages }
    }
}

impl Example for TestedFilter {
    fn example() -> Self {
        Self { passed: 0, messages: vec![FilterVerdictView::example()] }
    }
}

view! {
    /// The WebSocket sink.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct WebSocketSink from settings: WebSocketSettings {
        /// Whether clients may connect and receive messages.
        pub enabled: bool,
        /// Whether clients also receive what the bot sends.
        pub include_outbound: bool,
        /// Origins of pages, in addition to the hub's own, from which a browser may connect; `*` for any.
        pub allowed_origins: Vec<String>,
    }
}

impl Example for WebSocketSink {
    fn example() -> Self {
        let allowed_origins = vec!["https://app.example".to_owned()];
        Self { enabled: true, include_outbound: false, allowed_origins }
    }
}
