//! Wire types that requests and answers share.

use hub_core::channels::{self, sinks};
use poem_openapi::{Object, types::Example};

use crate::wire::{Text, enumeration};

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

/// Which messages a channel gets. Inside a list one entry is enough; an empty list has no say.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct FilterRules {
    /// Ids of senders, at most 100.
    #[oai(default)]
    pub user_ids: Vec<Text<0, 1024>>,
    /// Texts that the content contains, without regard to case and width of letters; at most 100.
    #[oai(default)]
    pub keywords: Vec<Text<0, 1024>>,
    /// `text`, `image`, `voice`, `video`, `file`, `other`.
    #[oai(default)]
    pub message_types: Vec<Text<0, 64>>,
    /// How the lists combine; `all` when left out.
    #[oai(rename = "match", default = "match_all")]
    pub mode: Match,
    /// A CEL expression over the fields of the webhook's payload that has to be true in any case.
    pub expression: Option<Text<0, 4096>>,
}

fn match_all() -> Match {
    Match::All
}

impl Example for FilterRules {
    fn example() -> Self {
        Self {
            user_ids: Vec::new(),
            keywords: vec![Text("order".to_owned())],
            message_types: vec![Text("text".to_owned())],
            mode: Match::All,
            expression: Some(Text("size(content) < 500".to_owned())),
        }
    }
}

impl From<FilterRules> for channels::Filter {
    fn from(rules: FilterRules) -> Self {
        fn texts<const MAX: usize>(list: Vec<Text<0, MAX>>) -> Vec<String> {
            list.into_iter().map(String::from).collect()
        }
        Self {
            user_ids: texts(rules.user_ids),
            keywords: texts(rules.keywords),
            message_types: texts(rules.message_types),
            mode: rules.mode.into(),
            expression: rules.expression.map(String::from),
        }
    }
}

impl From<channels::Filter> for FilterRules {
    fn from(filter: channels::Filter) -> Self {
        fn texts<const MAX: usize>(list: Vec<String>) -> Vec<Text<0, MAX>> {
            list.into_iter().map(Text).collect()
        }
        Self {
            user_ids: texts(filter.user_ids),
            keywords: texts(filter.keywords),
            message_types: texts(filter.message_types),
            mode: filter.mode.into(),
            expression: filter.expression.map(Text),
        }
    }
}

/// The WebSocket sink.
#[derive(Debug, Clone, Object)]
#[oai(deny_unknown_fields, example)]
pub struct WebSocketSink {
    /// Whether clients may connect and are sent messages; `true` when left out.
    #[oai(default = "on")]
    pub enabled: bool,
    /// Whether what the bot sends is shown to the clients too; `false` when left out.
    #[oai(default)]
    pub include_outbound: bool,
    /// Origins of pages, beside the hub's own, from which a browser may connect; `*` stands for any. At most 20.
    #[oai(default)]
    pub allowed_origins: Vec<Text<1, 256>>,
}

fn on() -> bool {
    true
}

impl Example for WebSocketSink {
    fn example() -> Self {
        Self {
            enabled: true,
            include_outbound: false,
            allowed_origins: vec![Text("https://app.example".to_owned())],
        }
    }
}

impl From<WebSocketSink> for sinks::WebSocketSettings {
    fn from(sink: WebSocketSink) -> Self {
        let allowed_origins = sink.allowed_origins.into_iter().map(Into::into).collect();
        Self { enabled: sink.enabled, include_outbound: sink.include_outbound, allowed_origins }
    }
}

impl From<sinks::WebSocketSettings> for WebSocketSink {
    fn from(settings: sinks::WebSocketSettings) -> Self {
        let allowed_origins = settings.allowed_origins.into_iter().map(Text).collect();
        Self { enabled: settings.enabled, include_outbound: settings.include_outbound, allowed_origins }
    }
}

/// When failed deliveries are tried again.
#[derive(Debug, Clone, Object)]
#[oai(deny_unknown_fields)]
pub struct Retry {
    /// Seconds before each retry, 1 to 20 of them; after the last the delivery is dead.
    pub schedule_s: Vec<u32>,
}
