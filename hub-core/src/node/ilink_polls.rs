//! Polls of the clients of iLink sinks on this node. Of two polls of one client, messages go to the newer one; the older
//! one is held until its time is over.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{error::Result, id::IlinkClientId, node::places::too_many};

/// Polls of one client at the same time.
const MAX_POLLS: u32 = 2;

/// The polls of one node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct IlinkPolls(Arc<Mutex<HashMap<IlinkClientId, Held>>>);

/// The polls of one client.
#[derive(Debug, Default)]
struct Held {
    count: u32,
    newest: u64,
}

/// A poll of a client; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldPoll {
    polls: IlinkPolls,
    client: IlinkClientId,
    number: u64,
}

impl IlinkPolls {
    /// Begins a poll, which is the newest from then on.
    ///
    /// # Errors
    /// `RATE_LIMITED` when the client has two.
    pub(crate) fn begin(&self, client: IlinkClientId) -> Result<HeldPoll> {
        let mut polls = self.lock();
        let held = polls.entry(client).or_default();
        if held.count >= MAX_POLLS {
            return Err(too_many("polls of this client"));
        }
        held.count += 1;
        held.newest += 1;
        Ok(HeldPoll { polls: self.clone(), client, number: held.newest })
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
            held.count -= 1;
            if held.count == 0 {
                polls.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_polls_counts_and_a_third_is_refused() {
        let (polls, client) = (IlinkPolls::default(), IlinkClientId::from_u128(1));
        let first = polls.begin(client).unwrap();
        assert!(first.is_newest());
        let second = polls.begin(client).unwrap();
        assert!(!first.is_newest() && second.is_newest());
        assert!(polls.begin(client).is_err());
        assert!(
            polls.begin(IlinkClientId::from_u128(2)).unwrap().is_newest(),
            "another client's count apart"
        );
        drop(first);
        let third = polls.begin(client).unwrap();
        assert!(!second.is_newest() && third.is_newest());
        drop((second, third));
        assert!(polls.lock().is_empty(), "nothing is kept of clients without polls");
    }
}
