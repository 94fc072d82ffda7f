//! Polls of the clients of iLink sinks on this node. Of two polls of one client, messages go to the newer one; the older
//! one is held until its time is over, or until a third one ends it: clients that restart, or that give up early, leave
//! polls behind.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::id::IlinkClientId;

/// Polls of one client at the same time.
const MAX_POLLS: usize = 2;

/// The polls of one node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct IlinkPolls(Arc<Mutex<HashMap<IlinkClientId, Held>>>);

/// The polls of one client.
#[derive(Debug, Default)]
struct Held {
    polls: VecDeque<(u64, CancellationToken)>,
    newest: u64,
}

/// A poll of a client; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPoll {
    polls: IlinkPolls,
    client: IlinkClientId,
    number: u64,
    /// Cancelled when newer polls have taken its place.
    pub(crate) replaced: CancellationToken,
}

impl IlinkPolls {
    /// Begins a poll, which is the newest from then on, and ends the oldest one if the client has two.
    pub(crate) fn begin(&self, client: IlinkClientId) -> HeldPoll {
        let mut polls = self.lock();
        let held = polls.entry(client).or_default();
        if held.polls.len() >= MAX_POLLS
            && let Some((_, oldest)) = held.polls.pop_front()
        {
            oldest.cancel();
        }
        held.newest += 1;
        let replaced = CancellationToken::new();
        held.polls.push_back((held.newest, replaced.clone()));
        HeldPoll { polls: self.clone(), client, number: held.newest, replaced }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IlinkClientId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldPoll {
    /// Whether it is the newest poll of its client.
    pub(crate) fn is_newest(&self) -> bool {
        self.polls.lock().get(&self.client).is_some_and(|held| held.newest == self.number)
    }
}

impl Drop for HeldPoll {
    fn drop(&mut self) {
        let mut polls = self.polls.lock();
        if let Some(held) = polls.get_mut(&self.client) {
            held.polls.retain(|(number, _)| *number != self.number);
            if held.polls.is_empty() {
                polls.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_polls_counts_and_a_third_ends_the_oldest() {
        let (polls, client) = (IlinkPolls::default(), IlinkClientId::from_u128(1));
        let first = polls.begin(client);
        assert!(first.is_newest());
        let second = polls.begin(client);
        assert!(!first.is_newest() && second.is_newest());
        assert!(!first.replaced.is_cancelled(), "it is held");
        let third = polls.begin(client);
        assert!(first.replaced.is_cancelled() && !second.replaced.is_cancelled());
        assert!(!second.is_newest() && third.is_newest());
        let other = polls.begin(IlinkClientId::from_u128(2));
        assert!(other.is_newest() && third.is_newest(), "another client's count apart");
        drop(first);
        let fourth = polls.begin(client);
        assert!(second.replaced.is_cancelled() && !third.replaced.is_cancelled());
        assert!(!third.is_newest() && fourth.is_newest());
        drop((second, third, fourth, other));
        assert!(polls.lock().is_empty(), "nothing is kept of clients without polls");
    }
}
