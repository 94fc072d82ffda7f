//! Statements about files of messages. The rows alone decide what exists: an object in the media store is made
//! after its row and goes before it.

use serde::Serialize;

use super::conn::{Conn, on, on_each};
use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, MediaId, MessageId, UserId},
    model::media::MediaState,
    network::MessageKind,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about files of messages, on a lent connection.
#[derive(Debug)]
pub struct Media<'c>(pub(super) Conn<'c>);

/// A file as its row has it.
#[derive(Debug, Clone)]
pub struct MediaRow {
    /// Id, and the name of its object.
    pub id: MediaId,
    /// Whose storage it counts to.
    pub owner_id: UserId,
    /// The bot it came to, or may be sent by.
    pub bot_id: BotId,
    /// The channel that uploads it, if one does.
    pub channel_id: Option<ChannelId>,
    /// Its message; `None` before one holds it, and after that one is gone.
    pub message_id: Option<MessageId>,
    /// Which of the message's items it is.
    pub item: i64,
    /// What it is.
    pub kind: MessageKind,
    /// Its name; empty when it has none.
    pub file_name: String,
    /// Media type; empty until it is known.
    pub content_type: String,
    /// Bytes: announced, then real.
    pub size: i64,
    /// MD5 as hex, as far as known.
    pub md5: String,
    /// Status.
    pub state: MediaState,
    /// Reason for the state, if any.
    pub reason: Option<String>,
    /// The network's notes on it.
    pub source: Option<Sealed>,
    /// Tries to fetch it.
    pub attempts: i64,
    /// When it is fetched next.
    pub due_at: Timestamp,
    /// Without a message, when it goes.
    pub expires_at: Timestamp,
    /// When its row was made.
    pub created_at: Timestamp,
}

/// A file that came with a message and is still with the network.
#[derive(Debug, Clone)]
pub struct NewInboundMedia {
    /// Id.
    pub id: MediaId,
    /// Which of the message's items it is.
    pub item: i64,
    /// What it is.
    pub kind: MessageKind,
    /// Its name.
    pub file_name: String,
    /// Bytes, as far as the network says.
    pub size: i64,
    /// MD5, when the network says so.
    pub md5: String,
    /// The network's notes.
    pub source: Sealed,
}

/// What came of a try to fetch a file.
#[derive(Debug, Clone)]
pub struct SettledMedia {
    /// The file.
    pub id: MediaId,
    /// New state.
    pub state: MediaState,
    /// Why.
    pub reason: Option<String>,
    /// Tries so far.
    pub attempts: i64,
    /// When it is tried again.
    pub due_at: Timestamp,
    /// What is known of the bytes, once they are stored.
    pub stored: Option<StoredBytes>,
}

/// What is known of stored bytes.
#[derive(Debug, Clone)]
pub struct StoredBytes {
    /// How many.
    pub size: i64,
    /// Their MD5, as hex.
    pub md5: String,
    /// Their media type.
    pub content_type: String,
    /// A name, where there was none.
    pub file_name: String,
    /// The network's notes, as they opened it; `None` keeps them.
    pub source: Option<Sealed>,
}

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    owner_id: String,
    bot_id: String,
    channel_id: Option<String>,
    message_id: Option<String>,
    item: i64,
    kind: String,
    file_name: String,
    content_type: String,
    size: i64,
    md5: String,
    state: String,
    reason: Option<String>,
    source: Option<String>,
    attempts: i64,
    due_at: i64,
    expires_at: i64,
    created_at: i64,
}

impl TryFrom<Row> for MediaRow {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            owner_id: row.owner_id.parse().map_err(Error::internal)?,
            bot_id: row.bot_id.parse().map_err(Error::internal)?,
            channel_id: row.channel_id.and_then(|id| id.parse().ok()),
            message_id: row.message_id.and_then(|id| id.parse().ok()),
            item: row.item,
            kind: MessageKind::from_word(&row.kind),
            file_name: row.file_name,
            content_type: row.content_type,
            size: row.size,
            md5: row.md5,
            state: MediaState::parse(&row.state)
                .ok_or_else(|| Error::internal(format!("{} is no state of a file", row.state)))?,
            reason: row.reason,
            source: row.source.map(Sealed::from),
            attempts: row.attempts,
            due_at: Timestamp::from_millis(row.due_at),
            expires_at: Timestamp::from_millis(row.expires_at),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

macro_rules! columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, owner_id, bot_id, channel_id, message_id, item, kind, file_name, content_type, size, md5,
                state, reason, source, attempts, due_at, expires_at, created_at FROM media ",
            $rest
        )
    };
}

fn typed(rows: Vec<Row>) -> Result<Vec<MediaRow>> {
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The statement of [`Media::loose`] on SQLite, which would choose another index, and on PostgreSQL.
pub(super) const LOOSE: [&str; 2] = [
    "SELECT id FROM media INDEXED BY media_loose WHERE message_id IS NULL AND expires_at <= $1
     ORDER BY expires_at LIMIT $2",
    "SELECT id FROM media WHERE message_id IS NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2",
];

impl Media<'_> {
    /// Makes the row of a file that no message holds yet.
    pub async fn insert(&mut self, row: &MediaRow) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO media (id, owner_id, bot_id, channel_id, message_id, item, kind, file_name, content_type,
                size, md5, state, reason, source, attempts, due_at, expires_at, created_at)
             VALUES ($1, $2, $3, $4, NULL, $5, $6, $7, $8, $9, $10, $11, NULL, NULL, 0, $12, $13, $14)"
        )
        .bind(row.id.to_string())
        .bind(row.owner_id.to_string())
        .bind(row.bot_id.to_string())
        .bind(row.channel_id.map(|id| id.to_string()))
        .bind(row.item)
        .bind(row.kind.as_str())
        .bind(&row.file_name)
        .bind(&row.content_type)
        .bind(row.size)
        .bind(&row.md5)
        .bind(row.state.as_str())
        .bind(row.due_at.as_millis())
        .bind(row.expires_at.as_millis())
        .bind(row.created_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// One file.
    pub async fn find(&mut self, id: MediaId) -> Result<Option<MediaRow>> {
        let row: Option<Row> = on!(self.0, |conn| sqlx::query_as(columns!("WHERE id = $1"))
            .bind(id.to_string())
            .fetch_optional(conn)
            .await)?;
        row.map(TryInto::try_into).transpose()
    }

    /// The files of messages, each message's in the order of its items.
    pub async fn of_messages(&mut self, ids: &[MessageId]) -> Result<Vec<MediaRow>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = on_each!(
            self.0,
            columns!("WHERE message_id IN (SELECT value FROM json_each($1)) ORDER BY message_id, item, id"),
            columns!(
                "WHERE message_id IN (SELECT json_array_elements_text(CAST($1 AS json))) ORDER BY message_id, item, id"
            ),
            |conn, sql| sqlx::query_as(sql).bind(json(ids)).fetch_all(conn).await
        )?;
        typed(rows)
    }

    /// Files of a bot that are still to be fetched, the next one first.
    pub async fn downloading(&mut self, bot_id: BotId, limit: u32) -> Result<Vec<MediaRow>> {
        let rows: Vec<Row> = on!(self.0, |conn| {
            sqlx::query_as(columns!(
            "WHERE bot_id = $1 AND state = 'downloading' AND message_id IS NOT NULL ORDER BY due_at, id LIMIT $2"
        ))
        .bind(bot_id.to_string())
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        })?;
        typed(rows)
    }

    /// The network's notes on a bot's files with an MD5 that were opened, with their ids, newest first.
    pub async fn opened_with_md5(
        &mut self,
        bot_id: BotId,
        md5: &str,
        limit: u32,
    ) -> Result<Vec<(MediaId, Sealed)>> {
        let rows: Vec<(String, String)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, source FROM media
             WHERE bot_id = $1 AND md5 = $2 AND md5 <> '' AND state = 'ready' AND source IS NOT NULL
             ORDER BY id DESC LIMIT $3"
        )
        .bind(bot_id.to_string())
        .bind(md5)
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await)?;
        rows.into_iter()
            .map(|(id, source)| Ok((id.parse().map_err(Error::internal)?, Sealed::from(source))))
            .collect()
    }

    /// Stores what came of a try; `false`, and nothing stored, when the message is gone or the file was settled
    /// before.
    pub async fn settle(&mut self, settled: &SettledMedia) -> Result<bool> {
        let stored = settled.stored.as_ref();
        let rows = on!(self.0, |conn| {
            sqlx::query(
            "UPDATE media SET state = $2, reason = $3, attempts = $4, due_at = $5, size = COALESCE($6, size),
                md5 = COALESCE($7, md5), content_type = COALESCE($8, content_type),
                file_name = COALESCE($9, file_name), source = COALESCE($10, source)
             WHERE id = $1 AND state = 'downloading' AND message_id IS NOT NULL"
        )
        .bind(settled.id.to_string())
        .bind(settled.state.as_str())
        .bind(settled.reason.as_deref())
        .bind(settled.attempts)
        .bind(settled.due_at.as_millis())
        .bind(stored.map(|stored| stored.size))
        .bind(stored.map(|stored| stored.md5.as_str()))
        .bind(stored.map(|stored| stored.content_type.as_str()))
        .bind(stored.map(|stored| stored.file_name.as_str()))
        .bind(stored.and_then(|stored| stored.source.as_ref()).map(Sealed::as_str))
        .execute(conn)
        .await
        .map(|done| done.rows_affected())
        })?;
        Ok(rows == 1)
    }

    /// Makes the failed files of a message due again; returns how many there are.
    pub async fn retry(&mut self, message_id: MessageId, now: Timestamp) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE media SET state = 'downloading', reason = NULL, attempts = 0, due_at = $2
             WHERE message_id = $1 AND state = 'failed' AND source IS NOT NULL"
        )
        .bind(message_id.to_string())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }

    /// Takes the one upload that a row allows; `false` when it was taken, or its time is over.
    pub async fn begin_upload(&mut self, id: MediaId, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE media SET state = 'uploading' WHERE id = $1 AND state = 'pending' AND expires_at > $2"
        )
        .bind(id.to_string())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Ends an upload: `Some` with what was stored and until when it may be sent, `None` when it failed. `false`
    /// when the row is not uploading any more.
    pub async fn end_upload(
        &mut self,
        id: MediaId,
        stored: Option<(StoredBytes, Timestamp)>,
    ) -> Result<bool> {
        let (stored, until) = stored.unzip();
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE media SET state = $2, size = COALESCE($3, size), md5 = COALESCE($4, md5),
                expires_at = COALESCE($5, expires_at)
             WHERE id = $1 AND state = 'uploading'"
        )
        .bind(id.to_string())
        .bind(if stored.is_some() { MediaState::Ready.as_str() } else { MediaState::Failed.as_str() })
        .bind(stored.as_ref().map(|stored| stored.size))
        .bind(stored.as_ref().map(|stored| stored.md5.as_str()))
        .bind(until.map(Timestamp::as_millis))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Bytes of all files of an owner, announced uploads included; not those that are still with the network.
    pub async fn bytes_of(&mut self, owner_id: UserId) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar(
            "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM media
             WHERE owner_id = $1 AND state <> 'downloading' AND state <> 'failed'"
        )
        .bind(owner_id.to_string())
        .fetch_one(conn)
        .await)
    }

    /// Files that no message holds and whose time is over, the oldest first.
    pub async fn loose(&mut self, now: Timestamp, limit: u32) -> Result<Vec<MediaId>> {
        let ids: Vec<String> = on_each!(self.0, LOOSE[0], LOOSE[1], |conn, sql| sqlx::query_scalar(sql)
            .bind(now.as_millis())
            .bind(i64::from(limit))
            .fetch_all(conn)
            .await)?;
        ids.into_iter().map(|id| id.parse().map_err(Error::internal)).collect()
    }

    /// Deletes rows that no message holds; their objects are gone already.
    pub async fn delete(&mut self, ids: &[MediaId]) -> Result<u64> {
        on_each!(
            self.0,
            "DELETE FROM media WHERE message_id IS NULL AND id IN (SELECT value FROM json_each($1))",
            "DELETE FROM media
             WHERE message_id IS NULL AND id IN (SELECT json_array_elements_text(CAST($1 AS json)))",
            |conn, sql| sqlx::query(sql).bind(json(ids)).execute(conn).await.map(|done| done.rows_affected())
        )
    }
}

#[derive(Serialize)]
struct InboundRow<'a> {
    id: MediaId,
    bot: BotId,
    message: MessageId,
    item: i64,
    kind: &'static str,
    name: &'a str,
    size: i64,
    md5: &'a str,
    source: &'a str,
    at: i64,
}

/// Makes the rows of files that came with messages, in the transaction of the messages.
pub(super) async fn insert_inbound<'a>(
    conn: &mut Conn<'_>,
    files: impl Iterator<Item = (BotId, MessageId, Timestamp, &'a NewInboundMedia)>,
) -> Result<()> {
    let rows: Vec<InboundRow<'_>> = files
        .map(|(bot, message, now, file)| InboundRow {
            id: file.id,
            bot,
            message,
            item: file.item,
            kind: file.kind.as_str(),
            name: &file.file_name,
            size: file.size,
            md5: &file.md5,
            source: file.source.as_str(),
            at: now.as_millis(),
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    on_each!(
        *conn,
        "INSERT INTO media (id, owner_id, bot_id, message_id, item, kind, file_name, content_type, size, md5, state,
            source, attempts, due_at, expires_at, created_at)
         SELECT r.value->>'id', b.owner_id, b.id, r.value->>'message', r.value->>'item', r.value->>'kind',
            r.value->>'name', '', r.value->>'size', r.value->>'md5', 'downloading', r.value->>'source', 0, r.value->>'at', 0,
            r.value->>'at'
         FROM json_each($1) AS r JOIN bots AS b ON b.id = r.value->>'bot'",
        "INSERT INTO media (id, owner_id, bot_id, message_id, item, kind, file_name, content_type, size, md5, state,
            source, attempts, due_at, expires_at, created_at)
         SELECT r.id, b.owner_id, b.id, r.message, r.item, r.kind, r.name, '', r.size, r.md5, 'downloading', r.source, 0,
            r.at, 0, r.at
         FROM json_to_recordset(CAST($1 AS json)) AS r(id TEXT, bot TEXT, message TEXT, item BIGINT, kind TEXT,
            name TEXT, size BIGINT, md5 TEXT, source TEXT, at BIGINT)
         JOIN bots AS b ON b.id = r.bot",
        |conn, sql| sqlx::query(sql).bind(json(&rows)).execute(conn).await.map(|_| ())
    )
}
