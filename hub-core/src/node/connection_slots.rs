//! Slots for WebSockets and for event streams on this node, limited in total and per user. A client takes a slot and
//! releases it by dropping it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    config::HubConfig,
    error::{Error, ErrorCode, Result},
    id::UserId,
};

/// The slots of one node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct ConnectionSlots(Arc<Mutex<SlotCounts>>);

#[derive(Debug, Default)]
struct SlotCounts {
    all: usize,
    /// Only users who have some.
    of: HashMap<UserId, usize>,
}

/// A taken slot; dropping it releases it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: ConnectionSlots,
    user: UserId,
}

impl ConnectionSlots {
    /// Returns the number of taken slots.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// Takes a slot for a user.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn take(&self, user: UserId, limits: &HubConfig) -> Result<ConnectionSlot> {
        self.take_one("WebSockets", user, limits.max_sockets_per_user, limits.max_sockets)
    }

    /// Takes a slot for a user, who may have `per_user` of `all` on this node; `what` is in the error.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn take_one(
        &self,
        what: &str,
        user: UserId,
        per_user: usize,
        all: usize,
    ) -> Result<ConnectionSlot> {
        let mut taken = self.lock();
        if taken.of.get(&user).is_some_and(|of_user| *of_user >= per_user) {
            return Err(too_many(&format!("{what} of this user"))
                .with_hint(format!("close another one: a user may have {per_user} at a time")));
        }
        if taken.all >= all {
            return Err(too_many(&format!("{what} on this node")));
        }
        taken.all += 1;
        *taken.of.entry(user).or_default() += 1;
        Ok(ConnectionSlot { slots: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, SlotCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        taken.all -= 1;
        if let Some(count) = taken.of.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                taken.of.remove(&self.user);
            }
        }
    }
}

/// There are too many of something; it is worth trying again soon.
pub(crate) fn too_many(what: &str) -> Error {
    Error::new(ErrorCode::RateLimited, format!("there are too many {what}"))
        .with_retry_after(Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted_and_released() {
        let (slots, ada, bob) = (ConnectionSlots::default(), UserId::from_u128(1), UserId::from_u128(2));
        let limits = HubConfig { max_sockets: 3, max_sockets_per_user: 2, ..HubConfig::default() };
        let first = slots.take(ada, &limits).unwrap();
        let second = slots.take(ada, &limits).unwrap();
        let refused = slots.take(ada, &limits).unwrap_err();
        assert_eq!((refused.code(), refused.retry_after().is_some()), (ErrorCode::RateLimited, true));
        let third = slots.take(bob, &limits).unwrap();
        assert!(slots.take(bob, &limits).is_err(), "the node is full");
        drop(first);
        assert_eq!(slots.taken(), 2);
        let fourth = slots.take(bob, &limits).unwrap();
        drop((second, third, fourth));
        assert_eq!(slots.taken(), 0);
        assert!(slots.lock().of.is_empty(), "nothing is kept of users without sockets");
    }
}
