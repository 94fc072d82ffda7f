//! The hub under test: the shipped server in a process of its own, with people who write to its bots.

use std::{path::Path, time::Duration};

use hub_core::time::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    Result,
    http_caller::{Caller, until},
    options::{Options, Sizes},
    process::Process,
    program,
};

/// A channel with a bot of its own.
pub struct Channel {
    pub wx_id: String,
    pub key: String,
}

pub struct Hub {
    pub process: Process,
    pub address: String,
    simulator: Caller,
    owner: Caller,
    _network: Process,
}

impl Hub {
    /// An empty hub with one user.
    pub async fn start(options: &Options, sizes: &Sizes, folder: &Path) -> Result<Self> {
        let mut network = Process::role(&["network"])?;
        let simulator = network.line()?;
        // Free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
        let most = (sizes.idle + sizes.sockets * sizes.channels + 100).to_string();
        let variables = [
            ("HUB_LISTEN", address.clone()),
            ("HUB_DATA_DIR", folder.display().to_string()),
            ("HUB_SIM_URL", format!("http://{simulator}")),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_DEMO", "false".to_owned()),
            ("HUB_LOG", "warn".to_owned()),
            ("HUB_RATE_DEFAULT", "10000000".to_owned()),
            ("HUB_MAX_SOCKETS", most.clone()),
            ("HUB_MAX_SOCKETS_PER_CHANNEL", most.clone()),
            ("HUB_MAX_SOCKETS_PER_USER", most.clone()),
            ("HUB_MAX_CONNECTIONS_PER_ADDRESS", most),
        ];
        let process = Process::program(&program::find(options.hub_server.as_deref())?, &variables)?;
        let mut owner = Caller::stranger(&format!("http://{address}"));
        until("the hub listens", async || tokio::net::TcpStream::connect(&address).await.ok()).await;
        let ada = json!({ "username": "ada", "password": "correct horse battery staple" });
        owner.sign_in("/api/auth/register", ada).await;
        let simulator = Caller::stranger(&format!("http://{simulator}"));
        Ok(Self { process, address, simulator, owner, _network: network })
    }

    /// A new bot with a channel.
    pub async fn channel(&self) -> Channel {
        let bind = self.owner.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
        let code = json!({ "qr_text": bind["qr_text"] });
        let account = self.simulator.control("/_sim/confirm", Some(code)).await;
        let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        let bot = until("the login", async || {
            let step = self.owner.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "confirmed").then(|| text(&step["bot"]["id"]))
        })
        .await;
        let made = self.owner.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "one" })).await;
        Channel { wx_id: text(&account["wx_id"]), key: text(&made["api_key"]) }
    }

    /// Someone writes these texts.
    pub async fn write(&self, channel: &Channel, texts: impl IntoIterator<Item = String>) {
        let messages: Vec<Value> =
            texts.into_iter().map(|text| json!({ "wx_id": channel.wx_id, "text": text })).collect();
        self.simulator.control("/_sim/messages", Some(json!({ "messages": messages }))).await;
    }

    /// The target of a channel's WebSocket.
    pub fn target(channel: &Channel, more: &str) -> String {
        format!("/api/v1/channels/connect?api_key={}{more}", channel.key)
    }

    /// One long poll behind a cursor: the messages, and the next cursor.
    pub async fn poll(&self, channel: &Channel, cursor: &str) -> (Vec<Value>, String) {
        let path = format!("/api/v1/channels/messages?api_key={}&timeout=30{cursor}", channel.key);
        let page = self.owner.clone().get(&path).await;
        let items = page["items"].as_array().cloned().unwrap_or_default();
        (items, format!("&cursor={}", text(&page["next_cursor"])))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Waits for what was begun to settle, so that memory shows what stays.
pub async fn settle() {
    Clock::system().sleep(Duration::from_secs(2)).await;
}
