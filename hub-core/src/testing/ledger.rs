//! Books about messages: what was sent, acknowledged, received and reported, kept by four parties that know nothing of
//! each other, and compared at the end.
//!
//! A message is named by its *payload*, a text that occurs once. A *lane* is what has to stay in order, for
//! example a conversation; a *sink* is where a message has to arrive. The same books serve both directions:
//! from people to webhooks, and from programs to people.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
};

use crate::time::Timestamp;

mod findings;

pub use findings::Findings;

/// How often a sink may take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// As often as there are crashes that explain it.
    AfterCrashes,
    /// Once, whatever happens: people do not want to read everything twice.
    Never,
}

/// The outcome of a message at a sink, as the hub reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// The sink has it.
    Delivered,
    /// It was given up.
    GivenUp,
    /// Unknown, and not retried.
    Unknown,
    /// Work goes on.
    Open,
}

/// The books. Fill them in any order, then ask for the [`findings`](Self::findings).
#[derive(Debug, Default)]
pub struct Ledger {
    origin: String,
    sent: HashMap<String, Sent>,
    acknowledged: HashSet<String>,
    received: Vec<Receipt>,
    reported: HashMap<Entry, Reported>,
    crashes: Vec<Timestamp>,
}

/// A message at a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Where.
    pub sink: String,
    /// Which.
    pub payload: String,
}

/// What a sink saw.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// When it came, by the clock that also times the crashes.
    pub at: Timestamp,
    /// Where.
    pub sink: String,
    /// Which.
    pub payload: String,
    /// The id that all attempts of one message at one sink share.
    pub id: String,
    /// Whether the sink took it.
    pub taken: bool,
}

#[derive(Debug)]
struct Sent {
    place: usize,
    lane: String,
    sinks: Vec<String>,
    repeats: Repeats,
}

impl Ledger {
    /// Empty books. `origin` is what a reader needs to make the run again: its seed and the commit.
    pub fn new(origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), ..Self::default() }
    }

    /// A message was sent on its way to these sinks, after everything that was sent in this lane before. A
    /// payload that is known already changes nothing.
    pub fn sent(&mut self, lane: &str, payload: &str, sinks: &[&str], repeats: Repeats) {
        let place = self.sent.len();
        let sinks = sinks.iter().map(|&sink| sink.to_owned()).collect();
        self.sent.entry(payload.to_owned()).or_insert(Sent { place, lane: lane.to_owned(), sinks, repeats });
    }

    /// The hub has taken responsibility for a message.
    pub fn acknowledged(&mut self, payload: &str) {
        self.acknowledged.insert(payload.to_owned());
    }

    /// A sink saw a message.
    pub fn received(&mut self, receipt: Receipt) {
        self.received.push(receipt);
    }

    /// The outcome of a message, as the hub reports it.
    pub fn reported(&mut self, sink: &str, payload: &str, reported: Reported) {
        self.reported.insert(Entry::new(sink, payload), reported);
    }

    /// The hub was ended without warning.
    pub fn crashed(&mut self, at: Timestamp) {
        self.crashes.push(at);
    }

    /// Whether the hub has taken responsibility for a message.
    pub fn is_acknowledged(&self, payload: &str) -> bool {
        self.acknowledged.contains(payload)
    }

    /// Messages that were sent and not acknowledged.
    pub fn unacknowledged(&self) -> BTreeSet<String> {
        self.sent.keys().filter(|payload| !self.acknowledged.contains(*payload)).cloned().collect()
    }

    /// What a sink was sent and did not take so far, whatever the hub says of it.
    pub fn missing(&self) -> BTreeSet<Entry> {
        let taken = self.taken();
        let wanted = self.sent.iter().flat_map(|(payload, sent)| {
            sent.sinks.iter().map(move |sink| Entry { sink: sink.clone(), payload: payload.clone() })
        });
        wanted.filter(|entry| !taken.contains(entry)).collect()
    }

    fn taken(&self) -> HashSet<Entry> {
        self.received.iter().filter(|receipt| receipt.taken).map(Entry::of).collect()
    }
}

impl Entry {
    fn new(sink: &str, payload: &str) -> Self {
        Self { sink: sink.to_owned(), payload: payload.to_owned() }
    }

    fn of(receipt: &Receipt) -> Self {
        Self::new(&receipt.sink, &receipt.payload)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.payload, self.sink)
    }
}
