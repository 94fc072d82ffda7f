//! State of a bot that this node works for: its network connection, its settings and its status.

use std::{
    collections::{HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak, atomic::AtomicBool},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{channels, names::Names, outbox::Outbox};
use crate::{
    bots::{BotStatus, credentials},
    delivery::{channels::BotChannels, work_store::WorkContext},
    error::{Error, Result},
    events::Event,
    id::{ChannelId, DeliveryId, UserId},
    model::sinks::SinkKey,
    network::{Connection, Network},
    store::leases::{Lease, WorkRow},
    tasks::Tasks,
    time::{Clock, Instant, Timestamp, Watched},
    wake::Hint,
};

/// Pause before the work for a bot starts over, and between attempts to release its lease.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// A bot this node works for.
#[derive(Debug)]
pub struct BotWork {
    ctx: WorkContext,
    /// Cancelled when the node stops, not when only this bot is released.
    node_stop: CancellationToken,
    pub(super) lease: Lease,
    pub(super) owner_id: UserId,
    pub(super) network: Arc<dyn Network>,
    pub(super) connection: Arc<dyn Connection>,
    pub(super) tasks: Tasks,
    /// Deliveries that are in the store only.
    pub(super) unloaded: tokio::sync::Mutex<Unloaded>,
    /// Makes the poller poll at once: after a request to reconnect, or a send whose error says that the login may
    /// have expired.
    pub(super) poll_now: Notify,
    /// Its outbox; weak, because the outbox owns this bot.
    outbox: OnceLock<Weak<Outbox>>,
    pub(super) media_ready: Notify,
    channels: RwLock<Arc<BotChannels>>,
    pub(super) names: Names,
    /// The status last stored, so that nothing is written when nothing changed.
    status: Mutex<Option<(BotStatus, Option<String>)>>,
    /// Whether people may not see what the bot sends, although the network takes it.
    pub(super) suspect: AtomicBool,
    /// Last sequence number of each channel's log.
    pub(super) seqs: Mutex<HashMap<ChannelId, i64>>,
    /// Validity of this node's lease, shared by all its bots.
    validity: Arc<Watched<Validity>>,
}

/// Validity of a lease by both clocks of this node: the wall clock may have been set back, and the monotonic clock
/// of some machines stops while they sleep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    until: Instant,
    wall_until: Timestamp,
}

impl Validity {
    /// Returns the validity of a lease that is taken or extended now.
    pub(super) fn of(lease: Duration, clock: &Clock) -> Self {
        Self { until: clock.instant() + lease, wall_until: clock.now() + lease }
    }

    /// Whether the lease was renewed in time.
    pub(super) fn holds(self, clock: &Clock) -> bool {
        clock.instant() < self.until && clock.now() < self.wall_until
    }
}

impl BotWork {
    /// Connects to the network as the bot, under a lease of this node. Its deliveries are not loaded yet.
    ///
    /// # Errors
    /// Errors of the store, or `INTERNAL_ERROR` when the login was sealed with another key.
    pub(super) async fn open(
        ctx: &WorkContext,
        tasks: &Tasks,
        lease: &Lease,
        work: &WorkRow,
        network: Arc<dyn Network>,
        validity: &Arc<Watched<Validity>>,
    ) -> Result<Self> {
        let credentials = credentials::open(&ctx.sealer, lease.bot_id, &work.credentials)?;
        let channels = channels::load(ctx, lease.bot_id).await?;
        Ok(Self {
            ctx: ctx.clone(),
            node_stop: tasks.stop_token().clone(),
            lease: lease.clone(),
            owner_id: work.owner_id,
            connection: network.connect(&credentials),
            network,
            tasks: tasks.child(),
            unloaded: tokio::sync::Mutex::new(Unloaded::new(work.last_delivery_id.is_some())),
            poll_now: Notify::new(),
            outbox: OnceLock::new(),
            media_ready: Notify::new(),
            channels: RwLock::new(Arc::new(channels)),
            names: Names::default(),
            status: Mutex::new(Some((work.status, None))),
            suspect: AtomicBool::new(false),
            seqs: Mutex::default(),
            validity: Arc::clone(validity),
        })
    }

    /// The channels' settings as last loaded.
    pub(super) fn channels(&self) -> Arc<BotChannels> {
        Arc::clone(&self.channels.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn status_is(&self, status: BotStatus, reason: Option<&str>) -> bool {
        let known = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|(known, why)| *known == status && why.as_deref() == reason)
    }

    /// `false` after a request to reconnect, until the next poll.
    pub(super) fn is_status_known(&self) -> bool {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits while the lease has expired and was not renewed; `false` when the work for the bot ends.
    pub(super) async fn wait_for_lease(&self) -> bool {
        tokio::select! {
            biased;
            () = self.tasks.stop_token().cancelled() => false,
            () = self.validity.wait_for(|validity| validity.holds(&self.ctx.clock)) => true,
        }
    }

    /// Whether the lease was renewed in time.
    pub(super) fn holds_lease(&self) -> bool {
        self.validity.get().holds(&self.ctx.clock)
    }

    pub(super) fn set_outbox(&self, outbox: &Arc<Outbox>) {
        let _ = self.outbox.set(Arc::downgrade(outbox));
    }

    /// Returns the bot's outbox, or `None` after the work for the bot has ended.
    pub(super) fn outbox(&self) -> Option<Arc<Outbox>> {
        self.outbox.get().and_then(Weak::upgrade)
    }

    /// Whether the node stops, and not only the work for this bot.
    pub(super) fn is_node_stopping(&self) -> bool {
        self.node_stop.is_cancelled()
    }

    /// Whether another node, or this one under a later lease, works for the bot.
    pub(super) async fn is_taken_over(&self) -> bool {
        let (store, lease) = (&self.ctx.store, &self.lease);
        let held = store.is_held(lease.bot_id).await.unwrap_or(false);
        held && store.work(lease).await.is_ok_and(|work| work.is_none())
    }

    /// Records the failure of a poll in the bot's row; `false` if the store failed.
    pub(super) async fn note_poll_failure(&self, failure: &str) -> bool {
        let noted = self.ctx.store.note_poll(&self.lease, failure.to_owned()).await;
        if let Err(error) = &noted {
            self.report("a poll's failure could not be noted", error);
        }
        noted.is_ok()
    }

    /// Runs a part of the bot's work. If it panics, all of its work starts over.
    pub(super) fn run(self: &Arc<Self>, part: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let bot = Arc::clone(self);
        // A future is stored once for each one that awaits it by value: in a box it takes up its size once per bot.
        let work = AssertUnwindSafe(Box::pin(work));
        self.tasks.spawn(part, async move {
            if work.catch_unwind().await.is_err() {
                Box::pin(bot.start_over(part)).await;
            }
        });
    }

    /// Releases the lease and everything in memory after a part of the work panicked, because it is unknown which
    /// changes are stored. The next holder, most likely this node a moment later, begins from the store.
    pub(super) async fn start_over(&self, panicked: &str) {
        tracing::error!(bot_id = %self.lease.bot_id, panicked, "the work for a bot starts over");
        self.tasks.stop();
        // Limits repeated panics to one per second.
        self.ctx.clock.sleep(RESTART_PAUSE).await;
        while !self.is_node_stopping() {
            match self.ctx.store.give_up_leases(vec![self.lease.clone()]).await {
                Ok(()) => break,
                Err(error) => self.report("a lease could not be released", &error),
            }
            self.ctx.clock.sleep(RESTART_PAUSE).await;
        }
        self.ctx.node.wake.hint(Hint::Bot(self.lease.bot_id));
    }

    /// Logs a failure of a background step with its cause.
    pub(super) fn report(&self, what: &'static str, error: &Error) {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        tracing::warn!(bot_id = %self.lease.bot_id, %error, cause, "{what}");
    }

    /// Stores and announces a status unless it is the current one.
    pub(super) async fn set_status(&self, status: BotStatus, reason: Option<&str>) {
        if self.status_is(status, reason) {
            return;
        }
        let reason = reason.map(str::to_owned);
        match store_status(&self.ctx, &self.lease, status, reason.clone()).await {
            Ok(()) => self.remember_status(Some((status, reason))),
            Err(error) => self.report("a bot's status could not be stored", &error),
        }
    }

    /// The status last stored; while it is not known, the poller is about to make contact.
    pub(super) fn known_status(&self) -> BotStatus {
        let known = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map_or(BotStatus::Connecting, |(status, _)| *status)
    }

    /// Whether the network requires a new login, as far as is known.
    pub(super) fn is_expired(&self) -> bool {
        let known = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|(known, _)| *known == BotStatus::Expired)
    }

    pub(super) fn remember_status(&self, status: Option<(BotStatus, Option<String>)>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(super) async fn reload_channels(&self) -> Result<()> {
        let loaded = channels::load(&self.ctx, self.lease.bot_id).await?;
        let mut channels = self.channels.write().unwrap_or_else(PoisonError::into_inner);
        // If the rules are the same, the loaded ones stay, with the recorded runs of their plugins.
        if loaded.config_rev != channels.config_rev {
            *channels = Arc::new(loaded);
        }
        Ok(())
    }
}

/// Stores the status of a bot and announces a change.
pub(super) async fn store_status(
    ctx: &WorkContext,
    lease: &Lease,
    status: BotStatus,
    reason: Option<String>,
) -> Result<()> {
    let bot_id = lease.bot_id;
    if ctx.store.set_status(lease, status, reason, &ctx.ids, ctx.store.now()).await? {
        tracing::info!(%bot_id, status = status.as_str(), "bot status");
        ctx.node.events.notify(Event::Bot { bot_id, status });
        ctx.node.wake.hint(Hint::AppEvents);
        ctx.node.wake.hint(Hint::Delivery(bot_id));
    }
    Ok(())
}

/// Deliveries that are in the store and not in memory. New deliveries must not overtake them.
#[derive(Debug)]
pub struct Unloaded {
    everything: bool,
    sinks: HashSet<SinkKey>,
    /// Deliveries that may be claimed for this node although it does not hold them: the commit that claims them
    /// failed, or succeeded without a response.
    uncertain: Vec<DeliveryId>,
}

impl Unloaded {
    /// Starts with nothing loaded; `everything` is whether the store has deliveries.
    fn new(everything: bool) -> Self {
        Self { everything, sinks: HashSet::new(), uncertain: Vec::new() }
    }

    /// Whether the store may have deliveries for a sink that are not in memory.
    pub(super) fn includes(&self, sink: SinkKey) -> bool {
        self.everything || !self.uncertain.is_empty() || self.sinks.contains(&sink)
    }

    pub(super) fn add(&mut self, sink: SinkKey) {
        self.sinks.insert(sink);
    }

    /// Records that only deliveries to these sinks are not in memory.
    pub(super) fn set(&mut self, sinks: HashSet<SinkKey>) {
        self.everything = false;
        self.sinks = sinks;
    }

    /// Records deliveries that may or may not be claimed.
    pub(super) fn add_uncertain(&mut self, ids: impl IntoIterator<Item = DeliveryId>) {
        self.uncertain.extend(ids);
    }

    pub(super) fn uncertain(&self) -> &[DeliveryId] {
        &self.uncertain
    }

    /// Records that no uncertain delivery is claimed any more. Until the next scan, any of them may be in the store
    /// and not in memory.
    pub(super) fn clear_uncertain(&mut self) {
        self.uncertain.clear();
        self.everything = true;
    }
}
