//! The shipped server and the simulated chat network, each a process of its own.

use std::path::Path;

use serde_json::json;

use super::{
    binaries,
    http::{Caller, until},
    process::Process,
};

/// A running `hub-server` on loopback.
#[derive(Debug)]
pub struct HubProcess {
    /// The process.
    pub process: Process,
    /// Its address, without a slash at the end.
    pub url: String,
}

impl HubProcess {
    /// Starts a server whose data lies in `folder` and waits until it is ready. `settings` are environment
    /// variables next to the ones every test needs.
    pub async fn start(folder: &Path, network: &NetworkProcess, settings: &[(&str, &str)]) -> Self {
        Self::start_at(folder, network, "127.0.0.1:0", settings).await
    }

    /// As [`HubProcess::start`], at an address. With a port, the server is spoken to there, whatever its public URL is.
    pub async fn start_at(
        folder: &Path,
        network: &NetworkProcess,
        listen: &str,
        settings: &[(&str, &str)],
    ) -> Self {
        let folder = folder.display().to_string();
        let mut environment = vec![("HUB_DATA_DIR", folder.as_str()), ("HUB_SIM_URL", network.url.as_str())];
        environment.extend([("HUB_NETWORK", "sim"), ("HUB_DEMO", "false")]);
        environment.extend(settings);
        let arguments = ["--listen", listen];
        let mut process = Process::start(&binaries::program("hub-server"), &arguments, &environment);
        let reported = process.wait_url().await;
        let url = if listen.ends_with(":0") { reported } else { format!("http://{listen}") };
        let ready = Caller::stranger(&url);
        until("readyz", async || {
            let (status, ..) = ready.call(reqwest::Method::GET, "/readyz", None).await;
            status.is_success().then_some(())
        })
        .await;
        Self { process, url }
    }
}

/// A running chat network.
#[derive(Debug)]
pub struct NetworkProcess {
    /// Its address.
    pub url: String,
    /// Its control API.
    pub control: Caller,
    /// The process; ends when it is dropped.
    pub process: Process,
}

impl NetworkProcess {
    /// Starts a network.
    pub async fn start() -> Self {
        let arguments = ["sim", "serve", "--listen", "127.0.0.1:0"];
        let mut process = Process::start(&binaries::program("hub-cli"), &arguments, &[]);
        let url = process.wait_line("ready ").await;
        let control = Caller::stranger(&url);
        Self { url, control, process }
    }

    /// Binds a new account to the caller: the ids of the bot and of its account.
    pub async fn bind(&self, caller: &Caller) -> (String, String) {
        let bind = caller.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
        let account =
            self.control.control("/_sim/confirm", Some(json!({ "qr_text": bind["qr_text"] }))).await;
        let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        let bot = until("the login", async || {
            let step = caller.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "confirmed").then(|| step["bot"]["id"].as_str().unwrap().to_owned())
        })
        .await;
        (bot, account["wx_id"].as_str().unwrap().to_owned())
    }

    /// The account's owner writes.
    pub async fn say(&self, wx_id: &str, text: &str) {
        let message = json!({ "messages": [{ "wx_id": wx_id, "text": text }] });
        self.control.control("/_sim/messages", Some(message)).await;
    }
}
