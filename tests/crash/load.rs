//! The load: people write to bots, and programs send through the HTTP API.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::{random::Random, testing::ledger::Repeats, time::Clock};
use reqwest::Method;
use serde_json::json;
use tokio::sync::watch;

use super::{
    number,
    sinks::{Books, SILENT, SINKS},
    stage::{BOTS, Bot},
    upstream::Upstream,
};
use crate::support::http::Caller;

/// People who write at the same time to one bot.
const PEOPLE: u64 = 6;
/// Programs that send, each to people of its own.
const PROGRAMS: usize = 3;
/// Sends of a program to one person.
const SENDS: usize = 2;

/// Kind and rate of the load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The channels of each bot.
    pub sinks: &'static [&'static str],
    /// Programs that send.
    pub programs: usize,
    /// Messages that people write to a bot per second.
    pub rate: u64,
    /// Messages that are sent at once.
    pub burst: u64,
    /// Messages of a person, who then falls silent.
    pub words: u64,
}

impl Load {
    /// Messages, replies and sends of every kind, one after the other.
    pub fn of_everything() -> Self {
        let rate = number("HUB_TEST_RATE", 48) / BOTS as u64;
        // A person may be written to twelve times in five minutes, and is, by replies and sends.
        Self { sinks: &SINKS, programs: PROGRAMS, rate, burst: 1, words: 16 }
    }

    /// Many messages at once, of which nothing is read until they are delivered: on SQLite they are in the commit log alone
    /// for a while.
    pub fn of_bursts() -> Self {
        let rate = number("HUB_TEST_RATE", 400) / BOTS as u64;
        // The name of a new person is looked up in the tables, which flushes the log.
        Self { sinks: &SILENT, programs: 0, rate, burst: 500, words: 1_000 }
    }
}

/// People who write to one bot.
pub struct People {
    pub bot: Bot,
    pub load: Load,
    pub upstream: Upstream,
    pub books: Arc<Mutex<Books>>,
    pub random: Random,
}

impl People {
    pub async fn write(self, wanted: watch::Receiver<bool>) {
        let mut words: Vec<(u64, u64)> = (0..PEOPLE).map(|person| (person, 0)).collect();
        let mut next_person = PEOPLE;
        let pause = Duration::from_micros(1_000_000 * self.load.burst / self.load.rate.max(1));
        while *wanted.borrow() {
            for _ in 0..self.load.burst {
                let place = usize::try_from(self.random.below(PEOPLE)).unwrap();
                let (person, said) = words[place];
                let (person, text) = (self.person(person), self.text(person, said));
                {
                    let mut books = self.books.lock().unwrap();
                    books.inbound.sent(&person, &text, self.load.sinks, Repeats::AfterCrashes);
                    self.upstream.sim.say(&self.bot.wx_id, Some(&person), &text).unwrap();
                }
                words[place].1 += 1;
                if words[place].1 == self.load.words {
                    words[place] = (next_person, 0);
                    next_person += 1;
                }
            }
            Clock::system().sleep(pause).await;
        }
    }

    fn person(&self, person: u64) -> String {
        format!("{person}-of-{}", self.bot.wx_id)
    }

    fn text(&self, person: u64, said: u64) -> String {
        format!("{} {person}-{said}", self.bot.wx_id)
    }
}

/// A program that sends to people, one message after the other, each until it is accepted.
pub struct Program {
    pub number: usize,
    pub bots: Vec<Bot>,
    pub caller: Caller,
    pub books: Arc<Mutex<Books>>,
    pub upstream: Upstream,
    pub url: watch::Receiver<Option<String>>,
    pub refusals: Arc<Mutex<Vec<String>>>,
}

impl Program {
    pub async fn send(mut self, wanted: watch::Receiver<bool>) {
        let mut person = self.number as u64;
        while *wanted.borrow() {
            for bot in self.bots.clone() {
                // A person who has written, as far as the hub has acknowledged.
                let name = format!("{person}-of-{}", bot.wx_id);
                let heard = format!("{} {person}-0", bot.wx_id);
                while *wanted.borrow() && !self.is_heard(&heard) {
                    Clock::system().sleep(Duration::from_millis(50)).await;
                }
                for number in 0..SENDS {
                    if *wanted.borrow() {
                        self.insist(&bot, &name, &format!("send {number} to {name}")).await;
                    }
                }
            }
            person += PROGRAMS as u64;
        }
    }

    fn is_heard(&self, text: &str) -> bool {
        let mut books = self.books.lock().unwrap();
        books.note_acks(&self.upstream);
        books.inbound.is_acknowledged(text)
    }

    /// Sends one message until someone says that it is accepted, always under the same key.
    async fn insist(&mut self, bot: &Bot, person: &str, text: &str) {
        let body = json!({ "to_user_id": person, "content": text });
        self.books.lock().unwrap().outbound.sent(person, text, &["people"], Repeats::Never);
        loop {
            let Ok(url) = self.url.wait_for(Option::is_some).await.map(|url| url.clone().unwrap()) else {
                return;
            };
            let path = format!("/api/bots/{}/send", bot.id);
            match self.caller.at(&url).attempt(Method::POST, &path, text, &body).await {
                Ok((status, ..)) if status.is_success() => {
                    self.books.lock().unwrap().outbound.acknowledged(text);
                    return;
                }
                Ok((status, Some(_), _)) if status.as_u16() == 503 => {}
                Ok((status, wait, answer)) => {
                    let report = format!("{text}: {status} (wait {wait:?}) {answer}");
                    self.refusals.lock().unwrap().push(report);
                    return;
                }
                Err(_) => {} // No one there, or gone in the middle.
            }
            Clock::system().sleep(Duration::from_millis(50)).await;
        }
    }
}
