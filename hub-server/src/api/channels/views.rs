//! Response bodies.

use hub_core::{
    channels::{
        Channel, ChannelHealth, ChannelStats, CreatedChannel, Filter, OnPluginError,
        sinks::{
            AiSettings, AiSource, AuthMethod, AuthMethod as CoreAuthMethod, IlinkSettings, Ordering,
            WebSocketSettings, WebhookSettings,
        },
    },
    id::{BotId, ChannelId},
    plugins::InstalledPlugin,
    secret::ShownOnce,
    time::Timestamp,
};
use poem_openapi::Object;

use super::parts::Retry;
use crate::wire::view;

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
    pub filter: Filter,
    /// The WebSocket sink.
    pub websocket: WebSocketSettings,
    /// The iLink sink.
    pub ilink: IlinkSettings,
    /// The webhook sink.
    pub webhook: WebhookSink,
    /// Why the hub switched the webhook sink off; configuring the sink switches it on.
    pub webhook_disabled_reason: Option<String>,
    /// The AI sink.
    pub ai: AiSink,
    /// Installed plugins, in order of execution.
    pub plugins: Vec<InstalledPlugin>,
    /// Number of messages and deliveries.
    pub stats: ChannelStats,
    /// How its deliveries are doing.
    pub health: ChannelHealth,
    /// What happens to a delivery if a plugin fails before the request.
    pub on_plugin_error: OnPluginError,
    /// How long a failing delivery may block its conversation, in seconds.
    pub lane_hold_s: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its settings last changed.
    pub updated_at: Timestamp,
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
    pub old_secret_expires_at: Option<Timestamp>,
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

impl From<Channel> for ChannelView {
    fn from(channel: Channel) -> Self {
        let old_secret_expires_at = channel.webhook_old_secret_expires_at;
        let secret = channel.webhook_generated_secret.map(ShownOnce);
        Self {
            id: channel.id,
            bot_id: channel.bot_id,
            name: channel.name,
            handle: channel.handle.map(String::from),
            enabled: channel.enabled,
            api_key_prefix: channel.api_key_prefix,
            filter: channel.filter,
            websocket: channel.websocket,
            ilink: channel.ilink,
            webhook: WebhookSink::new(
                channel.webhook,
                channel.webhook_has_secret,
                secret,
                old_secret_expires_at,
            ),
            webhook_disabled_reason: channel.webhook_disabled_reason,
            ai: AiSink::new(channel.ai, channel.ai_has_api_key),
            plugins: channel.plugins.into_iter().collect(),
            stats: channel.stats,
            health: channel.health,
            on_plugin_error: channel.options.on_plugin_error,
            lane_hold_s: channel.options.lane_hold_s,
            created_at: channel.created_at,
            updated_at: channel.updated_at,
        }
    }
}

impl WebhookSink {
    fn new(
        settings: WebhookSettings,
        has_secret: bool,
        secret: Option<ShownOnce>,
        old: Option<Timestamp>,
    ) -> Self {
        let names_header = settings.auth.method == CoreAuthMethod::Header;
        let header_name = names_header.then(|| settings.auth.header_name_or_default().to_owned());
        let method = settings.auth.method;
        Self {
            enabled: settings.enabled,
            url: Some(settings.url).filter(|url| !url.is_empty()),
            auth: WebhookAuth { method, header_name, has_secret, secret, old_secret_expires_at: old },
            timeout_ms: settings.timeout_ms,
            retry: Retry { schedule_s: settings.retry.schedule_s },
            ordering: settings.ordering,
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
            source: settings.source,
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
