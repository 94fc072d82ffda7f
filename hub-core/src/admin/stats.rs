//! Statistics of the whole hub. Nothing is counted while messages flow but a few numbers in memory; each node writes
//! them down now and then, and what is shown is added up from those rows.

use std::{collections::BTreeMap, time::Duration};

use super::Admin;
use crate::{
    access::Actor,
    counters::Tallied,
    error::Result,
    model::admin::{BotCounts, DeliveryCounts, UserCounts},
    time::Timestamp,
};

/// Minutes of the series.
const MINUTES: i64 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// What a hub has and does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Users.
    pub users: UserCounts,
    /// Bots.
    pub bots: BotCounts,
    /// Channels.
    pub channels: u64,
    /// Everything counted since the database was made.
    pub totals: Tallied,
    /// Deliveries.
    pub deliveries: DeliveryCounts,
    /// When the oldest delivery that is still to be made was accepted.
    pub oldest_pending_at: Option<Timestamp>,
    /// The last sixty minutes, oldest first; the last one is not over yet.
    pub series: Vec<Minute>,
}

/// One minute of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// When it began.
    pub at: Timestamp,
    /// What was counted in it, on all nodes.
    pub counts: Tallied,
}

impl Admin<'_> {
    /// The statistics now. What other nodes counted within the last seconds may be missing.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn stats(&self, actor: &Actor) -> Result<Stats> {
        actor.admin()?;
        let now = self.ctx.store.now();
        let current = now.as_millis() / 60_000;
        let first = current - MINUTES + 1;
        // Before the store is read: what is written down meanwhile is missing rather than counted twice.
        let (_, unwritten) = self.ctx.node.counters.since_written();
        let mut read = self.ctx.store.read().await?;
        let mut totals = read.stats().total().await?;
        let mut minutes: BTreeMap<i64, Tallied> = read.stats().minutes(first).await?.into_iter().collect();
        totals.add(&unwritten);
        minutes.entry(current).or_default().add(&unwritten);
        let series = (first..=current).map(|minute| Minute {
            at: Timestamp::from_millis(0) + MINUTE * u32::try_from(minute).unwrap_or(0),
            counts: minutes.get(&minute).copied().unwrap_or_default(),
        });
        let bots = BotCounts::of(&read.stats().bots().await?);
        let (deliveries, oldest_pending_at) = read.stats().open_deliveries().await?;
        Ok(Stats {
            users: read.stats().users().await?,
            bots,
            channels: read.stats().channels().await?,
            totals,
            deliveries,
            oldest_pending_at,
            series: series.collect(),
        })
    }
}
