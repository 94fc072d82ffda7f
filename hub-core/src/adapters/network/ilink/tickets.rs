//! Typing tickets: one per person, good for ten minutes (`docs/ilink.md#typing`).

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{secret::Secret, time::Timestamp};

/// Time for which a ticket is used. The service's own limit is not known; a stale one leaves the indicator on
/// forever.
const LIFE: Duration = Duration::from_secs(600);
/// Time for which a denial is kept, so that repeats of the indicator do not request a ticket each time.
const DENIAL_LIFE: Duration = Duration::from_secs(60);
/// Most people remembered; at the cap the oldest entry makes room.
const MAX_TICKETS: usize = 1_000;

/// The tickets of one account.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<String, Entry>>);

struct Entry {
    ticket: Ticket,
    until: Timestamp,
}

/// Response of the network to a request for a ticket.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Ticket {
    /// Ticket that shows the indicator.
    Granted(Secret),
    /// There is no indicator for this person at the moment.
    Denied,
}

impl Tickets {
    /// Returns the response for a person while it is valid.
    pub(super) fn find(&self, user: &str, now: Timestamp) -> Option<Ticket> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(user).filter(|entry| now < entry.until).map(|entry| entry.ticket.clone())
    }

    pub(super) fn insert(&self, user: &str, ticket: Ticket, now: Timestamp) {
        let until = now + if ticket == Ticket::Denied { DENIAL_LIFE } else { LIFE };
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MAX_TICKETS && !entries.contains_key(user) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.until).map(|(user, _)| user.clone());
            oldest.and_then(|user| entries.remove(&user));
        }
        entries.insert(user.to_owned(), Entry { ticket, until });
    }

    /// Forgets a person's ticket.
    pub(super) fn remove(&self, user: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(user);
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted() -> Ticket {
        Ticket::Granted("t".into())
    }

    #[test]
    fn grants_and_denials_run_out() {
        let tickets = Tickets::default();
        let start = Timestamp::from_millis(0);
        tickets.insert("a", granted(), start);
        tickets.insert("b", Ticket::Denied, start);
        let known =
            |user, seconds| tickets.find(user, start + Duration::from_secs(seconds)).map(|t| t == granted());
        assert_eq!((known("a", 599), known("a", 600)), (Some(true), None));
        assert_eq!((known("b", 59), known("b", 60)), (Some(false), None));
        tickets.remove("a");
        assert_eq!(known("a", 0), None);
    }

    #[test]
    fn the_oldest_ticket_is_dropped_at_the_cap() {
        let tickets = Tickets::default();
        for n in 0..=1_000_i64 {
            tickets.insert(&n.to_string(), granted(), Timestamp::from_millis(n));
        }
        let now = Timestamp::from_millis(1_000);
        assert!(tickets.find("0", now).is_none());
        assert!(tickets.find("1", now).is_some() && tickets.find("1000", now).is_some());
        assert_eq!(tickets.0.lock().unwrap().len(), MAX_TICKETS);
    }
}
