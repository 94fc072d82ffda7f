//! Statements about replays of many traces.

use super::{
    conn::{Conn, sql},
    deliveries::Replay,
    rows::{self, row},
    traces,
};
use crate::{
    error::Result,
    id::{BotId, ReplayId, TraceId, UserId},
    model::{
        replay::{BulkReplay, RefusedReplay, ReplaySource},
        trace::TraceStatus,
    },
    text::json,
    time::Timestamp,
};

/// Statements about replays of many traces, on a lent connection.
#[derive(Debug)]
pub struct Replays<'c>(pub(super) Conn<'c>);

row!(Replay, |replay| {
    Text id = replay.id,
    Text message = replay.message_id,
    Text bot = replay.bot_id,
    Text channel = replay.channel_id,
    Text trace = replay.trace.id,
    Text sink = replay.sink.as_str(),
    Text target = replay.target_url.as_deref(),
    Number at = replay.now,
});

/// The deliveries out of these rows, each in a separate lane.
fn insert_deliveries(rows: &str) -> String {
    format!(
        "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts, due_at,
            claim, target_url, created_at)
         SELECT x.id, x.message, x.bot, x.channel, x.trace, x.sink, x.id, 0, 'pending', 0, x.at, 0, x.target, x.at
         FROM {rows} WHERE x.id IS NOT NULL"
    )
}

impl Replays<'_> {
    /// Reads what a replay needs of traces of an owner's bots, newest first; traces of other owners are left out.
    pub async fn sources(&mut self, owner: UserId, ids: &[TraceId]) -> Result<Vec<ReplaySource>> {
        sql!(self.0, all:
            ["SELECT t.id, t.message_id, t.bot_id, t.channel_id, m.direction, c.webhook, c.webhook_disabled
             FROM traces t JOIN bots b ON b.id = t.bot_id JOIN messages m ON m.id = t.message_id
             LEFT JOIN channels c ON c.id = t.channel_id
             WHERE b.owner_id = $1 AND t.id", in 2, " ORDER BY t.id DESC"];
            owner, json(ids)
        )
    }

    /// Stores a replay with its deliveries and traces, and deletes all but the newest `keep` replays of the owner.
    pub async fn insert(
        &mut self,
        id: ReplayId,
        owner: UserId,
        (replays, refused): (&[Replay], &[RefusedReplay]),
        (now, keep): (Timestamp, u32),
    ) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO replays (id, owner_id, refused, created_at) VALUES ($1, $2, $3, $4)";
            id, owner, json(refused), now
        )?;
        let new: Vec<TraceId> = replays.iter().map(|replay| replay.trace.id).collect();
        sql!(self.0, run:
            "INSERT INTO replay_traces (replay_id, trace_id) SELECT $1, value FROM json_each($2)",
            "INSERT INTO replay_traces (replay_id, trace_id)
             SELECT $1, json_array_elements_text(CAST($2 AS json))";
            id, json(&new)
        )?;
        rows::run(&mut self.0, replays, insert_deliveries).await?;
        let new: Vec<_> = replays.iter().map(|replay| &replay.trace).collect();
        traces::insert(&mut self.0, &new).await?;
        sql!(self.0, run:
            "DELETE FROM replays WHERE owner_id = $1 AND id NOT IN (
                SELECT id FROM replays WHERE owner_id = $1 ORDER BY id DESC LIMIT $2)";
            owner, i64::from(keep)
        )
    }

    /// The bots of the traces of an owner's replay.
    pub async fn bots_of(&mut self, owner: UserId, id: Option<ReplayId>) -> Result<Vec<BotId>> {
        sql!(self.0, values:
            "SELECT DISTINCT t.bot_id FROM replays r JOIN replay_traces x ON x.replay_id = r.id
            JOIN traces t ON t.id = x.trace_id WHERE r.id = $1 AND r.owner_id = $2";
            id, owner
        )
    }

    /// A replay of an owner, as far as it is.
    pub async fn find(&mut self, owner: UserId, id: ReplayId) -> Result<Option<BulkReplay>> {
        let found: Option<(String, Timestamp)> = sql!(self.0, optional:
            "SELECT refused, created_at FROM replays WHERE id = $1 AND owner_id = $2";
            id, owner
        )?;
        let Some((refused, created_at)) = found else { return Ok(None) };
        let refused = serde_json::from_str(&refused).map_err(crate::Error::internal)?;
        let rows: Vec<(Option<TraceStatus>, i64)> = sql!(self.0, all:
            "SELECT t.status, COUNT(*) FROM replay_traces r LEFT JOIN traces t ON t.id = r.trace_id
            WHERE r.replay_id = $1 GROUP BY t.status";
            id
        )?;
        let mut replay = BulkReplay::new(Some(id), created_at, refused);
        for (status, count) in rows {
            let count = u64::try_from(count).unwrap_or(0);
            replay.total += count;
            *match status {
                None => &mut replay.deleted,
                Some(TraceStatus::Pending) => &mut replay.pending,
                Some(TraceStatus::Ok) => &mut replay.ok,
                Some(TraceStatus::Error) => &mut replay.error,
                Some(TraceStatus::Skipped) => &mut replay.skipped,
            } += count;
        }
        Ok(Some(replay))
    }
}
