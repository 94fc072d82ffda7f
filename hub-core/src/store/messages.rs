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
    model::message::{Message, MessageFilter, ReceivedMessage},
    network::MessageItem,
    page::PageRequest,
    secret::Sealed,
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
#[cfg(feature = "testing")]
pub(super) use search::candidates_statement;

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
    ) -> Result<Vec<(MessageId, Sealed)>> {
        sql!(self.0, all:
            "SELECT id, private FROM messages
            WHERE bot_id = $1 AND peer = $2 AND direction = 'inbound' AND private IS NOT NULL AND created_at >= $3
            ORDER BY id DESC LIMIT $4";
            bot_id, peer, since, i64::from(limit)
        )
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
        let rows: Vec<Row> = sql!(self.0, all:
            AssertSqlSafe(page_statement(filter, LIKE[0])), AssertSqlSafe(page_statement(filter, LIKE[1]));
            bot_id, since, &before, i64::from(request.limit()) + 1, filter.direction, &filter.user_id,
            filter.since, filter.until, &pattern
        )?;
        self.with_channels(rows).await
    }

    /// The last messages that people sent to a bot, newest first: those that were routed to its channels. The caller
    /// has checked whose bot it is.
    pub async fn received(&mut self, bot_id: BotId, limit: u32) -> Result<Vec<ReceivedMessage>> {
        sql!(self.0, all:
            "SELECT id, from_user_id, user_name, session_id, kind, content, sent_at, created_at FROM messages
            WHERE bot_id = $1 AND direction = 'inbound' AND status = 'received' ORDER BY id DESC LIMIT $2";
            bot_id, i64::from(limit)
        )
    }

    /// One message of a bot, with the channels that received it. The caller has checked whose bot it is.
    pub async fn find(&mut self, bot_id: BotId, id: MessageId) -> Result<Option<Message>> {
        let row: Option<Row> = sql!(self.0, optional:
            concat!(columns!(), "WHERE id = $1 AND bot_id = $2");
            id, bot_id
        )?;
        Ok(self.with_channels(row.into_iter().collect()).await?.pop())
    }

    /// Those of a bot's messages that are there, with the channels that received each of them. The caller has checked
    /// whose bot it is.
    pub async fn find_all(&mut self, bot_id: BotId, ids: &[MessageId]) -> Result<Vec<Message>> {
        let rows: Vec<Row> = sql!(self.0, all:
            concat!(columns!(), "WHERE bot_id = $1 AND id IN (SELECT value FROM json_each($2))"),
            concat!(columns!(), "WHERE bot_id = $1 AND id IN (SELECT json_array_elements_text($2::json))");
            bot_id, json(ids)
        )?;
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

    /// Texts of a bot's messages, in both directions, by the ids that the network gave them. A part of a long
    /// message has an id and a text of its own.
    pub async fn texts_by_network_id(
        &mut self,
        bot_id: BotId,
        ids: &[&str],
    ) -> Result<HashMap<String, String>> {
        let rows: Vec<(String, String)> = sql!(self.0, all:
            "SELECT network_id, content FROM messages
            WHERE bot_id = $1 AND direction = 'inbound' AND network_id IN (SELECT value FROM json_each($2))
            UNION ALL SELECT network_id, text FROM outbox
            WHERE bot_id = $1 AND network_id IN (SELECT value FROM json_each($2))",
            "SELECT network_id, content FROM messages
            WHERE bot_id = $1 AND direction = 'inbound'
               AND network_id IN (SELECT json_array_elements_text($2::json))
            UNION ALL SELECT network_id, text FROM outbox
            WHERE bot_id = $1 AND network_id IN (SELECT json_array_elements_text($2::json))";
            bot_id, json(ids)
        )?;
        Ok(rows.into_iter().collect())
    }

    async fn channels_of(&mut self, rows: &[Row]) -> Result<HashMap<MessageId, Vec<ChannelId>>> {
        let ids = json(&rows.iter().map(|row| row.message.id).collect::<Vec<_>>());
        let rows: Vec<(MessageId, ChannelId)> = sql!(self.0, all:
            "SELECT message_id, channel_id FROM channel_log
            WHERE message_id IN (SELECT value FROM json_each($1)) ORDER BY channel_id",
            "SELECT message_id, channel_id FROM channel_log
            WHERE message_id IN (SELECT json_array_elements_text(CAST($1 AS json))) ORDER BY channel_id";
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
