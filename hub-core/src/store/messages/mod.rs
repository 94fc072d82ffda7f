//! Statements about messages in both directions: the read side.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;

use super::{
    CLOCK_SKEW,
    conn::{Conn, sql},
    given,
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, MessageId},
    model::message::{Direction, Message, MessageFilter, QuotedMessage, ReceivedMessage},
    network::{InboundMessage, MessageItem},
    page::{Found, MAX_SCANNED, PageRequest},
    secret::Sealed,
    store::deliveries::JobMessage,
    text::json,
    time::Timestamp,
};

/// Statements about messages, on a lent connection.
#[derive(Debug)]
pub struct Messages<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    #[row(flatten)]
    message: Message,
    /// The channel that sent it.
    channel_id: Option<ChannelId>,
    /// 1 if the text is all there is.
    is_plain: i64,
}

#[derive(hub_macros::FromRow)]
struct QuotedRow {
    network_id: String,
    #[row(flatten)]
    message: QuotedMessage,
}

macro_rules! columns {
    () => {
        "SELECT id, bot_id, direction, from_user_id, to_user_id, user_name, session_id, kind, content,
            CASE items WHEN '' THEN '[]' ELSE items END AS items,
            CAST(CASE items WHEN '' THEN 1 ELSE 0 END AS BIGINT) AS is_plain, quoted, status, status_reason,
            channel_id, trace_id, created_at
         FROM messages "
    };
}

mod search;

/// The messages of a bot or, of these, those with a person, on SQLite and on PostgreSQL. SQLite keeps no statistics of
/// these tables and would read all messages of the bot for a person's.
fn rows_of(filter: &MessageFilter) -> [&'static str; 2] {
    let of_person =
        [" INDEXED BY messages_by_peer WHERE bot_id = $1 AND peer = $6", " WHERE bot_id = $1 AND peer = $6"];
    if filter.user_id.is_some() { of_person } else { [" WHERE bot_id = $1"; 2] }
}

/// The statement for a page, on SQLite and on PostgreSQL. `LIKE` of SQLite ignores the case of ASCII letters, that of
/// PostgreSQL does not.
fn page_statement(filter: &MessageFilter) -> [String; 2] {
    let [sqlite, postgres] = rows_of(filter);
    let filters = given(&[
        (filter.direction.is_some(), " AND direction = $5"),
        (filter.since.is_some(), " AND created_at >= $7"),
        (filter.until.is_some(), " AND created_at < $8"),
    ]);
    [(sqlite, "LIKE"), (postgres, "ILIKE")].map(|(rows, like)| {
        let text =
            if filter.q.is_some() { format!(r" AND content {like} $9 ESCAPE '\'") } else { String::new() };
        format!("{}{rows} AND id > $2 AND id < $3{filters}{text} ORDER BY id DESC LIMIT $4", columns!())
    })
}

/// The statement that reads the index until the last message that a page looks at, and the one after it.
fn scan_statement(filter: &MessageFilter) -> [String; 2] {
    rows_of(filter).map(|rows| {
        format!("SELECT id FROM messages{rows} AND id > $2 AND id < $3 ORDER BY id DESC LIMIT 2 OFFSET $4")
    })
}

impl Messages<'_> {
    /// Reads the newest messages of a person or group since a time: their senders and their sealed secrets. The
    /// caller has authorized the request.
    pub async fn recent_private(
        &mut self,
        bot_id: BotId,
        peer: &str,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(MessageId, String, Sealed)>> {
        sql!(self.0, all:
            "SELECT id, from_user_id, private FROM messages
            WHERE bot_id = $1 AND peer = $2 AND direction = 'inbound' AND private IS NOT NULL AND created_at >= $3
            ORDER BY id DESC LIMIT $4";
            bot_id, peer, since, i64::from(limit)
        )
    }

    /// Reads messages as sinks need them, by their ids. The caller has authorized the request.
    pub async fn for_sinks(&mut self, ids: &[MessageId]) -> Result<Vec<JobMessage>> {
        sql!(self.0, all:
            ["SELECT id AS message_id, from_user_id, user_name, peer, session_id, group_id, kind, content, items,
                quoted, private, sent_at FROM messages WHERE id", in 1];
            json(ids)
        )
    }

    /// Reads a page of a bot's messages, newest first, with the channels that received each of them. With a filter
    /// that has no index it looks at [`MAX_SCANNED`] messages, and at those whose ids do not show whether they are
    /// within the time. The caller has authorized the request.
    pub async fn page(
        &mut self,
        bot_id: BotId,
        filter: &MessageFilter,
        request: &PageRequest,
    ) -> Result<Found<Message>> {
        let pattern = filter.q.as_deref().map(contains);
        let mut after =
            filter.since.map_or(MessageId::from_u128(0), |at| MessageId::first_at(at - CLOCK_SKEW));
        let until = |at: Option<Timestamp>| {
            let until = at.map_or(MessageId::MAX, MessageId::first_at);
            request.before(MessageId::MAX).min(until.to_string())
        };
        let mut scanned = None;
        if filter.direction.is_some() || filter.q.is_some() {
            let [sqlite, postgres] = scan_statement(filter).map(AssertSqlSafe);
            let ends: Vec<MessageId> = sql!(self.0, values:
                sqlite, postgres;
                bot_id, after, until(filter.until.map(|at| at - CLOCK_SKEW)), i64::from(MAX_SCANNED) - 1,
                None::<Direction>, &filter.user_id
            )?;
            if let [last, next] = ends[..] {
                (after, scanned) = (next, Some(last.to_string()));
            }
        }
        let [sqlite, postgres] = page_statement(filter).map(AssertSqlSafe);
        let rows: Vec<Row> = sql!(self.0, all:
            sqlite, postgres;
            bot_id, after, until(filter.until.map(|at| at + CLOCK_SKEW)), i64::from(request.limit()) + 1,
            filter.direction, &filter.user_id, filter.since, filter.until, &pattern
        )?;
        Ok(Found { rows: self.with_channels(rows).await?, scanned })
    }

    /// Reads the last messages that people sent to a bot, newest first: those that were routed to its channels. The
    /// caller has authorized the request.
    pub async fn received(&mut self, bot_id: BotId, limit: u32) -> Result<Vec<ReceivedMessage>> {
        sql!(self.0, all:
            "SELECT id, from_user_id, user_name, session_id, kind, content, sent_at, created_at FROM messages
            WHERE bot_id = $1 AND direction = 'inbound' AND status = 'received' ORDER BY id DESC LIMIT $2";
            bot_id, i64::from(limit)
        )
    }

    /// Reads one message of a bot, with the channels that received it. The caller has authorized the request.
    pub async fn find(&mut self, bot_id: BotId, id: MessageId) -> Result<Option<Message>> {
        let row: Option<Row> = sql!(self.0, optional:
            concat!(columns!(), "WHERE id = $1 AND bot_id = $2");
            id, bot_id
        )?;
        Ok(self.with_channels(row.into_iter().collect()).await?.pop())
    }

    /// Reads those of a bot's messages that exist, with the channels that received each of them. The caller has
    /// authorized the request.
    pub async fn find_all(&mut self, bot_id: BotId, ids: &[MessageId]) -> Result<Vec<Message>> {
        let rows: Vec<Row> =
            sql!(self.0, all: [columns!(), "WHERE bot_id = $1 AND id", in 2]; bot_id, json(ids))?;
        self.with_channels(rows).await
    }

    async fn with_channels(&mut self, rows: Vec<Row>) -> Result<Vec<Message>> {
        let mut channels = self.channels_of(&rows).await?;
        let with_channels = |Row { mut message, channel_id, is_plain }: Row| {
            if is_plain > 0 {
                message.items = vec![MessageItem::text(&*message.content)];
            }
            let received = channels.remove(&message.id).unwrap_or_default();
            // The channel that sent a message may also see it in its log.
            let others = received.into_iter().filter(|channel| Some(*channel) != channel_id);
            message.channel_ids = channel_id.into_iter().chain(others).collect();
            message
        };
        Ok(rows.into_iter().map(with_channels).collect())
    }

    /// Whether a bot has a message.
    pub async fn exists(&mut self, bot_id: BotId, id: MessageId) -> Result<bool> {
        sql!(self.0, value:
            "SELECT EXISTS (SELECT 1 FROM messages WHERE id = $1 AND bot_id = $2)";
            id, bot_id
        )
    }

    /// A bot's messages, in both directions, by the ids that the network gave them. A part of a long message has an id
    /// and a text of its own.
    pub async fn quoted(
        &mut self,
        bot_id: BotId,
        network_ids: &[&str],
    ) -> Result<HashMap<String, QuotedMessage>> {
        if network_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let keys: Vec<String> = network_ids.iter().map(|id| InboundMessage::key_of(id)).collect();
        let rows: Vec<QuotedRow> = sql!(self.0, all:
            ["SELECT network_id, id AS message_id, direction, kind, content FROM messages
            WHERE bot_id = $1 AND direction = 'inbound' AND network_id IS NOT NULL AND dedupe_key", in 3,
            " UNION ALL SELECT network_id, id, direction, kind, content FROM messages
            WHERE bot_id = $1 AND direction = 'inbound' AND dedupe_key <> 'id:' || network_id AND network_id", in 2,
            " UNION ALL SELECT network_id, message_id, 'outbound', CASE WHEN media_id IS NULL THEN 'text' ELSE 'file' END,
                text FROM outbox WHERE bot_id = $1 AND network_id", in 2];
            bot_id, json(network_ids), json(&keys)
        )?;
        Ok(rows.into_iter().map(|row| (row.network_id, row.message)).collect())
    }

    async fn channels_of(&mut self, rows: &[Row]) -> Result<HashMap<MessageId, Vec<ChannelId>>> {
        let ids = json(&rows.iter().map(|row| row.message.id).collect::<Vec<_>>());
        let rows: Vec<(MessageId, ChannelId)> = sql!(self.0, all:
            ["SELECT message_id, channel_id FROM channel_log WHERE message_id", in 1, " ORDER BY channel_id"];
            &ids
        )?;
        let mut channels: HashMap<MessageId, Vec<ChannelId>> = HashMap::new();
        for (message, channel) in rows {
            channels.entry(message).or_default().push(channel);
        }
        Ok(channels)
    }
}

/// The pattern for "contains this text".
pub(super) fn contains(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{escaped}%")
}
