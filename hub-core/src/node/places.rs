//! Places for WebSockets and for event streams on this node: how many there are in all, and of one user. A client
//! takes a place and releases it by dropping it.

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

/// The places of one node; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only users who have some.
    of: HashMap<UserId, usize>,
}

/// A place that is taken.
#[derive(Debug)]
pub(crate) struct Taking {
    places: Places,
    user: UserId,
}

impl Places {
    /// Returns the number of taken places.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// Takes a place for a user.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn take(&self, user: UserId, limits: &HubConfig) -> Result<Taking> {
        self.take_one("WebSockets", user, limits.max_sockets_per_user, limits.max_sockets)
    }

    /// Takes a place for a user, who may have `per_user` of `all` on this node; `what` is in the error.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn take_one(&self, what: &str, user: UserId, per_user: usize, all: usize) -> Result<Taking> {
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
        Ok(Taking { places: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
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
    fn places_are_counted_and_given_back() {
        let (places, ada, bob) = (Places::default(), UserId::from_u128(1), UserId::from_u128(2));
        let limits = HubConfig { max_sockets: 3, max_sockets_per_user: 2, ..HubConfig::default() };
        let first = places.take(ada, &limits).unwrap();
        let second = places.take(ada, &limits).unwrap();
        let refused = places.take(ada, &limits).unwrap_err();
        assert_eq!((refused.code(), refused.retry_after().is_some()), (ErrorCode::RateLimited, true));
        let third = places.take(bob, &limits).unwrap();
        assert!(places.take(bob, &limits).is_err(), "the node is full");
        drop(first);
        assert_eq!(places.taken(), 2);
        let fourth = places.take(bob, &limits).unwrap();
        drop((second, third, fourth));
        assert_eq!(places.taken(), 0);
        assert!(places.lock().of.is_empty(), "nothing is kept of users without sockets");
    }
}
