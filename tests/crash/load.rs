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
    sinks::{Books, SINKS},
    stage::Bot,
    upstream::Upstream,
};
use crate::support::http::Caller;

/// People who write at the same time to one bot.
const PEOPLE: u64 = 6;
/// Messages of a person, who then falls silent: a person may be written to twelve times in five minutes, and is, by
/// replies and sends.
const WORDS: u64 = 16;
/// Programs that send, each to people of its own.
pub const PROGRAMS: usize = 3;
/// Sends of a program to one person.
const SENDS: usize = 2;

/// People who write to one bot.
pub struct People {
    pub bot: Bot,
    pub upstream: Upstream,
    pub books: Arc<Mutex<Books>>,
    pub random: Random,
    pub pause: Duration,
}

impl People {
    pub async fn write(self, wanted: watch::Receiver<bool>) {
        let mut words: Vec<(u64, u64)> = (0..PEOPLE).map(|person| (person, 0)).collect();
        let mut next_person = PEOPLE;
        while *wanted.borrow() {
            let place = usize::try_from(self.random.below(PEOPLE)).unwrap();
            let (person, said) = words[place];
            let (person, text) = (self.person(person), self.text(person, said));
            {
                let mut books = self.books.lock().unwrap();
                books.inbound.sent(&person, &text, &SINKS, Repeats::AfterCrashes);
                self.upstream.sim.say(&self.bot.wx_id, Some(&person), &text).unwrap();
            }
            words[place].1 += 1;
            if words[place].1 == WORDS {
                words[place] = (next_person, 0);
                next_person += 1;
            }
            Clock::system().sleep(self.pause).await;
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
