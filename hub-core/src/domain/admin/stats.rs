//! Statistics of the whole hub. Nodes count in memory and store their counts every few seconds; totals are sums of
//! the stored rows.

use std::{collections::BTreeMap, time::Duration};

use super::Admin;
use crate::{
    access::Actor,
    counters::Tallied,
    error::Result,
    model::admin::{BotCounts, DeliveryCounts, UserCounts},
    time::Timestamp,
};

/// Length of the series in minutes.
const MINUTES: i64 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Size and activity of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Users.
    pub users: UserCounts,
    /// Bots.
    pub bots: BotCounts,
    /// Channels.
    pub channels: u64,
    /// Sums of all counters since the database was created.
    pub totals: Tallied,
    /// Deliveries.
    pub deliveries: DeliveryCounts,
    /// Acceptance time of the oldest pending delivery.
    pub oldest_pending_at: Option<Timestamp>,
    /// The last sixty minutes, oldest first; the last one is still in progress.
    pub series: Vec<Minute>,
}

/// One minute of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// Start of the minute.
    pub at: Timestamp,
    /// Counts of the minute, on all nodes.
    pub counts: Tallied,
}

impl Admin<'_> {
    /// Returns the current statistics. Counts of the last seconds on other nodes may be missing.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn stats(&self, actor: &Actor) -> Result<Stats> {
        actor.admin()?;
        let now = self.ctx.store.now();
        let current = now.as_millis() / 60_000;
        let first = current - MINUTES + 1;
        // Read the counters before the store: counts that are stored meanwhile are missed and not counted twice.
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
