//! One life of the shipped server.

use std::path::Path;

use hub_core::secret::Secret;

use crate::support::{binaries, process::Process};

/// Folder, database and settings of a server; they stay the same over its restarts.
#[derive(Debug, Clone)]
pub struct Home {
    pub folder: std::path::PathBuf,
    pub database: Option<Secret>,
    pub sim_url: String,
    pub allow: String,
}

/// A running process.
#[derive(Debug)]
pub struct Server {
    pub process: Process,
}

impl Server {
    pub fn spawn(home: &Home) -> Self {
        Self::spawn_from(&binaries::program("hub-server"), home)
    }

    fn spawn_from(program: &Path, home: &Home) -> Self {
        let folder = home.folder.display().to_string();
        let mut environment = vec![
            ("HUB_DATA_DIR", folder.as_str()),
            ("HUB_SIM_URL", home.sim_url.as_str()),
            ("HUB_EGRESS_ALLOW", home.allow.as_str()),
            ("HUB_NETWORK", "sim"),
            ("HUB_DEMO", "false"),
            ("HUB_LOG", "warn,hub_server=info"),
            ("HUB_RATE_DEFAULT", "1000000"),
        ];
        environment.extend(home.database.as_ref().map(|url| ("HUB_DATABASE_URL", url.expose())));
        Self { process: Process::start(program, &["--listen", "127.0.0.1:0"], &environment) }
    }

    /// Waits until it serves and says where.
    pub async fn ready(&mut self) -> String {
        self.process.wait_url().await
    }
}
