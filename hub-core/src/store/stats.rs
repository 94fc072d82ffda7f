//! Statements that count, and the rows of what was counted.

use super::conn::{Conn, on};
use crate::{
    counters::Tallied,
    error::{Error, Result},
    id::NodeId,
    model::{
        admin::{DeliveryCounts, UserCounts},
        bot::BotStatus,
    },
    store::demo::DEMO_USER,
    time::Timestamp,
};

/// Statements that count, on a lent connection.
#[derive(Debug)]
pub struct Stats<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    minute: i64,
    messages_in: i64,
    messages_out: i64,
    delivered: i64,
    failed: i64,
    plugin_runs: i64,
}

impl From<Row> for Tallied {
    fn from(row: Row) -> Self {
        Self {
            messages_in: unsigned(row.messages_in),
            messages_out: unsigned(row.messages_out),
            delivered: unsigned(row.delivered),
            failed: unsigned(row.failed),
            plugin_runs: unsigned(row.plugin_runs),
        }
    }
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The deletion of [`Stats::fold`].
pub(super) const DELETE_FOLDED: &str = "DELETE FROM tallies WHERE minute > 0 AND minute < $1";

impl Stats<'_> {
    /// Adds what a node counted to a minute's row.
    pub async fn add(&mut self, minute: i64, node: NodeId, counts: &Tallied) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO tallies
                (minute, node, messages_in, messages_out, delivered, failed, plugin_runs)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (minute, node) DO UPDATE SET
                messages_in = tallies.messages_in + excluded.messages_in,
                messages_out = tallies.messages_out + excluded.messages_out,
                delivered = tallies.delivered + excluded.delivered,
                failed = tallies.failed + excluded.failed,
                plugin_runs = tallies.plugin_runs + excluded.plugin_runs"
        )
        .bind(minute)
        .bind(node.to_string())
        .bind(signed(counts.messages_in))
        .bind(signed(counts.messages_out))
        .bind(signed(counts.delivered))
        .bind(signed(counts.failed))
        .bind(signed(counts.plugin_runs))
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Adds up the rows of all minutes before one, so that there are never many.
    pub async fn fold(&mut self, before: i64) -> Result<()> {
        if let Conn::Postgres(_) = self.0 {
            // Two nodes that add up the same rows would count them twice.
            on!(self.0, |conn| sqlx::query("SELECT pg_advisory_xact_lock(hashtext('message-hub.tallies'))")
                .execute(conn)
                .await
                .map(|_| ()))?;
        }
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO tallies
                (minute, node, messages_in, messages_out, delivered, failed, plugin_runs)
             SELECT 0, '', old.messages_in, old.messages_out, old.delivered, old.failed, old.plugin_runs FROM (
                SELECT CAST(SUM(messages_in) AS BIGINT) AS messages_in,
                    CAST(SUM(messages_out) AS BIGINT) AS messages_out,
                    CAST(SUM(delivered) AS BIGINT) AS delivered, CAST(SUM(failed) AS BIGINT) AS failed,
                    CAST(SUM(plugin_runs) AS BIGINT) AS plugin_runs
                FROM tallies WHERE minute > 0 AND minute < $1) AS old
             WHERE old.messages_in IS NOT NULL
             ON CONFLICT (minute, node) DO UPDATE SET
                messages_in = tallies.messages_in + excluded.messages_in,
                messages_out = tallies.messages_out + excluded.messages_out,
                delivered = tallies.delivered + excluded.delivered,
                failed = tallies.failed + excluded.failed,
                plugin_runs = tallies.plugin_runs + excluded.plugin_runs"
        )
        .bind(before)
        .execute(conn)
        .await
        .map(|_| ())
        })?;
        on!(self.0, |conn| sqlx::query(DELETE_FOLDED).bind(before).execute(conn).await.map(|_| ()))
    }

    /// Everything that was counted.
    pub async fn total(&mut self) -> Result<Tallied> {
        let row: Row = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT CAST(0 AS BIGINT) AS minute, CAST(COALESCE(SUM(messages_in), 0) AS BIGINT) AS messages_in,
                CAST(COALESCE(SUM(messages_out), 0) AS BIGINT) AS messages_out,
                CAST(COALESCE(SUM(delivered), 0) AS BIGINT) AS delivered,
                CAST(COALESCE(SUM(failed), 0) AS BIGINT) AS failed,
                CAST(COALESCE(SUM(plugin_runs), 0) AS BIGINT) AS plugin_runs FROM tallies"
        )
        .fetch_one(conn)
        .await
        })?;
        Ok(row.into())
    }

    /// What was counted in each minute from one on, on all nodes; minutes without anything are left out.
    pub async fn minutes(&mut self, first: i64) -> Result<Vec<(i64, Tallied)>> {
        let rows: Vec<Row> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT minute, CAST(SUM(messages_in) AS BIGINT) AS messages_in,
                CAST(SUM(messages_out) AS BIGINT) AS messages_out, CAST(SUM(delivered) AS BIGINT) AS delivered,
                CAST(SUM(failed) AS BIGINT) AS failed, CAST(SUM(plugin_runs) AS BIGINT) AS plugin_runs
             FROM tallies WHERE minute >= $1 AND minute > 0 GROUP BY minute ORDER BY minute"
        )
        .bind(first)
        .fetch_all(conn)
        .await
        })?;
        Ok(rows.into_iter().map(|row| (row.minute, row.into())).collect())
    }

    /// Users by role; the one that owns the demo is not counted.
    pub async fn users(&mut self) -> Result<UserCounts> {
        let rows: Vec<(String, String, i64)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT role, status, COUNT(*) FROM users WHERE username <> $1 GROUP BY role, status"
        )
        .bind(DEMO_USER)
        .fetch_all(conn)
        .await)?;
        let mut counts = UserCounts::default();
        for (role, status, count) in rows {
            let count = unsigned(count);
            counts.total += count;
            *(if status == "active" { &mut counts.active } else { &mut counts.disabled }) += count;
            counts.admins += if role == "admin" { count } else { 0 };
        }
        Ok(counts)
    }

    /// Bots by status.
    pub async fn bots(&mut self) -> Result<Vec<(BotStatus, u64)>> {
        let rows: Vec<(String, i64)> =
            on!(self.0, |conn| sqlx::query_as("SELECT status, COUNT(*) FROM bots GROUP BY status")
                .fetch_all(conn)
                .await)?;
        rows.into_iter()
            .map(|(word, count)| {
                let status = BotStatus::parse(&word);
                let status =
                    status.ok_or_else(|| Error::internal(format!("{word} is no status of a bot")))?;
                Ok((status, unsigned(count)))
            })
            .collect()
    }

    /// Channels.
    pub async fn channels(&mut self) -> Result<u64> {
        let count: i64 =
            on!(self.0, |conn| sqlx::query_scalar("SELECT COUNT(*) FROM channels").fetch_one(conn).await)?;
        Ok(unsigned(count))
    }

    /// Deliveries that are still to be made, and since when the oldest is. Reads open ones alone.
    pub async fn open_deliveries(&mut self) -> Result<(DeliveryCounts, Option<Timestamp>)> {
        let rows: Vec<(String, i64, i64)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT state, COUNT(*), MIN(created_at) FROM deliveries WHERE state IN ('pending', 'parked')
             GROUP BY state"
        )
        .fetch_all(conn)
        .await)?;
        let mut counts = DeliveryCounts::default();
        for (state, count, _) in &rows {
            *(if state == "parked" { &mut counts.parked } else { &mut counts.pending }) += unsigned(*count);
        }
        let oldest = rows.iter().map(|(.., at)| *at).min();
        Ok((counts, oldest.map(Timestamp::from_millis)))
    }
}
