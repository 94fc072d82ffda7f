//! The hub as a value: built once, cloned cheaply, shut down at the end.
//!
//! ```
//! use hub_core::{Hub, access::Actor, page::PageRequest, random::Random, store::StoreConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> hub_core::Result<()> {
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let folder = folder.path();
//! // Only the store and the key are required. A preset chooses the rest: see `hub_core::presets`.
//! let hub = Hub::builder()
//!     .store(StoreConfig::Sqlite(folder.join("hub.db")))
//!     .secret_key(hub_core::data_dir::load_key(folder, &Random::system())?)
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
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{OnceCell, broadcast};

use crate::{
    access::Actor,
    accounts::{Accounts, PasswordHasher},
    admin::{Admin, ai_config::AiConfigs},
    ai::{NoTools, Tools},
    apps::Apps,
    bots::Bots,
    channels::Channels,
    config::HubConfig,
    context::Context,
    counters::Load,
    delivery::{
        retention::{self, Ages, Forgotten},
        supervisor::Supervisor,
        tools::AppTools,
    },
    egress::{Egress, EgressConfig},
    error::{Error, ErrorCode, Problems, Result},
    event_feed::{EventFeed, EventQuery},
    events::Event,
    gateway::Gateway,
    id::Ids,
    media::{Links, Media, MediaConfig, MediaStore},
    model::revocation::Revoked,
    network::Network,
    node::Node,
    plugins::Plugins,
    random::Random,
    sandbox::{Sandbox, SandboxConfig},
    secret::Sealer,
    store::{Store, StoreConfig},
    tasks::{Computations, Tasks},
    time::{Clock, Timestamp},
    traces::Traces,
};

/// Filters compiled at a time.
const COMPUTATIONS: usize = 2;

/// A hub. Clones share it; it has no type parameter and no lifetime.
#[derive(Debug, Clone)]
pub struct Hub {
    ctx: Arc<Context>,
    tasks: Tasks,
    supervisor: Arc<OnceCell<Arc<Supervisor>>>,
}

impl Hub {
    /// A hub to be configured, from nothing.
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// Opens a hub that is put together already. Nothing runs yet.
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

    /// What happened to messages.
    pub fn traces(&self) -> Traces<'_> {
        Traces::new(&self.ctx)
    }

    /// Hears what happens from now on. Who lags more than 1,024 events behind loses the oldest.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.ctx.node.events.listen()
    }

    /// Follows what happens to the things of the caller, or as an administrator to those of all users; see
    /// [`crate::event_feed`].
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and an app, and for the things of all users unless the caller is an
    /// administrator; `NOT_FOUND` for a bot of another user; `INVALID_PARAMS` for too many bots; `RATE_LIMITED` for
    /// too many feeds.
    pub async fn follow(&self, actor: &Actor, query: EventQuery) -> Result<EventFeed> {
        EventFeed::open(Arc::clone(&self.ctx), actor, query).await
    }

    /// Hears which credentials and things end from now on, on whichever node; see [`crate::revocation`].
    pub fn revocations(&self) -> broadcast::Receiver<Revoked> {
        self.ctx.node.events.revocations()
    }

    /// Number of violated invariants; anything but 0 means a bug or a corrupt store, and a lane or bot is stopped
    /// until the next start.
    pub fn violations(&self) -> u64 {
        self.ctx.node.violations.count()
    }

    /// Starts the work: polling, delivering, sending. A hub that is only opened accepts every call, and its messages
    /// are sent by any node that works on the same store. Starting twice has no further effect.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be written, or is a file that another process works on.
    pub async fn start(&self) -> Result<()> {
        self.supervisor
            .get_or_try_init(|| Supervisor::start((*self.ctx).clone(), self.tasks.clone()))
            .await
            .map(|_| ())
    }

    /// Whether a process works on this hub's store, this one or another, and will send and deliver what is stored. On
    /// PostgreSQL a hub without bots has no work, and `false` is returned.
    ///
    /// # Errors
    /// What the store says.
    pub async fn is_at_work(&self) -> Result<bool> {
        let store = &self.ctx.store;
        if !store.is_shared() {
            // The claim ends with this line.
            return Ok(store.claim().is_err());
        }
        let mut read = store.read().await?;
        let now = read.leases().database_now().await?;
        read.leases().any_held(now.unwrap_or_else(|| store.now())).await
    }

    /// Stops receiving, finishes what is in flight within [`HubConfig::drain`], leaves the rest in the store,
    /// gives the leases back and closes the store.
    pub async fn shutdown(&self) {
        self.tasks.stop();
        if !self.tasks.wait(&self.ctx.clock, self.ctx.config.drain).await {
            tracing::warn!("work in flight did not end in time; it is repeated at the next start");
        }
        if let Some(supervisor) = self.supervisor.get() {
            supervisor.stop().await;
            supervisor.announce_release(&self.ctx.store).await;
        }
        self.ctx.sandbox.close();
        self.ctx.store.close().await;
    }

    /// Forgets, in small pieces and at once, what is forgotten by its age and is from before an instant: traces,
    /// messages with what belongs to them, logs of apps. Files go with their messages; what is still to be delivered
    /// or sent stays.
    ///
    /// # Errors
    /// What the store says; what went until then is gone.
    pub async fn forget(&self, before: Timestamp) -> Result<Forgotten> {
        retention::forget(&self.ctx, &self.tasks, Ages { traces: before, messages: before }).await
    }

    /// Whether every bot that this process works for is under a lease that was renewed in time. Nothing is delivered
    /// or sent for a bot that is not.
    pub fn leases_are_current(&self) -> bool {
        self.supervisor.get().is_none_or(|supervisor| supervisor.leases_are_current())
    }

    /// What is in hand now; nothing before [`start`](Self::start). What was counted is in
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

/// A hub that is put together already.
pub trait Preset {
    /// The builder with everything the preset chooses.
    ///
    /// # Errors
    /// `UNAVAILABLE` when its folder cannot be used; `INTERNAL_ERROR` when no HTTP client can be made.
    fn builder(self) -> Result<HubBuilder>;
}

/// What a hub is built from. Everything but the store has a default.
#[derive(Debug, Default)]
pub struct HubBuilder {
    store: Option<StoreConfig>,
    secret_key: Option<[u8; 32]>,
    new_key_file: Option<PathBuf>,
    opening_key: Option<[u8; 32]>,
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
    /// Where the hub keeps everything.
    #[must_use]
    pub fn store(mut self, store: StoreConfig) -> Self {
        self.store = Some(store);
        self
    }

    /// The key that seals secrets at rest. The same database needs the same key.
    #[must_use]
    pub fn secret_key(mut self, key: [u8; 32]) -> Self {
        self.secret_key = Some(key);
        self
    }

    /// The file into which [`secret_key`](Self::secret_key) was just written, because there was none. Opening a
    /// database that is sealed with another key removes it again: only a database without secrets gets a new key.
    #[must_use]
    pub fn new_key_file(mut self, path: PathBuf) -> Self {
        self.new_key_file = Some(path);
        self
    }

    /// A second key that opens secrets and seals none: as long as a rotation of keys has not ended, secrets are sealed
    /// with either ([`upkeep`](crate::upkeep)).
    #[must_use]
    pub fn opening_key(mut self, key: [u8; 32]) -> Self {
        self.opening_key = Some(key);
        self
    }

    /// Adds a chat network.
    #[must_use]
    pub fn network(mut self, network: impl Network) -> Self {
        self.networks.push(Arc::new(network));
        self
    }

    /// What outbound requests may reach.
    #[must_use]
    pub fn egress(mut self, egress: EgressConfig) -> Self {
        self.egress = egress;
        self
    }

    /// Where plugins run. Without a worker program they do not.
    #[must_use]
    pub fn sandbox(mut self, sandbox: SandboxConfig) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Storage of files. Default: the directory `media` next to a SQLite file, and none with PostgreSQL, where
    /// several nodes need a shared one.
    #[must_use]
    pub fn media(mut self, media: MediaConfig) -> Self {
        self.media = Some(media);
        self
    }

    /// Another clock than the machine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Another randomness than the machine's.
    #[must_use]
    pub fn random(mut self, random: Random) -> Self {
        self.random = Some(random);
        self
    }

    /// What models may call while they answer, in channels that want it; the tools of the apps on the bot without
    /// this, nothing with [`NoTools`].
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Settings.
    #[must_use]
    pub fn config(mut self, config: HubConfig) -> Self {
        self.config = config;
        self
    }

    /// Opens the store and brings its schema up to date. Nothing runs yet.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming everything that is missing or there twice, or what opening the store says.
    pub async fn open(self) -> Result<Hub> {
        Box::pin(self.open_store(true)).await
    }

    /// As [`open`](Self::open), but never changes the schema: for a second program while a hub runs.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `UNAVAILABLE` when a migration is missing.
    pub async fn open_existing(self) -> Result<Hub> {
        Box::pin(self.open_store(false)).await
    }

    async fn open_store(self, migrate: bool) -> Result<Hub> {
        let mut problems = Problems::default();
        problems.check(self.store.is_some(), "store", "must be set");
        problems.check(self.secret_key.is_some(), "secret_key", "must be set");
        let names: HashSet<&str> = self.networks.iter().map(|network| network.name()).collect();
        problems.check(names.len() == self.networks.len(), "network", "must have a unique name");
        problems.finish()?;
        let (store, key) = self.store.zip(self.secret_key).expect("both are set");
        let clock = self.clock.unwrap_or_else(Clock::system);
        let random = self.random.unwrap_or_else(Random::system);
        let networks: HashMap<_, _> =
            self.networks.into_iter().map(|network| (network.name().to_owned(), network)).collect();
        let wanted = self.media.is_some();
        let media = self.media.or_else(|| match &store {
            StoreConfig::Sqlite(path) => Some(MediaConfig::Folder(path.with_file_name("media"))),
            StoreConfig::Postgres(_) => None,
        });
        let egress = Egress::new(self.egress)?;
        let links = Links::new(&key, self.config.public_url.as_str());
        let media = MediaStore::open(media.as_ref(), &egress, links, &self.config.media)?;
        if wanted {
            media.check()?;
        }
        let store = if migrate {
            Store::open(&store, clock.clone()).await?
        } else {
            Store::open_existing(&store, clock.clone()).await?
        };
        let sealer = Sealer::new(&key, random.clone());
        let sealer = self.opening_key.iter().fold(sealer, Sealer::opening);
        if let Err(error) = check_key(&store, &sealer, self.new_key_file.as_deref()).await {
            store.close().await;
            return Err(error);
        }
        let mut ctx = Context {
            store,
            ids: Ids::new(clock.clone(), random.clone()),
            sealer,
            passwords: PasswordHasher::new(self.config.password_hashers, random.clone()),
            computations: Computations::new(COMPUTATIONS),
            egress,
            media,
            sandbox: Sandbox::new(self.sandbox, clock.clone()),
            tools: Arc::new(NoTools),
            networks: Arc::new(networks),
            config: Arc::new(self.config),
            node: Node::default(),
            clock,
            random,
        };
        ctx.tools = self.tools.unwrap_or_else(|| Arc::new(AppTools::new(ctx.clone())));
        Ok(Hub { ctx: Arc::new(ctx), tasks: Tasks::new(), supervisor: Arc::default() })
    }
}

/// Refuses a key other than the one the database is sealed with, before anything is sealed with it.
async fn check_key(store: &Store, sealer: &Sealer, new_key_file: Option<&Path>) -> Result<()> {
    let Some(missing) = store.read().await?.sealed().missing_key(sealer).await? else { return Ok(()) };
    let message = if let Some(path) = new_key_file {
        std::fs::remove_file(path).map_err(Error::internal)?;
        format!("the database is sealed with the key {missing}, and {} does not exist", path.display())
    } else {
        format!("the database is sealed with the key {missing}, and the key here is {}", sealer.key_id())
    };
    Err(Error::new(ErrorCode::Unavailable, message).with_hint(WRONG_KEY))
}

/// What helps against a wrong or missing key.
pub const WRONG_KEY: &str = "put the key file secret.key back, or set HUB_SECRET_KEY to the key; if it is lost, \
    restore a backup that contains its key: hub-cli db restore BACKUP --yes; an interrupted rotation of keys is \
    completed with: hub-cli db encrypt rotate-key";
