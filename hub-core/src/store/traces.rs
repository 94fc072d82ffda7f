//! Statements about traces. Steps are a JSON array as text; steps are only ever appended.

use serde::Serialize;

use super::{
    conn::{Conn, on, on_each},
    json,
};
use crate::{
    access::Scope,
    error::Result,
    id::{BotId, ChannelId, MessageId, TraceId},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about traces, on a lent connection.
#[derive(Debug)]
pub struct Traces<'c>(pub(super) Conn<'c>);

/// A trace to be made.
#[derive(Debug, Clone, Serialize)]
pub struct NewTrace {
    /// Id.
    pub id: TraceId,
    /// The message it tells of.
    pub message_id: MessageId,
    /// Its bot.
    pub bot_id: BotId,
    /// The channel; `None` for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// The trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// Status word.
    pub status: &'static str,
    /// One line for lists.
    pub summary: String,
    /// When it began, in Unix milliseconds.
    pub started_at: i64,
    /// From the first step's beginning to the last one's end.
    pub duration_ms: i64,
    /// JSON array of steps.
    pub steps: String,
}

/// What an attempt adds to a trace.
#[derive(Debug, Clone, Serialize)]
pub struct TraceUpdate {
    /// Id.
    pub id: TraceId,
    /// New status word; `None` keeps the old one.
    pub status: Option<&'static str>,
    /// New summary; `None` keeps the old one.
    pub summary: Option<String>,
    /// Attempts so far; `None` keeps the old number.
    pub attempts: Option<i64>,
    /// When the last step ended, in Unix milliseconds.
    pub ended_at: i64,
    /// New steps: a JSON array without its brackets, may be empty.
    pub steps: String,
}

/// A trace as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct TraceRow {
    /// Id.
    pub id: String,
    /// Message.
    pub message_id: String,
    /// Bot.
    pub bot_id: String,
    /// Channel.
    pub channel_id: Option<String>,
    /// The trace that this one repeats.
    pub replay_of: Option<String>,
    /// Status word.
    pub status: String,
    /// One line.
    pub summary: String,
    /// Attempts.
    pub attempts: i64,
    /// Unix milliseconds.
    pub started_at: i64,
    /// Milliseconds.
    pub duration_ms: i64,
    /// JSON array; `[]` in lists.
    pub steps: String,
}

/// Which traces of a bot a list shows.
#[derive(Debug, Clone, Default)]
pub struct TraceFilter {
    /// Only this channel.
    pub channel_id: Option<ChannelId>,
    /// Only this status word.
    pub status: Option<&'static str>,
    /// Only this message.
    pub message_id: Option<MessageId>,
}

impl Traces<'_> {
    /// Traces of a bot that the scope may see, newest first, one more than the page has room for.
    pub async fn list(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        filter: &TraceFilter,
        page: &PageRequest,
    ) -> Result<Vec<TraceRow>> {
        on!(self.0, |conn| sqlx::query_as(
            "SELECT t.id, t.message_id, t.bot_id, t.channel_id, t.replay_of, t.status, t.summary, t.attempts,
                t.started_at, t.duration_ms, '[]' AS steps
             FROM traces t JOIN bots b ON b.id = t.bot_id
             WHERE t.bot_id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2)
               AND (CAST($3 AS TEXT) IS NULL OR t.channel_id = $3)
               AND (CAST($4 AS TEXT) IS NULL OR t.status = $4)
               AND (CAST($5 AS TEXT) IS NULL OR t.message_id = $5)
               AND (CAST($6 AS TEXT) IS NULL OR t.id < $6)
             ORDER BY t.id DESC LIMIT $7",
        )
        .bind(bot_id.to_string())
        .bind(scope.owner())
        .bind(filter.channel_id.map(|id| id.to_string()))
        .bind(filter.status)
        .bind(filter.message_id.map(|id| id.to_string()))
        .bind(page.after())
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)
    }

    /// One trace with its steps.
    pub async fn find(
        &mut self,
        scope: Scope,
        bot_id: Option<BotId>,
        id: TraceId,
    ) -> Result<Option<TraceRow>> {
        on!(self.0, |conn| sqlx::query_as(
            "SELECT t.id, t.message_id, t.bot_id, t.channel_id, t.replay_of, t.status, t.summary, t.attempts,
                t.started_at, t.duration_ms, t.steps
             FROM traces t JOIN bots b ON b.id = t.bot_id
             WHERE t.id = $1 AND (CAST($2 AS TEXT) IS NULL OR t.bot_id = $2)
               AND (CAST($3 AS TEXT) IS NULL OR b.owner_id = $3)",
        )
        .bind(id.to_string())
        .bind(bot_id.map(|id| id.to_string()))
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)
    }

    /// Stores new traces.
    pub async fn insert(&mut self, traces: &[&NewTrace]) -> Result<()> {
        insert(&mut self.0, traces).await
    }

    /// Appends steps.
    pub async fn update(&mut self, updates: &[&TraceUpdate]) -> Result<()> {
        update(&mut self.0, updates).await
    }

    /// Deletes up to `limit` traces that began before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM traces WHERE id IN (
                SELECT id FROM traces WHERE started_at < $1 AND status <> 'pending' ORDER BY id LIMIT $2)"
        )
        .bind(before.as_millis())
        .bind(i64::from(limit))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }
}

pub(super) async fn insert(conn: &mut Conn<'_>, traces: &[&NewTrace]) -> Result<()> {
    failpoint!("trace.insert");
    if traces.is_empty() {
        return Ok(());
    }
    let rows = json(traces);
    on_each!(
        *conn,
        "INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, summary, attempts, started_at,
            duration_ms, steps)
         SELECT value->>'id', value->>'message_id', value->>'bot_id', value->>'channel_id', value->>'replay_of',
            value->>'status', value->>'summary', 0, value->>'started_at', value->>'duration_ms', value->>'steps'
         FROM json_each($1)",
        "INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, summary, attempts, started_at,
            duration_ms, steps)
         SELECT id, message_id, bot_id, channel_id, replay_of, status, summary, 0, started_at, duration_ms, steps
         FROM json_to_recordset($1::json) AS x (id text, message_id text, bot_id text, channel_id text,
            replay_of text, status text, summary text, started_at bigint, duration_ms bigint, steps text)",
        |conn, sql| sqlx::query(sql).bind(&rows).execute(conn).await.map(|_| ())
    )
}

pub(super) async fn update(conn: &mut Conn<'_>, updates: &[&TraceUpdate]) -> Result<()> {
    failpoint!("trace.update");
    if updates.is_empty() {
        return Ok(());
    }
    let rows = json(&merge(updates));
    // The array grows as text: `[a]` and `b` make `[a,b]`, without parsing what is there.
    on_each!(
        *conn,
        "UPDATE traces SET status = COALESCE(x.status, traces.status), summary = COALESCE(x.summary, traces.summary),
            attempts = COALESCE(x.attempts, traces.attempts),
            duration_ms = MAX(traces.duration_ms, x.ended_at - started_at),
            steps = CASE WHEN x.steps = '' THEN traces.steps WHEN traces.steps = '[]' THEN '[' || x.steps || ']'
                ELSE substr(traces.steps, 1, length(traces.steps) - 1) || ',' || x.steps || ']' END
         FROM (SELECT value->>'id' AS trace, value->>'status' AS status, value->>'summary' AS summary,
            value->>'attempts' AS attempts, value->>'ended_at' AS ended_at, value->>'steps' AS steps
            FROM json_each($1)) AS x
         WHERE traces.id = x.trace",
        "UPDATE traces SET status = COALESCE(x.status, traces.status), summary = COALESCE(x.summary, traces.summary),
            attempts = COALESCE(x.attempts, traces.attempts),
            duration_ms = GREATEST(traces.duration_ms, x.ended_at - started_at),
            steps = CASE WHEN x.steps = '' THEN traces.steps WHEN traces.steps = '[]' THEN '[' || x.steps || ']'
                ELSE substr(traces.steps, 1, length(traces.steps) - 1) || ',' || x.steps || ']' END
         FROM json_to_recordset($1::json) AS x (id text, status text, summary text, attempts bigint,
            ended_at bigint, steps text)
         WHERE traces.id = x.id",
        |conn, sql| sqlx::query(sql).bind(&rows).execute(conn).await.map(|_| ())
    )
}

/// One update per trace: a statement changes each row once, whatever it joins with.
fn merge(updates: &[&TraceUpdate]) -> Vec<TraceUpdate> {
    let mut merged: Vec<TraceUpdate> = Vec::with_capacity(updates.len());
    let mut places: std::collections::HashMap<TraceId, usize> = std::collections::HashMap::new();
    for &update in updates {
        let Some(&place) = places.get(&update.id) else {
            places.insert(update.id, merged.len());
            merged.push(update.clone());
            continue;
        };
        let first = &mut merged[place];
        first.status = update.status.or(first.status);
        first.summary = update.summary.clone().or(first.summary.take());
        first.attempts = update.attempts.or(first.attempts);
        first.ended_at = first.ended_at.max(update.ended_at);
        if !update.steps.is_empty() {
            if !first.steps.is_empty() {
                first.steps.push(',');
            }
            first.steps.push_str(&update.steps);
        }
    }
    merged
}
