//! Hubs that are put together already, for [`Hub::open`](crate::Hub::open). A preset gives a
//! [`HubBuilder`]: whatever it chose can be chosen again before the hub opens.
//!
//! | preset | store, key, files | networks | plugins |
//! |---|---|---|---|
//! | [`SelfHosted`] | in one folder, made at the first start | iLink | in worker processes, once [asked for](SelfHosted::plugins) |
//! | `Dev`, with the feature `sim` | in one folder, made at the first start | a simulated one, in the process | in the process: your own only |
//! | [`Hub::builder`](crate::Hub::builder) | none: yours to name | none | none |

use std::path::{Path, PathBuf};

#[cfg(feature = "sim")]
pub use self::dev::Dev;
pub use crate::hub::Preset;
use crate::{
    HubBuilder, data_dir,
    egress::{Egress, EgressConfig},
    error::Result,
    network::ilink::{IlinkConfig, IlinkNetwork},
    random::Random,
    sandbox::{SandboxConfig, WorkerProgram},
    store::StoreConfig,
    time::Clock,
};

#[cfg(feature = "sim")]
mod dev;
#[cfg(test)]
mod tests;

/// A hub for real accounts on one machine: a folder with its database, its key and its files, and the network
/// `ilink`.
///
/// ```no_run
/// # async fn open() -> hub_core::Result<()> {
/// use hub_core::{Hub, presets::SelfHosted};
///
/// let hub = Hub::open(SelfHosted::in_folder("/var/lib/my-bots")).await?;
/// hub.start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SelfHosted {
    folder: PathBuf,
    ilink: IlinkConfig,
    egress: EgressConfig,
    worker: WorkerProgram,
}

impl SelfHosted {
    /// A hub that keeps everything in this folder, which is the layout of [`data_dir`]: the server and the command
    /// line work on the same one.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            ilink: IlinkConfig::default(),
            egress: EgressConfig::default(),
            worker: WorkerProgram::None,
        }
    }

    /// Another address of the network, or other limits.
    pub fn ilink(mut self, config: IlinkConfig) -> Self {
        self.ilink = config;
        self
    }

    /// What webhooks and plugins may reach, beyond public addresses.
    pub fn egress(mut self, config: EgressConfig) -> Self {
        self.egress = config;
        self
    }

    /// Runs plugins, in processes of this very program: its `main` must begin with
    /// [`run_worker_if_asked`](crate::sandbox::run_worker_if_asked). None runs where their system calls cannot be
    /// filtered, unless the builder is given a sandbox with [`CallFilter::Optional`](crate::sandbox::CallFilter).
    pub fn plugins(mut self) -> Self {
        self.worker = WorkerProgram::SelfExe;
        self
    }
}

impl Preset for SelfHosted {
    fn builder(self) -> Result<HubBuilder> {
        let (clock, random) = (Clock::system(), Random::system());
        let client = Egress::new(self.egress.clone())?;
        let network = IlinkNetwork::new("ilink", self.ilink, &client, clock, random)?;
        let sandbox = SandboxConfig::of(self.worker);
        Ok(in_folder(&self.folder).network(network).egress(self.egress).sandbox(sandbox))
    }
}

/// The store and the key of a directory; its files are next to the database.
fn in_folder(folder: &Path) -> HubBuilder {
    HubBuilder::default()
        .store(StoreConfig::Sqlite(data_dir::database(folder)))
        .key_file(data_dir::key_file(folder))
}
