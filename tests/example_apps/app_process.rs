//! A process of an example app, and someone who pretends to be its hub.

use std::path::Path;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use hub_core::time::Clock;
use serde_json::{Value, json};
use sha2::Sha256;

use super::Fixture;
use crate::support::process::Process;

/// A running app.
#[derive(Debug)]
pub struct AppProcess {
    process: Process,
    pub url: String,
}

impl AppProcess {
    /// Starts an app; `None` where its interpreter is not installed, which CI does not accept.
    pub async fn start(
        interpreter: &str,
        program: &str,
        listen: &str,
        hub: &str,
        state: &Path,
    ) -> Option<Self> {
        let path = std::env::var("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&path).map(|folder| folder.join(interpreter)).find(|file| file.exists());
        assert!(found.is_some() || std::env::var_os("CI").is_none(), "{interpreter} is not installed");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/apps").join(program);
        let state = state.join("state.json");
        let environment =
            [("LISTEN", listen), ("HUB_URL", hub), ("STATE", state.to_str().unwrap()), ("PATH", &path)];
        let mut process = Process::start(&found?, &[program.to_str().unwrap()], &environment);
        let url = process.wait_line("ready ").await;
        Some(Self { process, url })
    }

    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    pub async fn wait_line(&mut self, marker: &str) -> String {
        self.process.wait_line(marker).await
    }

    pub async fn kill(self) {
        self.process.kill().await;
    }

    /// Tells it events as its hub would, rightly signed and not.
    pub async fn believes_only_the_hub(&self, fixture: &Fixture, app_id: &str, secret: &str) {
        let apps = fixture.ada.get(&format!("/api/bots/{}/apps", fixture.bot)).await;
        let installation = apps["items"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(apps["items"][0]["app_id"], app_id);
        let now = Clock::system().now().as_seconds();
        let event = |text: &str| {
            json!({ "v": 1, "type": "event", "trace_id": "", "installation_id": installation, "bot": { "id": fixture.bot },
                "event": { "type": "message.text", "id": "evt_x", "timestamp": now, "data": { "content": text } } })
            .to_string()
        };
        let (body, other) = (event("hi"), event("bye"));
        let told = async |at: i64, secret: &str, signed: &str, body: &str| {
            let signature = signature(secret, at, signed);
            self.tell(&installation, &at.to_string(), &signature, body.to_owned()).await
        };
        let (status, answer) = told(now, secret, &body, &body).await;
        assert_eq!((status, &answer["reply"]), (200, &json!("You said: hi")));
        assert_eq!(told(now, secret, &body, &other).await.0, 401, "another body");
        assert_eq!(told(now, "whsec_another", &body, &body).await.0, 401, "another secret");
        for skew in [-310, 310] {
            assert_eq!(told(now + skew, secret, &body, &body).await.0, 401, "{skew} s");
        }
        let right = signature(secret, now, &body);
        for (installation, at, signature) in [
            ("ins_unknown", &*now.to_string(), &*right),
            (&*installation, "", &*right),
            (&*installation, "soon", &*right),
            (&*installation, &*now.to_string(), ""),
            (&*installation, &*now.to_string(), "sha256="),
            (&*installation, &*now.to_string(), right.trim_start_matches("sha256=")),
        ] {
            let (status, _) = self.tell(installation, at, signature, body.clone()).await;
            assert_eq!(status, 401, "{installation} {at:?} {signature:?}");
        }
        let challenge = json!({ "v": 1, "type": "url_verification", "challenge": "c1" }).to_string();
        let (status, answer) = self.tell("", "", "", challenge).await;
        assert_eq!((status, answer), (200, json!({ "challenge": "c1" })));
        assert_eq!(self.tell("", "", "", "[".to_owned()).await.0, 400);
    }

    #[expect(clippy::disallowed_methods, reason = "a test calls the app from outside, over a real socket")]
    async fn tell(&self, installation: &str, at: &str, signature: &str, body: String) -> (u16, Value) {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("{}/events", self.url))
            .header("Content-Type", "application/json")
            .header("X-Installation-Id", installation)
            .header("X-Timestamp", at)
            .header("X-Signature", signature)
            .body(body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

fn signature(secret: &str, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}:{body}").as_bytes());
    format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()))
}
