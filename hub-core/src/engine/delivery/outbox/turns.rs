//! Turns of sending: one task at a time writes to a person, and the others wait for a place in order of arrival.
//! Only the names of waiting people are in memory; their items are read when they get their turn.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use super::Outbox;

/// People written to at the same time.
const MAX_CONCURRENT_PEERS: usize = 32;
/// People who wait for a turn; beyond that they are found again by a search.
const MAX_WAITING: usize = 4_096;

/// People who have a turn, and people who wait for one.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// People who are written to, and whether there may be more for them than what they get in this turn.
    busy: HashMap<String, bool>,
    /// People who may have open items, in the order in which they get a turn. None of them is written to.
    waiting: VecDeque<String>,
    waits: HashSet<String>,
    /// Whether others may have open items, too.
    search_wanted: bool,
    /// The last person whom the search under way has found.
    found_last: Option<String>,
}

impl Turns {
    /// Adds a person who may have items to send.
    pub(super) fn add(&mut self, person: &str) {
        if let Some(has_more) = self.busy.get_mut(person) {
            *has_more = true;
        } else if self.waiting.len() >= MAX_WAITING {
            self.search_wanted = true;
        } else if self.waits.insert(person.to_owned()) {
            self.waiting.push_back(person.to_owned());
        }
    }

    /// Requests a search for people who may have items to send.
    pub(super) fn search(&mut self) {
        self.search_wanted = true;
    }

    /// Begins a search if one is wanted and only few people wait. Returns the person after whom it starts, or an
    /// empty string.
    pub(super) fn begin_search(&mut self) -> Option<String> {
        if self.waiting.len() >= MAX_CONCURRENT_PEERS {
            return None;
        }
        self.found_last.take().or_else(|| std::mem::take(&mut self.search_wanted).then(String::new))
    }

    /// Adds the people that a search found; `is_all` when there are no more.
    pub(super) fn found(&mut self, people: &[String], is_all: bool) {
        for person in people {
            self.add(person);
        }
        self.found_last = people.last().filter(|_| !is_all).cloned();
    }

    /// Gives someone a turn out of order, unless they have one or wait for one; `false` also when there is no place.
    pub(super) fn take(&mut self, person: &str) -> bool {
        let is_free = self.busy.len() < MAX_CONCURRENT_PEERS
            && !self.busy.contains_key(person)
            && !self.waits.contains(person);
        if is_free {
            self.busy.insert(person.to_owned(), false);
        }
        is_free
    }

    /// Gives turns to the people who have waited longest, as many as there are places.
    pub(super) fn take_next(&mut self) -> Vec<String> {
        let places = MAX_CONCURRENT_PEERS - self.busy.len();
        let next: Vec<String> = self.waiting.drain(..places.min(self.waiting.len())).collect();
        for person in &next {
            self.waits.remove(person);
            self.busy.insert(person.clone(), false);
        }
        next
    }

    /// Ends a turn; whether someone may get the next one.
    fn end(&mut self, person: &str) -> bool {
        if self.busy.remove(person) == Some(true) {
            self.add(person);
        }
        !self.waiting.is_empty() || self.search_wanted || self.found_last.is_some()
    }
}

/// The exclusive right to send to a person. The next turn may begin when it is dropped, also in a panic.
#[derive(Debug)]
pub(in crate::engine::delivery) struct Turn {
    pub(super) outbox: Arc<Outbox>,
    pub(super) person: String,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.outbox.state().turns.end(&self.person) {
            self.outbox.ready.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|number| format!("person {number:05}")).collect()
    }

    #[test]
    fn people_get_turns_in_the_order_in_which_they_came() {
        let mut turns = Turns::default();
        let all = names(0..MAX_CONCURRENT_PEERS + 2);
        for person in all.iter().chain(&all) {
            turns.add(person);
        }
        assert_eq!(turns.take_next(), all[..MAX_CONCURRENT_PEERS]);
        assert!(turns.take_next().is_empty(), "all places are taken");
        assert!(!turns.take("someone"));
        assert!(turns.end(&all[3]));
        assert!(
            !turns.take(&all[MAX_CONCURRENT_PEERS]),
            "who waits is not overtaken by what is sent to them later"
        );
        assert!(turns.take("someone"));
        assert!(turns.end("someone") && turns.end(&all[4]));
        assert_eq!(turns.take_next(), all[MAX_CONCURRENT_PEERS..]);
    }

    #[test]
    fn what_comes_during_a_turn_makes_another_one_behind_the_others() {
        let mut turns = Turns::default();
        assert!(turns.take("ann"));
        assert!(!turns.take("ann"), "one task at a time");
        turns.add("ann");
        turns.add("bob");
        assert!(turns.end("ann"));
        assert_eq!(turns.take_next(), ["bob", "ann"]);
        assert!(!turns.end("ann"), "nothing more came");
        assert!(!turns.end("bob"));
    }

    #[test]
    fn a_search_goes_on_when_those_it_found_have_had_their_turns() {
        let mut turns = Turns::default();
        assert_eq!(turns.begin_search(), None);
        turns.search();
        assert_eq!(turns.begin_search(), Some(String::new()));
        let all = names(0..MAX_CONCURRENT_PEERS + 1);
        turns.found(&all, false);
        assert_eq!(turns.begin_search(), None, "enough people wait");
        turns.search();
        assert_eq!(turns.take_next().len(), MAX_CONCURRENT_PEERS);
        assert_eq!(turns.begin_search(), all.last().cloned(), "behind the last one found");
        turns.found(&[], true);
        assert_eq!(
            turns.begin_search(),
            Some(String::new()),
            "and then the one that was asked for meanwhile"
        );
        turns.found(&[], true);
        assert_eq!(turns.begin_search(), None);
    }

    #[test]
    fn those_beyond_the_limit_are_found_again() {
        let mut turns = Turns::default();
        for person in names(0..MAX_WAITING + 1) {
            turns.add(&person);
        }
        assert_eq!((turns.waiting.len(), turns.search_wanted), (MAX_WAITING, true));
    }
}
