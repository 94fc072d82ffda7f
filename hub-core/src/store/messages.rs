//! Statements about messages in both directions: the read side.

use std::collections::HashMap;

use sqlx::AssertSqlSafe;

use super::{
    CLOCK_SKEW,
    conn::{Conn, on, on_each},
    given,
};
use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId},
    model::message::{Direction, Message, MessageFilter},
    network::MessageKind,
    page::PageRequest,
    text::json,
    time::Timestamp,
};

/// Statements about messages, on a lent connection.
#[derive(Debug)]
pub struct Messages<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    bot_id: String,
    direction: String,
    from_user_id: String,
    to_user_id: String,
    user_name: String,
    session_id: String,
    kind: String,
    content: String,
    items: String,
    quoted: Option<String>,
    status: String,
    status_reason: Option<String>,
    channel_id: Option<String>,
    trace_id: Option<String>,
    created_at: i64,
}

impl TryFrom<Row> for Message {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            bot_id: row.bot_id.parse().map_err(Error::internal)?,
            channel_ids: row.channel_id.iter().filter_map(|id| id.parse().ok()).collect(),
            direction: Direction::parse(&row.direction)
                .ok_or_else(|| Error::internal(format!("{} is no direction", row.direction)))?,
            from_user_id: row.from_user_id,
            to_user_id: row.to_user_id,
            user_name: row.user_name,
            session_id: row.session_id,
            kind: kind(&row.kind),
            content: row.content,
            items: serde_json::from_str(&row.items).map_err(Error::internal)?,
            media: Vec::new(),
            quoted: row
                .quoted
                .map(|quote| serde_json::from_str(&quote))
                .transpose()
                .map_err(Error::internal)?,
            status: row.status,
            status_reason: row.status_reason,
            trace_id: row.trace_id.and_then(|id| id.parse().ok()),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// A word that this version does not know shows as `other`.
fn kind(word: &str) -> MessageKind {
    serde_json::from_value(word.into()).unwrap_or(MessageKind::Other)
}

macro_rules! columns {
    () => {
        "SELECT id, bot_id, direction, from_user_id, to_user_id, user_name, session_id, kind, content, items,
            quoted, status, status_reason, channel_id, trace_id, created_at
         FROM messages "
    };
}

/// The statement for a page. SQLite's `LIKE` ignores the case of ASCII letters, PostgreSQL's does not.
pub(super) fn page_statement(filter: &MessageFilter, like: &'static str) -> String {
    let filters = given(&[
        (filter.direction.is_some(), " AND direction = $5"),
        (filter.user_id.is_some(), " AND peer = $6"),
        (filter.since.is_some(), " AND created_at >= $7"),
        (filter.until.is_some(), " AND created_at < $8"),
        (filter.q.is_some(), like),
    ]);
    format!("{} WHERE bot_id = $1 AND id > $2 AND id < $3{filters} ORDER BY id DESC LIMIT $4", columns!())
}

/// The condition for a text within the content, on SQLite and on PostgreSQL.
pub(super) const LIKE: [&str; 2] = [r" AND content LIKE $9 ESCAPE '\'", r" AND content ILIKE $9 ESCAPE '\'"];

impl Messages<'_> {
    /// What is secret in the newest messages of a person since a time, sealed. The caller has checked whose bot it is.
    pub async fn recent_private(
        &mut self,
        bot_id: BotId,
        peer: &str,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<(MessageId, String)>> {
        let rows: Vec<(String, String)> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT id, private FROM messages
             WHERE bot_id = $1 AND peer = $2 AND direction = 'inbound' AND private IS NOT NULL AND created_at >= $3
             ORDER BY id DESC LIMIT $4"
        )
        .bind(bot_id.to_string())
        .bind(peer)
        .bind(since.as_millis())
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        })?;
        rows.into_iter().map(|(id, private)| Ok((id.parse()?, private))).collect()
    }

    /// A page of a bot's messages, newest first, with the channels that received each of them; one row more
    /// than asked for tells whether more follow. The caller has checked whose bot it is.
    pub async fn page(
        &mut self,
        bot_id: BotId,
        filter: &MessageFilter,
        request: &PageRequest,
    ) -> Result<Vec<Message>> {
        let pattern = filter.q.as_deref().map(contains);
        let since = filter.since.map_or(MessageId::from_u128(0), |at| MessageId::first_at(at - CLOCK_SKEW));
        let until = filter.until.map_or(MessageId::MAX, |at| MessageId::first_at(at + CLOCK_SKEW));
        let before = request.before(MessageId::MAX).min(until.to_string());
        let rows: Vec<Row> = on_each!(
            self.0,
            page_statement(filter, LIKE[0]),
            page_statement(filter, LIKE[1]),
            |conn, sql| sqlx::query_as(AssertSqlSafe(sql))
                .bind(bot_id.to_string())
                .bind(since.to_string())
                .bind(&before)
                .bind(i64::from(request.limit()) + 1)
                .bind(filter.direction.map(Direction::as_str))
                .bind(&filter.user_id)
                .bind(filter.since.map(Timestamp::as_millis))
                .bind(filter.until.map(Timestamp::as_millis))
                .bind(&pattern)
                .fetch_all(conn)
                .await
        )?;
        self.with_channels(rows).await
    }

    /// One message of a bot, with the channels that received it. The caller has checked whose bot it is.
    pub async fn find(&mut self, bot_id: BotId, id: MessageId) -> Result<Option<Message>> {
        let row: Option<Row> =
            on!(self.0, |conn| sqlx::query_as(concat!(columns!(), "WHERE id = $1 AND bot_id = $2"))
                .bind(id.to_string())
                .bind(bot_id.to_string())
                .fetch_optional(conn)
                .await)?;
        Ok(self.with_channels(row.into_iter().collect()).await?.pop())
    }

    /// Those of a bot's messages that are there, with the channels that received each of them. The caller has checked
    /// whose bot it is.
    pub async fn find_all(&mut self, bot_id: BotId, ids: &[MessageId]) -> Result<Vec<Message>> {
        let rows: Vec<Row> = on_each!(
            self.0,
            concat!(columns!(), "WHERE bot_id = $1 AND id IN (SELECT value FROM json_each($2))"),
            concat!(columns!(), "WHERE bot_id = $1 AND id IN (SELECT json_array_elements_text($2::json))"),
            |conn, sql| sqlx::query_as(sql).bind(bot_id.to_string()).bind(json(ids)).fetch_all(conn).await
        )?;
        self.with_channels(rows).await
    }

    async fn with_channels(&mut self, rows: Vec<Row>) -> Result<Vec<Message>> {
        let mut messages = rows.into_iter().map(Message::try_from).collect::<Result<Vec<_>>>()?;
        let mut channels = self.channels_of(&messages).await?;
        for message in &mut messages {
            let mut received = channels.remove(&message.id).unwrap_or_default();
            // The channel that sent a message may also see it in its log.
            received.retain(|channel| !message.channel_ids.contains(channel));
            message.channel_ids.append(&mut received);
        }
        Ok(messages)
    }

    /// Whether a bot has a message.
    pub async fn exists(&mut self, bot_id: BotId, id: MessageId) -> Result<bool> {
        on!(self.0, |conn| sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE id = $1 AND bot_id = $2)"
        )
        .bind(id.to_string())
        .bind(bot_id.to_string())
        .fetch_one(conn)
        .await)
    }

    /// Texts of a bot's messages, in both directions, by the ids that the network gave them. A part of a long
    /// message has an id and a text of its own.
    pub async fn texts_by_network_id(
        &mut self,
        bot_id: BotId,
        ids: &[&str],
    ) -> Result<HashMap<String, String>> {
        let rows: Vec<(String, String)> = on_each!(
            self.0,
            "SELECT network_id, content FROM messages
             WHERE bot_id = $1 AND direction = 'inbound' AND network_id IN (SELECT value FROM json_each($2))
             UNION ALL SELECT network_id, text FROM outbox
             WHERE bot_id = $1 AND network_id IN (SELECT value FROM json_each($2))",
            "SELECT network_id, content FROM messages
             WHERE bot_id = $1 AND direction = 'inbound'
                AND network_id IN (SELECT json_array_elements_text($2::json))
             UNION ALL SELECT network_id, text FROM outbox
             WHERE bot_id = $1 AND network_id IN (SELECT json_array_elements_text($2::json))",
            |conn, sql| sqlx::query_as(sql).bind(bot_id.to_string()).bind(json(ids)).fetch_all(conn).await
        )?;
        Ok(rows.into_iter().collect())
    }

    async fn channels_of(&mut self, messages: &[Message]) -> Result<HashMap<MessageId, Vec<ChannelId>>> {
        let ids = json(&messages.iter().map(|message| message.id).collect::<Vec<_>>());
        let rows: Vec<(String, String)> = on_each!(
            self.0,
            "SELECT message_id, channel_id FROM channel_log
             WHERE message_id IN (SELECT value FROM json_each($1)) ORDER BY channel_id",
            "SELECT message_id, channel_id FROM channel_log
             WHERE message_id IN (SELECT json_array_elements_text(CAST($1 AS json))) ORDER BY channel_id",
            |conn, sql| sqlx::query_as(sql).bind(&ids).fetch_all(conn).await
        )?;
        let mut channels: HashMap<MessageId, Vec<ChannelId>> = HashMap::new();
        for (message, channel) in rows {
            let message = message.parse().map_err(Error::internal)?;
            channels.entry(message).or_default().push(channel.parse().map_err(Error::internal)?);
        }
        Ok(channels)
    }
}

/// The pattern for "contains this text".
fn contains(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{escaped}%")
}
