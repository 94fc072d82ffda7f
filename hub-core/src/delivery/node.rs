//! One node's share of the work: which bots it holds, and what runs for each of them.
//!
//! The supervisor takes free leases on bots and renews its own; for each lease it starts a poller, an outbox and the
//! backlog scan, and stops them when the lease is gone. Hints only make it look sooner.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::sync::{Notify, broadcast::error::RecvError};

pub use super::bot::{Behind, BotWork};
use super::{apps, bot::Validity, hints, job::Job, lanes::Lanes, retention};
use crate::{
    admin::tally,
    apps::sockets,
    bots::BotStatus,
    channels::log,
    context::Context,
    counters::Load,
    delivery::work_store::WorkContext,
    error::{Error, Result},
    events::Event,
    id::{BotId, ChannelId, NodeId},
    invariants::invariant,
    model::sinks::SinkId,
    revocation,
    store::{
        Store,
        due::{Followed, Reading},
        leases::{Lease, WorkRow},
    },
    tasks::Tasks,
    wake::Hint,
};

/// Interval of polls for new work without a hint.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Bots that are taken over at the same time. Each reads with one connection to the database.
const TAKEOVERS: usize = 4;

/// Everything one node runs.
#[derive(Debug)]
pub struct Engine {
    pub(super) ctx: WorkContext,
    pub(super) node: NodeId,
    pub(super) tasks: Tasks,
    /// Apart by the kind of sink: models take minutes where webhooks take milliseconds, and neither may use up
    /// the other's slots or memory.
    webhook_lanes: Mutex<Lanes<Job>>,
    ai_lanes: Mutex<Lanes<Job>>,
    pub(super) work_ready: Notify,
    /// Channels whose webhook took its last message: their next success is no news for the store.
    pub(super) healthy: Mutex<HashSet<ChannelId>>,
    /// In order, so that a run can be repeated.
    pub(super) bots: RwLock<BTreeMap<BotId, Arc<BotWork>>>,
    /// Bots that broke a rule: nothing runs for them on this node until its next start.
    stopped: Mutex<HashSet<BotId>>,
    /// The shared clock at the last renewal.
    pub(super) followed: Mutex<Option<Followed>>,
    /// Keeps other processes off a SQLite file.
    claim: Mutex<Option<File>>,
}

impl Engine {
    /// Starts working: takes leases, polls, delivers, sends.
    ///
    /// # Errors
    /// `UNAVAILABLE` when another process works on the same file, or what the store says when the leases of a
    /// dead predecessor cannot be voided.
    pub async fn start(ctx: Context, tasks: Tasks) -> Result<Arc<Self>> {
        let engine = Self::start_work(ctx.for_work(), tasks).await?;
        retention::start(&ctx, &engine.tasks);
        revocation::start(&ctx, &engine.tasks);
        tally::start(&ctx, engine.node, &engine.tasks);
        log::start(&ctx, engine.node, &engine.tasks);
        apps::start(&ctx, &engine.tasks);
        sockets::start(&ctx, &engine.tasks);
        if ctx.store.is_shared() {
            hints::start(&ctx, engine.node, &engine.tasks);
        }
        Ok(engine)
    }

    /// The part of [`Engine::start`] that works on messages: everything it reads, writes, asks and waits for
    /// is given to it, so that a test can give it a world of its own.
    pub(super) async fn start_work(ctx: WorkContext, tasks: Tasks) -> Result<Arc<Self>> {
        let claim = ctx.store.claim_file()?;
        ctx.store.sync_clock().await?;
        if !ctx.store.is_shared() {
            // No other process works on this file: whatever leases it holds are of the dead.
            ctx.store.void_leases().await?;
        }
        let engine = Arc::new(Self {
            node: ctx.ids.next(),
            webhook_lanes: Mutex::new(Lanes::new(ctx.config.max_jobs, ctx.config.max_in_flight)),
            ai_lanes: Mutex::new(Lanes::new(ctx.config.max_jobs, ctx.config.max_ai_in_flight)),
            work_ready: Notify::new(),
            healthy: Mutex::default(),
            bots: RwLock::default(),
            stopped: Mutex::default(),
            followed: Mutex::default(),
            claim: Mutex::new(claim),
            tasks,
            ctx,
        });
        let run = |name, make: fn(Arc<Self>) -> futures_util::future::BoxFuture<'static, ()>| {
            let this = Arc::clone(&engine);
            engine.tasks.supervise(name, engine.ctx.clock.clone(), move || make(Arc::clone(&this)));
        };
        run("lease supervisor", |engine| Box::pin(async move { engine.supervise().await }));
        run("delivery worker", |engine| Box::pin(async move { engine.work().await }));
        Ok(engine)
    }

    /// The lanes of a kind of sink.
    pub(super) fn lanes(&self, sink: SinkId) -> MutexGuard<'_, Lanes<Job>> {
        let lanes = match sink {
            SinkId::Webhook => &self.webhook_lanes,
            SinkId::Ai => &self.ai_lanes,
        };
        lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets every waiting job that `gone` names.
    fn forget(&self, gone: impl Fn(&Job) -> bool) {
        for sink in SinkId::ALL {
            self.lanes(sink).forget(&gone);
        }
    }

    /// Tells other nodes that this one released its leases; after [`stop`](Self::stop).
    pub async fn announce_release(&self, store: &Store) {
        hints::announce_release(store, self.node).await;
    }

    /// What this node has in hand.
    pub fn in_hand(&self) -> Load {
        let (mut queued, mut in_flight) = (0, 0);
        for sink in SinkId::ALL {
            let lanes = self.lanes(sink);
            queued += lanes.len().saturating_sub(lanes.in_flight());
            in_flight += lanes.in_flight();
        }
        let bots = self.bots.read().unwrap_or_else(PoisonError::into_inner);
        let statuses: Vec<_> = bots.values().map(|bot| bot.known_status()).collect();
        let count = |status| statuses.iter().filter(|found| **found == status).count();
        let bots = BotStatus::ALL.into_iter().map(|status| (status, count(status))).collect();
        Load { queued, in_flight, bots, panics: 0 }
    }

    pub(super) fn bot(&self, id: BotId) -> Option<Arc<BotWork>> {
        self.bots.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Ends every bot's tasks, then gives the leases back so that another node need not wait for them to
    /// run out. What is in flight has ended before.
    pub async fn stop(&self) {
        let bots: Vec<_> = {
            let mut bots = self.bots.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *bots).into_values().collect()
        };
        for bot in &bots {
            bot.tasks.stop();
        }
        for bot in &bots {
            if !bot.tasks.wait(&self.ctx.clock, self.ctx.config.drain).await {
                tracing::warn!(bot_id = %bot.lease.bot_id, "work for a bot did not end in time");
            }
        }
        if let Err(error) = self.ctx.store.release_leases(self.node).await {
            tracing::warn!(%error, "leases could not be released; they will expire");
        }
        self.claim.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    async fn supervise(self: &Arc<Self>) {
        let mut hints = self.ctx.node.wake.listen();
        let (mut renew_at, mut look_at) = (self.ctx.clock.instant(), self.ctx.clock.instant());
        // The node's own clock; on PostgreSQL the shared clock is the database's.
        let read = || Reading { at: self.ctx.clock.instant(), wall: self.ctx.clock.now() };
        let mut own = read();
        loop {
            let (before, now) = (own, self.ctx.clock.instant());
            own = read();
            if before.step_to(own).is_some() {
                // A lease is not used past its end by either clock.
                renew_at = now;
            }
            if now >= renew_at {
                let full = self.renew().await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "leases could not be renewed");
                    false
                });
                renew_at = if full { now } else { now + self.ctx.config.lease / 3 };
            }
            if now >= look_at {
                if let Err(error) = self.look_for_work().await {
                    tracing::warn!(%error, "polling for work failed");
                }
                look_at = now + POLL_INTERVAL;
            }
            tokio::select! {
                biased;
                () = self.tasks.stop_token().cancelled() => return,
                () = self.ctx.clock.sleep_until(look_at.min(renew_at)) => {}
                heard = hints.recv() => match heard.map(|heard| heard.hint) {
                    Ok(Hint::Bot(id)) => self.refresh(id).await,
                    Ok(Hint::Released) => renew_at = self.ctx.clock.instant(),
                    Ok(Hint::Outbox(id)) => if let Some(bot) = self.bot(id) { bot.outbox_ready.notify_one() },
                    Ok(Hint::Media(id)) => if let Some(bot) = self.bot(id) { bot.media_ready.notify_one() },
                    Ok(Hint::Delivery(id)) => if let Some(bot) = self.bot(id) { self.scan(&bot).await },
                    Ok(Hint::Revoked | Hint::Log(_) | Hint::Listening(_) | Hint::AppEvents) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    /// A bot was bound, changed or deleted: look at it now.
    async fn refresh(self: &Arc<Self>, id: BotId) {
        if let Some(bot) = self.bot(id)
            && let Err(error) = self.reload(&bot).await
        {
            tracing::warn!(bot_id = %id, %error, "a changed bot could not be read");
        }
        if let Err(error) = self.renew().await {
            tracing::warn!(%error, "leases could not be renewed");
        }
    }

    async fn reload(&self, bot: &BotWork) -> Result<()> {
        let work = self.ctx.store.work(&bot.lease).await?;
        let Some(work) = work else { return Ok(()) };
        if work.status == BotStatus::Connecting && !bot.status_is(BotStatus::Connecting, None) {
            bot.remember_status(None);
            bot.connection.reset();
            bot.poke.notify_one();
        }
        bot.reload_channels(&self.ctx).await
    }

    /// Makes the running bots equal to the held leases.
    pub(super) async fn hold(self: &Arc<Self>, held: Vec<Lease>, validity: Validity) {
        let fences: HashMap<BotId, i64> = held.iter().map(|lease| (lease.bot_id, lease.fence)).collect();
        let gone: Vec<Arc<BotWork>> = {
            let mut bots = self.bots.write().unwrap_or_else(PoisonError::into_inner);
            let is_gone = |bot: &BotWork| fences.get(&bot.lease.bot_id) != Some(&bot.lease.fence);
            let gone: Vec<BotId> =
                bots.values().filter(|bot| is_gone(bot)).map(|bot| bot.lease.bot_id).collect();
            gone.iter().filter_map(|id| bots.remove(id)).collect()
        };
        for bot in gone {
            let (bot_id, before) = (bot.lease.bot_id, bot.lease.fence);
            let now = fences.get(&bot_id).copied().unwrap_or(i64::MAX);
            if !invariant!(self.ctx.node.violations, before < now, "the fence grows", %bot_id, before, now) {
                self.stopped().insert(bot_id);
            }
            bot.tasks.stop();
            self.forget(|job| job.bot_id == bot.lease.bot_id && job.fence == bot.lease.fence);
        }
        let mut new = Vec::new();
        for lease in held {
            match self.bot(lease.bot_id) {
                Some(bot) => bot.validity.set(validity),
                None if self.stopped().contains(&lease.bot_id) => {}
                None => new.push(lease),
            }
        }
        let take_over = |lease: Lease| async move {
            if let Err(error) = self.take_over(&lease, validity).await {
                tracing::warn!(bot_id = %lease.bot_id, %error, "a bot cannot be worked for");
            }
        };
        stream::iter(new).for_each_concurrent(TAKEOVERS, take_over).await;
    }

    fn stopped(&self) -> MutexGuard<'_, HashSet<BotId>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the work for a bot that broke a rule. Its lease stays, so that no other node goes on with it.
    pub(super) async fn stop_bot(&self, bot: &BotWork, reason: &str) {
        let bot_id = bot.lease.bot_id;
        self.stopped().insert(bot_id);
        self.move_bot(bot, BotStatus::Error, Some(reason.to_owned())).await;
        self.bots.write().unwrap_or_else(PoisonError::into_inner).remove(&bot_id);
        bot.tasks.stop();
        self.forget(|job| job.bot_id == bot_id);
    }

    /// Starts the work for a bot.
    async fn take_over(self: &Arc<Self>, lease: &Lease, validity: Validity) -> Result<()> {
        let work = self.ctx.store.work(lease).await?;
        let Some(work) = work else { return Ok(()) };
        let Some(network) = self.ctx.networks.get(&work.network).cloned() else {
            return self.without_network(lease, &work).await;
        };
        // What was stored under a clock that is ahead of ours stays before what follows.
        if let Some(id) = work.last_message_id {
            self.ctx.ids.advance_past(id);
        }
        if let Some(id) = work.last_delivery_id {
            self.ctx.ids.advance_past(id);
        }
        let bot = BotWork::open(&self.ctx, &self.tasks, lease, &work, network, validity).await?;
        let bot = Arc::new(bot);
        self.bots.write().unwrap_or_else(PoisonError::into_inner).insert(lease.bot_id, Arc::clone(&bot));
        self.scan(&bot).await;
        self.start_poller(&bot, work.cursor, work.status);
        self.start_outbox(&bot);
        self.start_media(&bot);
        Ok(())
    }

    /// Releases a bot's lease and everything in memory for it, since it is unknown what of it is in the store. The
    /// next holder, most likely this node a moment later, begins from the store.
    pub(super) async fn start_over(&self, bot: &BotWork, why: &str) {
        tracing::error!(bot_id = %bot.lease.bot_id, why, "the work for a bot starts over");
        bot.tasks.stop();
        // What panics again and again does so once a second.
        self.ctx.clock.sleep(POLL_INTERVAL).await;
        while !self.tasks.stopping() {
            match self.ctx.store.give_up_lease(&bot.lease).await {
                Ok(()) => break,
                Err(error) => Self::report("a lease could not be released", bot, &error),
            }
            self.ctx.clock.sleep(POLL_INTERVAL).await;
        }
        self.ctx.node.wake.hint(Hint::Bot(bot.lease.bot_id));
    }

    async fn without_network(&self, lease: &Lease, work: &WorkRow) -> Result<()> {
        let reason = format!("this hub has no network called {}", work.network);
        self.set_status(lease, BotStatus::Error, Some(reason)).await
    }

    /// Moves a bot to a status unless it is there already.
    pub(super) async fn move_bot(&self, bot: &BotWork, status: BotStatus, reason: Option<String>) {
        if bot.status_is(status, reason.as_deref()) {
            return;
        }
        match self.set_status(&bot.lease, status, reason.clone()).await {
            Ok(()) => bot.remember_status(Some((status, reason))),
            Err(error) => Self::report("a bot's status could not be stored", bot, &error),
        }
    }

    /// Moves a bot to another status and tells who listens.
    async fn set_status(&self, lease: &Lease, status: BotStatus, reason: Option<String>) -> Result<()> {
        let bot_id = lease.bot_id;
        let changed =
            self.ctx.store.set_status(lease, status, reason, &self.ctx.ids, self.ctx.store.now()).await?;
        if changed {
            tracing::info!(%bot_id, status = status.as_str(), "bot status");
            self.ctx.node.events.tell(Event::Bot { bot_id, status });
            self.ctx.node.wake.hint(Hint::AppEvents);
        }
        Ok(())
    }

    /// Finds work that no hint told of: written by another node or process, parked, or left by a crash.
    async fn look_for_work(self: &Arc<Self>) -> Result<()> {
        // Another node was stopped or is dead.
        let now = self.ctx.store.now();
        if self.ctx.store.is_shared() && self.ctx.store.any_free_bot(now).await? {
            self.renew().await?;
        }
        let (deliveries, outbox) = self.ctx.store.with_work(self.node, self.ctx.store.now()).await?;
        let bots: Vec<_> = {
            let bots = self.bots.read().unwrap_or_else(PoisonError::into_inner);
            bots.values().cloned().collect()
        };
        for bot in bots {
            let doubtful = || bot.behind.try_lock().is_ok_and(|behind| !behind.doubtful().is_empty());
            if deliveries.contains(&bot.lease.bot_id) || doubtful() {
                self.scan(&bot).await;
            }
        }
        for bot in outbox.into_iter().filter_map(|id| self.bot(id)) {
            bot.outbox_ready.notify_one();
        }
        Ok(())
    }

    /// Logs a failure of a background step with its cause.
    pub(super) fn report(what: &'static str, bot: &BotWork, error: &Error) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::warn!(bot_id = %bot.lease.bot_id, %error, cause, "{what}");
    }
}
