//! Messages of a bot.

use crate::{
    id::{BotId, ChannelId, MessageId, TraceId},
    model::media::MediaView,
    network::{MessageItem, MessageKind, Quote},
    time::Timestamp,
    words::words,
};

words! {
    /// Which way a message went.
    #[derive(Hash)]
    pub enum Direction {
        /// From a person to the bot.
        Inbound = "inbound",
        /// From the bot to a person.
        Outbound = "outbound",
    }
}

/// A message as the bot's owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "messages")]
pub struct Message {
    /// Id.
    pub id: MessageId,
    /// Bot.
    pub bot_id: BotId,
    /// Channels that received it, and the one that sent it.
    #[row(skip)]
    pub channel_ids: Vec<ChannelId>,
    /// Which way it went.
    pub direction: Direction,
    /// Sender, byte for byte.
    pub from_user_id: String,
    /// Receiver, byte for byte.
    pub to_user_id: String,
    /// Display name of the person on the other side; empty when unknown.
    pub user_name: String,
    /// The network's label of the conversation; empty when it has none.
    pub session_id: String,
    /// What it is.
    pub kind: MessageKind,
    /// Its text.
    pub content: String,
    /// Its parts.
    #[row(json)]
    pub items: Vec<MessageItem>,
    /// Its files, with links to read them.
    #[row(skip)]
    pub media: Vec<MediaView>,
    /// What it refers to.
    #[row(json)]
    pub quoted: Option<Quote>,
    /// Status: `received` and others for inbound, `queued`, `sent` and others for outbound messages.
    pub status: String,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// The trace that tells of it, where there is one for the message itself.
    pub trace_id: Option<TraceId>,
    /// When the hub took it.
    pub created_at: Timestamp,
}

/// Which messages of a bot are wanted; every part that is set must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageFilter {
    /// Only this way.
    pub direction: Option<Direction>,
    /// Only with this person.
    pub user_id: Option<String>,
    /// Taken by the hub at this time or later.
    pub since: Option<Timestamp>,
    /// Taken by the hub before this time.
    pub until: Option<Timestamp>,
    /// Containing this text; the case of ASCII letters does not matter, that of others may.
    pub q: Option<String>,
}
