//! The start of the shipped server with many bots: the time until each was polled once, its processor time and memory.

use std::{path::Path, time::Duration};

use hub_core::time::{Clock, Stopwatch};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    Result, fill,
    http_caller::{Caller, until},
    network,
    process::{Process, memory},
};

/// The bots that a user may have.
const BOTS_OF_USER: usize = 20;

/// A start of the server.
pub struct Start {
    /// Until it accepts connections.
    pub listening: Duration,
    /// Until every bot was polled once.
    pub polled: Duration,
    /// Its processor time until then.
    pub cpu: Duration,
    /// The most memory it used until then, in bytes.
    pub memory: u64,
}

/// Binds this many bots, and starts the server again with them: with an empty database, and with so many messages.
pub async fn measure(program: &Path, bots: usize, rows: u32) -> Result<[Start; 2]> {
    let folder = tempfile::tempdir()?;
    let mut network = Process::role(&["network"])?;
    let network_at = network.line()?;
    let simulator = Caller::stranger(&format!("http://{network_at}"));
    let hub = Hub { program, folder: folder.path(), network_at: &network_at };
    let (process, address) = hub.start().await?;
    network::bind(&address, &simulator, bots, BOTS_OF_USER).await;
    process.terminate()?;
    let empty = hub.measure(&simulator, bots).await?;
    // So new that the retention deletes none.
    let start = Clock::system().now() - Duration::from_millis(u64::from(rows));
    fill(&format!("sqlite://{}", folder.path().join("hub.db").display()), rows, start).await?;
    Ok([empty, hub.measure(&simulator, bots).await?])
}

struct Hub<'a> {
    program: &'a Path,
    folder: &'a Path,
    network_at: &'a str,
}

impl Hub<'_> {
    async fn start(&self) -> Result<(Process, String)> {
        // Free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
        let variables = [
            ("HUB_LISTEN", address.clone()),
            ("HUB_DATA_DIR", self.folder.display().to_string()),
            ("HUB_SIM_URL", format!("http://{}", self.network_at)),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_DEMO", "false".to_owned()),
            ("HUB_LOG", "error".to_owned()),
            ("HUB_RATE_DEFAULT", "10000000".to_owned()),
            ("HUB_RATE_AUTH_PER_IP", "10000000".to_owned()),
        ];
        let process = Process::program(self.program, &variables)?;
        until("the hub listens", async || TcpStream::connect(&address).await.ok()).await;
        Ok((process, address))
    }

    /// Starts it, waits until every bot was polled, and ends it.
    async fn measure(&self, simulator: &Caller, bots: usize) -> Result<Start> {
        network::reset(simulator).await;
        let watch = Stopwatch::start();
        let (process, _) = self.start().await?;
        let listening = watch.elapsed();
        network::wait_polled(simulator, bots).await?;
        let start = Start {
            listening,
            polled: watch.elapsed(),
            cpu: process.cpu(),
            memory: memory(process.id, "VmHWM:"),
        };
        process.terminate()?;
        Ok(start)
    }
}
