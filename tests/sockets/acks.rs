//! SIGKILL while clients acknowledge now and then: once a client has acknowledged, or announced that it will, nothing
//! after its last acknowledgement is skipped, and what it acknowledged at first is not forgotten.

use std::net::SocketAddr;

use hub_core::random::Random;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{
    client::{Client, open},
    crash::address_of,
    stage::CONNECT,
};
use crate::{
    crash,
    support::{
        http::Caller,
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// A bot and its network; both survive the hub.
struct World {
    network: NetworkProcess,
    bot: String,
    wx_id: String,
    random: Random,
}

/// A channel, what people wrote to it, and what its client did.
struct Log {
    id: String,
    key: String,
    /// The text with the number `n` is at `n - 1`.
    texts: Vec<String>,
    /// Everything up to this number was received.
    position: usize,
    /// Whether the client announced that it acknowledges.
    is_announced: bool,
    /// The first and the last number that it acknowledged.
    acked: Option<(usize, usize)>,
    /// Whether the hub responded to something after the first of them.
    is_certain: bool,
}

async fn connect(url: &str, key: &str, query: &str) -> (Client, Value) {
    let address: SocketAddr = address_of(url);
    let opened = open(address, &format!("{CONNECT}?api_key={key}{query}"), &[]).await;
    let mut client = opened.unwrap_or_else(|refused| panic!("{}", refused.json));
    let init = frame(&mut client).await;
    assert_eq!(init["type"], "init");
    (client, init["data"].clone())
}

async fn frame(client: &mut Client) -> Value {
    loop {
        if let Message::Text(text) = client.next().await.expect("the hub is there") {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

fn number(data: &Value, name: &str) -> usize {
    usize::try_from(data[name].as_u64().unwrap()).unwrap()
}

impl World {
    fn below(&self, count: usize) -> usize {
        usize::try_from(self.random.below(u64::try_from(count).unwrap())).unwrap()
    }

    async fn write(&self, log: &mut Log) {
        let text = format!("{} {}", log.id, log.texts.len() + 1);
        self.network.say(&self.wx_id, &text).await;
        log.texts.push(text);
    }

    async fn create(&self, ada: &Caller) -> Log {
        let channel = ada.post(&format!("/api/bots/{}/channels", self.bot), json!({ "name": "acks" })).await;
        let text = |name: &str| channel[name].as_str().unwrap().to_owned();
        Log {
            id: text("id"),
            key: text("api_key"),
            texts: Vec::new(),
            position: 0,
            is_announced: self.below(2) == 0,
            acked: None,
            is_certain: false,
        }
    }

    async fn acknowledge(&self, client: &mut Client, log: &mut Log) {
        let (first, last) = log.acked.map_or((None, 0), |(first, last)| (Some(first), last));
        let seq = last + self.below(log.position - last + 1);
        log.acked = Some((first.unwrap_or(seq), seq));
        client.say(&json!({ "type": "ack", "data": { "seq": seq } })).await;
    }

    /// A client that receives and acknowledges now and then, until the hub is killed.
    async fn follow(&self, url: &str, log: &mut Log) {
        for _ in 0..self.below(3) {
            self.write(log).await;
        }
        let query = if log.is_announced { "&ack=true" } else { "" };
        let (mut client, init) = connect(url, &log.key, query).await;
        log.position = number(&init, "since");
        assert!(!log.is_announced || log.position == 0, "{init}");
        for _ in 0..self.below(10) {
            match self.below(4) {
                0 | 1 => {
                    self.write(log).await;
                    log.receive(&mut client, "message").await;
                }
                2 => self.acknowledge(&mut client, log).await,
                _ => {
                    self.acknowledge(&mut client, log).await;
                    client.say(&json!({ "type": "ping" })).await;
                    log.receive(&mut client, "pong").await;
                    log.is_certain = true;
                }
            }
        }
    }
}

impl Log {
    /// Receives frames up to one of this type, and notes the messages among them.
    async fn receive(&mut self, client: &mut Client, kind: &str) {
        loop {
            let frame = frame(client).await;
            assert!(frame["type"] != "lagged", "{frame}");
            if frame["type"] == "message" {
                assert_eq!(number(&frame["data"], "seq"), self.position + 1, "no gap");
                assert_eq!(frame["data"]["content"].as_str(), Some(&*self.texts[self.position]));
                self.position += 1;
            }
            if frame["type"] == kind {
                return;
            }
        }
    }

    /// A client that names no start finds everything that was not acknowledged.
    async fn check(&mut self, url: &str) {
        let (mut client, init) = connect(url, &self.key, "").await;
        let (start, newest) = (number(&init, "since"), number(&init, "last_seq"));
        let told = format!("{init}, announced {}, acknowledged {:?}", self.is_announced, self.acked);
        let last = self.acked.map_or(0, |(_, last)| last);
        if self.is_announced || self.is_certain {
            assert!(start <= last, "messages are skipped: {told}");
        } else {
            assert!(start <= last || start == newest, "{told}");
        }
        // Of a client that announced itself, the first acknowledgement is stored within a second, like later ones.
        if let Some((first, _)) = self.acked.filter(|_| self.is_certain && !self.is_announced) {
            assert!(first <= start, "an acknowledgement is forgotten: {told}");
        }
        self.position = start;
        while self.position < self.texts.len() {
            self.receive(&mut client, "message").await;
        }
    }
}

#[tokio::test]
async fn clients_that_acknowledge_skip_nothing_when_the_hub_is_killed() {
    let test = "kill -9 with clients that acknowledge";
    let random = Random::seeded(crash::stage::seed(test));
    let (folder, network) = (tempfile::tempdir().unwrap(), NetworkProcess::start().await);
    let mut hub = HubProcess::start(folder.path(), &network, &[]).await;
    let mut ada = Caller::stranger(&hub.url);
    let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
    ada.sign_in("/api/auth/register", credentials).await;
    let (bot, wx_id) = network.bind(&ada).await;
    let world = World { network, bot, wx_id, random };
    for _ in 0..crash::number("HUB_TEST_KILL_CYCLES", 6) {
        let mut log = world.create(&ada).await;
        world.follow(&hub.url, &mut log).await;
        hub.process.kill().await;
        world.write(&mut log).await;
        hub = HubProcess::start(folder.path(), &world.network, &[]).await;
        ada = ada.at(&hub.url);
        log.check(&hub.url).await;
        let path = format!("/api/bots/{}/channels/{}", world.bot, log.id);
        let (status, answer, _) = ada.call(Method::DELETE, &path, None).await;
        assert!(status.is_success(), "{answer}");
    }
}
