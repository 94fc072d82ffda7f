//! Statements about the outbox: accepting what is to be sent.

use std::collections::HashSet;

use hub_macros::FromRow;

use super::{
    conn::{Conn, sql},
    rows::{self, row},
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, Ids, MessageId, OutboxId, TraceId},
    model::media::KeptFile,
    network::{MessageItem, MessageKind, items},
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// A message on its way out, with the items the network will be given.
#[derive(Debug, Clone)]
pub struct NewOutbound {
    /// Id of the message.
    pub message_id: MessageId,
    /// Bot that sends it.
    pub bot_id: BotId,
    /// Receiver, byte for byte.
    pub peer: String,
    /// Equal keys of one bot are one message: a repeated hook adds nothing.
    pub dedupe_key: String,
    /// The whole text. Must not contain NUL, as everything that is stored.
    pub content: String,
    /// The items, in sending order; each costs one send.
    pub parts: Vec<NewPart>,
    /// The message that it replies to: a quote, as a JSON text.
    pub quoted: Option<String>,
    /// The channel that requested it, if one did.
    pub channel_id: Option<ChannelId>,
    /// The trace it belongs to.
    pub trace_id: Option<TraceId>,
    /// The permission to answer that the caller chose, sealed for the message; the receiver's newest one if absent.
    pub private: Option<Sealed>,
    /// Time after which it is no longer tried.
    pub expires_at: Timestamp,
    /// Time of acceptance; it is due immediately.
    pub now: Timestamp,
}

impl NewOutbound {
    pub(super) fn has_files(&self) -> bool {
        self.parts.iter().any(|part| part.file.is_some())
    }
}

/// One item of a message.
#[derive(Debug, Clone)]
pub struct NewPart {
    /// Id of the row. Ids rise in sending order.
    pub id: OutboxId,
    /// The network's handle against repeats, fixed before the first try.
    pub client_id: String,
    /// The text of this part; empty for a file.
    pub text: String,
    /// A file, kept and not yet part of another message.
    pub file: Option<KeptFile>,
}

impl NewPart {
    /// An item under an id of its own. The network wants a handle of ours that is new for each item; the item's id
    /// is.
    pub fn new(ids: &Ids, text: String) -> Self {
        let id: OutboxId = ids.next();
        let client_id = format!("hub-{}", id.to_string().trim_start_matches("out_"));
        Self { id, client_id, text, file: None }
    }

    /// As [`new`](Self::new), for a file. The message takes it over: no other one can have it then.
    pub fn file(ids: &Ids, file: KeptFile) -> Self {
        Self { file: Some(file), ..Self::new(ids, String::new()) }
    }
}

/// Parts that wait for a send to one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct Queued {
    /// Number of parts.
    #[row(number)]
    pub parts: u32,
    /// The latest time at which one of them may be tried; `None` without parts.
    pub due_at: Option<Timestamp>,
}

/// Statements about the outbox, on a lent connection.
#[derive(Debug)]
pub struct Outbox<'c>(pub(super) Conn<'c>);

impl Outbox<'_> {
    /// Stores messages and their parts in two statements, and returns the new messages: those whose key the bot did
    /// not have yet. Other messages, and those of a bot that is gone, are not stored. A message joins the
    /// conversation that its person last wrote in, or else the one with that person alone. Parts are numbered from 0.
    pub async fn enqueue(&mut self, rows: &[NewOutbound]) -> Result<Vec<MessageId>> {
        failpoint!("enqueue.items");
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let new = self.insert_messages(&rows.iter().collect::<Vec<_>>()).await?;
        self.insert_parts(&new).await?;
        Ok(new.into_iter().map(|row| row.message_id).collect())
    }

    /// Stores messages; returns the new ones.
    async fn insert_messages<'m>(&mut self, messages: &[&'m NewOutbound]) -> Result<Vec<&'m NewOutbound>> {
        let lock = if matches!(self.0, Conn::Sqlite(_)) { "" } else { LOCK };
        let insert = |rows: &str| format!("{} RETURNING id", insert_messages(rows, lock));
        let new: Vec<MessageId> = rows::returning(&mut self.0, &message_rows(messages), insert).await?;
        let new: HashSet<MessageId> = new.into_iter().collect();
        Ok(messages.iter().copied().filter(|message| new.contains(&message.message_id)).collect())
    }

    async fn insert_parts(&mut self, messages: &[&NewOutbound]) -> Result<()> {
        let parts = part_rows(messages, &HashSet::new());
        rows::run(&mut self.0, &parts, |rows| insert_parts(rows, BEGUN)).await?;
        if !messages.iter().any(|message| message.has_files()) {
            return Ok(());
        }
        let take = if matches!(self.0, Conn::Sqlite(_)) { take_files } else { take_files_postgres };
        rows::run(&mut self.0, &parts, take).await
    }

    /// Returns the keys among these that messages of the bot have.
    pub async fn known(&mut self, bot_id: BotId, keys: &[String]) -> Result<Vec<String>> {
        sql!(self.0, values:
            ["SELECT dedupe_key FROM messages WHERE bot_id = $1 AND dedupe_key", in 2];
            bot_id, json(keys)
        )
    }

    /// Counts the parts that wait to be sent to one person, and reads when the last is due. The part that is being sent
    /// is not counted: its send is in the person's window.
    pub async fn queued_parts(&mut self, bot_id: BotId, peer: &str) -> Result<Queued> {
        sql!(self.0, one:
            // SQLite uses the index of open items only for its own condition.
            "SELECT COUNT(*) AS parts, MAX(due_at) AS due_at FROM outbox
            WHERE bot_id = $1 AND peer = $2 AND state IN ('queued', 'sending') AND state = 'queued'";
            bot_id, peer
        )
    }
}

/// A message as it is stored.
pub(super) struct MessageRow<'m> {
    pub(super) message: &'m NewOutbound,
    kind: MessageKind,
    items: String,
}

row!(MessageRow<'_>, |row| {
    Text id = row.message.message_id,
    Text bot = row.message.bot_id,
    Text peer = row.message.peer.as_str(),
    Text key = row.message.dedupe_key.as_str(),
    Text kind = row.kind.as_str(),
    Long content = row.message.content.as_str(),
    Long items = row.items.as_str(),
    Long quoted = row.message.quoted.as_deref(),
    Text channel = row.message.channel_id,
    Text trace = row.message.trace_id,
    Number now = row.message.now,
    Long private = row.message.private.as_ref().map(Sealed::as_str),
});

/// An item as it is stored.
pub(super) struct PartRow<'m> {
    message: &'m NewOutbound,
    part: &'m NewPart,
    place: i64,
    /// Its place among the message's items as they are shown.
    item: i64,
    is_begun: bool,
}

row!(PartRow<'_>, |row| {
    Text id = row.part.id,
    Text message = row.message.message_id,
    Text bot = row.message.bot_id,
    Text peer = row.message.peer.as_str(),
    Number part = row.place,
    Number parts = count(row.message.parts.len()),
    Text client = row.part.client_id.as_str(),
    Text text = row.part.text.as_str(),
    Number begun = i64::from(row.is_begun),
    Number now = row.message.now,
    Number expires = row.message.expires_at,
    Text media = row.part.file.as_ref().map(|file| file.id),
    Number item = row.item,
});

/// Stores messages out of these rows, unless their bot has their keys. `lock` is what PostgreSQL locks of the bots.
pub(super) fn insert_messages(rows: &str, lock: &str) -> String {
    format!(
        "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id,
            kind, content, items, quoted, dedupe_key, status, channel_id, trace_id, sent_at, created_at, private)
        SELECT x.id, b.id, 'outbound', x.peer, b.wx_id, x.peer,
            COALESCE(NULLIF(c.user_name, ''), c.remark, ''), COALESCE((SELECT m.session_id FROM messages AS m
                WHERE m.bot_id = b.id AND m.peer = x.peer AND m.session_id <> '' ORDER BY m.id DESC LIMIT 1),
                x.peer), '', x.kind, x.content, x.items, x.quoted, x.key,
            'queued', x.channel, x.trace, x.now, x.now, x.private
        FROM {rows}
        JOIN bots AS b ON b.id = x.bot
        LEFT JOIN contacts AS c ON c.bot_id = b.id AND c.user_id = x.peer
        WHERE x.id IS NOT NULL
        ORDER BY x.id
        {lock}
        ON CONFLICT (bot_id, dedupe_key) DO NOTHING"
    )
}

/// Stores items out of these rows; those for which `begun` holds are marked as being sent.
pub(super) fn insert_parts(rows: &str, begun: &str) -> String {
    format!(
        "INSERT INTO outbox (id, message_id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns,
            due_at, expires_at, created_at, updated_at, media_id)
        SELECT x.id, x.message, x.bot, x.peer, x.part, x.parts, x.client, x.text,
            CASE WHEN {begun} THEN 'sending' ELSE 'queued' END, CASE WHEN {begun} THEN 1 ELSE 0 END, 0,
            x.now, x.expires, x.now, x.now, x.media
        FROM {rows} WHERE x.id IS NOT NULL"
    )
}

/// Lock clause of [`insert_messages`] on PostgreSQL.
pub(super) const LOCK: &str = "FOR KEY SHARE OF b";

/// Condition of [`insert_parts`] for rows with a column `begun`.
pub(super) const BEGUN: &str = "x.begun = 1";

/// Gives files to messages, out of the rows of their items, on SQLite. Of two messages with one file the earlier gets it.
pub(super) fn take_files(rows: &str) -> String {
    give_files(&format!("SELECT x.media, min(x.message) AS message, x.item FROM {rows} GROUP BY x.media"))
}

/// As [`take_files`], on PostgreSQL.
pub(super) fn take_files_postgres(rows: &str) -> String {
    give_files(&format!(
        "SELECT DISTINCT ON (x.media) x.message, x.media, x.item FROM {rows} ORDER BY x.media, x.message"
    ))
}

fn give_files(first: &str) -> String {
    format!(
        "UPDATE media SET message_id = r.message, item = r.item, expires_at = 0
        FROM ({first}) AS r WHERE media.id = r.media AND media.message_id IS NULL"
    )
}

/// The rows of messages.
pub(super) fn message_rows<'m>(messages: &[&'m NewOutbound]) -> Vec<MessageRow<'m>> {
    messages.iter().map(|message| message_row(message)).collect()
}

/// The rows of the items of messages; the first of those that are `begun` is marked as being sent.
pub(super) fn part_rows<'m>(messages: &[&'m NewOutbound], begun: &HashSet<MessageId>) -> Vec<PartRow<'m>> {
    messages.iter().flat_map(|message| parts_of(message, begun.contains(&message.message_id))).collect()
}

fn message_row(message: &NewOutbound) -> MessageRow<'_> {
    let files = || message.parts.iter().filter_map(|part| part.file.as_ref());
    let text = (files().count() < message.parts.len()).then(|| MessageItem::text(&*message.content));
    let items: Vec<MessageItem> = text.into_iter().chain(files().map(file_item)).collect();
    MessageRow {
        message,
        kind: files().next().map_or(MessageKind::Text, |file| file.kind),
        items: items::stored(&items, &message.content),
    }
}

fn parts_of(message: &NewOutbound, is_begun: bool) -> impl Iterator<Item = PartRow<'_>> {
    // All texts together are one item of the message, the first.
    let texts = message.parts.iter().filter(|part| part.file.is_none()).count();
    message.parts.iter().enumerate().map(move |(place, part)| PartRow {
        message,
        part,
        place: count(place),
        item: count(place.saturating_sub(texts) + usize::from(texts > 0)),
        is_begun: is_begun && place == 0,
    })
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn file_item(file: &KeptFile) -> MessageItem {
    MessageItem {
        kind: file.kind,
        text: None,
        file_name: Some(file.file_name.clone()),
        size: Some(file.size),
        duration_ms: None,
    }
}
