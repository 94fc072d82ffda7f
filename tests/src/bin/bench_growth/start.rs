//! The start of the shipped server with many bots: the time until each was polled once, its processor time and memory.

use std::{
    collections::HashSet,
    io::Write,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION, request::Parts};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::{Clock, Stopwatch},
};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::{
    Result, fill,
    http_caller::{Caller, until},
    process::{Process, memory},
};

/// The bots that a user may have.
const BOTS_OF_USER: usize = 20;
/// How long a start may take, and the interval at which the network is asked how far it is.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);
const INTERVAL: Duration = Duration::from_millis(20);

/// The simulated network, with the tokens of the bots that polled it.
struct Network {
    simulator: Simulator,
    polled: Mutex<HashSet<Bytes>>,
}

#[async_trait]
impl LocalService for Network {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let polled = || self.polled.lock().unwrap_or_else(PoisonError::into_inner);
        match request.uri().path() {
            "/_bench/reset" => polled().clear(),
            "/_bench/polled" => {
                return Ok(Response::new(json!({ "data": polled().len() }).to_string().into()));
            }
            path => {
                if let Some(token) =
                    request.headers().get(AUTHORIZATION).filter(|_| path.ends_with("/getupdates"))
                {
                    polled().insert(Bytes::copy_from_slice(token.as_bytes()));
                }
                return self.simulator.call(request).await;
            }
        }
        Ok(Response::new(Bytes::new()))
    }

    fn max_body(&self, head: &Parts) -> usize {
        self.simulator.max_body(head)
    }
}

/// Serves the network until killed; the address is printed.
pub async fn serve_network() -> Result<()> {
    let simulator = Simulator::new(SimConfig::default(), Clock::system(), Random::system());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let network = Network { simulator, polled: Mutex::default() };
    let limits = Limits { connections: 100_000, ..Limits::default() };
    local_http::serve(listener, Arc::new(network), limits, Tasks::new()).await;
    Ok(())
}

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
    bind(&address, &simulator, bots).await;
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
        simulator.call(reqwest::Method::POST, "/_bench/reset", None).await;
        let watch = Stopwatch::start();
        let (process, _) = self.start().await?;
        let listening = watch.elapsed();
        while polled(simulator).await < bots {
            if watch.elapsed() > TEST_TIMEOUT {
                return Err(format!("{} of {bots} bots were polled", polled(simulator).await).into());
            }
            Clock::system().sleep(INTERVAL).await;
        }
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

/// How many bots were polled since the last reset.
async fn polled(simulator: &Caller) -> usize {
    let (_, answer, _) = simulator.call(reqwest::Method::GET, "/_bench/polled", None).await;
    answer["data"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or_default()
}

/// Registers as many users as it takes, and logs the bots in.
async fn bind(address: &str, simulator: &Caller, bots: usize) {
    let mut owner = Caller::stranger(&format!("http://{address}"));
    for number in 0..bots {
        if number % BOTS_OF_USER == 0 {
            let name = format!("user{number}");
            let user = json!({ "username": name, "password": "correct horse battery staple" });
            owner = Caller::stranger(&format!("http://{address}"));
            owner.sign_in("/api/auth/register", user).await;
        }
        let bind = owner.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
        simulator.control("/_sim/confirm", Some(json!({ "qr_text": bind["qr_text"] }))).await;
        let step = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        until("the login", async || {
            let step = owner.post("/api/bots/bind/confirm", step.clone()).await;
            (step["status"] == "confirmed").then_some(())
        })
        .await;
    }
}
