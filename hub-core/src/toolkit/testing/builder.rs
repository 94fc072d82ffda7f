//! Builder of a [`TestHub`].

use std::{sync::Arc, time::Duration};

use url::Url;

use super::{TestHub, run};
use crate::{
    Hub,
    ai::Tools,
    config::HubConfig,
    egress::{Egress, EgressConfig},
    error::{Error, Result},
    local_http::LocalService,
    media::MediaConfig,
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SIM_HOST, SimConfig, Simulator},
    },
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    time::{Clock, ManualClock, Timestamp},
};

/// Start time of the manual clock of a [`TestHub`].
pub const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// Settings of a [`TestHub`]. Everything has a default.
#[derive(Debug, Clone)]
pub struct TestHubBuilder {
    pub(super) store: Option<StoreConfig>,
    pub(super) clock: Clock,
    seed: u64,
    sim_config: SimConfig,
    sim: Option<Simulator>,
    network_url: Option<Url>,
    ilink: IlinkConfig,
    config: HubConfig,
    egress: EgressConfig,
    sandbox: SandboxConfig,
    tools: Option<Arc<dyn Tools>>,
    media: Option<MediaConfig>,
    pub(super) works: bool,
}

impl Default for TestHubBuilder {
    fn default() -> Self {
        // The grace is time of a clock that no one moves while the hub stops.
        let config = HubConfig { poll_grace: Duration::ZERO, ..HubConfig::default() };
        Self {
            store: None,
            clock: ManualClock::new(START).into(),
            seed: 1,
            sim_config: SimConfig::default(),
            sim: None,
            network_url: None,
            ilink: IlinkConfig::default(),
            config,
            egress: EgressConfig::default(),
            sandbox: SandboxConfig::of(WorkerProgram::InProcessTrustedOnly),
            tools: None,
            media: None,
            works: true,
        }
    }
}

impl TestHubBuilder {
    /// Uses another store than a fresh SQLite file: one that two hubs share, or PostgreSQL.
    #[must_use]
    pub fn store(mut self, store: StoreConfig) -> Self {
        self.store = Some(store);
        self
    }

    /// Uses another clock than a fresh manual one.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Uses the machine's clock, and a network that holds requests for fractions of a second.
    #[must_use]
    pub fn system_clock(mut self) -> Self {
        self.sim_config = SimConfig::quick();
        self.clock(Clock::system())
    }

    /// Sets the seed of all randomness. Two hubs on one store need two, or their ids collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the behaviour of the simulated network.
    #[must_use]
    pub fn sim_config(mut self, config: SimConfig) -> Self {
        self.sim_config = config;
        self
    }

    /// Uses an existing network: it is served elsewhere, or two hubs share it.
    #[must_use]
    pub fn simulator(mut self, sim: Simulator) -> Self {
        self.sim = Some(sim);
        self
    }

    /// Sets the URL of the network, if it is not to be called inside the process.
    #[must_use]
    pub fn network_url(mut self, url: Url) -> Self {
        self.network_url = Some(url);
        self
    }

    /// Changes the settings of the connector. Its login URL is the network's in any case.
    #[must_use]
    pub fn ilink(mut self, change: impl FnOnce(&mut IlinkConfig)) -> Self {
        change(&mut self.ilink);
        self
    }

    /// Sets the tools that models may call while they answer, in place of the tools of installed apps.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Changes the settings of the hub.
    #[must_use]
    pub fn config(mut self, change: impl FnOnce(&mut HubConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Changes the egress settings of the hub.
    #[must_use]
    pub fn egress(mut self, change: impl FnOnce(&mut EgressConfig)) -> Self {
        change(&mut self.egress);
        self
    }

    /// Sets the sandbox of plugins, if they are not to run in this process.
    #[must_use]
    pub fn sandbox(mut self, sandbox: SandboxConfig) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Uses another place for files than the folder next to the store.
    #[must_use]
    pub fn media(mut self, media: MediaConfig) -> Self {
        self.media = Some(media);
        self
    }

    /// Serves the requests to a host, by name, inside the process.
    #[must_use]
    pub fn receiver<S: LocalService>(mut self, host: &str, service: &Arc<S>) -> Self {
        let service = Arc::clone(service) as Arc<dyn LocalService>;
        self.egress.in_process.insert(host.to_owned(), service);
        self
    }

    /// Opens the hub and starts its work.
    pub async fn start(self) -> TestHub {
        self.build().await.unwrap()
    }

    /// As [`start`](Self::start), for a hub that may be refused.
    ///
    /// # Errors
    /// Errors of opening or starting the hub.
    pub async fn try_start(self) -> Result<TestHub> {
        self.build().await
    }

    /// Opens the hub without starting its work: nothing polls, delivers or sends.
    pub async fn open(mut self) -> TestHub {
        self.works = false;
        self.build().await.unwrap()
    }

    async fn build(mut self) -> Result<TestHub> {
        let mut folder = None;
        if self.store.is_none() {
            let fresh = tempfile::tempdir().unwrap();
            self.store = Some(StoreConfig::Sqlite(fresh.path().join("hub.db")));
            folder = Some(fresh);
        }
        let (config, clock) = (self.sim_config.clone(), self.clock.clone());
        let seed = self.seed;
        let sim = self.sim.get_or_insert_with(|| Simulator::new(config, clock, Random::seeded(seed))).clone();
        if self.network_url.is_none() {
            self.network_url = Some(format!("http://{SIM_HOST}").parse().unwrap());
            let service = Arc::new(sim.clone()) as Arc<dyn LocalService>;
            self.egress.in_process.insert(SIM_HOST.to_owned(), service);
        }
        let running = Some(run(&self, 0).await?);
        Ok(TestHub { settings: self, sim, running, runs: 1, _folder: folder })
    }

    /// Opens a hub with these settings, and starts its work.
    pub(super) async fn run(self, runs: u64) -> Result<Hub> {
        let random = Random::seeded(self.seed.wrapping_mul(1_000).wrapping_add(runs));
        let login_base_url = self.network_url.unwrap();
        // The simulator serves both, unless a test sets another CDN.
        let cdn_base_url = if self.ilink.cdn_base_url == IlinkConfig::default().cdn_base_url {
            login_base_url.join("c2c").map_err(Error::internal)?
        } else {
            self.ilink.cdn_base_url.clone()
        };
        let ilink = IlinkConfig { login_base_url, cdn_base_url, ..self.ilink };
        let egress = Egress::new(self.egress.clone())?;
        let network = IlinkNetwork::new("sim", ilink, &egress, self.clock.clone(), random.clone())?;
        let mut builder = Hub::builder();
        if let Some(media) = self.media {
            builder = builder.media(media);
        }
        if let Some(tools) = self.tools {
            builder = builder.tools(tools);
        }
        let hub = builder
            .store(self.store.unwrap())
            .secret_key([7; 32])
            .clock(self.clock)
            .random(random)
            .network(network)
            .egress(self.egress)
            .sandbox(self.sandbox)
            .config(self.config)
            .open()
            .await?;
        if self.works {
            hub.start().await?;
        }
        Ok(hub)
    }
}
