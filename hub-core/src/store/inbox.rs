//! Inbound messages: what of them is accepted, their rows, and the results of batches.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{app_events::QueuedEvent, media::NewInboundMedia, rows::row, traces::NewTrace};
use crate::{
    id::{BotId, ChannelId, DeliveryId, MessageId},
    model::{message::MessageStatus, sinks::SinkId},
    network::MessageKind,
    secret::Sealed,
    time::Timestamp,
};

/// Messages of one bot from one response of the network.
#[derive(Debug)]
pub struct Accept {
    /// The bot.
    pub bot_id: BotId,
    /// The lease under which it was polled.
    pub fence: i64,
    /// The revision of the channels' settings that the routes were computed with.
    pub config_rev: i64,
    /// Position from which the next poll continues; `None` keeps the old cursor.
    pub cursor: Option<String>,
    /// Time of the response.
    pub now: Timestamp,
    /// Whether clients wait that read the tables as soon as it is committed.
    pub is_read_at_once: bool,
    /// Oldest first.
    pub messages: Vec<AcceptMessage>,
}

impl Accept {
    /// Whether it brings messages alone, without files or events for apps.
    pub(super) fn is_texts(&self) -> bool {
        self.messages.iter().all(|message| message.media.is_empty() && message.apps.is_empty())
    }
}

/// A message and its routes to channels.
#[derive(Debug)]
pub struct AcceptMessage {
    /// The row to insert.
    pub row: MessageRow,
    /// Set when a person wrote it: the person becomes a contact and the sending window opens.
    pub contact: Option<ContactUpdate>,
    /// One entry per channel of the bot.
    pub routes: Vec<AcceptRoute>,
    /// Files that are still with the network.
    pub media: Vec<NewInboundMedia>,
    /// Events for apps on the bot.
    pub apps: Vec<QueuedEvent>,
}

/// Columns of a message.
#[derive(Debug)]
pub struct MessageRow {
    /// Id.
    pub id: MessageId,
    /// Bot.
    pub bot_id: BotId,
    /// The person on the other side, or the group.
    pub peer: String,
    /// Sender.
    pub from_user_id: String,
    /// Receiver.
    pub to_user_id: String,
    /// Sender's display name.
    pub user_name: String,
    /// Conversation.
    pub session_id: String,
    /// Group, or empty.
    pub group_id: String,
    /// Kind.
    pub kind: MessageKind,
    /// Text.
    pub content: String,
    /// Parts, as a JSON text.
    pub items: String,
    /// Quote, as a JSON text.
    pub quoted: Option<String>,
    /// The network's id.
    pub network_id: Option<String>,
    /// Unique per bot.
    pub dedupe_key: String,
    /// Sealed: the context token as its contact has it, or a JSON text with it and the network's own form of what could
    /// not be read.
    pub private: Option<Sealed>,
    /// Status.
    pub status: MessageStatus,
    /// Time at which it was sent.
    pub sent_at: Timestamp,
    /// Time of arrival.
    pub created_at: Timestamp,
}

/// Changes of the sender's contact.
#[derive(Debug)]
pub struct ContactUpdate {
    /// Sealed for the contact's row.
    pub context_token: Option<Sealed>,
    /// Time at which the sending window opened.
    pub opened_at: Timestamp,
    /// Their name on the network; empty when it tells none. That of the message may come from the owner's remark.
    pub network_name: String,
}

/// Effect of a message on one channel.
#[derive(Debug)]
pub struct AcceptRoute {
    /// The channel.
    pub channel_id: ChannelId,
    /// The trace so far.
    pub trace: NewTrace,
    /// Set when the channel takes the message.
    pub taken: Option<Taken>,
}

/// A message that a channel takes.
#[derive(Debug)]
pub struct Taken {
    /// The text, where the channel sees another than the message's (handle prefix removed).
    pub content: Option<String>,
    /// The work for the sinks that are on; each sink at most once.
    pub deliveries: Vec<NewDelivery>,
}

/// Work for a sink.
#[derive(Debug)]
pub struct NewDelivery {
    /// Id.
    pub id: DeliveryId,
    /// The sink.
    pub sink: SinkId,
    /// Ordering key: deliveries of a sink with the same key keep their order.
    pub lane: String,
    /// The fence of the node that holds it in memory, or 0.
    pub claim: i64,
}

/// Result of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Committed. For each message, in order: `None` for a repeat, else the channels' sequence numbers, one
    /// per route (0 where the channel did not take it).
    Stored(Vec<Option<Vec<i64>>>),
    /// Another node, or another login, has taken the bot over: nothing was stored.
    Fenced,
    /// The channels' settings changed meanwhile: nothing was stored; route again.
    Stale,
}

row!(MessageRow, |row| {
    Text id = row.id,
    Text bot_id = row.bot_id,
    Text peer = row.peer.as_str(),
    Text from_user_id = row.from_user_id.as_str(),
    Text to_user_id = row.to_user_id.as_str(),
    Text user_name = row.user_name.as_str(),
    Text session_id = row.session_id.as_str(),
    Text group_id = row.group_id.as_str(),
    Text kind = row.kind.as_str(),
    Long content = row.content.as_str(),
    Long items = row.items.as_str(),
    Text quoted = row.quoted.as_deref(),
    Text network_id = row.network_id.as_deref(),
    Text dedupe_key = row.dedupe_key.as_str(),
    Long private = row.private.as_ref().map(Sealed::as_str),
    Text status = row.status.as_str(),
    Number sent_at = row.sent_at,
    Number created_at = row.created_at,
});

/// Fence and settings revision of each bot that exists.
pub(super) type Current = HashMap<BotId, (i64, i64)>;
/// The numbers that channels gave messages.
pub(super) type Seqs = HashMap<(ChannelId, MessageId), i64>;

/// Batches and the reason for each refused one.
#[derive(Debug)]
pub(super) struct CheckedBatches<'a> {
    batches: &'a [Arc<Accept>],
    refused: Vec<Option<Accepted>>,
    /// Batches that are not refused.
    pub(super) valid: Vec<&'a Accept>,
}

impl<'a> CheckedBatches<'a> {
    pub(super) fn new(batches: &'a [Arc<Accept>], current: &Current) -> Self {
        let judge = |batch: &Arc<Accept>| match current.get(&batch.bot_id) {
            Some((fence, rev)) if *fence == batch.fence && *rev == batch.config_rev => None,
            Some((fence, _)) if *fence == batch.fence => Some(Accepted::Stale),
            _ => Some(Accepted::Fenced),
        };
        let refused: Vec<_> = batches.iter().map(judge).collect();
        let valid = batches.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
        let valid = valid.map(|(batch, _)| &**batch).collect();
        Self { batches, refused, valid }
    }

    /// Batches of which none is refused.
    pub(super) fn accepted(batches: &'a [Arc<Accept>]) -> Self {
        let valid = batches.iter().map(|batch| &**batch).collect();
        Self { batches, refused: batches.iter().map(|_| None).collect(), valid }
    }

    /// The rows of all messages.
    pub(super) fn rows(&self) -> Vec<&'a MessageRow> {
        self.valid.iter().flat_map(|batch| &batch.messages).map(|message| &message.row).collect()
    }

    /// The result of each batch, in their order.
    pub(super) fn answers(self, inserted: &HashSet<MessageId>, seqs: &Seqs) -> Vec<Accepted> {
        let results = self.batches.iter().zip(self.refused);
        results.map(|(batch, refused)| refused.unwrap_or_else(|| stored(batch, inserted, seqs))).collect()
    }
}

/// The new messages that each channel takes, in their order.
pub(super) fn taken(
    batches: &[&Accept],
    inserted: &HashSet<MessageId>,
) -> BTreeMap<ChannelId, Vec<MessageId>> {
    let mut taken: BTreeMap<ChannelId, Vec<MessageId>> = BTreeMap::new();
    for message in batches.iter().flat_map(|batch| &batch.messages) {
        if inserted.contains(&message.row.id) {
            for route in message.routes.iter().filter(|route| route.taken.is_some()) {
                taken.entry(route.channel_id).or_default().push(message.row.id);
            }
        }
    }
    taken
}

/// The result of a batch that is not refused.
fn stored(batch: &Accept, inserted: &HashSet<MessageId>, seqs: &Seqs) -> Accepted {
    let numbers = |message: &AcceptMessage| {
        let is_new = inserted.contains(&message.row.id);
        is_new.then(|| message.routes.iter().map(|route| seq_of(seqs, message, route)).collect())
    };
    Accepted::Stored(batch.messages.iter().map(numbers).collect())
}

/// The number that a channel gave a message; 0 where it gave none.
pub(super) fn seq_of(seqs: &Seqs, message: &AcceptMessage, route: &AcceptRoute) -> i64 {
    seqs.get(&(route.channel_id, message.row.id)).copied().unwrap_or(0)
}

/// Stores messages out of these rows.
pub(super) fn insert_statement(rows: &str) -> String {
    format!(
        "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at)
         SELECT id, bot_id, 'inbound', peer, from_user_id, to_user_id, user_name, session_id, group_id, kind,
            content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at
         FROM {rows} WHERE x.id IS NOT NULL"
    )
}

/// Numbers the messages of a channel, of which `last` is the number of the last one.
pub(super) fn number(seqs: &mut Seqs, channel: ChannelId, messages: &[MessageId], last: i64) {
    seqs.extend(messages.iter().rev().zip(0..).map(|(message, back)| ((channel, *message), last - back)));
}
