//! From the store into memory: deliveries that no node holds, in order and within the limits. Recovery after a crash,
//! the overflow of a full memory, replays and what other processes wrote are one case.

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::MutexGuard;

use super::{
    job::{Job, open_job},
    node::{Behind, BotWork, Engine},
    routing::lane_of,
};
use crate::{
    error::Result,
    id::DeliveryId,
    model::sinks::{SinkId, SinkKey},
    store::{
        deliveries::{DeliveryState, JobRow},
        due,
    },
    time::Instant,
};

/// Rows of one query.
const CHUNK: u32 = 500;

/// A delivery ready for its lane.
struct Loaded {
    job: Job,
    lane: Arc<str>,
    not_before: Option<Instant>,
}

impl Engine {
    /// Loads the deliveries of a bot that no node holds, until memory or the store is exhausted.
    pub(super) async fn scan(&self, bot: &BotWork) {
        self.scan_under(bot, bot.behind.lock().await).await;
    }

    /// Loads more when a sink has little left in memory and more in the store. Does nothing during another scan: the
    /// next job that ends calls it again.
    pub(super) async fn refill(&self, bot: &BotWork, key: SinkKey) {
        if !self.lanes(key.sink).is_low(key) {
            return;
        }
        if let Ok(behind) = bot.behind.try_lock()
            && behind.is_behind(key)
        {
            self.scan_under(bot, behind).await;
        }
    }

    async fn scan_under(&self, bot: &BotWork, behind: MutexGuard<'_, Behind>) {
        match AssertUnwindSafe(self.try_scan(bot, behind)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => Self::report("the backlog could not be read", bot, &error),
            Err(_) => self.start_over(bot, "the backlog scan panicked").await,
        }
    }

    async fn try_scan(&self, bot: &BotWork, mut behind: MutexGuard<'_, Behind>) -> Result<()> {
        let channels = bot.channels();
        let store = &self.ctx.store;
        if !behind.doubtful().is_empty() {
            store.disclaim(behind.doubtful().to_vec(), bot.lease.fence).await?;
            behind.resolve_doubts();
        }
        loop {
            let mut full: Vec<SinkKey> = Vec::new();
            for sink in SinkId::ALL {
                let lanes = self.lanes(sink);
                let keys = channels.channels.iter().map(|channel| SinkKey { channel: channel.id, sink });
                full.extend(keys.filter(|key| !lanes.room(*key)));
            }
            let rows = store.backlog(&bot.lease, &full, store.now(), CHUNK).await?;
            if self.has_unfollowed_step() {
                return Ok(());
            }
            let whole = rows.len() < CHUNK as usize;
            let mut loaded = self.load(bot, rows);
            if !loaded.is_empty() {
                let ids: Vec<DeliveryId> = loaded.iter().map(|loaded| loaded.job.id).collect();
                let claimed = store.claim(ids.clone(), bot.lease.fence).await;
                let claimed = claimed.inspect_err(|_| behind.doubt(ids))?;
                // What a lost lease did not claim belongs to another node, and what was deleted to none.
                loaded.retain(|loaded| claimed.contains(&loaded.job.id));
                failpoint!("backlog.claimed", passed);
                self.push(bot, loaded);
            }
            if whole {
                behind.only(full.into_iter().collect::<HashSet<_>>());
                return Ok(());
            }
        }
    }

    /// Opens rows. One that does not open is left where it is, and told of once per look.
    fn load(&self, bot: &BotWork, rows: Vec<Result<JobRow>>) -> Vec<Loaded> {
        let channels = bot.channels();
        let (clock, now) = (&self.ctx.clock, self.ctx.store.now());
        let mut loaded = Vec::with_capacity(rows.len());
        for row in rows {
            let opened = row.and_then(|row| {
                let own_lane = row.state == DeliveryState::Parked || row.seq == 0;
                let (lane, due_at) = (row.lane.clone(), row.due_at);
                let (bot_id, fence) = (bot.lease.bot_id, bot.lease.fence);
                Ok((own_lane, lane, due_at, open_job(row, bot_id, fence, &self.ctx.sealer, clock, now)?))
            });
            let (own_lane, lane, due_at, job) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    Self::report("a stored delivery cannot be read", bot, &error);
                    continue;
                }
            };
            let channel = channels.channels.iter().find(|channel| channel.id == job.channel_id);
            let lane = match channel {
                // A parked delivery or a replay blocks nothing and waits for nothing.
                _ if own_lane => job.id.to_string(),
                Some(channel) => lane_of(channel, &job.content, job.sink, job.id),
                None => lane,
            };
            let not_before = (job.attempts > 0).then(|| clock.instant() + due::wait(due_at, now));
            loaded.push(Loaded { job, lane: lane.into(), not_before });
        }
        loaded
    }

    fn push(&self, bot: &BotWork, loaded: Vec<Loaded>) {
        let channels = bot.channels();
        for Loaded { job, lane, not_before } in loaded {
            let channel = channels.channels.iter().find(|channel| channel.id == job.channel_id);
            let pace =
                channel.map_or(super::worker::DEFAULT_PACE, |channel| super::worker::pace(channel, job.sink));
            self.lanes(job.sink).push(job.key(), &lane, pace, job, not_before);
        }
        self.work_ready.notify_one();
    }
}
