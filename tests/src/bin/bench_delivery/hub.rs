//! The hub under test: the shipped server in a process of its own, and a user who owns bots and channels.

use std::{path::PathBuf, time::Duration};

use hub_core::time::Clock;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    Result,
    moments::now_us,
    process::Process,
    support::http::{Caller, until},
};

/// Signs every webhook.
pub const SECRET: &str = "a-webhook-secret-of-the-benchmark";
/// Maximum duration of a start.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of the hub under test.
pub struct Setup {
    pub program: PathBuf,
    pub folder: PathBuf,
    pub database_url: Option<String>,
    pub simulator: String,
    pub receiver: String,
    /// Address on which nothing listens.
    pub dead: String,
    pub log: String,
    /// Number of nodes.
    pub nodes: usize,
}

/// A hub that is ready.
pub struct Hub {
    pub process: Process,
    /// The other nodes of the same hub.
    others: Vec<Hub>,
    pub url: String,
    metrics: String,
    /// From the start of the process to the first `/readyz` that says yes.
    pub ready_after: Duration,
}

impl Setup {
    /// Bytes of the database, where it is a file.
    pub fn database_size(&self) -> Option<u64> {
        let file = self.folder.join("hub.db").metadata();
        file.ok().filter(|_| self.database_url.is_none()).map(|file| file.len())
    }

    /// Starts the hub and waits until each of its nodes is ready.
    pub async fn start(&self) -> Result<Hub> {
        let mut hub = self.start_node().await?;
        while hub.others.len() + 1 < self.nodes {
            hub.others.push(self.start_node().await?);
        }
        Ok(hub)
    }

    async fn start_node(&self) -> Result<Hub> {
        let (port, metrics) = (free_address().await?, free_address().await?);
        let mut variables = vec![
            ("HUB_LISTEN", port.clone()),
            ("HUB_METRICS_LISTEN", metrics.clone()),
            ("HUB_DATA_DIR", self.folder.display().to_string()),
            ("HUB_SIM_URL", format!("http://{}", self.simulator)),
            ("HUB_EGRESS_ALLOW", format!("{},{}", self.receiver, self.dead)),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_DEMO", "false".to_owned()),
            ("HUB_LOG", self.log.clone()),
            ("HUB_RATE_DEFAULT", "1000000".to_owned()),
        ];
        variables.extend(self.database_url.clone().map(|url| ("HUB_DATABASE_URL", url)));
        let started = now_us();
        let process = Process::program(&self.program, &variables)?;
        while !is_ready(&port).await {
            if Duration::from_micros(now_us() - started) > TEST_TIMEOUT {
                return Err("the hub did not become ready".into());
            }
            Clock::system().sleep(Duration::from_millis(2)).await;
        }
        let ready_after = Duration::from_micros(now_us() - started);
        Ok(Hub { process, others: Vec::new(), url: format!("http://{port}"), metrics, ready_after })
    }
}

async fn is_ready(address: &str) -> bool {
    ask(address, "/readyz").await.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

impl Hub {
    fn nodes(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// Processor time of all nodes so far.
    pub fn cpu(&self) -> Duration {
        self.nodes().map(|node| node.process.cpu()).sum()
    }

    /// Memory of the largest node, in bytes.
    pub fn rss(&self) -> u64 {
        self.nodes().map(|node| node.process.rss()).max().unwrap_or_default()
    }

    /// Transactions committed so far; `None` when the hub does not tell.
    pub async fn commits(&self) -> Option<f64> {
        let mut commits = 0.0;
        for node in self.nodes() {
            let answer = ask(&node.metrics, "/metrics").await.ok()?;
            let line = answer.lines().find(|line| line.starts_with("hub_store_commits_total"))?;
            commits += line.split_whitespace().nth(1)?.parse::<f64>().ok()?;
        }
        Some(commits)
    }

    /// Ends all nodes, and waits until they have.
    pub fn terminate(self) -> Result<()> {
        let others = self.others.into_iter().map(Self::terminate);
        others.chain([self.process.terminate()]).collect()
    }
}

/// The whole answer to a GET.
async fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// An address where no one listens.
pub async fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string())
}

/// Someone who owns bots.
pub struct Owner {
    caller: Caller,
    simulator: Caller,
}

/// A bot: its id and the account behind it.
#[derive(Debug, Clone)]
pub struct Bot {
    pub id: String,
    pub wx_id: String,
}

impl Owner {
    /// The first user of a new hub.
    pub async fn register(hub: &Hub, simulator: &str) -> Self {
        let mut caller = Caller::stranger(&hub.url);
        let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
        caller.sign_in("/api/auth/register", credentials).await;
        Self { caller, simulator: Caller::stranger(&format!("http://{simulator}")) }
    }

    /// The same user at the hub that was started again.
    pub fn at(&self, hub: &Hub) -> Self {
        Self { caller: self.caller.at(&hub.url), simulator: self.simulator.clone() }
    }

    /// Logs a new bot in.
    pub async fn bind(&self) -> Bot {
        let bind = self.caller.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
        let code = json!({ "qr_text": bind["qr_text"] });
        let account = self.simulator.control("/_sim/confirm", Some(code)).await;
        let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        let id = until("the login", async || {
            let step = self.caller.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "confirmed").then(|| step["bot"]["id"].as_str().unwrap_or_default().to_owned())
        })
        .await;
        Bot { id, wx_id: account["wx_id"].as_str().unwrap_or_default().to_owned() }
    }

    /// A channel with a signed webhook and otherwise the defaults; answers its path.
    pub async fn channel(&self, bot: &Bot, number: u64, receiver: &str) -> String {
        let body = json!({ "name": format!("channel {number}"), "webhook": webhook(receiver) });
        let made = self.caller.post(&format!("/api/bots/{}/channels", bot.id), body).await;
        format!("/api/bots/{}/channels/{}", bot.id, made["id"].as_str().unwrap_or_default())
    }

    /// Submits a plugin of one's own; answers its id.
    pub async fn plugin(&self, script: &str) -> String {
        let made = self.caller.post("/api/plugins", json!({ "script": script })).await;
        made["id"].as_str().unwrap_or_default().to_owned()
    }

    /// Puts a plugin into a channel.
    pub async fn install(&self, channel: &str, plugin: &str) {
        self.caller.post(&format!("{channel}/plugins/install"), json!({ "plugin_id": plugin })).await;
    }

    /// Takes a plugin out of a channel.
    pub async fn uninstall(&self, channel: &str, plugin: &str) -> Result<()> {
        let path = format!("{channel}/plugins/{plugin}");
        let (status, answer, _) = self.caller.call(reqwest::Method::DELETE, &path, None).await;
        if status.is_success() { Ok(()) } else { Err(format!("{path}: {answer}").into()) }
    }

    /// Points a channel somewhere else.
    pub async fn redirect(&self, channel: &str, receiver: &str) -> Result<()> {
        let path = format!("{channel}/webhook");
        let (status, answer, _) =
            self.caller.call(reqwest::Method::PUT, &path, Some(webhook(receiver))).await;
        if status.is_success() { Ok(()) } else { Err(format!("{channel}: {answer}").into()) }
    }
}

fn webhook(url: &str) -> Value {
    json!({
        "enabled": true,
        "url": format!("http://{url}"),
        "auth": { "method": "hmac", "secret": SECRET },
        "auto_reply": true,
    })
}
