//! Statements about deliveries: the work of the sinks.
//!
//! A delivery is claimed by writing the fence of its bot's lease into it: then that node holds it in memory. Any
//! other value means that no node does, whether it was never loaded, its node died, or the bot was taken over; the
//! backlog scan finds all of them the same way.

mod events;
mod finish;
mod open;

pub use crate::model::trace::{DeliveryFacts, DeliveryState};
pub use events::{EventJobRow, FinishedEvent};
pub use finish::{Finished, HealthReport, SinkHealth};
pub(super) use finish::{
    Successes, count_statement, delete_statement, delete_statement_postgres, finish_statement, note_health,
    raise_revisions,
};
pub use open::OpenDelivery;

use std::collections::HashSet;

use super::{
    conn::{Conn, MaybeDamaged, sql},
    due::LONGEST_WAIT,
    traces::{NewTrace, TraceUpdate},
};
use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    model::sinks::{SinkId, SinkKey},
    network::MessageKind,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about deliveries, on a lent connection.
#[derive(Debug)]
pub struct Deliveries<'c>(pub(super) Conn<'c>);

/// A delivery and its message, as the backlog scan loads them.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "deliveries")]
pub struct JobRow {
    /// Delivery.
    pub id: DeliveryId,
    /// Its trace.
    pub trace_id: TraceId,
    /// Its channel.
    pub channel_id: ChannelId,
    /// The sink.
    pub sink: SinkId,
    /// Ordering key: deliveries of a sink with the same key keep their order.
    pub lane: String,
    /// Place in the channel's log; 0 for a replay.
    pub seq: i64,
    /// `pending` or `parked`.
    pub state: DeliveryState,
    /// Attempts made.
    pub attempts: i64,
    /// Time from which it may be attempted.
    pub due_at: Timestamp,
    /// Time of the first attempt.
    pub first_attempt_at: Option<Timestamp>,
    /// URL of a replay, in place of the configured one.
    pub target_url: Option<String>,
    /// The text as the channel sees it.
    pub channel_content: Option<String>,
    /// The message.
    #[row(flatten)]
    pub message: JobMessage,
}

/// Columns of a message that a sink needs.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "messages")]
pub struct JobMessage {
    /// Id.
    pub message_id: MessageId,
    /// Sender.
    pub from_user_id: String,
    /// Sender's display name.
    pub user_name: String,
    /// The person or group on the other side.
    pub peer: String,
    /// Conversation.
    pub session_id: String,
    /// Group, or empty.
    pub group_id: String,
    /// Kind.
    pub kind: MessageKind,
    /// Text.
    pub content: String,
    /// Parts, [as they are stored](crate::network::items).
    pub items: String,
    /// Quote, as JSON.
    pub quoted: Option<String>,
    /// Sealed secrets of the message.
    pub private: Option<Sealed>,
    /// Time at which it was sent.
    pub sent_at: Timestamp,
}

/// A new delivery of a message that was delivered before.
#[derive(Debug)]
pub struct Replay {
    /// The new delivery.
    pub id: DeliveryId,
    /// The message.
    pub message_id: MessageId,
    /// The bot.
    pub bot_id: BotId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The sink.
    pub sink: SinkId,
    /// Another target than the channel's URL.
    pub target_url: Option<String>,
    /// Time of creation.
    pub now: Timestamp,
    /// Its trace.
    pub trace: NewTrace,
}

impl Deliveries<'_> {
    /// Open deliveries to a bot's channels that are not held under this fence, oldest first, with their messages. Sinks in
    /// `full` are left out: their memory is used up. A damaged row does not keep the others from being read.
    pub async fn backlog(
        &mut self,
        bot_id: BotId,
        fence: i64,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Result<JobRow>>> {
        failpoint!("backlog.read");
        let rows: Vec<MaybeDamaged<JobRow>> = sql!(self.0, all:
            "SELECT d.id, d.trace_id, d.channel_id, d.sink, d.lane, d.seq, d.state, d.attempts, d.due_at, d.first_attempt_at,
               d.target_url, l.content AS channel_content, d.message_id, m.from_user_id, m.user_name, m.peer,
               m.session_id, m.group_id, m.kind, m.content, m.items, m.quoted, m.private, m.sent_at
            FROM deliveries d JOIN messages m ON m.id = d.message_id
            LEFT JOIN channel_log l ON l.channel_id = d.channel_id AND l.seq = d.seq
            WHERE d.bot_id = $1 AND d.claim <> $2 AND d.event_id IS NULL
              AND d.state IN ('pending', 'parked') AND (d.state = 'pending' OR d.due_at <= $3 OR d.due_at > $6)
              AND d.channel_id || '/' || d.sink NOT IN (SELECT value FROM json_each($4))
            ORDER BY d.id LIMIT $5",
            "SELECT d.id, d.trace_id, d.channel_id, d.sink, d.lane, d.seq, d.state, d.attempts, d.due_at, d.first_attempt_at,
               d.target_url, l.content AS channel_content, d.message_id, m.from_user_id, m.user_name, m.peer,
               m.session_id, m.group_id, m.kind, m.content, m.items, m.quoted, m.private, m.sent_at
            FROM deliveries d JOIN messages m ON m.id = d.message_id
            LEFT JOIN channel_log l ON l.channel_id = d.channel_id AND l.seq = d.seq
            WHERE d.bot_id = $1 AND d.claim <> $2 AND d.event_id IS NULL
              AND d.state IN ('pending', 'parked') AND (d.state = 'pending' OR d.due_at <= $3 OR d.due_at > $6)
              AND d.channel_id || '/' || d.sink NOT IN (SELECT json_array_elements_text($4::json))
            ORDER BY d.id LIMIT $5";
            bot_id, fence, now, json(full), i64::from(limit), now + LONGEST_WAIT
        )?;
        Ok(rows.into_iter().map(|MaybeDamaged(row)| row).collect())
    }

    /// Notes that the node with this fence holds the deliveries in memory, and returns which it does: none that has
    /// ended, and none at all when the bot has changed hands.
    pub async fn claim(&mut self, ids: &[DeliveryId], fence: i64) -> Result<HashSet<DeliveryId>> {
        failpoint!("backlog.claim");
        let claimed: Vec<DeliveryId> = sql!(self.0, values:
            ["UPDATE deliveries SET claim = $2 WHERE state IN ('pending', 'parked') AND id", in 1,
              " AND EXISTS (SELECT 1 FROM bots b WHERE b.id = deliveries.bot_id AND b.lease_fence = $2) RETURNING id"];
            json(ids), fence
        )?;
        Ok(claimed.into_iter().collect())
    }

    /// Notes that the node with this fence does not hold the deliveries in memory, if they are noted as its own.
    pub async fn disclaim(&mut self, ids: &[DeliveryId], fence: i64) -> Result<()> {
        sql!(self.0, run:
            ["UPDATE deliveries SET claim = 0 WHERE id", in 1, " AND claim = $2"];
            json(ids), fence
        )
    }

    /// Stores a replay: a delivery in a lane of its own, and its trace.
    ///
    /// # Errors
    /// `NOT_FOUND` when the message or the channel was deleted meanwhile.
    pub async fn insert_replay(&mut self, replay: &Replay) -> Result<()> {
        let there: Option<i64> = sql!(self.0, optional_value:
            "SELECT 1 FROM messages m JOIN channels c ON c.id = $2 WHERE m.id = $1",
            "SELECT CAST(1 AS BIGINT) FROM messages m JOIN channels c ON c.id = $2 WHERE m.id = $1 FOR KEY SHARE";
            replay.message_id, replay.channel_id
        )?;
        there.ok_or_else(|| Error::not_found("message"))?;
        sql!(self.0, run:
            "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at,
               claim, target_url, created_at, sink)
            VALUES ($1, $2, $3, $4, $5, $6, 0, 'pending', 0, $7, 0, $8, $7, $9)";
            replay.id, replay.message_id, replay.bot_id, replay.channel_id, replay.trace.id, replay.id, replay.now,
            &replay.target_url, replay.sink
        )?;
        super::traces::insert(&mut self.0, &[&replay.trace]).await
    }

    /// Marks a delivery whose outcome cannot be stored as dead, so that it is visible instead of lost, and its trace
    /// too. Returns `false`, and writes nothing, if another node has the bot.
    pub async fn abandon(
        &mut self,
        id: DeliveryId,
        fence: i64,
        reason: &str,
        now: Timestamp,
        trace: &TraceUpdate,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE deliveries SET state = 'dead', claim = 0, last_error = $3, finished_at = $4
            WHERE id = $1 AND claim = $2
              AND EXISTS (SELECT 1 FROM bots b WHERE b.id = deliveries.bot_id AND b.lease_fence = $2)";
            id, fence, reason, now
        )?;
        if rows > 0 {
            super::traces::update(&mut self.0, &[trace]).await?;
        }
        Ok(rows > 0)
    }

    /// Returns the deliveries of a trace's message that did not end well, oldest first. The caller has authorized the
    /// request.
    pub async fn of_trace(&mut self, message_id: MessageId, trace_id: TraceId) -> Result<Vec<DeliveryFacts>> {
        sql!(self.0, all:
            "SELECT sink, state, attempts, due_at, last_error FROM deliveries
            WHERE message_id = $1 AND trace_id = $2 ORDER BY id";
            message_id, trace_id
        )
    }

    /// Makes parked deliveries of a trace due now; returns how many there were. The caller has authorized the
    /// request.
    pub async fn attempt_parked(
        &mut self,
        message: MessageId,
        trace: TraceId,
        now: Timestamp,
    ) -> Result<u64> {
        sql!(self.0, execute:
            "UPDATE deliveries SET due_at = $3 WHERE message_id = $1 AND trace_id = $2 AND state = 'parked'";
            message, trace, now
        )
    }

    /// Returns state, attempts and last error of the deliveries of a trace that did not end well, oldest first.
    pub async fn find_by_trace(
        &mut self,
        trace_id: TraceId,
    ) -> Result<Vec<(DeliveryState, i64, Option<String>)>> {
        sql!(self.0, all:
            "SELECT state, attempts, last_error FROM deliveries WHERE trace_id = $1 ORDER BY id";
            trace_id
        )
    }
}
