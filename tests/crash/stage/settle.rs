//! The end of a run: pending work completes, and all records are compared.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use hub_core::{
    network::sim::Outbound,
    testing::ledger::{Receipt, Reported},
    time::Clock,
};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    super::{
        server::Server,
        sinks::{MODEL, Sinks},
    },
    Bot, Stage, TEST_TIMEOUT,
};
use crate::support::http::until;

impl Stage {
    /// Counts the messages that are not polled, not acknowledged or not delivered, and the sends that have not
    /// arrived, without the `unknown` ones.
    fn under_way(&self, unknown: &HashSet<String>) -> (usize, usize, usize, usize) {
        let mut people: HashSet<String> = self.sent_to_people().into_iter().map(|one| one.text).collect();
        people.extend(unknown.iter().cloned());
        let mut books = self.sinks.books.lock().unwrap();
        books.note_acks(&self.upstream);
        let unsent = books.outbound.missing().iter().filter(|entry| !people.contains(&entry.payload)).count();
        (self.upstream.pending(), books.inbound.unacknowledged().len(), books.inbound.missing().len(), unsent)
    }

    /// All sends that people received, in order.
    fn sent_to_people(&self) -> Vec<Outbound> {
        let mut found: Vec<Outbound> = Vec::new();
        loop {
            let page = self.upstream.sim.outbound(None, found.last().map_or(0, |last| last.n));
            if page.is_empty() {
                return found;
            }
            found.extend(page);
        }
    }

    /// Writes again as each person with a queued send: attempts that kills interrupted count in the window, too.
    async fn write_again(&self) {
        for bot in &self.bots {
            for person in self.sends(bot, "queued", "to_user_id").await {
                self.say(bot, &person, &format!("{} {person} again", bot.wx_id));
            }
        }
    }

    /// Sends that were interrupted on the wire twice: the hub does not repeat them, and cannot know whether they arrived.
    async fn unknown_sends(&self) -> HashSet<String> {
        let mut unknown = HashSet::new();
        for bot in &self.bots {
            unknown.extend(self.sends(bot, "unknown", "content").await);
        }
        unknown
    }

    /// A field of a bot's sends in a status.
    async fn sends(&self, bot: &Bot, status: &str, field: &str) -> HashSet<String> {
        let messages = self.list(&format!("/api/bots/{}/messages", bot.id)).await;
        let sends = messages.iter().filter(|message| message["status"] == status);
        sends.map(|send| send[field].as_str().unwrap().to_owned()).collect()
    }

    /// Ends the load, waits until nothing is under way, closes the books and compares them. The server runs.
    pub async fn settle(self, in_flight: usize) -> Self {
        self.wanted.send_replace(false);
        assert!(self.writers.wait(&Clock::system(), TEST_TIMEOUT).await, "the programs do not end");
        let (mut state, mut unknown) = ((0, 0, 0, 0), HashSet::new());
        for round in 0..TEST_TIMEOUT.as_millis() / 100 {
            state = self.under_way(&unknown);
            if state == (0, 0, 0, 0) {
                break;
            }
            if round == 200 {
                self.write_again().await;
            }
            if round % 100 == 99 {
                unknown = self.unknown_sends().await;
            }
            Clock::system().sleep(Duration::from_millis(100)).await;
        }
        let refusals = std::mem::take(&mut *self.refusals.lock().unwrap());
        assert!(refusals.is_empty(), "{}: refused: {refusals:#?}", self.origin);
        self.await_idle().await;
        self.hear_the_hub().await;
        let people = self.sent_to_people();
        let mut books = self.books();
        for one in people {
            let (at, id, payload) = (one.at, one.client_id, one.text);
            books.outbound.received(Receipt { at, sink: "people".to_owned(), payload, id, taken: true });
        }
        let (inbound, outbound) = (books.inbound.findings(), books.outbound.findings());
        let told = format!("{inbound}\n--- to people:\n{outbound}\n--- under way at the end: {state:?}\n");
        drop(books);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
        assert!(inbound.is_clean(in_flight) && outbound.is_clean(0), "the books do not agree:\n{told}");
        assert_eq!(state, (0, 0, 0, 0), "something never came to rest:\n{told}");
        self
    }

    /// Waits until the hub itself says that nothing waits.
    async fn await_idle(&self) {
        until("the hub is idle", async || {
            for bot in &self.bots {
                for channel in bot.channels.keys() {
                    let path = format!("/api/bots/{}/channels/{channel}", bot.id);
                    if self.caller.get(&path).await["stats"]["pending"] != json!(0) {
                        return None;
                    }
                }
            }
            Some(())
        })
        .await;
    }

    /// Records the outcome of every message, as the hub reports it.
    async fn hear_the_hub(&self) {
        for bot in &self.bots {
            let messages = self.list(&format!("/api/bots/{}/messages", bot.id)).await;
            let inbound = messages.iter().filter(|one| one["direction"] == "inbound");
            let texts: HashMap<&str, &str> =
                inbound.map(|one| (one["id"].as_str().unwrap(), one["content"].as_str().unwrap())).collect();
            let traces = self.list(&format!("/api/bots/{}/traces", bot.id)).await;
            let mut books = self.books();
            for message in messages.iter().filter(|one| one["direction"] == "outbound") {
                let told = match message["status"].as_str().unwrap() {
                    "sent" => Reported::Delivered,
                    "unknown" => Reported::Unknown,
                    "queued" => Reported::Open,
                    _ => Reported::GivenUp,
                };
                books.outbound.reported("people", message["content"].as_str().unwrap(), told);
            }
            for trace in &traces {
                let Some(sink) = trace["channel_id"].as_str().and_then(|id| bot.channels.get(id)) else {
                    continue;
                };
                // An empty response of the model counts as delivered.
                let is_empty = trace["summary"].as_str().unwrap().contains("an empty response");
                let told = match trace["status"].as_str().unwrap() {
                    "ok" => Reported::Delivered,
                    "error" if *sink == MODEL && is_empty => Reported::Delivered,
                    "pending" => Reported::Open,
                    _ => Reported::GivenUp,
                };
                // The sends of a program have traces of its channel, too.
                let Some(text) = texts.get(trace["message_id"].as_str().unwrap()) else { continue };
                books.inbound.reported(sink, text, told);
                // A reply is promised with the outcome of its delivery.
                let reply = match *sink {
                    "answering" => Sinks::reply_to(text),
                    MODEL => Sinks::answer_to(text),
                    _ => None,
                };
                if let Some(reply) = reply {
                    books.outbound.acknowledged(&reply);
                }
            }
        }
    }

    /// Every item of a list.
    async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.caller.get(&format!("{path}?limit=200{cursor}")).await;
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Ends the server in order and looks at the file it leaves.
    pub async fn close(self, server: Server) {
        let (ended, log) = server.process.terminate().await;
        assert!(ended.success(), "{}: {ended}\n{log}", self.origin);
        if self.home.database.is_none() {
            let file = SqliteConnectOptions::new().filename(self.home.folder.join("hub.db"));
            let mut file = SqliteConnection::connect_with(&file).await.unwrap();
            let sound: String =
                sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
            assert_eq!(sound, "ok", "{}", self.origin);
            file.close().await.unwrap();
        }
    }
}
