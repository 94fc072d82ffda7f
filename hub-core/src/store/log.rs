//! Statements about channel logs as clients read them: pages, acknowledgements, and who listens on which node.
//!
//! Numbers are given out under the lock of the channel's row in the transaction that holds the message, so a number
//! is visible only after every smaller one: continuing after the highest number seen misses nothing.

use std::collections::HashMap;

use hub_macros::FromRow;
use serde::{Serialize, Serializer};

use super::{
    conn::{Conn, dialect, sql},
    deliveries::JobMessage,
};
use crate::{
    error::Result,
    id::{ChannelId, NodeId},
    model::{bot::BotStatus, message::Direction, user::UserStatus},
    secret::TokenHash,
    text::json,
    time::Timestamp,
};

/// Statements about channel logs, on a lent connection.
#[derive(Debug)]
pub struct Log<'c>(pub(super) Conn<'c>);

/// A message under its number.
#[derive(Debug, Clone, FromRow)]
#[row(table = "channel_log")]
pub struct LogRow {
    /// Number in the channel.
    pub seq: i64,
    /// The text as the channel sees it, where that differs.
    pub channel_content: Option<String>,
    /// Direction.
    pub direction: Direction,
    /// Receiver.
    pub to_user_id: String,
    /// The network's id.
    pub network_id: Option<String>,
    /// The message.
    #[row(flatten)]
    pub message: JobMessage,
}

/// State of a channel that its clients keep up to date.
#[derive(Debug, Clone, FromRow)]
#[row(table = "channels")]
pub struct PulseRow {
    /// Channel.
    pub id: ChannelId,
    /// Its name.
    pub name: String,
    /// Newest number of its log.
    pub last_seq: i64,
    /// Number up to which its clients have acknowledged, as stored; [`PulseRow::acked`] decodes it.
    pub acked_seq: i64,
    /// Hash of its key.
    pub key_hash: TokenHash,
    /// Hash of the previous key.
    pub old_key_hash: Option<TokenHash>,
    /// End of the previous key's validity.
    pub old_key_until: Option<Timestamp>,
    /// Whether it is switched on.
    pub enabled: bool,
    /// JSON of the WebSocket sink's settings.
    pub websocket: String,
    /// JSON of the iLink sink's settings.
    pub ilink: String,
    /// JSON array of the hashes of the tokens of its iLink clients.
    #[row(json)]
    pub ilink_tokens: Vec<String>,
    /// Status of its bot.
    pub bot_status: BotStatus,
    /// Status of the bot's owner.
    pub owner_status: UserStatus,
}

impl PulseRow {
    /// Number up to which the channel's clients have acknowledged; `None` if none of them ever acknowledged.
    pub fn acked(&self) -> Option<i64> {
        match self.acked_seq {
            NEVER_ACKED => None,
            ACKED_NOTHING => Some(0),
            seq => Some(seq),
        }
    }
}

/// `acked_seq` of a channel whose clients never acknowledged: the default of the column.
const NEVER_ACKED: i64 = 0;
/// `acked_seq` of a channel whose clients acknowledge and start at the beginning of its log.
const ACKED_NOTHING: i64 = -1;

/// An acknowledgement.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ack {
    /// Channel.
    pub channel: ChannelId,
    /// Everything up to this number was taken; 0 for nothing yet.
    #[serde(serialize_with = "stored_seq")]
    pub seq: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn stored_seq<S: Serializer>(seq: &i64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_i64(if *seq == 0 { ACKED_NOTHING } else { *seq })
}

/// Clients of a channel on one node.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Listening {
    /// Channel.
    pub channel: ChannelId,
    /// Number of sockets.
    pub sockets: u32,
}

/// Reading.
impl Log<'_> {
    /// Reads a channel's messages after a number, oldest first: at most `limit` messages, and no further one once
    /// their texts and items have `max_chars` characters. The caller has authorized the request.
    pub async fn after(
        &mut self,
        channel_id: ChannelId,
        after: i64,
        limit: u32,
        max_chars: i64,
    ) -> Result<Vec<LogRow>> {
        sql!(self.0, all:
            "SELECT seq, channel_content, direction, to_user_id, network_id, message_id, from_user_id, user_name,
               peer, session_id, group_id, kind, content, items, quoted, private, sent_at
            FROM (
               SELECT p.*, SUM(p.chars) OVER (ORDER BY p.seq) - p.chars AS chars_before FROM (
                   SELECT l.seq, l.content AS channel_content, m.direction, m.to_user_id, m.network_id,
                       m.id AS message_id, m.from_user_id, m.user_name, m.peer, m.session_id, m.group_id, m.kind,
                       m.content, m.items, m.quoted, m.private, m.sent_at,
                       LENGTH(m.content) + LENGTH(COALESCE(NULLIF(m.items, ''), m.content)) AS chars
                   FROM channel_log l JOIN messages m ON m.id = l.message_id
                   WHERE l.channel_id = $1 AND l.seq > $2 ORDER BY l.seq LIMIT $3
               ) AS p
            ) AS page
            WHERE chars_before < $4 ORDER BY seq";
            channel_id, after, i64::from(limit), max_chars
        )
    }

    /// Reads the state of channels; those that do not exist are left out.
    pub async fn pulses(&mut self, channels: &[ChannelId]) -> Result<Vec<PulseRow>> {
        macro_rules! select {
            ($dialect:ident $hashes:literal) => {
                dialect!(
                    $dialect
                    "SELECT c.id, c.name, c.last_seq, c.acked_seq, c.key_hash, c.old_key_hash, c.old_key_until,
                        c.enabled, c.websocket, c.ilink,
                        (SELECT ",
                    $hashes,
                    " FROM ilink_clients i WHERE i.channel_id = c.id) AS ilink_tokens,
                        b.status AS bot_status, u.status AS owner_status
                     FROM channels c JOIN bots b ON b.id = c.bot_id JOIN users u ON u.id = b.owner_id
                     WHERE c.id", in 1
                )
            };
        }
        sql!(self.0, all:
            select!(sqlite "json_group_array(i.token_hash)"),
            select!(postgres "COALESCE(CAST(json_agg(i.token_hash) AS TEXT), '[]')");
            json(channels)
        )
    }

    /// On how many sockets of other nodes each channel is listened to.
    pub async fn listened_elsewhere(
        &mut self,
        node: NodeId,
        now: Timestamp,
    ) -> Result<HashMap<ChannelId, u32>> {
        let rows: Vec<(ChannelId, i64)> = sql!(self.0, all:
            "SELECT channel_id, CAST(SUM(sockets) AS BIGINT) FROM channel_listeners
            WHERE node <> $1 AND until > $2 GROUP BY channel_id";
            node, now
        )?;
        Ok(rows.into_iter().map(|(id, sockets)| (id, u32::try_from(sockets).unwrap_or(0))).collect())
    }
}

/// Writing.
impl Log<'_> {
    /// Moves cursors forward, and marks their channels as acknowledged. A number below the stored one, or beyond the
    /// log, is left out.
    pub async fn acknowledge(&mut self, acks: &[Ack]) -> Result<()> {
        sql!(self.0, run:
            "UPDATE channels SET acked_seq = x.seq
            FROM (SELECT value->>'channel' AS channel, value->>'seq' AS seq FROM json_each($1)) AS x
            WHERE channels.id = x.channel AND (acked_seq = $2 OR acked_seq < x.seq) AND x.seq <= last_seq",
            "UPDATE channels SET acked_seq = x.seq
            FROM json_to_recordset($1::json) AS x (channel text, seq bigint)
            WHERE channels.id = x.channel AND (acked_seq = $2 OR acked_seq < x.seq) AND x.seq <= last_seq";
            json(acks), NEVER_ACKED
        )
    }

    /// Replaces the stored clients of a node, until a time; deletes expired rows of all nodes.
    pub async fn announce(
        &mut self,
        node: NodeId,
        listening: &[Listening],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<()> {
        sql!(self.0, run: "DELETE FROM channel_listeners WHERE node = $1 OR until <= $2"; node, now)?;
        sql!(self.0, run:
            "INSERT INTO channel_listeners (node, channel_id, sockets, until)
            SELECT $1, value->>'channel', value->>'sockets', $3 FROM json_each($2)",
            "INSERT INTO channel_listeners (node, channel_id, sockets, until)
            SELECT $1, channel, sockets, $3
            FROM json_to_recordset($2::json) AS x (channel text, sockets bigint)";
            node, json(listening), until
        )
    }
}
