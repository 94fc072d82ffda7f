//! Messages of a bot.

use serde::{Deserialize, Serialize};

use crate::{
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{id_search::Named, media::MediaView, trace::TraceStatus},
    network::{MessageItem, MessageKind, Quote},
    time::Timestamp,
    words::words,
};

words! {
    /// Direction of a message.
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
        /// Received, but the hub could not read it.
        Quarantined = "quarantined",
        /// Received from a bot, and not delivered.
        Ignored = "ignored",
        /// Received, and the sender took it back.
        Recalled = "recalled",
        /// Received before the sender had finished it, and not delivered.
        Unfinished = "unfinished",
        /// Waiting for the network.
        Queued = "queued",
        /// The network accepted it.
        Sent = "sent",
        /// The network accepted it without an id.
        Unconfirmed = "unconfirmed",
        /// It is unknown whether the network has it; it is not sent again.
        Unknown = "unknown",
        /// The network refused it.
        Failed = "failed",
        /// It waited too long.
        Expired = "expired",
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "messages")]
pub struct Message {
    /// Id of the message.
    pub id: MessageId,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Channels that received it, or the channel that sent it.
    #[row(skip)]
    pub channel_ids: Vec<ChannelId>,
    /// Direction.
    pub direction: Direction,
    /// Id of the sender.
    pub from_user_id: String,
    /// Id of the recipient.
    pub to_user_id: String,
    /// Display name of the other person; empty if unknown.
    pub user_name: String,
    /// Text.
    #[api(and(
        msg_type: i64 = |message: &Self| message.kind.msg_type(),
        "Kind: 1 text, 3 image, 34 voice, 43 video, 49 file, 0 other."
    ))]
    pub content: String,
    /// Parts.
    #[row(json)]
    pub items: Vec<MessageItem>,
    /// Conversation; empty if the network has no id for it.
    pub session_id: String,
    /// The quoted message.
    #[row(json)]
    pub quoted: Option<Quoted>,
    /// Files, with links to download them.
    #[row(skip)]
    pub media: Vec<MediaView>,
    /// Status.
    pub status: MessageStatus,
    /// Reason for the status, if known.
    #[api(cause)]
    pub status_reason: Option<String>,
    /// Id of its trace.
    pub trace_id: Option<TraceId>,
    /// When the hub received it.
    pub created_at: Timestamp,
    /// What it is.
    #[api(skip)]
    pub kind: MessageKind,
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

/// A quoted message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(from = "Quote")]
pub struct Quoted {
    /// Id of the quoted message, if the hub has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Id of the quoted message on the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// Kind of the quoted message, if known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// The quoted text, if known: of a part of the message, that part; of a file its name.
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

/// A message that a person sent, with the fields that filters read.
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

/// Filters of a list of a bot's messages; all that are set must match.
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
    /// Outcome of a message in a channel.
    pub enum Outcome {
        /// The delivery failed.
        Failed = "failed",
        /// The delivery or the send has not ended.
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

/// Filters of a search for messages of all bots. A `q` that is the id of a message or of a trace selects that message
/// alone; the other filters are ignored.
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
    /// Returns the message or trace whose id is the text of the search.
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

/// Outcome of a message in one channel: its newest trace there.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "traces")]
pub struct MessageOutcome {
    /// Id of the channel; absent for an app, and for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// Name of the channel.
    pub channel_name: Option<String>,
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Status of the trace.
    pub status: TraceStatus,
    /// Number of attempts at the sink.
    #[row(number)]
    pub attempts: u64,
    /// Summary of the trace, unless the message was delivered.
    #[api(cause)]
    pub reason: Option<String>,
    /// When the next attempt is due; absent if no attempt is planned.
    pub next_attempt_at: Option<Timestamp>,
    /// The message.
    #[api(skip)]
    pub message_id: MessageId,
}

/// A message in a list over all bots.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct ListedMessage {
    /// The message.
    #[api(flatten)]
    pub message: Message,
    /// Name of the bot.
    pub bot_name: String,
    /// Outcome in each channel.
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
