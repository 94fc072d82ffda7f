//! Statements about files of messages. The rows alone define which files exist: an object in the media store is
//! created after its row and removed before it.

use super::{
    conn::{Conn, sql},
    rows::row,
};
use crate::{
    error::Result,
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
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "media")]
pub struct MediaRow {
    /// Id, and the name of its object.
    pub id: MediaId,
    /// User whose storage quota it counts against.
    pub owner_id: UserId,
    /// The bot it came to, or may be sent by.
    pub bot_id: BotId,
    /// The channel that uploads it, if one does.
    pub channel_id: Option<ChannelId>,
    /// Its message; `None` before one holds it, and after that one is gone.
    pub message_id: Option<MessageId>,
    /// Index of the item in the message.
    pub item: i64,
    /// Kind of file.
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
    /// Time of the next fetch.
    pub due_at: Timestamp,
    /// Time of deletion while no message holds it.
    pub expires_at: Timestamp,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A file that came with a message and is still with the network.
#[derive(Debug, Clone)]
pub struct NewInboundMedia {
    /// Id.
    pub id: MediaId,
    /// Index of the item in the message.
    pub item: i64,
    /// Kind of file.
    pub kind: MessageKind,
    /// Its name.
    pub file_name: String,
    /// Bytes, as reported by the network.
    pub size: i64,
    /// MD5, if the network reports it.
    pub md5: String,
    /// The network's notes.
    pub source: Sealed,
}

/// Outcome of an attempt to fetch a file.
#[derive(Debug, Clone)]
pub struct SettledMedia {
    /// The file.
    pub id: MediaId,
    /// New state.
    pub state: MediaState,
    /// Reason for the state.
    pub reason: Option<String>,
    /// Tries so far.
    pub attempts: i64,
    /// Time of the next attempt.
    pub due_at: Timestamp,
    /// Properties of the bytes, once they are stored.
    pub stored: Option<StoredBytes>,
}

/// Properties of stored bytes.
#[derive(Debug, Clone)]
pub struct StoredBytes {
    /// Number of bytes.
    pub size: i64,
    /// Their MD5, as hex.
    pub md5: String,
    /// Their media type.
    pub content_type: String,
    /// New name for a file that had none.
    pub file_name: String,
    /// The network's notes, as they opened it; `None` keeps them.
    pub source: Option<Sealed>,
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

/// The statement of [`Media::loose`] on SQLite, which would choose another index, and on PostgreSQL.
pub(super) const LOOSE: [&str; 2] = [
    "SELECT id FROM media INDEXED BY media_loose WHERE message_id IS NULL AND expires_at <= $1
     ORDER BY expires_at LIMIT $2",
    "SELECT id FROM media WHERE message_id IS NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2",
];

impl Media<'_> {
    /// Inserts the row of a file that no message holds yet.
    pub async fn insert(&mut self, row: &MediaRow) -> Result<()> {
        sql!(self.0, insert "media":
            id = row.id, owner_id = row.owner_id, bot_id = row.bot_id, channel_id = row.channel_id, item = row.item,
            kind = row.kind, file_name = &row.file_name, content_type = &row.content_type, size = row.size,
            md5 = &row.md5, state = row.state, attempts = 0_i64, due_at = row.due_at, expires_at = row.expires_at,
            created_at = row.created_at
        )
    }

    /// One file.
    pub async fn find(&mut self, id: MediaId) -> Result<Option<MediaRow>> {
        sql!(self.0, optional: columns!("WHERE id = $1"); id)
    }

    /// Gives a file that was not sent yet another name and kind.
    pub async fn rename_unsent(&mut self, id: MediaId, file_name: &str, kind: MessageKind) -> Result<()> {
        sql!(self.0, run:
            "UPDATE media SET file_name = $2, kind = $3 WHERE id = $1 AND message_id IS NULL"; id, file_name, kind)
    }

    /// The files of messages, each message's in the order of its items.
    pub async fn of_messages(&mut self, ids: &[MessageId]) -> Result<Vec<MediaRow>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        sql!(self.0, all:
            [columns!("WHERE message_id"), in 1, " ORDER BY message_id, item, id"];
            json(ids)
        )
    }

    /// Files of a bot that are still to be fetched, the next one first.
    pub async fn downloading(&mut self, bot_id: BotId, limit: u32) -> Result<Vec<MediaRow>> {
        sql!(self.0, all:
            columns!("WHERE bot_id = $1 AND state = 'downloading' AND message_id IS NOT NULL
             ORDER BY due_at, id LIMIT $2");
            bot_id, i64::from(limit)
        )
    }

    /// The network's notes on a bot's files with an MD5 that were opened, with their ids, newest first.
    pub async fn opened_with_md5(
        &mut self,
        bot_id: BotId,
        md5: &str,
        limit: u32,
    ) -> Result<Vec<(MediaId, Sealed)>> {
        sql!(self.0, all:
            "SELECT id, source FROM media
            WHERE bot_id = $1 AND md5 = $2 AND md5 <> '' AND state = 'ready' AND source IS NOT NULL
            ORDER BY id DESC LIMIT $3";
            bot_id, md5, i64::from(limit)
        )
    }

    /// Stores the outcome of an attempt. Returns `false`, and stores nothing, when the message is gone or the file
    /// was settled before.
    pub async fn settle(&mut self, settled: &SettledMedia) -> Result<bool> {
        let stored = settled.stored.as_ref();
        let rows = sql!(self.0, execute:
            "UPDATE media SET state = $2, reason = $3, attempts = $4, due_at = $5, size = COALESCE($6, size),
               md5 = COALESCE($7, md5), content_type = COALESCE($8, content_type),
               file_name = COALESCE($9, file_name), source = COALESCE($10, source)
            WHERE id = $1 AND state = 'downloading' AND message_id IS NOT NULL";
            settled.id, settled.state, &settled.reason, settled.attempts, settled.due_at,
            stored.map(|stored| stored.size), stored.map(|stored| &stored.md5),
            stored.map(|stored| &stored.content_type), stored.map(|stored| &stored.file_name),
            stored.and_then(|stored| stored.source.as_ref())
        )?;
        Ok(rows == 1)
    }

    /// Makes the failed files of a message due again; returns how many there are.
    pub async fn retry(&mut self, message_id: MessageId, now: Timestamp) -> Result<u64> {
        sql!(self.0, execute:
            "UPDATE media SET state = 'downloading', reason = NULL, attempts = 0, due_at = $2
            WHERE message_id = $1 AND state = 'failed' AND source IS NOT NULL";
            message_id, now
        )
    }

    /// Takes the one upload that a row allows; `false` when it was taken, or its time is over.
    pub async fn begin_upload(&mut self, id: MediaId, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE media SET state = 'uploading' WHERE id = $1 AND state = 'pending' AND expires_at > $2";
            id, now
        )?;
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
        let rows = sql!(self.0, execute:
            "UPDATE media SET state = $2, size = COALESCE($3, size), md5 = COALESCE($4, md5),
               expires_at = COALESCE($5, expires_at)
            WHERE id = $1 AND state = 'uploading'";
            id, if stored.is_some() { MediaState::Ready } else { MediaState::Failed },
            stored.as_ref().map(|stored| stored.size), stored.as_ref().map(|stored| &stored.md5), until
        )?;
        Ok(rows == 1)
    }

    /// Bytes of all files of an owner, announced uploads included; not those that are still with the network.
    pub async fn bytes_of(&mut self, owner_id: UserId) -> Result<i64> {
        sql!(self.0, value:
            "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM media
            WHERE owner_id = $1 AND state <> 'downloading' AND state <> 'failed'";
            owner_id
        )
    }

    /// Reads expired files that no message holds, oldest first.
    pub async fn loose(&mut self, now: Timestamp, limit: u32) -> Result<Vec<MediaId>> {
        sql!(self.0, values: LOOSE[0], LOOSE[1]; now, i64::from(limit))
    }

    /// Deletes rows that no message holds; their objects are gone already.
    pub async fn delete(&mut self, ids: &[MediaId]) -> Result<u64> {
        sql!(self.0, execute:
            ["DELETE FROM media WHERE message_id IS NULL AND id", in 1]; json(ids)
        )
    }
}

/// A file that came with a message.
pub(super) struct InboundRow<'a> {
    pub(super) bot: BotId,
    pub(super) message: MessageId,
    pub(super) at: Timestamp,
    pub(super) file: &'a NewInboundMedia,
}

row!(InboundRow<'_>, |row| {
    Text id = row.file.id,
    Text bot = row.bot,
    Text message = row.message,
    Number item = row.file.item,
    Text kind = row.file.kind.as_str(),
    Text name = row.file.file_name.as_str(),
    Number size = row.file.size,
    Text md5 = row.file.md5.as_str(),
    Text source = row.file.source.as_str(),
    Number at = row.at,
});

/// Stores files that came with messages, out of these rows.
pub(super) fn insert_inbound(rows: &str) -> String {
    format!(
        "INSERT INTO media (id, owner_id, bot_id, message_id, item, kind, file_name, content_type, size, md5, state,
            source, attempts, due_at, expires_at, created_at)
         SELECT x.id, b.owner_id, b.id, x.message, x.item, x.kind, x.name, '', x.size, x.md5, 'downloading', x.source,
            0, x.at, 0, x.at
         FROM {rows} JOIN bots AS b ON b.id = x.bot"
    )
}
