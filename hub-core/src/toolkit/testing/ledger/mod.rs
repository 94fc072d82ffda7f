//! A ledger of messages: the messages that were sent, acknowledged, received and reported, recorded by four parties
//! that know nothing of each other, and compared at the end.
//!
//! A message is named by its *payload*, a text that occurs once. A *lane* is a sequence that has to stay in order,
//! for example a conversation; a *sink* is a place where a message has to arrive. The same ledger serves both
//! directions: from people to webhooks, and from programs to people.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
};

use crate::time::Timestamp;

mod findings;

pub use findings::Findings;

/// Number of times that a sink may accept a message.
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
    /// It failed permanently.
    GivenUp,
    /// Unknown, and not retried.
    Unknown,
    /// Work goes on.
    Open,
}

/// The records. Add them in any order, then compare them with [`findings`](Self::findings).
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
    /// The sink.
    pub sink: String,
    /// The payload of the message.
    pub payload: String,
}

/// A message that a sink received.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Time of receipt, by the clock that also times the crashes.
    pub at: Timestamp,
    /// The sink.
    pub sink: String,
    /// The payload of the message.
    pub payload: String,
    /// The id that all attempts of one message at one sink share.
    pub id: String,
    /// Whether the sink accepted it.
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
    /// Creates an empty ledger. `origin` is the information that a reader needs to repeat the run: its seed and the
    /// commit.
    pub fn new(origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), ..Self::default() }
    }

    /// Records a message to these sinks, sent after everything that was sent in this lane before. A payload that is
    /// known already changes nothing.
    pub fn sent(&mut self, lane: &str, payload: &str, sinks: &[&str], repeats: Repeats) {
        let place = self.sent.len();
        let sinks = sinks.iter().map(|&sink| sink.to_owned()).collect();
        self.sent.entry(payload.to_owned()).or_insert(Sent { place, lane: lane.to_owned(), sinks, repeats });
    }

    /// Records that the hub has taken responsibility for a message.
    pub fn acknowledged(&mut self, payload: &str) {
        self.acknowledged.insert(payload.to_owned());
    }

    /// Records that a sink received a message.
    pub fn received(&mut self, receipt: Receipt) {
        self.received.push(receipt);
    }

    /// Records the outcome of a message, as the hub reports it.
    pub fn reported(&mut self, sink: &str, payload: &str, reported: Reported) {
        self.reported.insert(Entry::new(sink, payload), reported);
    }

    /// Records that the hub was stopped without warning.
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

    /// Returns the messages that sinks were sent and did not accept so far, whatever the hub reports.
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
