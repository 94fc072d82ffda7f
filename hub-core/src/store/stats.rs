//! Statements that count, and the rows of what was counted.

use std::collections::BTreeMap;

use super::{
    CLOCK_SKEW,
    conn::{Conn, sql},
    list_ids::is_channel_or_bot,
};
use crate::{
    access::Role,
    counters::Tallied,
    error::Result,
    id::{MessageId, NodeId, TraceId, UserId},
    model::{
        admin::{DeliveryCounts, MinuteCounts, UserCounts},
        bot::BotStatus,
        message::Direction,
        trace::{DeliveryState, TraceStatus},
        user::UserStatus,
    },
    store::demo::DEMO_USER,
    time::Timestamp,
};

/// Statements that count, on a lent connection.
#[derive(Debug)]
pub struct Stats<'c>(pub(super) Conn<'c>);

/// A minute's row, added up over the nodes.
#[derive(hub_macros::FromRow)]
struct Minute {
    minute: i64,
    #[row(flatten)]
    counts: Tallied,
}

/// Adds rows of `tallies` to those that are there.
macro_rules! add {
    ($($rows:expr),*) => {
        concat!(
            "INSERT INTO tallies (minute, node, messages_in, messages_out, delivered, failed, plugin_runs) ",
            $($rows,)*
            " ON CONFLICT (minute, node) DO UPDATE SET messages_in = tallies.messages_in + excluded.messages_in,
                messages_out = tallies.messages_out + excluded.messages_out,
                delivered = tallies.delivered + excluded.delivered, failed = tallies.failed + excluded.failed,
                plugin_runs = tallies.plugin_runs + excluded.plugin_runs"
        )
    };
}

/// `SELECT` of the sums, NULL where there are no rows.
macro_rules! sums {
    () => {
        "SELECT CAST(SUM(messages_in) AS BIGINT) AS messages_in, CAST(SUM(messages_out) AS BIGINT) AS messages_out,
            CAST(SUM(delivered) AS BIGINT) AS delivered, CAST(SUM(failed) AS BIGINT) AS failed,
            CAST(SUM(plugin_runs) AS BIGINT) AS plugin_runs"
    };
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
        sql!(self.0, run:
            add!("VALUES ($1, $2, $3, $4, $5, $6, $7)");
            minute, node, signed(counts.messages_in), signed(counts.messages_out), signed(counts.delivered),
            signed(counts.failed), signed(counts.plugin_runs)
        )
    }

    /// Adds up the rows of all minutes before one, so that there are never many.
    pub async fn fold(&mut self, before: i64) -> Result<()> {
        if let Conn::Postgres(_) = self.0 {
            // Two nodes that add up the same rows would count them twice.
            sql!(self.0, run: "SELECT pg_advisory_xact_lock(hashtext('message-hub.tallies'))")?;
        }
        sql!(self.0, run:
            add!(
                "SELECT 0, '', old.messages_in, old.messages_out, old.delivered, old.failed, old.plugin_runs FROM (",
                sums!(),
                " FROM tallies WHERE minute > 0 AND minute < $1) AS old WHERE old.messages_in IS NOT NULL"
            );
            before
        )?;
        sql!(self.0, run: DELETE_FOLDED; before)
    }

    /// Everything that was counted.
    pub async fn total(&mut self) -> Result<Tallied> {
        sql!(self.0, one:
            "SELECT CAST(COALESCE(SUM(messages_in), 0) AS BIGINT) AS messages_in,
               CAST(COALESCE(SUM(messages_out), 0) AS BIGINT) AS messages_out,
               CAST(COALESCE(SUM(delivered), 0) AS BIGINT) AS delivered,
               CAST(COALESCE(SUM(failed), 0) AS BIGINT) AS failed,
               CAST(COALESCE(SUM(plugin_runs), 0) AS BIGINT) AS plugin_runs FROM tallies"
        )
    }

    /// Returns the counts of each minute from `first` on, summed over all nodes; minutes without counts are left out.
    pub async fn minutes(&mut self, first: i64) -> Result<Vec<(i64, Tallied)>> {
        let rows: Vec<Minute> = sql!(self.0, all:
            concat!(
                sums!(),
                ", minute FROM tallies WHERE minute >= $1 AND minute > 0 GROUP BY minute ORDER BY minute"
            );
            first
        )?;
        Ok(rows.into_iter().map(|row| (row.minute, row.counts)).collect())
    }

    /// Users by role; the one that owns the demo is not counted.
    pub async fn users(&mut self) -> Result<UserCounts> {
        let rows: Vec<(Role, UserStatus, i64)> = sql!(self.0, all:
            "SELECT role, status, COUNT(*) FROM users WHERE username <> $1 GROUP BY role, status";
            DEMO_USER
        )?;
        let mut counts = UserCounts::default();
        for (role, status, count) in rows {
            let count = unsigned(count);
            counts.total += count;
            *(if status == UserStatus::Active { &mut counts.active } else { &mut counts.disabled }) += count;
            counts.admins += if role == Role::Admin { count } else { 0 };
        }
        Ok(counts)
    }

    /// Bots by status.
    pub async fn bots(&mut self) -> Result<Vec<(BotStatus, u64)>> {
        let rows: Vec<(BotStatus, i64)> =
            sql!(self.0, all: "SELECT status, COUNT(*) FROM bots GROUP BY status")?;
        Ok(rows.into_iter().map(|(status, count)| (status, unsigned(count))).collect())
    }

    /// Bots of a user by status.
    pub async fn bots_of(&mut self, owner: UserId) -> Result<Vec<(BotStatus, u64)>> {
        let rows: Vec<(BotStatus, i64)> = sql!(self.0, all:
            "SELECT status, COUNT(*) FROM bots WHERE owner_id = $1 GROUP BY status";
            owner
        )?;
        Ok(rows.into_iter().map(|(status, count)| (status, unsigned(count))).collect())
    }

    /// Returns the acceptance time of the oldest open delivery of a user's bots.
    pub async fn oldest_open_of(&mut self, owner: UserId) -> Result<Option<Timestamp>> {
        sql!(self.0, value:
            "SELECT MIN(oldest.at) FROM (SELECT (SELECT d.created_at FROM deliveries d
                WHERE d.bot_id = b.id AND d.state IN ('pending', 'parked') ORDER BY d.id LIMIT 1) AS at
             FROM bots b WHERE b.owner_id = $1) AS oldest";
            owner
        )
    }

    /// Counts messages and outcomes of a user's bots in each minute since a time; reads at most `limit` rows of each
    /// kind.
    pub async fn minutes_of(
        &mut self,
        owner: UserId,
        since: Timestamp,
        limit: u32,
    ) -> Result<BTreeMap<i64, MinuteCounts>> {
        let messages: Vec<(i64, Direction, i64)> = sql!(self.0, all:
            "SELECT x.created_at / 60000, x.direction, COUNT(*) FROM (
                SELECT m.created_at, m.direction FROM bots b JOIN messages m ON m.bot_id = b.id AND m.id > $2
                WHERE b.owner_id = $1 LIMIT $4) AS x
             WHERE x.created_at >= $3 GROUP BY x.created_at / 60000, x.direction";
            owner, MessageId::first_at(since - CLOCK_SKEW), since, i64::from(limit)
        )?;
        let traces: Vec<(i64, TraceStatus, i64)> = sql!(self.0, all:
            concat!(
                "SELECT x.started_at / 60000, x.status, COUNT(*) FROM (
                    SELECT t.started_at, t.status FROM bots b JOIN channels c ON c.bot_id = b.id
                    JOIN traces t ON ",
                is_channel_or_bot!("t", "c.id"),
                " AND t.id > $2
                    WHERE b.owner_id = $1 LIMIT $4) AS x
                 WHERE x.started_at >= $3 GROUP BY x.started_at / 60000, x.status"
            );
            owner, TraceId::first_at(since - CLOCK_SKEW), since, i64::from(limit)
        )?;
        let mut minutes: BTreeMap<i64, MinuteCounts> = BTreeMap::new();
        for (minute, direction, count) in messages {
            let counts = minutes.entry(minute).or_default();
            *(if direction == Direction::Inbound {
                &mut counts.messages_in
            } else {
                &mut counts.messages_out
            }) = unsigned(count);
        }
        for (minute, status, count) in traces {
            let counts = minutes.entry(minute).or_default();
            match status {
                TraceStatus::Ok => counts.delivered = unsigned(count),
                TraceStatus::Error => counts.failed = unsigned(count),
                TraceStatus::Pending | TraceStatus::Skipped => {}
            }
        }
        Ok(minutes)
    }

    /// Channels.
    pub async fn channels(&mut self) -> Result<u64> {
        let count: i64 = sql!(self.0, value: "SELECT COUNT(*) FROM channels")?;
        Ok(unsigned(count))
    }

    /// Deliveries that are still to be made, and since when the oldest is. Reads open ones alone.
    pub async fn open_deliveries(&mut self) -> Result<(DeliveryCounts, Option<Timestamp>)> {
        let rows: Vec<(DeliveryState, i64, Timestamp)> = sql!(self.0, all:
            "SELECT state, COUNT(*), MIN(created_at) FROM deliveries WHERE state IN ('pending', 'parked')
            GROUP BY state"
        )?;
        let mut counts = DeliveryCounts::default();
        for (state, count, _) in &rows {
            *(if *state == DeliveryState::Parked { &mut counts.parked } else { &mut counts.pending }) +=
                unsigned(*count);
        }
        let oldest = rows.iter().map(|(.., at)| *at).min();
        Ok((counts, oldest))
    }
}
