//! Clients of other authors lose their server in the middle and go on when it is back: Python's `websockets` with
//! `since`, Node's `ws` with `ack`. `.ci/run clients` installs them.

use std::{collections::BTreeMap, process::Stdio};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::client::TEST_TIMEOUT;
use crate::{
    clients::installed,
    support::{
        http::Caller,
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// Messages before and after the server dies.
const MESSAGES: usize = 30;

struct Foreign {
    _process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Texts of received messages, by sequence number.
    got: BTreeMap<i64, String>,
    repeats: usize,
}

impl Foreign {
    fn start(command: std::process::Command, key: &str) -> Self {
        let mut command = Command::from(command);
        command.arg(key).env("NO_PROXY", "127.0.0.1").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let input = process.stdin.take().unwrap();
        Self { _process: process, input, lines, got: BTreeMap::new(), repeats: 0 }
    }

    async fn go_to(&mut self, base: &str) {
        self.input.write_all(format!("{base}\n").as_bytes()).await.unwrap();
    }

    /// Waits until the client is connected: without a position it receives only later messages.
    async fn opened(&mut self) {
        loop {
            let line = timeout(TEST_TIMEOUT, self.lines.next_line()).await.expect("it connects");
            let line: serde_json::Value = serde_json::from_str(&line.unwrap().expect("it runs")).unwrap();
            if line["event"] == "open" {
                return;
            }
        }
    }

    /// Reads the client's output until it has `count` messages.
    async fn hear(&mut self, count: usize) {
        while self.got.len() < count {
            let line = timeout(TEST_TIMEOUT, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("the client got {} of {count}", self.got.len()));
            let line: serde_json::Value = serde_json::from_str(&line.unwrap().expect("it runs")).unwrap();
            if line["event"] == "message" {
                let (seq, content) = (line["seq"].as_i64().unwrap(), line["content"].as_str().unwrap());
                let last = self.got.last_key_value().map_or(0, |(seq, _)| *seq);
                assert!(seq <= last + 1, "nothing is left out: {seq} after {last}");
                self.repeats += usize::from(self.got.insert(seq, content.to_owned()).is_some());
            }
        }
    }
}

async fn lose_the_server(command: std::process::Command, may_repeat: bool) {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in(
        "/api/auth/register",
        json!({ "username": "ada", "password": "correct horse battery staple" }),
    )
    .await;
    let (bot, wx_id) = network.bind(&ada).await;
    let channel = ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "orders" })).await;
    let key = channel["api_key"].as_str().unwrap();

    let mut client = Foreign::start(command, key);
    client.go_to(&hub.url).await;
    client.opened().await;
    for n in 0..MESSAGES {
        network.say(&wx_id, &format!("text {n}")).await;
    }
    client.hear(MESSAGES / 2).await;
    hub.process.kill().await;
    for n in MESSAGES..2 * MESSAGES {
        network.say(&wx_id, &format!("text {n}")).await;
    }
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    client.go_to(&hub.url).await;
    client.hear(2 * MESSAGES).await;
    let texts: Vec<_> = client.got.into_values().collect();
    let wanted: Vec<_> = (0..2 * MESSAGES).map(|n| format!("text {n}")).collect();
    assert_eq!(texts, wanted, "everything, in order");
    assert!(may_repeat || client.repeats == 0, "{} messages came twice", client.repeats);
    drop(hub);
}

#[tokio::test]
async fn websockets_for_python_goes_on_where_it_was() {
    let Some(command) = installed::websockets() else { return };
    lose_the_server(command, false).await;
}

#[tokio::test]
async fn ws_for_node_goes_on_after_its_last_acknowledgement() {
    let Some(command) = installed::ws() else { return };
    // An acknowledgement that was not stored yet dies with the server; the message comes again.
    lose_the_server(command, true).await;
}
