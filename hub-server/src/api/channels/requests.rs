//! Request bodies. An absent field gets its default; the rules are hub-core's, which reports every violation at once,
//! so that the bounds here only reject the absurd.

use hub_core::channels::{
    ChannelOptions, ChannelPatch, Filter, NewChannel, OnPluginError,
    filter::Match,
    sinks::{
        AiSource, AiUpdate, AuthMethod, AuthUpdate, Change, Ordering, RetrySettings, WebSocketSettings,
        WebhookUpdate,
    },
};
use poem_openapi::{
    Enum, Object,
    types::{Example, MaybeUndefined},
};

use crate::{
    api::ilink::SetIlink,
    wire::{Checked, Number, Secret, Text},
};

type Name = Checked<1, 64>;
type Handle = Checked<2, 32>;
type Url = Checked<0, 2048>;
type AnySecret = Secret<4096>;

/// A channel to create.
#[derive(Debug, Default, Object)]
#[oai(deny_unknown_fields, example)]
pub struct CreateChannel {
    /// Display name, 1 to 64 characters.
    pub name: Name,
    /// Handle without the `@`, 2 to 32 of `a-z0-9_-`, unique per bot. With a handle, the channel receives only
    /// messages that mention it.
    pub handle: Option<Handle>,
    /// Whether it receives messages; `true` if absent.
    pub enabled: Option<bool>,
    /// Filter; all messages if absent.
    pub filter: Option<SetFilter>,
    /// The WebSocket sink; on if absent.
    pub websocket: Option<SetWebSocket>,
    /// The iLink sink; off if absent.
    pub ilink: Option<SetIlink>,
    /// The webhook sink; off if absent.
    pub webhook: Option<SetWebhook>,
    /// The AI sink; off if absent.
    pub ai: Option<SetAi>,
    /// What happens to a delivery if a plugin fails; `retry` if absent.
    pub on_plugin_error: Option<OnPluginError>,
    /// How long a failing delivery may block its conversation, in seconds, 0 to 3600; 60 if absent.
    pub lane_hold_s: Option<Number<0, 3600>>,
}

impl Example for CreateChannel {
    fn example() -> Self {
        Self {
            name: Text("orders".to_owned()),
            handle: Some(Text("orders".to_owned())),
            webhook: Some(SetWebhook::example()),
            ..Self::default()
        }
    }
}

impl From<CreateChannel> for NewChannel {
    fn from(body: CreateChannel) -> Self {
        let default = Self::named(body.name);
        Self {
            handle: body.handle.map(String::from),
            enabled: body.enabled.unwrap_or(default.enabled),
            filter: body.filter.map_or_else(|| default.filter.clone(), Into::into),
            websocket: body.websocket.map_or_else(|| default.websocket.clone(), Into::into),
            ilink: body.ilink.map_or(default.ilink, Into::into),
            webhook: body.webhook.map(Into::into),
            ai: body.ai.map(Into::into),
            options: ChannelOptions {
                on_plugin_error: body.on_plugin_error.map_or(default.options.on_plugin_error, Into::into),
                lane_hold_s: body.lane_hold_s.map_or(default.options.lane_hold_s, u32::from),
            },
            ..default
        }
    }
}

/// A change of a channel; absent fields keep their values.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct UpdateChannel {
    /// Display name, 1 to 64 characters.
    pub name: Option<Name>,
    /// Handle without the `@`, 2 to 32 of `a-z0-9_-`, unique per bot; `null` removes it.
    pub handle: MaybeUndefined<Handle>,
    /// Whether it receives messages.
    pub enabled: Option<bool>,
    /// What happens to a delivery if a plugin fails.
    pub on_plugin_error: Option<OnPluginError>,
    /// How long a failing delivery may block its conversation, in seconds, 0 to 3600.
    pub lane_hold_s: Option<Number<0, 3600>>,
}

impl Example for UpdateChannel {
    fn example() -> Self {
        Self {
            name: Some(Text("orders".to_owned())),
            handle: MaybeUndefined::Null,
            enabled: Some(true),
            on_plugin_error: Some(OnPluginError::Retry),
            lane_hold_s: Some(Number(60)),
        }
    }
}

impl From<UpdateChannel> for ChannelPatch {
    fn from(body: UpdateChannel) -> Self {
        Self {
            name: body.name.map(String::from),
            handle: change(body.handle, String::from),
            enabled: body.enabled,
            on_plugin_error: body.on_plugin_error,
            lane_hold_s: body.lane_hold_s.map(u32::from),
        }
    }
}

/// A new filter. A list matches if one of its entries matches; an empty list is ignored.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SetFilter {
    /// Ids of senders, at most 100.
    #[oai(validator(max_items = 100))]
    pub user_ids: Option<Vec<Checked<0, 256>>>,
    /// Texts that the content contains, regardless of case and width of letters; at most 100.
    #[oai(validator(max_items = 100))]
    pub keywords: Option<Vec<Checked<0, 256>>>,
    /// `text`, `image`, `voice`, `video`, `file`, `other`.
    #[oai(validator(max_items = 100))]
    pub message_types: Option<Vec<Text<0, 64>>>,
    /// How the lists combine; `all` if absent.
    #[oai(rename = "match")]
    pub mode: Option<Match>,
    /// A CEL expression over the fields of the webhook payload, which must be true in addition to the lists.
    pub expression: Option<Checked<0, 1024>>,
}

impl Example for SetFilter {
    fn example() -> Self {
        Self {
            user_ids: None,
            keywords: Some(vec![Text("order".to_owned())]),
            message_types: Some(vec![Text("text".to_owned())]),
            mode: Some(Match::All),
            expression: Some(Text("size(content) < 500".to_owned())),
        }
    }
}

impl From<SetFilter> for Filter {
    fn from(body: SetFilter) -> Self {
        fn texts<const MAX: usize, const ENFORCED: bool>(
            list: Option<Vec<Text<0, MAX, ENFORCED>>>,
        ) -> Vec<String> {
            list.unwrap_or_default().into_iter().map(String::from).collect()
        }
        Self {
            user_ids: texts(body.user_ids),
            keywords: texts(body.keywords),
            message_types: texts(body.message_types),
            mode: body.mode.unwrap_or(Match::All),
            expression: body.expression.map(String::from),
        }
    }
}

/// A filter to test.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct TestFilter {
    /// The filter.
    pub filter: SetFilter,
    /// Number of messages to test it on, the newest first; 20 if absent.
    #[oai(validator(minimum(value = "1"), maximum(value = "100")))]
    pub last: Option<u32>,
}

impl Example for TestFilter {
    fn example() -> Self {
        Self { filter: SetFilter::example(), last: Some(50) }
    }
}

/// A new configuration of the WebSocket sink.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SetWebSocket {
    /// Whether clients may connect and receive messages; `true` if absent.
    pub enabled: Option<bool>,
    /// Whether clients also receive what the bot sends; `false` if absent.
    pub include_outbound: Option<bool>,
    /// Origins of pages, in addition to the hub's own, from which a browser may connect; `*` for any. At most 20.
    #[oai(validator(max_items = 20))]
    pub allowed_origins: Option<Vec<Text<1, 256>>>,
}

impl Example for SetWebSocket {
    fn example() -> Self {
        Self {
            enabled: Some(true),
            include_outbound: None,
            allowed_origins: Some(vec![Text("https://app.example".to_owned())]),
        }
    }
}

impl From<SetWebSocket> for WebSocketSettings {
    fn from(body: SetWebSocket) -> Self {
        Self {
            enabled: body.enabled.unwrap_or(true),
            include_outbound: body.include_outbound.unwrap_or(false),
            allowed_origins: body.allowed_origins.into_iter().flatten().map(Into::into).collect(),
        }
    }
}

/// A new configuration of the webhook sink.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SetWebhook {
    /// Whether messages are sent; `true` if absent.
    pub enabled: Option<bool>,
    /// URL that receives the POST requests; private addresses are rejected.
    pub url: Option<Url>,
    /// How the hub authenticates itself; not at all if absent.
    pub auth: Option<SetAuth>,
    /// Timeout of one attempt in milliseconds, at most 30000; 10000 if absent.
    pub timeout_ms: Option<Number<1, 30_000>>,
    /// Schedule of retries; after 5 s, 30 s, 2 min, 10 min, 1 h, 6 h and 24 h if absent.
    pub retry: Option<RetrySettings>,
    /// Order of deliveries; `conversation` if absent.
    pub ordering: Option<Ordering>,
    /// Maximum requests in flight, 1 to 64; 8 if absent.
    pub max_concurrency: Option<Number<1, 64>>,
    /// Maximum requests per second, 1 to 1000; no limit if absent.
    pub rate_limit_per_s: Option<Number<1, 1000>>,
    /// Whether a text `reply` in a JSON response is sent to the sender; `false` if absent.
    pub auto_reply: Option<bool>,
}

/// How the hub authenticates itself to the receiver.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields)]
pub struct SetAuth {
    /// The method; `none` if absent.
    pub method: Option<AuthMethod>,
    /// Header of the method `header`; `X-Custom-Auth` if absent.
    pub header_name: Option<Text<0, 128>>,
    /// Token, header value or key, depending on the method; at least 16 bytes for signatures. If absent, it is kept,
    /// or generated for `hmac` if the webhook has no secret yet; `null` removes it. `whsec_` followed by base64 is the form of
    /// Standard Webhooks: the key is the decoded bytes. Of any other text, the key is the UTF-8 bytes.
    pub secret: MaybeUndefined<AnySecret>,
}

impl Example for SetWebhook {
    fn example() -> Self {
        Self {
            enabled: Some(true),
            url: Some(Text("https://example.com/hook".to_owned())),
            auth: Some(SetAuth {
                method: Some(AuthMethod::Hmac),
                header_name: None,
                secret: MaybeUndefined::Value(Secret("a key of at least 16 bytes".into())),
            }),
            timeout_ms: Some(Number(10_000)),
            retry: None,
            ordering: None,
            max_concurrency: None,
            rate_limit_per_s: None,
            auto_reply: None,
        }
    }
}

impl From<SetWebhook> for WebhookUpdate {
    fn from(body: SetWebhook) -> Self {
        let default = Self::default();
        Self {
            enabled: body.enabled.unwrap_or(default.enabled),
            url: body.url.map_or(default.url, String::from),
            auth: body.auth.map_or(default.auth, Into::into),
            timeout_ms: body.timeout_ms.map_or(default.timeout_ms, u32::from),
            retry: body.retry.unwrap_or(default.retry),
            ordering: body.ordering.map_or(default.ordering, Into::into),
            max_concurrency: body.max_concurrency.map_or(default.max_concurrency, u32::from),
            rate_limit_per_s: body.rate_limit_per_s.map(u32::from),
            auto_reply: body.auto_reply.unwrap_or(default.auto_reply),
        }
    }
}

impl From<SetAuth> for AuthUpdate {
    fn from(body: SetAuth) -> Self {
        Self {
            method: body.method.unwrap_or_default(),
            header_name: body.header_name.map(String::from),
            secret: change(body.secret, |secret| secret.0),
        }
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

impl From<AiSourceChoice> for AiSource {
    fn from(source: AiSourceChoice) -> Self {
        match source {
            AiSourceChoice::Global | AiSourceChoice::Builtin => Self::Global,
            AiSourceChoice::Custom => Self::Custom,
        }
    }
}

/// A new configuration of the AI sink.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SetAi {
    /// Whether a model responds to messages; `true` if absent.
    pub enabled: Option<bool>,
    /// The endpoint to use; the administrator's if absent.
    pub source: Option<AiSourceChoice>,
    /// Base URL of a custom endpoint, with or without `/chat/completions`; it may have a query such as `?api-version=`.
    /// Private addresses are rejected.
    pub base_url: Option<Url>,
    /// Header of the key, for example `api-key`; `Authorization: Bearer` if absent or empty.
    pub key_header: Option<Checked<0, 128>>,
    /// Key of a custom endpoint. If absent, it is kept; `null` removes it.
    pub api_key: MaybeUndefined<AnySecret>,
    /// Name of the model; required for a custom endpoint.
    pub model: Option<Checked<0, 200>>,
    /// System prompt, at most 32,768 characters.
    pub system_prompt: Option<Checked<0, 32_768>>,
    /// Turns of the conversation that the model receives, 1 to 100; 20 if absent.
    pub max_history: Option<Number<1, 100>>,
    /// Maximum tokens of a response; the model's default if absent.
    pub max_tokens: Option<Number<1, 131_072>>,
    /// Sampling temperature, 0 to 2; the model's default if absent.
    #[oai(validator(minimum(value = "0"), maximum(value = "2")))]
    pub temperature: Option<f64>,
    /// Whether the reasoning of the model is removed from the response; `true` if absent.
    pub hide_thinking: Option<bool>,
    /// Whether Markdown is removed from the response; `false` if absent.
    pub strip_markdown: Option<bool>,
    /// Longest silence of the model, and longest run of a tool, in milliseconds, at most 120000; 60000 if absent. A
    /// response takes at most 10 minutes in total.
    pub timeout_ms: Option<Number<1, 120_000>>,
    /// Whether the model may use tools of installed apps; `false` if absent.
    pub tools: Option<bool>,
    /// Text that the sender receives if the model fails permanently (for example with 401) or returns an empty
    /// response, at most 1,000 characters; nothing if absent or empty.
    pub error_reply: Option<Text<0, 1000>>,
}

impl Example for SetAi {
    fn example() -> Self {
        Self {
            enabled: Some(true),
            source: Some(AiSourceChoice::Custom),
            base_url: Some(Text("https://api.example.com/v1".to_owned())),
            key_header: None,
            api_key: MaybeUndefined::Value(Secret("sk-example".into())),
            model: Some(Text("example-model".to_owned())),
            system_prompt: Some(Text("Answer in one sentence.".to_owned())),
            max_history: Some(Number(20)),
            max_tokens: None,
            temperature: None,
            hide_thinking: None,
            strip_markdown: None,
            timeout_ms: None,
            tools: None,
            error_reply: None,
        }
    }
}

impl From<SetAi> for AiUpdate {
    fn from(body: SetAi) -> Self {
        let default = Self::default();
        Self {
            enabled: body.enabled.unwrap_or(default.enabled),
            source: body.source.map_or(default.source, Into::into),
            base_url: body.base_url.map_or(default.base_url, String::from),
            key_header: body.key_header.map_or(default.key_header, String::from),
            api_key: change(body.api_key, |key| key.0),
            model: body.model.map_or(default.model, String::from),
            system_prompt: body.system_prompt.map_or(default.system_prompt, String::from),
            max_history: body.max_history.map_or(default.max_history, u32::from),
            max_tokens: body.max_tokens.map(u32::from),
            temperature: body.temperature,
            hide_thinking: body.hide_thinking.unwrap_or(default.hide_thinking),
            strip_markdown: body.strip_markdown.unwrap_or(default.strip_markdown),
            timeout_ms: body.timeout_ms.map_or(default.timeout_ms, u32::from),
            tools: body.tools.unwrap_or(default.tools),
            error_reply: body.error_reply.map_or(default.error_reply, String::from),
        }
    }
}

fn change<W, T>(wire: MaybeUndefined<W>, turn: impl FnOnce(W) -> T) -> Change<T> {
    match wire {
        MaybeUndefined::Undefined => Change::Keep,
        MaybeUndefined::Null => Change::Clear,
        MaybeUndefined::Value(value) => Change::Set(turn(value)),
    }
}
