//! Messages of a bot.

use serde::{Deserialize, Serialize};

use crate::{
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{media::MediaView, named::Named, trace::TraceStatus},
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

words! {
    /// Status of a message.
    pub enum MessageStatus {
        /// Received.
        Received = "received",
        /// Received, and it could not be read.
        Quarantined = "quarantined",
        /// Received from a bot, and not delivered.
        Ignored = "ignored",
        /// Received, and the sender took it back.
        Recalled = "recalled",
        /// Received before the sender had finished it.
        Unfinished = "unfinished",
        /// Waits until the network takes it.
        Queued = "queued",
        /// The network has it.
        Sent = "sent",
        /// The network took it and gave no id.
        Unconfirmed = "unconfirmed",
        /// Unknown whether the network has it; not repeated.
        Unknown = "unknown",
        /// The network refused it.
        Failed = "failed",
        /// It waited too long.
        Expired = "expired",
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
    pub quoted: Option<Quoted>,
    /// Its status.
    pub status: MessageStatus,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// The trace that tells of it, where there is one for the message itself.
    pub trace_id: Option<TraceId>,
    /// When the hub took it.
    pub created_at: Timestamp,
}

/// A message of a bot that another message quotes.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
pub struct QuotedMessage {
    pub message_id: MessageId,
    pub direction: Direction,
    pub kind: MessageKind,
    /// Text; for a file without a text its name.
    pub content: String,
}

/// A quoted message, as the receivers of the quoting message see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Quote")]
pub struct Quoted {
    /// Id of the quoted message, if the hub has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The network's id of the quoted message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// Kind of the quoted message, if known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// The quoted text: [`Quote::meant`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Name of the quoted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

impl From<Quote> for Quoted {
    fn from(quote: Quote) -> Self {
        let text = quote.meant().map(str::to_owned);
        let Quote { message_id, network_id, kind, file_name, .. } = quote;
        Self { message_id, network_id, kind, text, file_name }
    }
}

/// What filters look at in a message that a person sent.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "messages")]
pub struct ReceivedMessage {
    pub id: MessageId,
    pub from_user_id: String,
    pub user_name: String,
    pub session_id: String,
    pub kind: MessageKind,
    pub content: String,
    pub sent_at: Timestamp,
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

words! {
    /// The outcome of a message in a channel, for filters.
    pub enum Outcome {
        /// The delivery failed.
        Failed = "failed",
        /// The delivery has not ended.
        InFlight = "in_flight",
        /// A filter or a plugin skipped the message.
        Skipped = "skipped",
        /// The message was delivered.
        Delivered = "delivered",
    }
}

impl Outcome {
    /// The status of a trace with this outcome.
    pub const fn status(self) -> TraceStatus {
        match self {
            Self::Failed => TraceStatus::Error,
            Self::InFlight => TraceStatus::Pending,
            Self::Skipped => TraceStatus::Skipped,
            Self::Delivered => TraceStatus::Ok,
        }
    }
}

/// Which messages of all bots are wanted. A `q` that is the id of a message or of a trace selects that message alone,
/// whatever the other filters are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageSearch {
    /// Filters that a list of one bot has too.
    pub filter: MessageFilter,
    /// Only of this bot.
    pub bot_id: Option<BotId>,
    /// Only those that reached this channel or were sent by it.
    pub channel_id: Option<ChannelId>,
    /// Only those whose newest trace in a channel has this outcome.
    pub outcome: Option<Outcome>,
}

impl MessageSearch {
    /// What the text of the search names by its id.
    pub(crate) fn named(&self) -> Option<Named> {
        Named::read(self.filter.q.as_deref()?.trim())
    }

    /// The search without the filters that do not matter for an id.
    pub(crate) fn effective(&self) -> Self {
        if self.named().is_none() {
            return self.clone();
        }
        let filter = MessageFilter { q: self.filter.q.clone(), ..MessageFilter::default() };
        Self { filter, ..Self::default() }
    }
}

/// Outcome of a message in one channel.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "traces")]
pub struct MessageOutcome {
    /// The message.
    pub message_id: MessageId,
    /// The channel; `None` for an app, and for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// Name of the channel.
    pub channel_name: Option<String>,
    /// The newest trace of the message in the channel.
    pub trace_id: TraceId,
    /// Its status.
    pub status: TraceStatus,
    /// Attempts at the sink.
    #[row(number)]
    pub attempts: u64,
    /// The summary of the trace, unless the message was delivered.
    pub reason: Option<String>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
}

/// A message in a list over all bots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMessage {
    /// The message.
    pub message: Message,
    /// Name of its bot.
    pub bot_name: String,
    /// Its outcome in each channel, oldest trace first.
    pub outcomes: Vec<MessageOutcome>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Selection;

    #[test]
    fn a_stored_quote_is_read_as_receivers_see_it() {
        let part = |md5: Option<&str>| Selection {
            start: "b".to_owned(),
            end: "c".to_owned(),
            start_index: 0,
            end_index: 0,
            md5: md5.map(str::to_owned),
        };
        for (md5, text) in [(None, "bc"), (Some("x"), "abcd")] {
            let partial_text = Some(part(md5));
            let quote = Quote { text: Some("abcd".to_owned()), partial_text, ..Quote::default() };
            let json = serde_json::to_string(&quote).unwrap();
            assert_eq!(serde_json::from_str::<Quote>(&json).unwrap(), quote);
            let seen: Quoted = serde_json::from_str(&json).unwrap();
            assert_eq!(seen.text.as_deref(), Some(text));
        }
        let older = r#"{"network_id":"9","text":"bc"}"#;
        let seen: Quoted = serde_json::from_str(older).unwrap();
        assert_eq!(serde_json::to_string(&seen).unwrap(), older);
    }
}
