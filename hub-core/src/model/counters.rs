//! Counters: plain numbers in memory, for exporters. Counting is a few atomic additions and allocates nothing. No
//! count is per bot, channel or person.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    ai::Usage,
    model::{bot::BotStatus, trace::DeliveryState},
    network::SendOutcome,
};

/// The counts of one hub since it was opened.
#[derive(Debug)]
pub struct Counters {
    /// Inbound messages stored, by outcome: `received` went to the channels.
    pub messages: Tally<6>,
    /// Stored outcomes of delivery attempts, by the state they left: `done`, `dead` and `skipped` are final,
    /// `pending` waits in its lane, `parked` in the store.
    pub deliveries: Tally<5>,
    /// Attempts at webhooks, by class: the status, or what went wrong before there was one.
    pub attempts: Tally<13>,
    /// Calls to models, by class: `answered`, or what went wrong; and messages that were `ignored`, or for which
    /// no model could be asked.
    pub ai_calls: Tally<17>,
    /// Tokens that models read and wrote.
    pub ai_tokens: Tally<2>,
    /// Attempts to send to a person, by the network's response.
    pub sends: Tally<8>,
    /// Hooks of plugins that ran, by outcome.
    pub plugin_runs: Tally<3>,
    /// Counts that the store already has.
    written: Mutex<Tallied>,
    /// Attempts to fetch files of messages, by outcome.
    pub media: Tally<3>,
    /// Nightly backups, by outcome.
    pub backups: Tally<2>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            messages: Tally::new(["received", "ignored", "recalled", "unfinished", "quarantined", "other"]),
            deliveries: Tally::new(["done", "dead", "skipped", "pending", "parked"]),
            attempts: Tally::new([
                "2xx",
                "3xx",
                "4xx",
                "5xx",
                "unsendable",
                "blocked_address",
                "dns",
                "connect",
                "tls",
                "timeout",
                "too_large",
                "broken",
                "other",
            ]),
            ai_calls: Tally::new([
                "answered",
                "ignored",
                "not_asked",
                "rate_limited",
                "refused",
                "failed",
                "not_understood",
                "cut",
                "bad_url",
                "blocked_address",
                "dns",
                "connect",
                "tls",
                "timeout",
                "too_large",
                "broken",
                "other",
            ]),
            ai_tokens: Tally::new(["prompt", "completion"]),
            sends: Tally::new([
                "sent",
                "unconfirmed",
                "rejected",
                "window_closed",
                "login_expired",
                "throttled",
                "not_sent",
                "unknown",
            ]),
            plugin_runs: Tally::new(["ok", "error", "timeout"]),
            written: Mutex::default(),
            media: Tally::new(["ready", "failed", "retried"]),
            backups: Tally::new(["made", "failed"]),
        }
    }
}

impl Counters {
    /// An attempt's outcome was stored; the name it counts under.
    pub(crate) fn count_delivery(&self, state: DeliveryState) -> &'static str {
        let name = match state {
            DeliveryState::Done => "done",
            DeliveryState::Dead => "dead",
            DeliveryState::Skipped => "skipped",
            DeliveryState::Pending => "pending",
            DeliveryState::Parked => "parked",
        };
        self.deliveries.count(name);
        name
    }

    /// The network answered a send, or did not; the name it counts under.
    pub(crate) fn count_send(&self, outcome: &SendOutcome) -> &'static str {
        let name = match outcome {
            SendOutcome::Sent { .. } => "sent",
            SendOutcome::AcceptedUnconfirmed => "unconfirmed",
            SendOutcome::Rejected(_) => "rejected",
            SendOutcome::WindowClosed(_) => "window_closed",
            SendOutcome::LoginExpired(_) => "login_expired",
            SendOutcome::Throttled { .. } => "throttled",
            SendOutcome::NotSent(_) => "not_sent",
            SendOutcome::Unknown(_) => "unknown",
        };
        self.sends.count(name);
        name
    }

    /// A model read and wrote something.
    pub(crate) fn count_tokens(&self, usage: Usage) {
        self.ai_tokens.add("prompt", usage.prompt_tokens);
        self.ai_tokens.add("completion", usage.completion_tokens);
    }

    /// A webhook answered with this status.
    pub(crate) fn count_answer(&self, status: http::StatusCode) {
        self.attempts.count(match status.as_u16() / 100 {
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            5 => "5xx",
            _ => "other",
        });
    }
}

/// Counts that are kept across restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, hub_macros::FromRow)]
#[row(table = "tallies")]
pub struct Tallied {
    /// Inbound messages stored.
    #[row(number)]
    pub messages_in: u64,
    /// Messages, or parts of long ones, that the chat network took.
    #[row(number)]
    pub messages_out: u64,
    /// Deliveries that were made.
    #[row(number)]
    pub delivered: u64,
    /// Deliveries that failed permanently.
    #[row(number)]
    pub failed: u64,
    /// Runs of plugins.
    #[row(number)]
    pub plugin_runs: u64,
}

impl Tallied {
    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        self.messages_in += other.messages_in;
        self.messages_out += other.messages_out;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.plugin_runs += other.plugin_runs;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            messages_in: self.messages_in.saturating_sub(before.messages_in),
            messages_out: self.messages_out.saturating_sub(before.messages_out),
            delivered: self.delivered.saturating_sub(before.delivered),
            failed: self.failed.saturating_sub(before.failed),
            plugin_runs: self.plugin_runs.saturating_sub(before.plugin_runs),
        }
    }
}

impl Counters {
    /// Everything counted since the hub was opened, as far as it is kept.
    fn tallied(&self) -> Tallied {
        let sum = |counts: &mut dyn Iterator<Item = (&'static str, u64)>, names: &[&str]| {
            counts.filter(|(name, _)| names.is_empty() || names.contains(name)).map(|(_, count)| count).sum()
        };
        Tallied {
            messages_in: sum(&mut self.messages.counts(), &[]),
            messages_out: sum(&mut self.sends.counts(), &["sent", "unconfirmed"]),
            delivered: sum(&mut self.deliveries.counts(), &["done"]),
            failed: sum(&mut self.deliveries.counts(), &["dead"]),
            plugin_runs: sum(&mut self.plugin_runs.counts(), &[]),
        }
    }

    /// Returns all counts, and the part of them that is not stored yet.
    pub(crate) fn since_written(&self) -> (Tallied, Tallied) {
        let all = self.tallied();
        (all, all.since(&self.written.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Records that everything up to these counts is stored.
    pub(crate) fn set_written(&self, all: Tallied) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }
}

/// Counts by name, of a fixed set of names.
#[derive(Debug)]
pub struct Tally<const N: usize> {
    names: [&'static str; N],
    counts: [AtomicU64; N],
}

impl<const N: usize> Tally<N> {
    fn new(names: [&'static str; N]) -> Self {
        Self { names, counts: [const { AtomicU64::new(0) }; N] }
    }

    /// Adds one; a name that is not of the set counts under the last one.
    pub fn count(&self, name: &str) {
        self.add(name, 1);
    }

    /// Adds so many.
    pub fn add(&self, name: &str, count: u64) {
        let place = self.names.iter().position(|known| *known == name).unwrap_or(N - 1);
        self.counts[place].fetch_add(count, Ordering::Relaxed);
    }

    /// Every name with its count.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.names.iter().zip(&self.counts).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
    }
}

/// Histogram with fixed bounds.
#[derive(Debug)]
pub struct Spread<const N: usize> {
    bounds: [u64; N],
    counts: [AtomicU64; N],
    /// Values above the last bound.
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Spread<N> {
    /// Creates a histogram. `bounds` rise; each is the largest value of its bucket.
    pub const fn new(bounds: [u64; N]) -> Self {
        Self {
            bounds,
            counts: [const { AtomicU64::new(0) }; N],
            above: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Adds a value.
    pub fn add(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound);
        let count = bucket.map_or(&self.above, |place| &self.counts[place]);
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns every bound with the number of values in its bucket; `None` is the bound of values above the last one.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let counts = self.counts.iter().chain([&self.above]).map(|count| count.load(Ordering::Relaxed));
        self.bounds.iter().copied().map(Some).chain([None]).zip(counts)
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// Microseconds, for a [`Spread`].
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Work that a node has in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Deliveries in memory that wait for their turn. The store may hold more.
    pub queued: usize,
    /// Deliveries being attempted.
    pub in_flight: usize,
    /// Deliveries with a response whose outcome is not stored yet.
    pub answered: usize,
    /// Bots this node works for, by status.
    pub bots: Vec<(BotStatus, usize)>,
    /// Background tasks that ended with a panic since the start.
    pub panics: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_keeps_every_value_in_one_bucket() {
        let spread = Spread::new([1, 10]);
        for value in [0, 1, 2, 10, 11, 5000] {
            spread.add(value);
        }
        let buckets: Vec<_> = spread.buckets().collect();
        assert_eq!(buckets, [(Some(1), 2), (Some(10), 2), (None, 2)]);
        assert_eq!(spread.sum(), 5024);
    }

    #[test]
    fn everything_is_counted_under_a_name_of_its_own() {
        let counters = Counters::default();
        let text = String::new;
        for outcome in [
            SendOutcome::Sent { network_id: text() },
            SendOutcome::AcceptedUnconfirmed,
            SendOutcome::WindowClosed(text()),
            SendOutcome::Throttled { message: text(), retry_after: None },
            SendOutcome::LoginExpired(text()),
            SendOutcome::Rejected(text()),
            SendOutcome::NotSent(text()),
            SendOutcome::Unknown(text()),
        ] {
            counters.count_send(&outcome);
        }
        for state in [
            DeliveryState::Done,
            DeliveryState::Dead,
            DeliveryState::Skipped,
            DeliveryState::Pending,
            DeliveryState::Parked,
        ] {
            counters.count_delivery(state);
        }
        assert!(counters.deliveries.counts().chain(counters.sends.counts()).all(|(_, count)| count == 1));
        for status in [200, 301, 404, 503, 100] {
            counters.count_answer(http::StatusCode::from_u16(status).unwrap());
        }
        counters.attempts.count(crate::egress::EgressFault::Tls.as_str());
        let counted: Vec<_> = counters.attempts.counts().filter(|(_, count)| *count == 1).collect();
        let names = ["2xx", "3xx", "4xx", "5xx", "tls", "other"];
        assert_eq!(counted, names.map(|name| (name, 1)));
    }
}
