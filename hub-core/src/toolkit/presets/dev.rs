//! A hub to develop against.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{Preset, in_folder};
use crate::{
    HubBuilder,
    config::HubConfig,
    demo::connector,
    egress::{AllowRule, EgressConfig},
    error::Result,
    local_http::LocalService,
    network::sim::{SimConfig, Simulator},
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    time::Clock,
};

/// A hub to develop against: the network `sim`, whose people are functions of this program, and webhooks that are
/// answered in the process. For tests there is [`TestHub`](crate::testing), whose clock is moved by hand.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> hub_core::Result<()> {
/// # let folder = tempfile::tempdir().expect("a folder");
/// use hub_core::{Hub, presets::Dev};
///
/// let preset = Dev::in_folder(folder.path());
/// let network = preset.simulator();
/// let hub = Hub::open(preset).await?;
/// assert!(network.accounts().is_empty());
/// # hub.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Dev {
    folder: PathBuf,
    simulator: Simulator,
    egress: EgressConfig,
}

impl Dev {
    /// A hub that keeps everything in this folder. Its people and what they see are gone with the process.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let simulator = Simulator::new(SimConfig::quick(), Clock::system(), Random::system());
        Self { folder: folder.into(), simulator, egress: EgressConfig::default() }
    }

    /// The people of the network: they scan, confirm, write and read.
    pub fn simulator(&self) -> Simulator {
        self.simulator.clone()
    }

    /// Answers webhooks for a host, by name, inside the process.
    pub fn receiver<S: LocalService>(mut self, host: &str, service: Arc<S>) -> Self {
        self.egress.in_process.insert(host.to_owned(), service);
        self
    }

    /// Lets webhooks reach an address that is not public: a program on this machine.
    pub fn allow(mut self, rule: AllowRule) -> Self {
        self.egress.allow.push(rule);
        self
    }
}

impl Preset for Dev {
    fn builder(self) -> Result<HubBuilder> {
        let network = connector(&self.simulator, Clock::system(), Random::system())?;
        // The simulator loses nothing when a poll is cut: a stop need not wait for one.
        let config = HubConfig { poll_grace: Duration::ZERO, ..HubConfig::default() };
        Ok(in_folder(&self.folder)
            .network(network)
            .egress(self.egress)
            .sandbox(SandboxConfig::of(WorkerProgram::InProcessTrustedOnly))
            .config(config))
    }
}
