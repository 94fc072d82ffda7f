//! The example apps, each a process, on a hub that is another: installed by OAuth, told and answering, refusing what
//! the hub did not sign, and without a loss when either side is started again.

mod app_process;
mod browser;
mod command_line;

use hub_core::time::Clock;
use serde_json::{Value, json};

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};
use app_process::AppProcess;
use browser::Browser;

/// Ada's hub, and her bot on it.
struct Fixture {
    network: NetworkProcess,
    hub: HubProcess,
    folder: tempfile::TempDir,
    ada: Caller,
    cookie: String,
    bot: String,
    wx_id: String,
}

/// The apps listen on this machine.
const SETTINGS: [(&str, &str); 1] = [("HUB_EGRESS_ALLOW", "127.0.0.0/8")];

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network = NetworkProcess::start().await;
        let hub = HubProcess::start(folder.path(), &network, &SETTINGS).await;
        let body = json!({ "username": "ada", "password": "tr0mbone solo" });
        let stranger = Caller::stranger(&hub.url);
        let (_, _, cookie) = stranger.call(reqwest::Method::POST, "/api/auth/register", Some(body)).await;
        let cookie = cookie.unwrap();
        let ada = stranger.with_cookie(cookie.clone());
        let (bot, wx_id) = network.bind(&ada).await;
        Self { network, hub, folder, ada, cookie, bot, wx_id }
    }

    /// Kills the hub, and starts it again at its address after `meanwhile`.
    async fn restart(self, meanwhile: &str) -> Self {
        let Self { network, hub, folder, ada, cookie, bot, wx_id } = self;
        let listen = hub.url.trim_start_matches("http://").replace("localhost", "127.0.0.1");
        hub.process.kill().await;
        network.say(&wx_id, meanwhile).await;
        let hub = HubProcess::start_at(folder.path(), &network, &listen, &SETTINGS).await;
        Self { network, hub, folder, ada, cookie, bot, wx_id }
    }

    async fn say(&self, text: &str) {
        self.network.say(&self.wx_id, text).await;
    }

    /// Returns the sends that the person received, oldest first.
    async fn got(&self) -> Vec<Value> {
        let sent = self.network.control.control(&format!("/_sim/outbound?wx_id={}", self.wx_id), None).await;
        sent["items"].as_array().unwrap().clone()
    }

    /// Waits until the person got a text.
    async fn wait_for(&self, text: &str) {
        until(text, async || self.got().await.iter().any(|one| one["text"] == text).then_some(())).await;
    }

    /// Creates the app, and installs it on the bot as its owner does in a browser. Returns the app's id and secret.
    async fn install(&self, app: &mut AppProcess) -> (String, String) {
        let tool = |name: &str| json!({ "name": name, "command": name });
        let new = json!({
            "name": "Example",
            "webhook_url": format!("{}/events", app.url),
            "setup_url": format!("{}/setup", app.url),
            "redirect_uris": [format!("{}/callback", app.url)],
            "events": ["message"],
            "scopes": ["message:read", "message:write"],
            "tools": [tool("hello"), tool("picture"), tool("tell")],
        });
        let made = self.ada.post("/api/apps", new).await;
        assert_eq!(made["webhook_verified"], true, "{made}");
        let id = made["id"].as_str().unwrap().to_owned();
        let path = format!("/api/bots/{}/apps/install", self.bot);
        let begun = self.ada.post(&path, json!({ "app_id": id })).await;
        let browser = Browser::new(&self.hub.url, &self.cookie);
        let setup = browser.led_by(begun["oauth_redirect"].as_str().unwrap()).await;
        assert!(setup.starts_with(&format!("{}/setup?", app.url)), "{setup}");
        let question = browser.led_by(&setup).await;
        let answer = browser.decide(&question, "allow").await;
        assert!(answer.starts_with(&format!("{}/callback?code=", app.url)), "{answer}");
        assert_eq!(browser.led_by(&answer).await, format!("{}/oauth/complete", self.hub.url));
        app.wait_line("installed ins_").await;
        // A code is good once.
        assert_eq!(browser.status_of(&answer).await, 400);
        (id, made["webhook_secret"].as_str().unwrap().to_owned())
    }
}

async fn an_app_lives(interpreter: &str, program: &str) {
    let mut fixture = Fixture::new().await;
    let state = tempfile::tempdir().unwrap();
    let Some(mut app) =
        AppProcess::start(interpreter, program, "127.0.0.1:0", &fixture.hub.url, state.path()).await
    else {
        return;
    };
    let (id, secret) = fixture.install(&mut app).await;
    fixture.say("/hello").await;
    fixture.wait_for("Hello! I know /hello, /picture and /tell.").await;
    fixture.say("@example how are you?").await;
    fixture.wait_for("You said: how are you?").await;
    fixture.say("/tell by the bot API").await;
    fixture.wait_for("by the bot API").await;
    fixture.say("/picture").await;
    let picture = until("the picture", async || {
        fixture.got().await.into_iter().find(|one| one["media"]["kind"] == "image")
    });
    assert_eq!(picture.await["opened"], true);
    fixture.wait_for("Here it is").await;

    app.believes_only_the_hub(&fixture, &id, &secret).await;

    // The app is away: the hub tells it once it is back.
    let address = app.address();
    app.kill().await;
    fixture.say("/tell after the app").await;
    let path = format!("/api/bots/{}/apps/{id}/events", fixture.bot);
    until("an attempt in vain", async || {
        let events = fixture.ada.get(&path).await;
        let newest = &events["items"][0];
        (newest["event"]["data"]["text"] == "after the app" && newest["attempts"].as_u64()? > 0).then_some(())
    })
    .await;
    let started = AppProcess::start(interpreter, program, &address, &fixture.hub.url, state.path()).await;
    let _app = started.unwrap();
    fixture.wait_for("after the app").await;

    // The hub is away: what was said meanwhile waits at the network.
    fixture = fixture.restart("/tell after the hub").await;
    fixture.wait_for("after the hub").await;
    Clock::system().sleep(std::time::Duration::from_secs(1)).await;
    let texts: Vec<_> =
        fixture.got().await.iter().filter_map(|one| one["text"].as_str().map(str::to_owned)).collect();
    for once in ["by the bot API", "Here it is", "after the app", "after the hub"] {
        assert_eq!(texts.iter().filter(|text| *text == once).count(), 1, "{once}: {texts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_in_python_lives() {
    an_app_lives("python3", "python/app.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_app_in_node_lives() {
    an_app_lives("node", "node/app.mjs").await;
}
