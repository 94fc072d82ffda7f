//! Statements about the outbox: accepting what is to be sent.

use std::collections::HashSet;

use serde_json::{Value, json as object};

use super::{
    conn::{Conn, sql},
    deliveries::Finished,
    sending::{
        ItemState,
        at_once::{self, Permits},
    },
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
    /// The channel that asked for it, if one did.
    pub channel_id: Option<ChannelId>,
    /// The trace it belongs to.
    pub trace_id: Option<TraceId>,
    /// The permission to answer that the caller chose, sealed for the message; the receiver's newest one if absent.
    pub private: Option<Sealed>,
    /// When trying ends.
    pub expires_at: Timestamp,
    /// When it was accepted; due at once.
    pub now: Timestamp,
}

impl NewOutbound {
    /// Whether it brings no files.
    pub(super) fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| part.file.is_none())
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

/// Statements about the outbox, on a lent connection.
#[derive(Debug)]
pub struct Outbox<'c>(pub(super) Conn<'c>);

impl Outbox<'_> {
    /// Stores messages and their parts in two statements, and tells which messages are new: those whose key
    /// the bot did not have yet. A message joins the conversation its person last wrote in, else the one with that
    /// person alone. The others, and those of a bot that is gone, leave no trace. Parts are
    /// numbered from 0.
    pub async fn enqueue(&mut self, rows: &[NewOutbound]) -> Result<Vec<MessageId>> {
        failpoint!("enqueue.items");
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<&NewOutbound> = rows.iter().collect();
        let new = self.insert_messages(&rows).await?;
        self.insert_parts(&rows, &new, &HashSet::new()).await?;
        Ok(rows.into_iter().map(|row| row.message_id).filter(|id| new.contains(id)).collect())
    }

    /// As [`enqueue`](Self::enqueue), for replies of these outcomes; returns what is to be sent at once.
    pub(super) async fn enqueue_replies(&mut self, finished: &[&Finished]) -> Result<Permits> {
        let rows: Vec<&NewOutbound> = finished.iter().flat_map(|one| &one.replies).collect();
        if rows.is_empty() {
            return Ok(Permits::new());
        }
        failpoint!("finish.replies");
        failpoint!("enqueue.items");
        let new = self.insert_messages(&rows).await?;
        let candidates = at_once::candidates(finished, &new);
        let permits = at_once::count(&mut self.0, &candidates).await?;
        self.insert_parts(&rows, &new, &at_once::begun(&candidates, &permits)).await?;
        Ok(permits)
    }

    async fn insert_messages(&mut self, rows: &[&NewOutbound]) -> Result<HashSet<MessageId>> {
        let new: Vec<MessageId> =
            sql!(self.0, values: INSERT_MESSAGES[0], INSERT_MESSAGES[1]; message_rows(rows))?;
        Ok(new.into_iter().collect())
    }

    async fn insert_parts(
        &mut self,
        rows: &[&NewOutbound],
        new: &HashSet<MessageId>,
        begun: &HashSet<MessageId>,
    ) -> Result<()> {
        let parts = part_rows(rows, new, begun);
        sql!(self.0, run: INSERT_PARTS[0], INSERT_PARTS[1]; &parts)?;
        if !rows.iter().all(|row| row.is_plain()) {
            sql!(self.0, run: TAKE_FILES_SQLITE, TAKE_FILES_POSTGRES; &parts)?;
        }
        Ok(())
    }

    /// Which of these keys the bot has messages for.
    pub async fn known(&mut self, bot_id: BotId, keys: &[String]) -> Result<Vec<String>> {
        sql!(self.0, values:
            "SELECT dedupe_key FROM messages
            WHERE bot_id = $1 AND dedupe_key IN (SELECT value FROM json_each($2))",
            "SELECT dedupe_key FROM messages
            WHERE bot_id = $1 AND dedupe_key IN (SELECT json_array_elements_text($2::json))";
            bot_id, json(keys)
        )
    }

    /// How many parts wait for a send to one person. The part that is being sent is not among them: its send
    /// is counted in the person's window.
    pub async fn queued_parts(&mut self, bot_id: BotId, peer: &str) -> Result<u32> {
        let count: i64 = sql!(self.0, value:
            "SELECT COUNT(*) FROM outbox WHERE bot_id = $1 AND peer = $2 AND state = 'queued'";
            bot_id, peer
        )?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Stores messages out of [`message_rows`], on SQLite and on PostgreSQL; returns the new ones.
pub(super) const INSERT_MESSAGES: [&str; 2] = [INSERT_MESSAGES_SQLITE, INSERT_MESSAGES_POSTGRES];

/// Stores items out of [`part_rows`], on SQLite and on PostgreSQL.
pub(super) const INSERT_PARTS: [&str; 2] = [INSERT_PARTS_SQLITE, INSERT_PARTS_POSTGRES];

const INSERT_MESSAGES_SQLITE: &str = "
    INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id,
        kind, content, items, dedupe_key, status, channel_id, trace_id, sent_at, created_at, private)
    SELECT r.value ->> 'id', b.id, 'outbound', r.value ->> 'peer', b.wx_id, r.value ->> 'peer',
        COALESCE(NULLIF(c.user_name, ''), c.remark, ''), COALESCE((SELECT m.session_id FROM messages AS m
            WHERE m.bot_id = b.id AND m.peer = r.value ->> 'peer' AND m.session_id <> '' ORDER BY m.id DESC LIMIT 1),
            r.value ->> 'peer'), '', r.value ->> 'kind', r.value ->> 'content', r.value ->> 'items', r.value ->> 'key',
        'queued', r.value ->> 'channel', r.value ->> 'trace', r.value ->> 'now', r.value ->> 'now',
        r.value ->> 'private'
    FROM json_each($1) AS r
    JOIN bots AS b ON b.id = r.value ->> 'bot'
    LEFT JOIN contacts AS c ON c.bot_id = b.id AND c.user_id = r.value ->> 'peer'
    WHERE true
    ORDER BY r.value ->> 'id'
    ON CONFLICT (bot_id, dedupe_key) DO NOTHING
    RETURNING id";

const INSERT_MESSAGES_POSTGRES: &str = "
    INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id,
        kind, content, items, dedupe_key, status, channel_id, trace_id, sent_at, created_at, private)
    SELECT r.id, b.id, 'outbound', r.peer, b.wx_id, r.peer,
        COALESCE(NULLIF(c.user_name, ''), c.remark, ''), COALESCE((SELECT m.session_id FROM messages AS m
            WHERE m.bot_id = b.id AND m.peer = r.peer AND m.session_id <> '' ORDER BY m.id DESC LIMIT 1),
            r.peer), '', r.kind, r.content, r.items, r.key,
        'queued', r.channel, r.trace, r.now, r.now, r.private
    FROM json_to_recordset(CAST($1 AS json)) AS r(id TEXT, bot TEXT, peer TEXT, key TEXT, kind TEXT, content TEXT,
        items TEXT, channel TEXT, trace TEXT, now BIGINT, private TEXT)
    JOIN bots AS b ON b.id = r.bot
    LEFT JOIN contacts AS c ON c.bot_id = b.id AND c.user_id = r.peer
    ORDER BY r.id
    FOR KEY SHARE OF b
    ON CONFLICT (bot_id, dedupe_key) DO NOTHING
    RETURNING id";

const INSERT_PARTS_SQLITE: &str = "
    INSERT INTO outbox (id, message_id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns, due_at,
        expires_at, created_at, updated_at, media_id)
    SELECT r.value ->> 'id', r.value ->> 'message', r.value ->> 'bot', r.value ->> 'peer', r.value ->> 'part',
        r.value ->> 'parts', r.value ->> 'client', r.value ->> 'text', r.value ->> 'state',
        r.value ->> 'attempts', 0, r.value ->> 'now',
        r.value ->> 'expires', r.value ->> 'now', r.value ->> 'now', r.value ->> 'media'
    FROM json_each($1) AS r";

const INSERT_PARTS_POSTGRES: &str = "
    INSERT INTO outbox (id, message_id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns, due_at,
        expires_at, created_at, updated_at, media_id)
    SELECT r.id, r.message, r.bot, r.peer, r.part, r.parts, r.client, r.text, r.state, r.attempts, 0, r.now, r.expires,
        r.now, r.now, r.media
    FROM json_to_recordset(CAST($1 AS json)) AS r(id TEXT, message TEXT, bot TEXT, peer TEXT, part BIGINT,
        parts BIGINT, client TEXT, text TEXT, state TEXT, attempts BIGINT, now BIGINT, expires BIGINT, media TEXT)";

// Of two messages with one file the earlier gets it.
const TAKE_FILES_SQLITE: &str = "
    UPDATE media SET message_id = r.message, item = r.item, expires_at = 0
    FROM (SELECT value ->> 'media' AS media, min(value ->> 'message') AS message, value ->> 'item' AS item
        FROM json_each($1) GROUP BY value ->> 'media') AS r
    WHERE media.id = r.media AND media.message_id IS NULL";

const TAKE_FILES_POSTGRES: &str = "
    UPDATE media SET message_id = r.message, item = r.item, expires_at = 0
    FROM (SELECT DISTINCT ON (x.media) x.message, x.media, x.item
        FROM json_to_recordset(CAST($1 AS json)) AS x(message TEXT, media TEXT, item BIGINT)
        ORDER BY x.media, x.message) AS r
    WHERE media.id = r.media AND media.message_id IS NULL";

/// The rows of messages, as JSON.
pub(super) fn message_rows(rows: &[&NewOutbound]) -> String {
    json(&rows.iter().map(|row| message_json(row)).collect::<Vec<_>>())
}

/// The rows of the items of new messages, as JSON; the first of those that are begun is marked as being sent.
pub(super) fn part_rows(
    rows: &[&NewOutbound],
    new: &HashSet<MessageId>,
    begun: &HashSet<MessageId>,
) -> String {
    let new = rows.iter().filter(|row| new.contains(&row.message_id));
    json(&new.flat_map(|row| parts_json(row, begun.contains(&row.message_id))).collect::<Vec<_>>())
}

fn message_json(row: &NewOutbound) -> Value {
    let files = || row.parts.iter().filter_map(|part| part.file.as_ref());
    let text = (files().count() < row.parts.len()).then(|| MessageItem::text(&*row.content));
    let items: Vec<MessageItem> = text.into_iter().chain(files().map(file_item)).collect();
    object!({
        "id": row.message_id,
        "bot": row.bot_id,
        "peer": row.peer,
        "key": row.dedupe_key,
        "kind": files().next().map_or(MessageKind::Text, |file| file.kind),
        "content": row.content,
        // A column of text: JSON inside JSON, on purpose.
        "items": items::stored(&items, &row.content),
        "channel": row.channel_id,
        "trace": row.trace_id,
        "now": row.now.as_millis(),
        "private": row.private.as_ref().map(Sealed::as_str),
    })
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

fn parts_json(row: &NewOutbound, is_begun: bool) -> impl Iterator<Item = Value> {
    // All texts together are one item of the message, the first.
    let texts = row.parts.iter().filter(|part| part.file.is_none()).count();
    row.parts.iter().enumerate().map(move |(index, part)| {
        let is_begun = is_begun && index == 0;
        object!({
            "id": part.id,
            "message": row.message_id,
            "bot": row.bot_id,
            "peer": row.peer,
            "part": index,
            "parts": row.parts.len(),
            "client": part.client_id,
            "text": part.text,
            "state": if is_begun { ItemState::Sending } else { ItemState::Queued }.as_str(),
            "attempts": i64::from(is_begun),
            "now": row.now.as_millis(),
            "expires": row.expires_at.as_millis(),
            "media": part.file.as_ref().map(|file| file.id),
            "item": index.saturating_sub(texts) + usize::from(texts > 0),
        })
    })
}
