//! Whole apps of other authors on the other side: Python's `websockets` and Node's `ws` hold an app's socket, answer its
//! commands there, lose the hub to SIGKILL, and are killed themselves. `.ci/run clients` installs them.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use super::client::TEST_TIMEOUT;
use crate::{
    clients::installed,
    support::{
        http::{Caller, until},
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// Messages of each part of the story.
const EACH: usize = 15;

/// A running app.
struct App {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl App {
    fn start(command: std::process::Command, url: &str) -> Self {
        let mut command = Command::from(command);
        command.arg(url).env("NO_PROXY", "127.0.0.1").kill_on_drop(true).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Hears it until it says that it has what `wanted` names, and notes everything on the way.
    async fn hear(&mut self, got: &mut Vec<String>, wanted: &str) {
        while !got.iter().any(|text| text == wanted) {
            let line = timeout(TEST_TIMEOUT, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("the app waits for {wanted} and has {got:?}"));
            got.extend(text_of(&line.unwrap().expect("it runs")));
        }
    }

    /// Kills it, and notes what it printed until then: it may have acknowledged those events.
    async fn kill(mut self, got: &mut Vec<String>) {
        self.process.kill().await.unwrap();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            got.extend(text_of(&line));
        }
    }
}

/// The text of the message that a line of the app reports.
fn text_of(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).unwrap();
    (line["event"] == "told").then(|| line["text"].as_str().unwrap().to_owned())
}

/// Removes duplicates; the first occurrence stays.
fn distinct(texts: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

async fn live_through(command: impl Fn() -> Option<std::process::Command>, acknowledges: bool) {
    let Some(probe) = command() else { return };
    drop(probe);
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    // It comes back where it was.
    let listen = hub.url.trim_start_matches("http://").replace("localhost", "127.0.0.1");
    let port = listen.rsplit(':').next().unwrap().to_owned();
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in(
        "/api/auth/register",
        json!({ "username": "ada", "password": "correct horse battery staple" }),
    )
    .await;
    let (bot, wx_id) = network.bind(&ada).await;
    let app = ada
        .post(
            "/api/apps",
            json!({ "name": "Weather", "events": ["message.text"],
                "scopes": ["message:read", "message:write"],
                "tools": [{ "name": "weather", "description": "", "command": "weather" }] }),
        )
        .await;
    let install = json!({ "app_id": app["id"] });
    let installed = ada.post(&format!("/api/bots/{bot}/apps/install"), install).await;
    let ack = if acknowledges { "&ack=true" } else { "" };
    let token = installed["app_token"].as_str().unwrap();
    let url = format!("ws://127.0.0.1:{port}/bot/v1/ws?token={token}{ack}");

    let mut said = Vec::new();
    let mut say = async |part: &str| {
        for n in 0..EACH {
            let text = format!("{part} {n}");
            network.say(&wx_id, &text).await;
            said.push(text);
        }
        said.last().unwrap().clone()
    };
    let mut got = Vec::new();
    // Before the app runs.
    say("early").await;
    let mut process = App::start(command().unwrap(), &url);
    let last = say("running").await;
    process.hear(&mut got, &last).await;
    // The hub is killed in the middle, and the app goes on by itself.
    say("before the hub died").await;
    hub.process.kill().await;
    say("while it was dead").await;
    let address = format!("127.0.0.1:{port}");
    let hub = HubProcess::start_at(folder.path(), &network, &address, &[]).await;
    let last = say("after the hub died").await;
    process.hear(&mut got, &last).await;
    // The app is killed in the middle.
    if acknowledges {
        say("before the app died").await;
    }
    process.kill(&mut got).await;
    say("while the app was dead").await;
    let mut process = App::start(command().unwrap(), &url);
    let last = say("after the app died").await;
    process.hear(&mut got, &last).await;
    assert_eq!(distinct(&got), said, "everything, in order");

    network.say(&wx_id, "/weather Berlin").await;
    until("the answer goes out", async || {
        let path = format!("/_sim/outbound?wx_id={wx_id}");
        let sent = network.control.control(&path, None).await;
        let texts = sent["items"].as_array().unwrap().iter().filter_map(|item| item["text"].as_str());
        texts.into_iter().any(|text| text == "weather in Berlin").then_some(())
    })
    .await;
    drop(hub);
}

#[tokio::test]
async fn an_app_with_websockets_for_python_lives_through_everything() {
    live_through(installed::app_with_websockets, false).await;
}

#[tokio::test]
async fn an_app_with_ws_for_node_acknowledges_and_lives_through_everything() {
    live_through(installed::app_with_ws, true).await;
}
