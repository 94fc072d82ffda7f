//! An event as it is sent.

use hub_core::{
    event_feed::FeedItem,
    events::{self, Facts},
    id::{AppId, BotId, ChannelId, MessageId, PluginId, TraceId},
    openapi::Api,
};
use poem_openapi::Enum;

/// Type of an event of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum StreamEventType {
    /// The stream begins; it has the position from which it continues.
    Hello,
    /// Events may be missing.
    Resync,
    /// A message was received: `bot_id`, `message_id`.
    Message,
    /// A delivery ended or has its next attempt: `bot_id`, `trace_id`, and the status of the delivery.
    Trace,
    /// A message was sent, or will not be sent: `bot_id`, `message_id`, and its status.
    Sent,
    /// A file of a message is available, or will not be: `bot_id`, `message_id`.
    Media,
    /// A bot changed: `bot_id`, and its status or `removed`.
    Bot,
    /// Plugins of a channel changed: `bot_id`, `channel_id`, `plugin_id`, and `installed`, `removed` or `paused`.
    Plugin,
    /// A review: `plugin_id` or `app_id`, and the state of the version or the listing.
    Review,
    /// Apps on a bot changed: `bot_id`, `app_id`, and `installed` or `removed`.
    App,
}

impl From<events::EventKind> for StreamEventType {
    fn from(kind: events::EventKind) -> Self {
        use events::EventKind as Kind;
        match kind {
            Kind::Message => Self::Message,
            Kind::Trace => Self::Trace,
            Kind::Sent => Self::Sent,
            Kind::Media => Self::Media,
            Kind::Bot => Self::Bot,
            Kind::Plugin => Self::Plugin,
            Kind::Review => Self::Review,
            Kind::App => Self::App,
        }
    }
}

/// An event of the stream: the `data` of a server-sent event.
#[derive(Debug, Clone, Api)]
#[api(example = {
    "bot_id": "bot_01KAJJS8P00000000000000005",
    "id": "6f1d0c5be2a94d37-4711",
    "state": "ok",
    "trace_id": "tr_01KAJJS8P00000000000000005",
    "type": "trace"
})]
pub struct StreamEvent {
    /// Position in the stream; to be sent as `after` or `Last-Event-ID` by a client that continues.
    pub id: String,
    /// Type of the event.
    #[api(name = "type")]
    pub kind: StreamEventType,
    /// Only in `hello`: whether events may be missing since the one after which the client continues.
    pub resync: Option<bool>,
    /// The bot.
    pub bot_id: Option<BotId>,
    /// The channel.
    pub channel_id: Option<ChannelId>,
    /// The message.
    pub message_id: Option<MessageId>,
    /// The trace.
    pub trace_id: Option<TraceId>,
    /// The plugin.
    pub plugin_id: Option<PluginId>,
    /// The app.
    pub app_id: Option<AppId>,
    /// New status or state of the named object.
    pub state: Option<String>,
}

impl StreamEvent {
    fn plain(id: String, kind: StreamEventType) -> Self {
        Self {
            id,
            kind,
            resync: None,
            bot_id: None,
            channel_id: None,
            message_id: None,
            trace_id: None,
            plugin_id: None,
            app_id: None,
            state: None,
        }
    }
}

impl From<FeedItem> for StreamEvent {
    fn from(item: FeedItem) -> Self {
        match item {
            FeedItem::Hello { id, resync } => {
                Self { resync: Some(resync), ..Self::plain(id, StreamEventType::Hello) }
            }
            FeedItem::Resync { id } => Self::plain(id, StreamEventType::Resync),
            FeedItem::Event { id, facts } => {
                let Facts { kind, bot_id, channel_id, message_id, trace_id, plugin_id, app_id, .. } = *facts;
                Self {
                    bot_id,
                    channel_id,
                    message_id,
                    trace_id,
                    plugin_id,
                    app_id,
                    state: facts.state.map(Into::into),
                    ..Self::plain(id, kind.into())
                }
            }
        }
    }
}
