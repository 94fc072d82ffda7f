//! The world around a server that comes and goes: the network and the receivers that survive it, the load, and
//! the comparison of everyone's books in the end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::{random::Random, tasks::Tasks, testing::ledger::Repeats, time::Clock};
use reqwest::Method;
use serde_json::json;
use tokio::sync::watch;

use super::{
    ilink::Follower,
    load::{Load, People, Program},
    number,
    server::{Home, Server},
    sinks::{Books, ILINK, MODEL, Sinks},
    upstream::Upstream,
};
use crate::{
    gateway::stage as gateway,
    support::http::{Caller, until},
};

mod settle;

/// `max_in_flight` by default.
const MAX_ANSWERED: usize = 128;
pub const BOTS: usize = 2;
/// Maximum time until pending work is complete at the end.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A bot, and its account on the network.
#[derive(Debug, Clone)]
pub struct Bot {
    pub id: String,
    pub wx_id: String,
    channels: HashMap<String, &'static str>,
}

/// The world around a server that comes and goes.
#[derive(Debug)]
pub struct Stage {
    pub home: Home,
    pub upstream: Upstream,
    pub sinks: Sinks,
    pub bots: Vec<Bot>,
    pub random: Random,
    pub caller: Caller,
    origin: String,
    url: Arc<watch::Sender<Option<String>>>,
    wanted: Arc<watch::Sender<bool>>,
    load: Load,
    writers: Tasks,
    /// Programs that receive as long as the stage is there.
    followers: Tasks,
    refusals: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

/// The seed of this run, told at once.
pub fn seed(test: &str) -> u64 {
    let seed = number("HUB_TEST_SEED", Random::system().below(1_000_000));
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("{test}: HUB_TEST_SEED={seed} repeats this run\n"),
    );
    seed
}

fn commit() -> String {
    let git = std::process::Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short", "HEAD"])
        .output();
    let told = git.ok().filter(|git| git.status.success());
    told.map_or("unknown".to_owned(), |git| String::from_utf8_lossy(&git.stdout).trim().to_owned())
}

impl Stage {
    /// A server that has its user, bots and channels, and runs.
    pub async fn open(test: &str, database: Option<hub_core::secret::Secret>) -> (Self, Server) {
        Self::open_for(test, database, Load::of_everything()).await
    }

    /// As [`open`](Self::open), for another load.
    pub async fn open_for(
        test: &str,
        database: Option<hub_core::secret::Secret>,
        load: Load,
    ) -> (Self, Server) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub");
        Self::open_in(test, database, path, folder, load).await
    }

    /// As [`open`](Self::open), with the data in this folder.
    pub async fn open_in(
        test: &str,
        database: Option<hub_core::secret::Secret>,
        path: std::path::PathBuf,
        folder: tempfile::TempDir,
        load: Load,
    ) -> (Self, Server) {
        let seed = seed(test);
        let origin = format!("{test}: HUB_TEST_SEED={seed}, commit {}", commit());
        let (upstream, sinks) = (Upstream::open(seed).await, Sinks::open(&origin).await);
        let home = Home { folder: path, database, sim_url: upstream.url(), allow: sinks.address.to_string() };
        let mut server = Server::spawn(&home);
        let url = server.ready().await;
        let mut caller = Caller::stranger(&url);
        let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
        caller.sign_in("/api/auth/register", credentials).await;
        let mut stage = Self {
            home,
            upstream,
            sinks,
            bots: Vec::new(),
            random: Random::seeded(seed),
            caller,
            origin,
            url: Arc::new(watch::Sender::new(Some(url))),
            wanted: Arc::new(watch::Sender::new(true)),
            load,
            writers: Tasks::new(),
            followers: Tasks::new(),
            refusals: Arc::default(),
            _folder: folder,
        };
        for _ in 0..BOTS {
            let bot = stage.bind().await;
            stage.bots.push(bot);
        }
        (stage, server)
    }

    async fn bind(&self) -> Bot {
        let bind = self.caller.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
        let account = self.upstream.sim.confirm(bind["qr_text"].as_str().unwrap(), None).unwrap();
        let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        let id = until("the login", async || {
            let step = self.caller.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "confirmed").then(|| step["bot"]["id"].as_str().unwrap().to_owned())
        })
        .await;
        let mut channels = HashMap::new();
        for sink in self.load.sinks.iter().copied() {
            let model = json!({
                "name": sink,
                "ai": {
                    "source": "custom",
                    "base_url": format!("http://{}/{MODEL}", self.sinks.address),
                    "model": "parrot",
                },
            });
            let webhook = json!({
                "name": sink,
                "webhook": {
                    "enabled": true,
                    "url": format!("http://{}/{sink}", self.sinks.address),
                    "auth": { "method": "hmac", "secret": "a-webhook-secret-of-some-length" },
                    "auto_reply": true,
                    "retry": { "schedule_s": vec![1; 20] },
                },
            });
            let program = json!({ "name": sink, "ilink": { "enabled": true } });
            let channel = match sink {
                MODEL => model,
                ILINK => program,
                _ => webhook,
            };
            let made = self.caller.post(&format!("/api/bots/{id}/channels"), channel).await;
            let channel = made["id"].as_str().unwrap().to_owned();
            if sink == ILINK {
                let follower = Follower {
                    program: gateway::Program::log_in(&self.caller.base, &self.caller, &channel).await,
                    books: Arc::clone(&self.sinks.books),
                    url: self.url.subscribe(),
                    refusals: Arc::clone(&self.refusals),
                };
                self.followers.spawn("follower", follower.follow());
            }
            channels.insert(channel, sink);
        }
        Bot { id, wx_id: account.wx_id, channels }
    }

    /// Says where the server is; programs wait while it is nowhere.
    pub fn moved(&mut self, url: Option<String>) {
        if let Some(url) = &url {
            self.caller = self.caller.at(url);
        }
        self.url.send_replace(url);
    }

    /// Starts everyone.
    pub fn start(&self) {
        for bot in &self.bots {
            let people = People {
                bot: bot.clone(),
                load: self.load,
                upstream: self.upstream.clone(),
                books: Arc::clone(&self.sinks.books),
                random: self.random.clone(),
            };
            self.writers.spawn("people", people.write(self.wanted.subscribe()));
        }
        for number in 0..self.load.programs {
            let program = Program {
                number,
                bots: self.bots.clone(),
                caller: self.caller.clone(),
                books: Arc::clone(&self.sinks.books),
                upstream: self.upstream.clone(),
                url: self.url.subscribe(),
                refusals: Arc::clone(&self.refusals),
            };
            self.writers.spawn("program", program.send(self.wanted.subscribe()));
        }
    }

    /// Maximum number of requests that a crash repeats: those in flight, eight per channel by default, and those with
    /// a response whose outcome is not stored yet.
    pub fn in_flight(&self) -> usize {
        8 * self.load.sinks.len() * BOTS + MAX_ANSWERED
    }

    /// Sends a message of a person, and records it.
    pub fn say(&self, bot: &Bot, person: &str, text: &str) {
        let mut books = self.books();
        books.inbound.sent(
            &format!("{person} of {}", bot.wx_id),
            text,
            self.load.sinks,
            Repeats::AfterCrashes,
        );
        self.upstream.sim.say(&bot.wx_id, Some(person), text).unwrap();
    }

    /// Records an expected send.
    pub fn expect_send(&self, person: &str, text: &str) {
        self.books().outbound.sent(person, text, &["people"], Repeats::Never);
    }

    /// Whether a write is made; otherwise it has to be refused for a while.
    pub async fn is_writable(&self) -> bool {
        let bot = &self.bots[0];
        let path = format!("/api/bots/{}/contacts/0-of-{}", bot.id, bot.wx_id);
        let remark = json!({ "remark": "somebody" });
        let (status, wait, answer) =
            self.caller.attempt(Method::PUT, &path, "remark", &remark).await.unwrap();
        if status.is_success() {
            return true;
        }
        let code = answer["error"]["code"].as_str();
        assert!(code == Some("UNAVAILABLE") && status.as_u16() == 503 && wait.is_some(), "{status} {answer}");
        false
    }

    /// Whether the server reports that it is ready.
    pub async fn is_ready(&self) -> bool {
        let (status, answer, _) = self.caller.call(Method::GET, "/readyz", None).await;
        assert!(status.is_success() || status.as_u16() == 503, "{status} {answer}");
        status.is_success()
    }

    /// Waits until the hub has acknowledged the first message.
    pub async fn is_under_way(&self) {
        let first = format!("{} 0-0", self.bots[0].wx_id);
        until("the first words are heard", async || {
            let mut books = self.books();
            books.note_acks(&self.upstream);
            books.inbound.is_acknowledged(&first).then_some(())
        })
        .await;
    }

    pub fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.sinks.books.lock().unwrap()
    }

    /// The server was ended without warning, or is about to be started again after that.
    pub fn crashed(&mut self) {
        self.moved(None);
        let at = Clock::system().now();
        let mut books = self.books();
        books.inbound.crashed(at);
        books.outbound.crashed(at);
    }
}
