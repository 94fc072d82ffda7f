//! Statements about traces. Steps are only ever appended.

use std::collections::HashMap;

use super::{
    batched_delete::{self, DeletedBatch, batch_end},
    conn::{Conn, sql},
    rows::{self, row},
};
use crate::{
    access::Scope,
    error::Result,
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{
        sinks::WebhookSettings,
        trace::{PackedSteps, Step, StoredSteps, Trace, TraceStatus},
    },
    text::json,
    time::Timestamp,
};

/// Statements about traces, on a lent connection.
#[derive(Debug)]
pub struct Traces<'c>(pub(super) Conn<'c>);

/// A trace to be made.
#[derive(Debug, Clone)]
pub struct NewTrace {
    /// Id.
    pub id: TraceId,
    /// The message.
    pub message_id: MessageId,
    /// Its bot.
    pub bot_id: BotId,
    /// The channel; `None` for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// The trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// Status.
    pub status: TraceStatus,
    /// Deliveries that must end before the trace ends.
    pub open_sinks: i64,
    /// One line for lists.
    pub summary: String,
    /// Start time.
    pub started_at: Timestamp,
    /// From the first step's beginning to the last one's end.
    pub duration_ms: i64,
    /// Steps.
    pub steps: PackedSteps,
}

/// Change of a trace by an attempt.
#[derive(Debug, Clone)]
pub struct TraceUpdate {
    /// Id.
    pub id: TraceId,
    /// New status; `None` keeps the old one. While other deliveries of the trace are open it stays `pending`,
    /// and when the last one ends the worst of their statuses counts: `error`, `ok`, `skipped`.
    pub status: Option<TraceStatus>,
    /// Deliveries of the trace that end with this, each with `status`.
    pub ended: i64,
    /// New summary; `None` keeps the old one, and so does another delivery that ended worse before.
    pub summary: Option<String>,
    /// Attempts so far; of several deliveries the most are kept.
    pub attempts: Option<i64>,
    /// End of the last step.
    pub ended_at: Timestamp,
    /// New steps; may be none.
    pub steps: PackedSteps,
}

/// A trace as stored.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "traces")]
pub struct TraceRow {
    /// Id.
    pub id: TraceId,
    /// Message.
    pub message_id: MessageId,
    /// Bot.
    pub bot_id: BotId,
    /// Channel.
    pub channel_id: Option<ChannelId>,
    /// The trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// Status.
    pub status: TraceStatus,
    /// One line.
    pub summary: String,
    /// Attempts.
    #[row(number)]
    pub attempts: u64,
    /// Start time.
    pub started_at: Timestamp,
    /// Milliseconds.
    #[row(number)]
    pub duration_ms: u64,
    /// None in lists.
    #[row(flatten)]
    pub steps: StoredSteps,
    /// Name of the channel.
    pub channel_name: Option<String>,
    /// The person on the other side; empty when the message is gone, as is what follows.
    pub user_id: String,
    /// Their name.
    pub user_name: String,
    /// The beginning of the message's text.
    pub preview: String,
    /// Bytes of the steps as they are stored, and of the message's text and items for itself and each attempt.
    pub size: i64,
    /// Due time of the next attempt; not in lists.
    pub next_attempt_at: Option<Timestamp>,
    /// Settings of the channel's webhook; not in lists.
    pub webhook: Option<String>,
}

/// The columns of a [`TraceRow`] and its tables; the steps, the next attempt and the webhook's settings as given. A
/// preview has 120 characters.
macro_rules! select_trace {
    ($array:literal, $packed:literal, $next_attempt:literal, $webhook:literal) => {
        concat!(
            "SELECT t.id, t.message_id, t.bot_id, t.channel_id, t.replay_of, t.status, t.summary, t.attempts,
                t.started_at, t.duration_ms, c.name AS channel_name, COALESCE(m.peer, '') AS user_id,
                COALESCE(m.user_name, '') AS user_name, COALESCE(substr(m.content, 1, 120), '') AS preview,
                CAST(octet_length(t.steps) + octet_length(t.packed_steps) + COALESCE(octet_length(m.content)
                    + octet_length(COALESCE(NULLIF(m.items, ''), m.content)), 0) * (t.attempts + 1) AS BIGINT)
                    AS size, ",
            $array,
            " AS steps, ",
            $packed,
            " AS packed_steps, ",
            $next_attempt,
            " AS next_attempt_at, ",
            $webhook,
            " AS webhook
             FROM traces t JOIN bots b ON b.id = t.bot_id
             LEFT JOIN channels c ON c.id = t.channel_id
             LEFT JOIN messages m ON m.id = t.message_id "
        )
    };
}

mod list;
mod outcomes;
mod search;

/// The statements of [`Traces::delete_before`].
pub(super) const DELETE_BEFORE: [&str; 2] = [
    batch_end!("traces"),
    "DELETE FROM traces WHERE id > $1 AND id <= $2 AND started_at < $3 AND status <> 'pending'",
];

impl From<TraceRow> for Trace {
    fn from(row: TraceRow) -> Self {
        let schedule = || serde_json::from_str::<WebhookSettings>(row.webhook.as_deref()?).ok();
        let max_attempts =
            row.next_attempt_at.and_then(|_| schedule()).map(|webhook| webhook.retry.schedule_s.len() + 1);
        Self {
            trace_id: row.id,
            message_id: row.message_id,
            bot_id: row.bot_id,
            channel_id: row.channel_id,
            replay_of: row.replay_of,
            status: row.status,
            summary: row.summary,
            started_at: row.started_at,
            duration_ms: row.duration_ms,
            attempts: row.attempts,
            channel_name: row.channel_name,
            user_id: row.user_id,
            user_name: row.user_name,
            preview: row.preview,
            next_attempt_at: row.next_attempt_at,
            max_attempts: max_attempts.and_then(|most| u64::try_from(most).ok()),
            steps: row.steps.0,
        }
    }
}

impl Traces<'_> {
    /// One trace with its steps.
    pub async fn find(
        &mut self,
        scope: Scope,
        bot_id: Option<BotId>,
        id: TraceId,
    ) -> Result<Option<TraceRow>> {
        sql!(self.0, optional:
            concat!(
                select_trace!(
                    "t.steps",
                    "t.packed_steps",
                    "(SELECT MIN(d.due_at) FROM deliveries d
                        WHERE d.message_id = t.message_id AND d.trace_id = t.id AND d.state = 'pending')",
                    "CASE WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = t.message_id
                        AND d.trace_id = t.id AND d.state = 'pending' AND d.sink = 'webhook') THEN c.webhook END"
                ),
                "WHERE t.id = $1 AND (CAST($2 AS TEXT) IS NULL OR t.bot_id = $2)
                AND (CAST($3 AS TEXT) IS NULL OR b.owner_id = $3)"
            );
            id, bot_id, scope.owner()
        )
    }

    /// The steps of traces, by their ids. The caller has checked whose they are.
    pub async fn steps_of(&mut self, ids: &[TraceId]) -> Result<HashMap<TraceId, Vec<Step>>> {
        #[derive(hub_macros::FromRow)]
        #[row(table = "traces")]
        struct Steps {
            id: TraceId,
            #[row(flatten)]
            steps: StoredSteps,
        }
        let rows: Vec<Steps> =
            sql!(self.0, all: ["SELECT id, steps, packed_steps FROM traces WHERE id", in 1]; json(ids))?;
        Ok(rows.into_iter().map(|row| (row.id, row.steps.0)).collect())
    }

    /// Stores new traces.
    pub async fn insert(&mut self, traces: &[&NewTrace]) -> Result<()> {
        insert(&mut self.0, traces).await
    }

    /// Appends steps.
    pub async fn update(&mut self, updates: &[&TraceUpdate]) -> Result<()> {
        update(&mut self.0, updates).await
    }

    /// Visits up to `limit` traces after the id `after`, and deletes those that began before `before` and have ended.
    pub async fn delete_before(
        &mut self,
        after: &str,
        before: Timestamp,
        limit: u32,
    ) -> Result<DeletedBatch> {
        let bound = TraceId::first_at(before).to_string();
        let Some(last) = batched_delete::end(&mut self.0, DELETE_BEFORE[0], after, &bound, limit).await?
        else {
            return Ok(DeletedBatch::default());
        };
        let deleted = sql!(self.0, execute: DELETE_BEFORE[1]; after, &last, before)?;
        Ok(DeletedBatch { deleted, last: Some(last) })
    }
}

/// Stores new traces, out of these rows.
pub(super) fn insert_traces(rows: &str) -> String {
    format!(
        "INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, open_sinks, summary, attempts,
            started_at, duration_ms, steps, packed_steps)
         SELECT id, message_id, bot_id, channel_id, replay_of, status, open_sinks, summary, attempts,
            started_at, duration_ms, steps, packed_steps
         FROM {rows} WHERE x.id IS NOT NULL"
    )
}

pub(super) async fn insert(conn: &mut Conn<'_>, traces: &[&NewTrace]) -> Result<()> {
    failpoint!("trace.insert");
    rows::run(conn, traces, insert_traces).await
}

row!(NewTrace, |row| {
    Text id = row.id,
    Text message_id = row.message_id,
    Text bot_id = row.bot_id,
    Text channel_id = row.channel_id,
    Text replay_of = row.replay_of,
    Text status = row.status.as_str(),
    Number open_sinks = row.open_sinks,
    Text summary = row.summary.as_str(),
    Number attempts = 0,
    Number started_at = row.started_at,
    Number duration_ms = row.duration_ms,
    // Version 0.1.0 stored them here first.
    Text steps = "",
    Bytes packed_steps = row.steps.as_bytes(),
});

/// SQLite's expressions for the greater of two numbers and for steps with later ones.
pub(super) const SQLITE: [&str; 2] = ["MAX", "CAST(traces.packed_steps || x.steps AS BLOB)"];
pub(super) const POSTGRES: [&str; 2] = ["GREATEST", "traces.packed_steps || x.steps"];

/// Appends to traces, out of these rows. `worst` is only written while another delivery is open: a trace of one never needs it.
pub(super) fn update_traces([max, steps]: [&str; 2], rows: &str) -> String {
    format!(
        "UPDATE traces SET
            status = CASE WHEN x.status IS NULL THEN traces.status
                WHEN traces.open_sinks > x.ended THEN 'pending'
                WHEN traces.worst = 'error' OR (traces.worst = 'ok' AND x.status = 'skipped') THEN traces.worst
                ELSE x.status END,
            worst = CASE WHEN x.ended = 0 OR traces.open_sinks <= x.ended OR traces.worst = 'error'
                    OR (traces.worst = 'ok' AND x.status = 'skipped') THEN traces.worst
                ELSE x.status END,
            open_sinks = traces.open_sinks - x.ended,
            summary = CASE WHEN x.summary IS NULL OR traces.worst = 'error'
                    OR (traces.worst = 'ok' AND x.status = 'skipped') THEN traces.summary
                ELSE x.summary END,
            attempts = {max}(traces.attempts, COALESCE(x.attempts, 0)),
            duration_ms = {max}(traces.duration_ms, x.ended_at - started_at),
            packed_steps = {steps}
         FROM {rows} WHERE traces.id = x.trace"
    )
}

pub(super) async fn update(conn: &mut Conn<'_>, updates: &[&TraceUpdate]) -> Result<()> {
    failpoint!("trace.update");
    let dialect = match conn {
        Conn::Sqlite(_) => SQLITE,
        Conn::Postgres(_) => POSTGRES,
    };
    rows::run(conn, &merge(updates), |rows| update_traces(dialect, rows)).await
}

row!(TraceUpdate, |row| {
    Text trace = row.id,
    Text status = row.status.map(TraceStatus::as_str),
    Number ended = row.ended,
    Text summary = row.summary.as_deref(),
    Number attempts = row.attempts,
    Number ended_at = row.ended_at,
    Bytes steps = row.steps.as_bytes(),
});

/// Returns the rank of a status among those that ended deliveries of one trace.
fn weight(status: Option<TraceStatus>) -> u8 {
    match status {
        Some(TraceStatus::Error) => 3,
        Some(TraceStatus::Ok) => 2,
        Some(TraceStatus::Skipped) => 1,
        Some(TraceStatus::Pending) | None => 0,
    }
}

/// Merges updates to one per trace: a statement changes each row once, whatever it joins with.
pub(super) fn merge(updates: &[&TraceUpdate]) -> Vec<TraceUpdate> {
    let mut merged: Vec<TraceUpdate> = Vec::with_capacity(updates.len());
    let mut places: HashMap<TraceId, usize> = HashMap::new();
    for &update in updates {
        let Some(&place) = places.get(&update.id) else {
            places.insert(update.id, merged.len());
            merged.push(update.clone());
            continue;
        };
        let first = &mut merged[place];
        // An end counts more than an attempt of another delivery, and of two ends the worse one.
        let ends = (update.ended > 0, weight(update.status));
        if ends >= (first.ended > 0, weight(first.status)) || first.status.is_none() {
            first.status = update.status.or(first.status);
            first.summary = update.summary.clone().or(first.summary.take());
        } else if first.summary.is_none() {
            first.summary.clone_from(&update.summary);
        }
        first.ended += update.ended;
        first.attempts = first.attempts.max(update.attempts);
        first.ended_at = first.ended_at.max(update.ended_at);
        first.steps.append(&update.steps);
    }
    merged
}
