//! Result of the comparison of the records.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    time::Duration,
};

use super::{Entry, Ledger, Receipt, Repeats, Reported};
use crate::time::Timestamp;

/// A receiver may process a request of a dead process this much after its death.
const LATE: Duration = Duration::from_secs(2);
/// Entries of a set that are printed.
const PRINTED: usize = 20;

/// Differences between the records. Everything is a set, so that a failure shows which messages it is about.
#[derive(Debug, Default)]
pub struct Findings {
    origin: String,
    crashes: Vec<Timestamp>,
    sent: usize,
    received: usize,
    /// Acknowledged, never accepted by a sink, and not reported as failed or unknown.
    pub lost: BTreeSet<Entry>,
    /// Received and never sent, or not to this sink.
    pub phantom: BTreeSet<Entry>,
    /// Received after something of its lane that was sent later.
    pub reordered: BTreeSet<Entry>,
    /// Received again after it was taken, without a crash in between.
    pub unexplained: BTreeSet<Entry>,
    /// Received under two ids.
    pub renamed: BTreeSet<Entry>,
    /// The hub reports another outcome than the sink.
    pub untrue: BTreeSet<Entry>,
    /// Taken twice where that may never be.
    pub repeated: BTreeSet<Entry>,
    /// Messages that were received again, by the number of the crash that explains it, from 0.
    pub duplicates: BTreeMap<usize, usize>,
}

impl Ledger {
    /// Compares the books.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings {
            origin: self.origin.clone(),
            crashes: self.crashes.clone(),
            sent: self.sent.len(),
            received: self.received.len(),
            ..Findings::default()
        };
        for entry in self.missing() {
            let given_up = matches!(self.reported.get(&entry), Some(Reported::GivenUp | Reported::Unknown));
            if self.acknowledged.contains(&entry.payload) && !given_up {
                findings.lost.insert(entry);
            }
        }
        let mut by_entry: BTreeMap<Entry, Vec<&Receipt>> = BTreeMap::new();
        let mut newest: HashMap<(&str, &str), usize> = HashMap::new();
        for receipt in &self.received {
            let entry = Entry::of(receipt);
            match self.sent.get(&receipt.payload).filter(|sent| sent.sinks.contains(&receipt.sink)) {
                None => {
                    findings.phantom.insert(entry.clone());
                }
                Some(sent) => {
                    // A message of a lane is sent only after the one before is over, so the order never goes back.
                    let newest = newest.entry((&receipt.sink, &sent.lane)).or_default();
                    if sent.place < *newest {
                        findings.reordered.insert(entry.clone());
                    }
                    *newest = sent.place.max(*newest);
                }
            }
            by_entry.entry(entry).or_default().push(receipt);
        }
        for (entry, receipts) in by_entry {
            self.examine(&entry, &receipts, &mut findings);
        }
        let taken = self.taken();
        let delivered = self.reported.iter().filter(|(_, reported)| **reported == Reported::Delivered);
        findings
            .untrue
            .extend(delivered.map(|(entry, _)| entry).filter(|entry| !taken.contains(entry)).cloned());
        findings
    }

    /// Compares the records of one message at one sink.
    fn examine(&self, entry: &Entry, receipts: &[&Receipt], findings: &mut Findings) {
        if receipts.iter().any(|receipt| receipt.id != receipts[0].id) {
            findings.renamed.insert(entry.clone());
        }
        let reported = self.reported.get(entry).copied();
        let taken: Vec<&Receipt> = receipts.iter().copied().filter(|receipt| receipt.taken).collect();
        let true_to_it = match reported {
            Some(Reported::Delivered) => !taken.is_empty(),
            Some(Reported::Unknown) => true,
            Some(Reported::GivenUp | Reported::Open) => taken.is_empty(),
            None => false,
        };
        if !true_to_it {
            findings.untrue.insert(entry.clone());
        }
        let once = self.sent.get(&entry.payload).is_some_and(|sent| sent.repeats == Repeats::Never);
        if once && taken.len() > 1 {
            findings.repeated.insert(entry.clone());
            return;
        }
        let Some(first) = taken.first() else { return };
        let after = receipts.iter().skip_while(|receipt| !receipt.taken).skip(1);
        // Each crash explains one repeat of a message.
        let (mut before, mut used) = (first.at, 0);
        for again in after {
            let fits = |crash: &Timestamp| before <= *crash + LATE && *crash <= again.at;
            match self.crashes.iter().skip(used).rposition(fits).map(|crash| crash + used) {
                Some(crash) => {
                    *findings.duplicates.entry(crash).or_default() += 1;
                    used = crash + 1;
                }
                None => drop(findings.unexplained.insert(entry.clone())),
            }
            before = again.at;
        }
    }
}

impl Findings {
    /// Returns the largest number of messages that one crash caused to be received again.
    pub fn most_duplicates(&self) -> usize {
        self.duplicates.values().copied().max().unwrap_or(0)
    }

    fn sets(&self) -> [(&'static str, &BTreeSet<Entry>); 7] {
        [
            ("lost", &self.lost),
            ("phantom", &self.phantom),
            ("reordered", &self.reordered),
            ("unexplained duplicates", &self.unexplained),
            ("received under two ids", &self.renamed),
            ("reported otherwise by the hub", &self.untrue),
            ("repeated to people", &self.repeated),
        ]
    }

    /// Whether nothing is wrong and no crash repeated more than `in_flight` messages.
    pub fn is_clean(&self, in_flight: usize) -> bool {
        self.sets().iter().all(|(_, set)| set.is_empty()) && self.most_duplicates() <= in_flight
    }

    /// Fails with the whole report unless the books are [clean](Self::is_clean).
    pub fn assert_clean(&self, in_flight: usize) {
        assert!(self.is_clean(in_flight), "the books do not agree (in flight at most {in_flight}):\n{self}");
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duplicates: usize = self.duplicates.values().sum();
        writeln!(f, "{}: {} sent, {} received", self.origin, self.sent, self.received)?;
        write!(f, "{} crashes, {duplicates} duplicates, at most ", self.crashes.len())?;
        writeln!(f, "{} after one crash", self.most_duplicates())?;
        for (name, set) in self.sets() {
            write!(f, "{name}: {}", set.len())?;
            for entry in set.iter().take(PRINTED) {
                write!(f, " {entry}")?;
            }
            writeln!(f, "{}", if set.len() > PRINTED { " …" } else { "" })?;
        }
        write!(f, "crashes at:")?;
        self.crashes.iter().try_for_each(|at| write!(f, " {at}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    fn receipt(millis: i64, sink: &str, payload: &str, taken: bool) -> Receipt {
        let id = format!("id of {payload} at {sink}");
        Receipt { at: at(millis), sink: sink.to_owned(), payload: payload.to_owned(), id, taken }
    }

    /// Two messages of one conversation, delivered to two sinks as they should be.
    fn right() -> Ledger {
        let mut ledger = Ledger::new("seed 1");
        for payload in ["one", "two"] {
            ledger.sent("ann", payload, &["a", "b"], Repeats::AfterCrashes);
            ledger.acknowledged(payload);
            for sink in ["a", "b"] {
                ledger.received(receipt(0, sink, payload, true));
                ledger.reported(sink, payload, Reported::Delivered);
            }
        }
        ledger
    }

    fn set(entries: &BTreeSet<Entry>) -> String {
        entries.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_complete_run_has_no_findings() {
        let findings = right().findings();
        assert!(findings.is_clean(0), "{findings}");
        findings.assert_clean(0);
    }

    #[test]
    fn an_acknowledged_message_that_did_not_arrive_is_lost_unless_it_failed_permanently() {
        let mut ledger = right();
        ledger.sent("ann", "three", &["a", "b"], Repeats::AfterCrashes);
        assert!(ledger.findings().is_clean(0), "no one took responsibility for it");
        assert_eq!(ledger.unacknowledged().into_iter().collect::<Vec<_>>(), ["three"]);
        ledger.acknowledged("three");
        ledger.received(receipt(1, "a", "three", false));
        ledger.reported("a", "three", Reported::Open);
        assert_eq!(set(&ledger.findings().lost), "three@a three@b");
        ledger.reported("a", "three", Reported::GivenUp);
        ledger.reported("b", "three", Reported::Unknown);
        assert!(ledger.findings().is_clean(0), "{}", ledger.findings());
        assert_eq!(ledger.missing().len(), 2);
    }

    #[test]
    fn an_unsent_message_is_a_phantom() {
        let mut ledger = right();
        ledger.received(receipt(1, "a", "made up", true));
        ledger.reported("a", "made up", Reported::Delivered);
        ledger.received(receipt(1, "c", "one", true));
        ledger.reported("c", "one", Reported::Delivered);
        assert_eq!(set(&ledger.findings().phantom), "made up@a one@c");
    }

    #[test]
    fn a_message_received_after_its_successor_is_reordered() {
        let mut ledger = right();
        for payload in ["three", "four"] {
            ledger.sent("ann", payload, &["a"], Repeats::AfterCrashes);
            ledger.reported("a", payload, Reported::Delivered);
        }
        ledger.sent("bob", "five", &["a"], Repeats::AfterCrashes);
        ledger.reported("a", "five", Reported::Delivered);
        // Another lane may go first.
        for (millis, payload) in [(1, "five"), (2, "four"), (3, "three")] {
            ledger.received(receipt(millis, "a", payload, true));
        }
        assert_eq!(set(&ledger.findings().reordered), "three@a");
        // A repeat after a crash does not go back behind what was committed either.
        ledger.crashed(at(4));
        ledger.received(receipt(5, "a", "one", true));
        assert_eq!(set(&ledger.findings().reordered), "one@a three@a");
    }

    #[test]
    fn a_repeat_needs_a_crash_that_explains_it() {
        let mut ledger = right();
        ledger.received(receipt(5_000, "a", "two", true));
        let findings = ledger.findings();
        assert_eq!(set(&findings.unexplained), "two@a");
        assert!(!findings.is_clean(9));
        ledger.crashed(at(4_000));
        let findings = ledger.findings();
        assert!(findings.is_clean(1) && !findings.is_clean(0), "{findings}");
        ledger.received(receipt(5_001, "a", "two", true));
        assert_eq!(set(&ledger.findings().unexplained), "two@a", "one crash explains one repeat");
        let mut early = right();
        early.crashed(at(-1));
        early.received(receipt(9_000, "b", "two", false));
        let unexplained = early.findings().unexplained;
        assert_eq!(set(&unexplained), "", "what a dead process wrote may be looked at late");
        let mut long_before = right();
        long_before.crashed(at(-2_001));
        long_before.received(receipt(9_000, "b", "two", false));
        assert_eq!(set(&long_before.findings().unexplained), "two@b");
    }

    #[test]
    fn a_retry_after_a_refusal_is_no_repeat() {
        let mut ledger = Ledger::new("");
        ledger.sent("ann", "one", &["a"], Repeats::AfterCrashes);
        for (millis, taken) in [(0, false), (10, false), (20, true)] {
            ledger.received(receipt(millis, "a", "one", taken));
        }
        ledger.reported("a", "one", Reported::Delivered);
        assert!(ledger.findings().is_clean(0));
        let mut renamed = receipt(30, "a", "one", true);
        renamed.id = "another".to_owned();
        ledger.crashed(at(25));
        ledger.received(renamed);
        assert_eq!(set(&ledger.findings().renamed), "one@a");
    }

    #[test]
    fn a_false_report_of_the_hub_is_a_finding() {
        let silent = |reported: Option<Reported>, taken| {
            let mut ledger = Ledger::new("");
            ledger.sent("ann", "one", &["a"], Repeats::AfterCrashes);
            ledger.received(receipt(0, "a", "one", taken));
            if let Some(reported) = reported {
                ledger.reported("a", "one", reported);
            }
            set(&ledger.findings().untrue)
        };
        assert_eq!(silent(None, true), "one@a", "what arrived has a trace");
        assert_eq!(silent(Some(Reported::GivenUp), true), "one@a");
        assert_eq!(silent(Some(Reported::Open), true), "one@a");
        assert_eq!(silent(Some(Reported::Delivered), false), "one@a");
        for right in [(Reported::Delivered, true), (Reported::GivenUp, false), (Reported::Open, false)] {
            assert_eq!(silent(Some(right.0), right.1), "");
        }
        let mut ledger = Ledger::new("");
        ledger.sent("ann", "one", &["a"], Repeats::AfterCrashes);
        ledger.reported("a", "one", Reported::Delivered);
        assert_eq!(set(&ledger.findings().untrue), "one@a", "reported of what never arrived");
    }

    #[test]
    fn a_repeated_reply_is_a_finding() {
        let mut ledger = Ledger::new("");
        ledger.sent("ann", "hello", &["ann"], Repeats::Never);
        ledger.reported("ann", "hello", Reported::Delivered);
        ledger.received(receipt(0, "ann", "hello", true));
        assert!(ledger.findings().is_clean(0));
        ledger.crashed(at(1));
        ledger.received(receipt(2, "ann", "hello", true));
        assert_eq!(set(&ledger.findings().repeated), "hello@ann");
    }

    #[test]
    fn the_report_names_origin_messages_and_crashes() {
        let mut ledger = Ledger::new("seed 42, commit abc");
        ledger.sent("ann", "one", &["a"], Repeats::AfterCrashes);
        ledger.acknowledged("one");
        ledger.crashed(at(0));
        let report = ledger.findings().to_string();
        for part in ["seed 42, commit abc", "lost: 1 one@a", &at(0).to_string()] {
            assert!(report.contains(part), "{part} in {report}");
        }
    }
}
