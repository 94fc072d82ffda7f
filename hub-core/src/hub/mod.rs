//! The hub as a value: built once, cheap to clone, shut down at the end.
//!
//! ```
//! use hub_core::{Hub, access::Actor, page::PageRequest, store::StoreConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> hub_core::Result<()> {
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let folder = folder.path();
//! // Only the store and the key are required. A preset chooses the rest: see `hub_core::presets`.
//! let hub = Hub::builder()
//!     .store(StoreConfig::Sqlite(folder.join("hub.db")))
//!     .key_file(hub_core::data_dir::key_file(folder)) // created by the first start
//!     .open() // migrates the schema
//!     .await?;
//! hub.start().await?; // polls, delivers and sends from here on
//!
//! let mut events = hub.events();
//! let bots = hub.bots().list(&Actor::Operator, &PageRequest::default()).await?;
//! assert!(bots.items.is_empty() && events.try_recv().is_err());
//!
//! hub.shutdown().await; // finishes what is in flight; the rest stays in the store
//! # Ok(())
//! # }
//! ```

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OnceCell, broadcast};

pub use self::open::wrong_key;
use self::open::{Access, KeySource};
use crate::{
    access::Actor,
    accounts::Accounts,
    admin::{Admin, ai_config::AiConfigs},
    ai::Tools,
    apps::Apps,
    bots::Bots,
    channels::Channels,
    config::HubConfig,
    context::Context,
    counters::Load,
    delivery::{
        retention::{self, Ages, Forgotten},
        supervisor::Supervisor,
    },
    egress::EgressConfig,
    error::Result,
    event_feed::{EventFeed, EventQuery},
    events::Event,
    gateway::Gateway,
    media::{Media, MediaConfig},
    model::revocation::Revoked,
    network::Network,
    plugins::Plugins,
    random::Random,
    sandbox::SandboxConfig,
    store::{Claim, StoreConfig},
    tasks::Tasks,
    time::{Clock, Timestamp},
    traces::Traces,
};

mod open;

/// A hub. Clones share it; it has no type parameter and no lifetime.
#[derive(Debug, Clone)]
pub struct Hub {
    ctx: Arc<Context>,
    tasks: Tasks,
    supervisor: Arc<OnceCell<Arc<Supervisor>>>,
    /// Keeps other processes off a SQLite file.
    claim: Arc<Mutex<Option<Claim>>>,
}

impl Hub {
    /// Starts the configuration of a hub without any preset.
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// Opens a hub from a preset. Nothing runs yet.
    ///
    /// # Errors
    /// Those of the preset, and of [`HubBuilder::open`].
    pub async fn open(preset: impl Preset) -> Result<Self> {
        preset.builder()?.open().await
    }

    /// Users, passwords, sessions.
    pub fn accounts(&self) -> Accounts<'_> {
        Accounts::new(&self.ctx)
    }

    /// Users, bots of all users, statistics, invitations, the audit log.
    pub fn admin(&self) -> Admin<'_> {
        Admin::new(&self.ctx)
    }

    /// Bots, binding, contacts, messages.
    pub fn bots(&self) -> Bots<'_> {
        Bots::new(&self.ctx)
    }

    /// Channels and their settings.
    pub fn channels(&self) -> Channels<'_> {
        Channels::new(&self.ctx)
    }

    /// The iLink gateway: programs that speak the network's protocol to the hub.
    pub fn gateway(&self) -> Gateway<'_> {
        Gateway::new(&self.ctx)
    }

    /// The marketplace of plugins, their review and installation.
    pub fn plugins(&self) -> Plugins<'_> {
        Plugins::new(&self.ctx)
    }

    /// Apps, their listing and installation.
    pub fn apps(&self) -> Apps<'_> {
        Apps::new(&self.ctx)
    }

    /// The administrator's AI endpoint.
    pub fn ai_config(&self) -> AiConfigs<'_> {
        AiConfigs::new(&self.ctx)
    }

    /// Files of messages.
    pub fn media(&self) -> Media<'_> {
        Media::new(&self.ctx)
    }

    /// Traces of messages.
    pub fn traces(&self) -> Traces<'_> {
        Traces::new(&self.ctx)
    }

    /// Subscribes to future events. A receiver that lags more than 1,024 events loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.ctx.node.events.listen()
    }

    /// Subscribes to events of the caller's objects, or as an administrator of all users; see [`crate::event_feed`].
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and an app, and for all users unless the caller is an administrator;
    /// `NOT_FOUND` for a bot of another user; `INVALID_PARAMS` for too many bots; `RATE_LIMITED` for too many feeds.
    pub async fn follow(&self, actor: &Actor, query: EventQuery) -> Result<EventFeed> {
        EventFeed::open(Arc::clone(&self.ctx), actor, query).await
    }

    /// Subscribes to future revocations and deletions, on any node; see [`crate::revocation`].
    pub fn revocations(&self) -> broadcast::Receiver<Revoked> {
        self.ctx.node.events.revocations()
    }

    /// Number of violated invariants; anything but 0 means a bug or a corrupt store, and a lane or bot is stopped
    /// until the next start.
    pub fn violations(&self) -> u64 {
        self.ctx.node.violations.count()
    }

    /// Starts polling, delivery and sending. A hub that is only opened accepts every call, and its messages are sent
    /// by any node that works on the same store. A second call has no effect.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be written, or is a file that another process works on.
    pub async fn start(&self) -> Result<()> {
        let start = || async {
            self.hold_claim()?;
            Supervisor::start((*self.ctx).clone(), self.tasks.clone()).await
        };
        self.supervisor.get_or_try_init(start).await.map(|_| ())
    }

    /// Claims the SQLite file unless [`HubBuilder::open`] did.
    fn hold_claim(&self) -> Result<()> {
        let mut claim = self.claim();
        if claim.is_none() {
            *claim = self.ctx.store.claim()?;
        }
        Ok(())
    }

    fn claim(&self) -> MutexGuard<'_, Option<Claim>> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this or another process works on this hub's store and will send and deliver stored messages. On
    /// PostgreSQL a hub without bots has no work, and `false` is returned.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn is_at_work(&self) -> Result<bool> {
        let store = &self.ctx.store;
        if !store.is_shared() {
            let own = self.claim();
            // A claim taken here ends with this statement.
            return Ok(if own.is_some() { self.supervisor.initialized() } else { store.claim().is_err() });
        }
        let mut read = store.read().await?;
        let now = read.leases().database_now().await?;
        read.leases().any_held(now.unwrap_or_else(|| store.now())).await
    }

    /// Stops receiving, finishes work in flight within [`HubConfig::drain`], leaves the rest in the store, releases
    /// each lease as soon as the work for its bot has ended, closes the store and frees a SQLite file for other
    /// processes.
    pub async fn shutdown(&self) {
        self.shutdown_after(std::future::ready(())).await;
    }

    /// As [`shutdown`](Self::shutdown), but closes the store after `requests` has ended as well.
    pub async fn shutdown_after(&self, requests: impl Future<Output = ()>) {
        self.tasks.stop();
        let work = self.tasks.wait(&self.ctx.clock, self.ctx.config.drain);
        if !futures_util::future::join(work, requests).await.0 {
            tracing::warn!("work in flight did not end in time; it is repeated at the next start");
        }
        if let Some(supervisor) = self.supervisor.get() {
            supervisor.stop().await;
        }
        self.ctx.sandbox.close();
        self.ctx.store.close().await;
        self.claim().take();
    }

    /// Deletes the data from before an instant now, in small batches: traces, messages with their files and
    /// deliveries, logs of apps. Messages that are still to be delivered or sent are kept.
    ///
    /// # Errors
    /// Errors of the store; data deleted before stays deleted.
    pub async fn forget(&self, before: Timestamp) -> Result<Forgotten> {
        retention::forget(&self.ctx, &self.tasks, Ages { traces: before, messages: before }).await
    }

    /// Whether every bot of this process is under a lease that was renewed in time. Nothing is delivered or sent for
    /// a bot that is not.
    pub fn leases_are_current(&self) -> bool {
        self.supervisor.get().is_none_or(|supervisor| supervisor.leases_are_current())
    }

    /// Returns the work in flight; empty before [`start`](Self::start). Totals are in
    /// [`Node::counters`](crate::node::Node::counters).
    pub fn load(&self) -> Load {
        let load = self.supervisor.get().map(|supervisor| supervisor.load()).unwrap_or_default();
        Load { panics: self.tasks.panics(), ..load }
    }

    /// The parts this hub was built from.
    pub fn context(&self) -> &Context {
        &self.ctx
    }
}

/// A ready configuration of a hub.
pub trait Preset {
    /// Returns the builder with all choices of the preset.
    ///
    /// # Errors
    /// `UNAVAILABLE` when its folder cannot be used; `INTERNAL_ERROR` when no HTTP client can be made.
    fn builder(self) -> Result<HubBuilder>;
}

/// Configuration of a hub. Everything but the store has a default.
#[derive(Debug, Default)]
pub struct HubBuilder {
    store: Option<StoreConfig>,
    key: Option<KeySource>,
    is_migration_forbidden: bool,
    networks: Vec<Arc<dyn Network>>,
    egress: EgressConfig,
    sandbox: SandboxConfig,
    media: Option<MediaConfig>,
    clock: Option<Clock>,
    random: Option<Random>,
    config: HubConfig,
    tools: Option<Arc<dyn Tools>>,
}

impl HubBuilder {
    /// Sets the database.
    #[must_use]
    pub fn store(mut self, store: StoreConfig) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the key that seals secrets at rest. The same database needs the same key.
    #[must_use]
    pub fn secret_key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(KeySource::Value(key));
        self
    }

    /// Sets the file of the key that seals secrets at rest. Opening creates it unless the database needs another key,
    /// and reads the key that an interrupted rotation ([`upkeep`](crate::upkeep)) left next to it.
    #[must_use]
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Some(KeySource::File(path.into()));
        self
    }

    /// Makes [`open`](Self::open) fail when the schema is not current, instead of migrating it.
    #[must_use]
    pub fn without_migration(mut self) -> Self {
        self.is_migration_forbidden = true;
        self
    }

    /// Adds a chat network.
    #[must_use]
    pub fn network(mut self, network: impl Network) -> Self {
        self.networks.push(Arc::new(network));
        self
    }

    /// Sets the targets that outbound requests may reach.
    #[must_use]
    pub fn egress(mut self, egress: EgressConfig) -> Self {
        self.egress = egress;
        self
    }

    /// Sets up the sandbox of plugins. Without a worker program no plugin runs.
    #[must_use]
    pub fn sandbox(mut self, sandbox: SandboxConfig) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Sets the storage of files. Default: the directory `media` next to a SQLite file, and none with PostgreSQL,
    /// where several nodes need a shared one.
    #[must_use]
    pub fn media(mut self, media: MediaConfig) -> Self {
        self.media = Some(media);
        self
    }

    /// Replaces the clock of the machine.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Replaces the randomness of the machine.
    #[must_use]
    pub fn random(mut self, random: Random) -> Self {
        self.random = Some(random);
        self
    }

    /// Sets the tools that models may call in channels that allow it. The default are the tools of the apps on the
    /// bot; [`NoTools`](crate::ai::NoTools) disables them.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Sets the configuration.
    #[must_use]
    pub fn config(mut self, config: HubConfig) -> Self {
        self.config = config;
        self
    }

    /// Opens the store and migrates its schema. Nothing runs yet. A SQLite file belongs to this hub until it shuts
    /// down.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming everything that is missing or given twice. `UNAVAILABLE` when another process works on
    /// the SQLite file; when a node works on the PostgreSQL database and the schema is not current; when a newer
    /// program wrote the database, or the commit log cannot be read; when the database is sealed with another key.
    /// Nothing is written in these cases.
    pub async fn open(self) -> Result<Hub> {
        let access = if self.is_migration_forbidden { Access::Exclusive } else { Access::Migrate };
        Box::pin(open::open(self, access)).await
    }

    /// Opens the store in addition to a hub that may be running: a SQLite file stays free for another process until
    /// [`start`](Hub::start), and the schema is not changed.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `UNAVAILABLE` when a migration is missing.
    pub async fn open_existing(self) -> Result<Hub> {
        Box::pin(open::open(self, Access::Shared)).await
    }
}
