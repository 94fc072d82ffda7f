//! One node's share of the work: the bots it holds, and the tasks that run for each of them.
//!
//! The supervisor takes free leases on bots and renews its own; for each lease it starts a poller, an outbox, the
//! download of files and the backlog scan, and stops them when the lease is gone. Hints only make it poll sooner.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::sync::broadcast::error::RecvError;

use super::{
    backlog::Backlog,
    bot::{self, BotWork, Validity},
    bots::Bots,
    conclusion::Conclusion,
    hints,
    inbox::Inbox,
    media::MediaFetcher,
    outbox::Outbox,
    poller,
    queue::Queue,
    retention,
    routing::Router,
    shared_clock::SharedClock,
    work_store::WorkContext,
    worker::Worker,
};
use crate::{
    admin::tally,
    apps::sockets,
    bots::BotStatus,
    channels::log,
    context::Context,
    counters::Load,
    error::{Error, Result},
    id::BotId,
    invariants::invariant,
    revocation,
    store::{
        due::Reading,
        leases::{Extended, Lease, NodeEntry},
    },
    tasks::Tasks,
    time::Watched,
    wake::Hint,
};

/// Interval of polls for new work without a hint.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Bots taken over in one round. Each round reads all bots of the node, so smaller ones cost more; each has to end well
/// before the lease does.
const MAX_ACQUIRED: u32 = 500;
/// Longest wait of a node that stops for the commit that releases its leases.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
/// The smallest difference between this machine's clock and the database's that is reported.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);
/// Bots that are taken over at the same time. Each reads with one connection to the database.
const MAX_CONCURRENT_TAKEOVERS: usize = 4;

/// Holds this node's leases and runs the work for their bots.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) ctx: WorkContext,
    /// This node as it shows itself to the others.
    pub(super) entry: NodeEntry,
    pub(super) tasks: Tasks,
    pub(super) bots: Arc<Bots>,
    pub(super) queue: Arc<Queue>,
    shared_clock: Arc<SharedClock>,
    backlog: Arc<Backlog>,
    inbox: Arc<Inbox>,
    /// Validity of this node's lease.
    validity: Arc<Watched<Validity>>,
}

impl Supervisor {
    /// Starts working: takes leases, polls, delivers, sends.
    ///
    /// # Errors
    /// Errors of the store when its clock cannot be read, or the leases of a dead predecessor cannot be voided.
    pub async fn start(ctx: Context, tasks: Tasks) -> Result<Arc<Self>> {
        let supervisor = Self::start_work(ctx.for_work(), tasks).await?;
        let (node, tasks) = (supervisor.entry.id, &supervisor.tasks);
        retention::start(&ctx, tasks);
        revocation::start(&ctx, tasks);
        tally::start(&ctx, node, tasks);
        log::start(&ctx, node, tasks);
        sockets::start(&ctx, tasks);
        if ctx.store.is_shared() {
            hints::start(&ctx, node, tasks);
        }
        Ok(supervisor)
    }

    /// The part of [`Supervisor::start`] that works on messages: everything it reads, writes, requests and waits for
    /// is given to it, so that a test can replace it.
    pub(super) async fn start_work(ctx: WorkContext, tasks: Tasks) -> Result<Arc<Self>> {
        ctx.store.sync_clock().await?;
        if !ctx.store.is_shared() {
            // The hub has claimed the file: all leases in it belong to dead processes.
            ctx.store.void_leases().await?;
        }
        let (store, clock) = (&ctx.store, &ctx.clock);
        let bots = Arc::<Bots>::default();
        let queue = Arc::new(Queue::new(&ctx.config));
        let shared_clock = Arc::new(SharedClock::new(Arc::clone(store), clock.clone(), ctx.config.lease));
        let backlog = Arc::new(Backlog {
            store: Arc::clone(store),
            clock: clock.clone(),
            sealer: ctx.sealer.clone(),
            shared_clock: Arc::clone(&shared_clock),
            queue: Arc::clone(&queue),
            bots: Arc::clone(&bots),
        });
        let router = Router {
            ids: ctx.ids.clone(),
            store: Arc::clone(store),
            sealer: ctx.sealer.clone(),
            listeners: ctx.node.channel_listeners.clone(),
        };
        let inbox = Arc::new(Inbox {
            store: Arc::clone(store),
            clock: clock.clone(),
            node: ctx.node.clone(),
            router,
            queue: Arc::clone(&queue),
            bots: Arc::clone(&bots),
        });
        let worker = Arc::new(Worker {
            tasks: tasks.clone(),
            bots: Arc::clone(&bots),
            queue: Arc::clone(&queue),
            backlog: Arc::clone(&backlog),
            conclusion: Conclusion::new(ctx.clone(), Arc::clone(&shared_clock)),
            ctx: ctx.clone(),
        });
        let mut networks: Vec<String> = ctx.networks.keys().cloned().collect();
        networks.sort_unstable();
        let entry = NodeEntry { id: ctx.ids.next(), name: ctx.config.node_name.clone(), networks };
        let validity = Arc::new(Watched::new(Validity::of(ctx.config.lease, clock)));
        let supervisor =
            Arc::new(Self { ctx, entry, tasks, bots, queue, shared_clock, backlog, inbox, validity });
        let (clock, this) = (&supervisor.ctx.clock, Arc::clone(&supervisor));
        supervisor.tasks.supervise("lease supervisor", clock.clone(), move || Arc::clone(&this).supervise());
        supervisor.tasks.supervise("delivery worker", clock.clone(), move || Arc::clone(&worker).work());
        Ok(supervisor)
    }

    /// Returns the current load of this node.
    pub fn load(&self) -> Load {
        let (queued, in_flight, answered) = self.queue.counts();
        let statuses: Vec<_> = self.bots.all().iter().map(|bot| bot.known_status()).collect();
        let count = |status| statuses.iter().filter(|found| **found == status).count();
        let bots = BotStatus::ALL.into_iter().map(|status| (status, count(status))).collect();
        Load { queued, in_flight, answered, bots, panics: 0 }
    }

    /// Whether the lease over the bots was renewed in time: otherwise nothing is delivered or sent for them.
    pub fn leases_are_current(&self) -> bool {
        self.bots.is_empty() || self.validity.get().holds(&self.ctx.clock)
    }

    /// Releases the leases that are left, so that another node need not wait until they expire. The tasks were
    /// stopped before and had the drain time to end: the work of most bots has ended, and their leases are
    /// released.
    pub async fn stop(&self) {
        let store = &self.ctx.store;
        let release = async {
            match store.release_leases(self.entry.id).await {
                Ok(()) => store.announce_release(self.entry.id).await,
                Err(error) => tracing::warn!(%error, "leases could not be released; they will expire"),
            }
        };
        if self.ctx.clock.timeout(RELEASE_TIMEOUT, release).await.is_none() {
            tracing::warn!("leases could not be released in time; they will expire");
        }
    }

    async fn supervise(self: Arc<Self>) {
        let mut hints = self.ctx.node.wake.listen();
        let (mut renew_at, mut poll_at) = (self.ctx.clock.instant(), self.ctx.clock.instant());
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
            if now >= poll_at {
                if let Err(error) = self.poll_for_work().await {
                    tracing::warn!(%error, "polling for work failed");
                }
                poll_at = now + POLL_INTERVAL;
            }
            tokio::select! {
                biased;
                () = self.tasks.stop_token().cancelled() => return self.drain().await,
                () = self.ctx.clock.sleep_until(poll_at.min(renew_at)) => {}
                received = hints.recv() => match received.map(|received| received.hint) {
                    Ok(Hint::Bot(id)) => self.refresh(id).await,
                    Ok(Hint::Released) => renew_at = self.ctx.clock.instant(),
                    Ok(Hint::Outbox(id)) => self.search_outbox(id),
                    Ok(Hint::Media(id)) => if let Some(bot) = self.bots.get(id) { bot.media_ready.notify_one() },
                    Ok(Hint::Delivery(id)) => if let Some(bot) = self.bots.get(id) { self.backlog.scan(&bot).await },
                    Ok(Hint::Revoked | Hint::Log(_) | Hint::Listening(_) | Hint::AppEvents) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    /// Reads a bot that was bound, changed or deleted.
    async fn refresh(&self, id: BotId) {
        if let Some(bot) = self.bots.get(id)
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
            bot.poll_now.notify_one();
        }
        bot.reload_channels().await
    }

    /// Extends our leases, stops what is no longer ours, takes free ones; `true` when more bots may be free.
    async fn renew(&self) -> Result<bool> {
        let Extended { held, is_full, surplus, unserved, .. } =
            self.extend(&self.entry, MAX_ACQUIRED).await?;
        self.take_over_new(held).await;
        self.share(surplus);
        for bot in unserved {
            bot::store_status(&self.ctx, &bot.lease, BotStatus::Error, Some(bot.reason())).await?;
        }
        Ok(is_full)
    }

    /// Moves due times along with the shared clock, extends our leases, takes up to `take` free ones, and stops what is
    /// no longer ours.
    pub(super) async fn extend(&self, entry: &NodeEntry, take: u32) -> Result<Extended> {
        let lease = self.ctx.config.lease;
        let (before, validity) = (self.shared_clock.followed(), Validity::of(lease, &self.ctx.clock));
        let extended = self.ctx.store.extend_leases(entry, lease, before, take).await?;
        if let Some(step) = extended.step {
            tracing::warn!(by_ms = step.by(), "the clock was set; due times are moved along");
            self.ctx.node.wake.hint(Hint::Released);
        }
        self.shared_clock.follow(extended.followed);
        let ahead_ms = extended.followed.reading.ahead_ms(&self.ctx.clock);
        if Duration::from_millis(ahead_ms.unsigned_abs()) > CLOCK_DIFFERENCE {
            tracing::warn!(
                ahead_ms,
                "the clock of this machine differs from the clock of the database; set it"
            );
        }
        self.keep(&extended.held, validity);
        Ok(extended)
    }

    /// Stops the work for bots that are not held any more, and sets the validity of the lease over the others.
    fn keep(&self, held: &[Lease], validity: Validity) {
        let fences: HashMap<BotId, i64> = held.iter().map(|lease| (lease.bot_id, lease.fence)).collect();
        for bot in self.bots.remove(|bot| fences.get(&bot.lease.bot_id) != Some(&bot.lease.fence)) {
            let (bot_id, before) = (bot.lease.bot_id, bot.lease.fence);
            let now = fences.get(&bot_id).copied().unwrap_or(i64::MAX);
            if !invariant!(self.ctx.node.violations, before < now, "the fence grows", %bot_id, before, now) {
                self.bots.set_stopped(bot_id);
            }
            bot.tasks.stop();
            self.queue.forget(|delivery| delivery.bot_id() == bot_id && delivery.fence() == before);
        }
        self.validity.set(validity);
    }

    /// Starts the work for the held bots that nothing runs for.
    async fn take_over_new(&self, held: Vec<Lease>) {
        let is_new = |lease: &Lease| !self.bots.is_known(lease.bot_id);
        let new: Vec<Lease> = held.into_iter().filter(is_new).collect();
        if self.ctx.store.is_shared() && new.iter().any(|lease| lease.fence > 1) {
            // Events of the node that had the bot may not have been sent.
            self.ctx.node.events.forget_everywhere();
        }
        let take_over = |lease: Lease| async move {
            if let Err(error) = self.take_over(&lease).await {
                tracing::warn!(bot_id = %lease.bot_id, %error, "a bot cannot be worked for");
            }
        };
        stream::iter(new).for_each_concurrent(MAX_CONCURRENT_TAKEOVERS, take_over).await;
    }

    /// Starts the work for a bot.
    async fn take_over(&self, lease: &Lease) -> Result<()> {
        let work = self.ctx.store.work(lease).await?;
        let Some(work) = work else { return Ok(()) };
        let network = self.ctx.networks.get(&work.network).cloned();
        let network = network.ok_or_else(|| Error::internal(format!("no network {}", work.network)))?;
        // New ids sort after the stored ones, even if those were created under a clock that is ahead of ours.
        if let Some(id) = work.last_message_id {
            self.ctx.ids.advance_past(id);
        }
        if let Some(id) = work.last_delivery_id {
            self.ctx.ids.advance_past(id);
        }
        let bot = BotWork::open(&self.ctx, &self.tasks, lease, &work, network, &self.validity).await?;
        let bot = Arc::new(bot);
        self.bots.insert(&bot);
        let outbox = Outbox::open(&self.ctx, &self.shared_clock, &bot, work.has_items);
        // Most bots have no work, and a node may take thousands over at once: bots without work are not scanned.
        if work.last_delivery_id.is_some() {
            self.backlog.scan(&bot).await;
        }
        if work.has_files {
            bot.media_ready.notify_one();
        }
        poller::start(&self.ctx, &self.inbox, &bot, work.cursor, work.status);
        let media = MediaFetcher::new(&self.ctx, &self.queue, &bot);
        // One task for both, as most of the time a bot has nothing to do for either.
        bot.run("outbox and files", async move {
            tokio::join!(outbox.run(), media.run());
        });
        Ok(())
    }

    /// Lets the outbox of a bot search for items to send.
    fn search_outbox(&self, bot: BotId) {
        if let Some(outbox) = self.bots.get(bot).and_then(|bot| bot.outbox()) {
            outbox.search();
        }
    }

    /// Finds work that no hint announced: written by another node or process, parked, or left by a crash. Costs
    /// nothing for an idle bot.
    async fn poll_for_work(&self) -> Result<()> {
        let answers = self.bots.take_answers();
        if !answers.is_empty() {
            self.ctx.store.note_answers(answers).await?;
        }
        // Another node was stopped or is dead.
        let now = self.ctx.store.now();
        if self.ctx.store.is_shared() && self.ctx.store.any_free_bot(&self.entry.networks, now).await? {
            self.renew().await?;
        }
        let (deliveries, outbox) = self.ctx.store.with_work(self.entry.id, self.ctx.store.now()).await?;
        // After what may fail, so that none is forgotten.
        let deliveries: BTreeSet<BotId> = deliveries.into_iter().chain(self.bots.take_uncertain()).collect();
        for bot in deliveries.into_iter().filter_map(|id| self.bots.get(id)) {
            self.backlog.scan(&bot).await;
        }
        for bot in outbox {
            self.search_outbox(bot);
        }
        Ok(())
    }
}
