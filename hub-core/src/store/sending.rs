//! Statements of the outbox's worker: what is open, what goes on the wire, what came of it.

use serde::Serialize;

use super::{
    conn::{Conn, on, on_each},
    leases::Lease,
    traces::TraceUpdate,
};
use crate::{
    error::Result,
    id::{BotId, MessageId, OutboxId},
    network::WindowRules,
    time::Timestamp,
    traces::TraceStatus,
};

/// Statements of the outbox's worker, on a lent connection.
#[derive(Debug)]
pub struct Sending<'c>(pub(super) Conn<'c>);

/// An item that was not concluded yet, with its person's window.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct OpenItem {
    /// Id.
    pub id: String,
    /// Its message.
    pub message_id: String,
    /// The message's trace.
    pub trace_id: Option<String>,
    /// Names a reply of a delivery by that delivery; any other send is traced on its own.
    pub dedupe_key: String,
    /// The person.
    pub peer: String,
    /// Place in the message, from 0.
    pub part: i64,
    /// Items of the message.
    pub parts: i64,
    /// Id for the network.
    pub client_id: String,
    /// Text.
    pub text: String,
    /// `queued`, or `sending` when a process died with it on the wire.
    pub state: String,
    /// Tries made.
    pub attempts: i64,
    /// Tries whose outcome nobody knows.
    pub unknowns: i64,
    /// When it may be tried, in Unix milliseconds.
    pub due_at: i64,
    /// When it is given up.
    pub expires_at: i64,
    /// Sealed permission to answer.
    pub context_token: Option<String>,
    /// When the window opened.
    pub window_opened_at: Option<i64>,
    /// Sends since.
    pub window_sends: Option<i64>,
    /// Why the network closed it.
    pub window_closed: Option<String>,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// Waits for another try.
    Queued,
    /// The network has it and gave it an id.
    Sent,
    /// The network took it and gave no id.
    Unconfirmed,
    /// It will never be taken.
    Failed,
    /// Nobody knows, and it is not tried again.
    Unknown,
    /// It waited too long.
    Expired,
}

impl ItemState {
    /// The word in the store and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::Unconfirmed => "unconfirmed",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
        }
    }
}

/// The outcome of a try, to be stored.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The item.
    pub id: OutboxId,
    /// Its message.
    pub message_id: MessageId,
    /// The bot.
    pub bot_id: BotId,
    /// The person.
    pub peer: String,
    /// Tries begun so far, this one included: an outcome counts only until another try has begun, by whomever.
    pub attempts: i64,
    /// The window the try was made in: what it says of a window does not concern a later one.
    pub window_opened_at: Option<i64>,
    /// Where it stands now.
    pub state: ItemState,
    /// When it may be tried again.
    pub due_at: Timestamp,
    /// Whether nobody knows what came of this try.
    pub unknown: bool,
    /// Whether the send is taken out of the window's count again: it never reached the network.
    pub uncount: bool,
    /// What went wrong.
    pub error: Option<String>,
    /// The network's id.
    pub network_id: Option<String>,
    /// Why the network closed the person's window.
    pub close_window: Option<String>,
    /// When.
    pub now: Timestamp,
    /// What the trace gains.
    pub trace: Option<TraceUpdate>,
}

impl Sending<'_> {
    /// Items of a bot that something can be done about now, in the order they were accepted: what ran out, and
    /// what is due with nothing before it that is not, to people whose window is open. People who have to
    /// write first keep nobody else waiting.
    pub async fn open(
        &mut self,
        bot_id: BotId,
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenItem>> {
        failpoint!("outbox.open");
        let oldest = rules.age.map_or(Timestamp::MIN, |age| now - age);
        on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT o.id, o.message_id, m.trace_id, m.dedupe_key, o.peer, o.part, o.parts, o.client_id, o.text, o.state,
                o.attempts, o.unknowns, o.due_at, o.expires_at, c.context_token, c.window_opened_at, c.window_sends,
                c.window_closed
             FROM outbox o JOIN messages m ON m.id = o.message_id
             LEFT JOIN contacts c ON c.bot_id = o.bot_id AND c.user_id = o.peer
             WHERE o.bot_id = $1 AND o.state IN ('queued', 'sending') AND (o.expires_at <= $2 OR (
                c.window_closed IS NULL AND c.window_opened_at > $3 AND c.window_sends < $4 AND NOT EXISTS (
                    SELECT 1 FROM outbox h WHERE h.bot_id = o.bot_id AND h.peer = o.peer AND h.id <= o.id
                        AND h.state IN ('queued', 'sending') AND h.due_at > $2)))
             ORDER BY o.id LIMIT $5"
        )
        .bind(bot_id.to_string())
        .bind(now.as_millis())
        .bind(oldest.as_millis())
        .bind(rules.sends.map_or(i64::MAX, i64::from))
        .bind(i64::from(limit))
        .fetch_all(conn)
        .await
        })
    }

    /// Notes, before it is written to the network, that an item is on its way, and counts the send; `false`
    /// when the bot has changed hands. What a dead process left `sending` counts as one unknown try.
    pub async fn begin(&mut self, lease: &Lease, id: OutboxId, peer: &str, now: Timestamp) -> Result<bool> {
        failpoint!("outbox.begin");
        let marked = on!(self.0, |conn| sqlx::query(
            "UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_at = $3,
                unknowns = unknowns + CASE WHEN state = 'sending' THEN 1 ELSE 0 END
             WHERE id = $1 AND state IN ('queued', 'sending')
               AND EXISTS (SELECT 1 FROM bots b WHERE b.id = outbox.bot_id AND b.lease_fence = $2)"
        )
        .bind(id.to_string())
        .bind(lease.fence)
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        if marked == 0 {
            return Ok(false);
        }
        failpoint!("outbox.window");
        on!(self.0, |conn| sqlx::query(
            "UPDATE contacts SET window_sends = window_sends + 1 WHERE bot_id = $1 AND user_id = $2"
        )
        .bind(lease.bot_id.to_string())
        .bind(peer)
        .execute(conn)
        .await
        .map(|_| ()))?;
        Ok(true)
    }

    /// Stores what came of a try: item, message, window and trace. `false`, and nothing stored, when another
    /// try has begun meanwhile.
    pub async fn settle(&mut self, settled: &Settled) -> Result<bool> {
        failpoint!("outbox.settle");
        let rows = on!(self.0, |conn| {
            sqlx::query(
                "UPDATE outbox SET state = $2, due_at = $3, last_error = $4,
                    network_id = COALESCE($5, network_id), unknowns = unknowns + $6, updated_at = $7
                 WHERE id = $1 AND attempts = $8 AND state IN ('queued', 'sending')",
            )
            .bind(settled.id.to_string())
            .bind(settled.state.as_str())
            .bind(settled.due_at.as_millis())
            .bind(settled.error.as_deref())
            .bind(settled.network_id.as_deref())
            .bind(i64::from(settled.unknown))
            .bind(settled.now.as_millis())
            .bind(settled.attempts)
            .execute(conn)
            .await
            .map(|done| done.rows_affected())
        })?;
        if rows == 0 {
            return Ok(false);
        }
        let whole = self.settle_message(settled).await?;
        self.settle_window(settled).await?;
        if let Some(trace) = &settled.trace {
            let mut trace = trace.clone();
            if trace.status == Some(TraceStatus::Ok.as_str())
                && !matches!(whole.as_str(), "sent" | "unconfirmed")
            {
                // An earlier part never arrived: the last one does not make the message whole.
                (trace.status, trace.summary) = (None, None);
            }
            super::traces::update(&mut self.0, &[&trace]).await?;
        }
        Ok(true)
    }

    async fn settle_window(&mut self, settled: &Settled) -> Result<()> {
        if !settled.uncount && settled.close_window.is_none() {
            return Ok(());
        }
        on!(self.0, |conn| sqlx::query(
            "UPDATE contacts SET window_closed = COALESCE($4, window_closed),
                window_sends = CASE WHEN window_sends > 0 THEN window_sends - $5 ELSE 0 END
             WHERE bot_id = $1 AND user_id = $2
                AND COALESCE(window_opened_at, 0) = COALESCE(CAST($3 AS BIGINT), 0)"
        )
        .bind(settled.bot_id.to_string())
        .bind(&settled.peer)
        .bind(settled.window_opened_at)
        .bind(settled.close_window.as_deref())
        .bind(i64::from(settled.uncount))
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// A message is as far as its slowest item, and as well as its worst one: its status word.
    async fn settle_message(&mut self, settled: &Settled) -> Result<String> {
        failpoint!("outbox.message");
        on!(self.0, |conn| {
            sqlx::query_scalar(
            "UPDATE messages SET network_id = COALESCE(network_id, $2), status_reason = COALESCE($3, status_reason),
                status = (SELECT CASE
                    WHEN COUNT(CASE WHEN o.state IN ('queued', 'sending') THEN 1 END) > 0 THEN 'queued'
                    WHEN COUNT(CASE WHEN o.state = 'failed' THEN 1 END) > 0 THEN 'failed'
                    WHEN COUNT(CASE WHEN o.state = 'expired' THEN 1 END) > 0 THEN 'expired'
                    WHEN COUNT(CASE WHEN o.state = 'unknown' THEN 1 END) > 0 THEN 'unknown'
                    WHEN COUNT(CASE WHEN o.state = 'unconfirmed' THEN 1 END) > 0 THEN 'unconfirmed'
                    ELSE 'sent' END FROM outbox o WHERE o.message_id = messages.id)
             WHERE id = $1 RETURNING status"
        )
        .bind(settled.message_id.to_string())
        .bind(settled.network_id.as_deref())
        .bind(settled.error.as_deref())
        .fetch_one(conn)
        .await
        })
    }

    /// Deletes up to `limit` messages accepted before `before` that nothing waits for; says how many went.
    pub async fn delete_messages_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        on_each!(
            self.0,
            "DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE m.created_at < $1
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state IN ('pending', 'parked'))
                AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message_id = m.id AND o.state IN ('queued', 'sending'))
                ORDER BY m.id LIMIT $2)",
            "DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE m.created_at < $1
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state IN ('pending', 'parked'))
                AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message_id = m.id AND o.state IN ('queued', 'sending'))
                ORDER BY m.id LIMIT $2 FOR UPDATE OF m SKIP LOCKED)",
            |conn, sql| sqlx::query(sql)
                .bind(before.as_millis())
                .bind(i64::from(limit))
                .execute(conn)
                .await
                .map(|done| done.rows_affected())
        )
    }
}
