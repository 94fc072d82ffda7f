//! From the store into memory: deliveries that no node holds, in order and within the limits. Recovery after a crash,
//! the overflow of a full memory, replays and what other processes wrote are one case.

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use tokio::sync::MutexGuard;

use super::{
    bot::{BotWork, Unloaded},
    bots::Bots,
    job::{Delivery, EventJob, open_job},
    queue::Queue,
    routing::lane_of,
    shared_clock::SharedClock,
    work_store::{BacklogRows, WorkStore},
};
use crate::{
    error::Result,
    id::DeliveryId,
    model::sinks::{SinkKey, SinkKind},
    secret::Sealer,
    store::{deliveries::EventJobRow, due},
    time::{Clock, Instant},
};

/// Rows of one query.
const CHUNK_ROWS: u32 = 500;

/// A delivery ready for its lane.
struct Loaded {
    delivery: Delivery,
    lane: String,
    not_before: Option<Instant>,
}

/// Loads deliveries from the store into the lanes.
#[derive(Debug)]
pub(super) struct Backlog {
    pub(super) store: Arc<dyn WorkStore>,
    pub(super) clock: Clock,
    pub(super) sealer: Sealer,
    pub(super) shared_clock: Arc<SharedClock>,
    pub(super) queue: Arc<Queue>,
    pub(super) bots: Arc<Bots>,
}

impl Backlog {
    /// Loads the deliveries of a bot that no node holds, until memory or the store is exhausted.
    pub(super) async fn scan(&self, bot: &BotWork) {
        self.scan_locked(bot, bot.unloaded.lock().await).await;
    }

    /// Loads more when a sink has little left in memory and more in the store. Does nothing during another scan: the
    /// next job that ends calls it again.
    pub(super) async fn refill(&self, bot: &BotWork, key: SinkKey) {
        if !self.queue.lanes(key.kind()).is_low(key) {
            return;
        }
        if let Ok(unloaded) = bot.unloaded.try_lock()
            && unloaded.includes(key)
        {
            self.scan_locked(bot, unloaded).await;
        }
    }

    async fn scan_locked(&self, bot: &BotWork, unloaded: MutexGuard<'_, Unloaded>) {
        match AssertUnwindSafe(self.try_scan(bot, unloaded)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.bots.scan_later(bot.lease.bot_id);
                bot.report("the backlog could not be read", &error);
            }
            Err(_) => bot.start_over("backlog scan").await,
        }
    }

    async fn try_scan(&self, bot: &BotWork, mut unloaded: MutexGuard<'_, Unloaded>) -> Result<()> {
        let channels = bot.channels();
        let store = &self.store;
        if !unloaded.uncertain().is_empty() {
            store.disclaim(unloaded.uncertain().to_vec(), bot.lease.fence).await?;
            unloaded.clear_uncertain();
        }
        loop {
            let mut full: Vec<SinkKey> = Vec::new();
            for sink in SinkKind::ALL {
                let lanes = self.queue.lanes(sink);
                full.extend(channels.sinks(sink).filter(|key| !lanes.room(*key)));
            }
            let rows = store.backlog(&bot.lease, &full, store.now(), CHUNK_ROWS).await?;
            let has_more = rows.messages.len().max(rows.events.len()) >= CHUNK_ROWS as usize;
            if self.shared_clock.has_unfollowed_step() {
                return Ok(());
            }
            let mut loaded = self.load(bot, rows);
            if !loaded.is_empty() {
                let ids: Vec<DeliveryId> = loaded.iter().map(|loaded| loaded.delivery.id()).collect();
                let claimed = store.claim(ids.clone(), bot.lease.fence).await;
                let claimed = claimed.inspect_err(|_| unloaded.add_uncertain(ids))?;
                // What a lost lease did not claim belongs to another node, and what was deleted to none.
                loaded.retain(|loaded| claimed.contains(&loaded.delivery.id()));
                failpoint!("backlog.claimed", passed);
                self.push(bot, loaded);
            }
            if !has_more {
                unloaded.set(full.into_iter().collect::<HashSet<_>>());
                return Ok(());
            }
        }
    }

    /// Opens rows. One that does not open stays in the store and is logged once per scan.
    fn load(&self, bot: &BotWork, rows: BacklogRows) -> Vec<Loaded> {
        let channels = bot.channels();
        let (clock, now) = (&self.clock, self.store.now());
        let not_before = |attempts, due_at| (attempts > 0).then(|| clock.instant() + due::wait(due_at, now));
        let event = |row: EventJobRow| {
            let job = EventJob::open(&row, bot.lease.bot_id, bot.lease.fence, clock, now);
            let lane = if job.is_alone { job.id.to_string() } else { row.lane };
            Loaded { not_before: not_before(job.attempts, row.due_at), delivery: Delivery::Event(job), lane }
        };
        let mut loaded: Vec<Loaded> = rows.events.into_iter().map(event).collect();
        for row in rows.messages {
            let opened = row.and_then(|row| {
                let (lane, due_at) = (row.lane.clone(), row.due_at);
                let (bot_id, fence) = (bot.lease.bot_id, bot.lease.fence);
                Ok((lane, due_at, open_job(row, bot_id, fence, &self.sealer, clock, now)?))
            });
            let (lane, due_at, job) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    bot.report("a stored delivery cannot be read", &error);
                    continue;
                }
            };
            let channel = channels.channels.iter().find(|channel| channel.id == job.channel_id);
            let lane = match channel {
                // A parked delivery or a replay blocks nothing and waits for nothing.
                _ if job.is_alone => job.id.to_string(),
                Some(channel) => lane_of(channel, &job.content, job.sink, job.id),
                None => lane,
            };
            let not_before = not_before(job.attempts, due_at);
            loaded.push(Loaded { delivery: Delivery::Message(job), lane, not_before });
        }
        loaded
    }

    fn push(&self, bot: &BotWork, loaded: Vec<Loaded>) {
        let channels = bot.channels();
        for Loaded { delivery, lane, not_before } in loaded {
            let channel = match &delivery {
                Delivery::Message(job) => {
                    channels.channels.iter().find(|channel| channel.id == job.channel_id)
                }
                Delivery::Event(_) => None,
            };
            self.queue.push(delivery, &lane, channel.map(Arc::as_ref), not_before);
        }
        self.queue.ready.notify_one();
    }
}
