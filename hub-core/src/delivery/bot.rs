//! A bot this node works for: what it is connected to, and what is known of it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError, RwLock, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::Notify;

use super::channels;
use crate::{
    bots::{BotStatus, credentials},
    delivery::{channels::BotChannels, work_store::WorkContext},
    error::Result,
    id::{ChannelId, DeliveryId, UserId},
    model::sinks::SinkKey,
    network::{Connection, Network},
    store::leases::{Lease, WorkRow},
    tasks::Tasks,
    time::{Clock, Instant, Timestamp, Watched},
};

/// A bot this node works for.
#[derive(Debug)]
pub struct BotWork {
    pub(super) lease: Lease,
    pub(super) owner_id: UserId,
    pub(super) network: Arc<dyn Network>,
    pub(super) connection: Arc<dyn Connection>,
    pub(super) tasks: Tasks,
    /// Which deliveries are in the store only.
    pub(super) behind: tokio::sync::Mutex<Behind>,
    /// Makes the poller poll at once: after a request to reconnect, or a send whose error says that the login may
    /// have expired.
    pub(super) poke: Notify,
    pub(super) outbox_ready: Notify,
    pub(super) media_ready: Notify,
    channels: RwLock<Arc<BotChannels>>,
    /// The status last stored, so that nothing is written when nothing changed.
    status: Mutex<Option<(BotStatus, Option<String>)>>,
    /// Whether people may not see what the bot sends, although the network takes it.
    pub(super) suspect: AtomicBool,
    /// The last number each channel's log gave out.
    pub(super) seqs: Mutex<HashMap<ChannelId, i64>>,
    /// How long the lease is ours.
    pub(super) validity: Watched<Validity>,
}

/// How long a lease is ours, by both clocks of this node: the wall clock may have been set back, and the monotonic
/// clock of some machines stops while they sleep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    until: Instant,
    wall_until: Timestamp,
}

impl Validity {
    /// Of a lease that is taken or extended now.
    pub(super) fn of(lease: Duration, clock: &Clock) -> Self {
        Self { until: clock.instant() + lease, wall_until: clock.now() + lease }
    }

    /// Whether the lease was renewed in time.
    pub(super) fn holds(self, clock: &Clock) -> bool {
        clock.instant() < self.until && clock.now() < self.wall_until
    }
}

impl BotWork {
    /// Connects to the network as the bot, under a lease of this validity. Nothing of its work is
    /// in memory yet.
    ///
    /// # Errors
    /// What the store says, or `INTERNAL_ERROR` when the login was sealed under another key.
    pub(super) async fn open(
        ctx: &WorkContext,
        tasks: &Tasks,
        lease: &Lease,
        work: &WorkRow,
        network: Arc<dyn Network>,
        validity: Validity,
    ) -> Result<Self> {
        let credentials = credentials::open(&ctx.sealer, lease.bot_id, &work.credentials)?;
        let channels = channels::load(ctx, lease.bot_id).await?;
        Ok(Self {
            lease: lease.clone(),
            owner_id: work.owner_id,
            connection: network.connect(&credentials),
            network,
            tasks: tasks.child(),
            behind: tokio::sync::Mutex::new(Behind::everything()),
            poke: Notify::new(),
            outbox_ready: Notify::new(),
            media_ready: Notify::new(),
            channels: RwLock::new(Arc::new(channels)),
            status: Mutex::new(Some((work.status, None))),
            suspect: AtomicBool::new(false),
            seqs: Mutex::default(),
            validity: Watched::new(validity),
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
    pub(super) async fn wait_for_lease(&self, clock: &Clock) -> bool {
        tokio::select! {
            biased;
            () = self.tasks.stop_token().cancelled() => false,
            () = self.validity.wait_for(|validity| validity.holds(clock)) => true,
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

    pub(super) async fn reload_channels(&self, ctx: &WorkContext) -> Result<()> {
        let loaded = Arc::new(channels::load(ctx, self.lease.bot_id).await?);
        *self.channels.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }
}

/// What is in the store and not in memory: new deliveries must not overtake it.
#[derive(Debug)]
pub struct Behind {
    everything: bool,
    sinks: HashSet<SinkKey>,
    /// Deliveries that may be claimed for this node although it does not hold them: the commit that claims them
    /// failed, or succeeded without a response.
    doubtful: Vec<DeliveryId>,
}

impl Behind {
    /// Nothing was loaded yet.
    fn everything() -> Self {
        Self { everything: true, sinks: HashSet::new(), doubtful: Vec::new() }
    }

    pub(super) fn is_behind(&self, sink: SinkKey) -> bool {
        self.everything || !self.doubtful.is_empty() || self.sinks.contains(&sink)
    }

    pub(super) fn add(&mut self, sink: SinkKey) {
        self.sinks.insert(sink);
    }

    /// Everything is in memory but for what these sinks have to get.
    pub(super) fn only(&mut self, sinks: HashSet<SinkKey>) {
        self.everything = false;
        self.sinks = sinks;
    }

    /// It is unknown whether these were claimed.
    pub(super) fn doubt(&mut self, ids: impl IntoIterator<Item = DeliveryId>) {
        self.doubtful.extend(ids);
    }

    /// What was doubted.
    pub(super) fn doubtful(&self) -> &[DeliveryId] {
        &self.doubtful
    }

    /// Nothing that was doubted is claimed any more. Until the store was looked through, anything of it may be
    /// there and not in memory.
    pub(super) fn resolve_doubts(&mut self) {
        self.doubtful.clear();
        self.everything = true;
    }
}
