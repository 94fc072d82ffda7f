//! Credentials that were valid when they were last used, as far as this process has seen.

use std::{
    collections::HashSet,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hub_core::secret::TokenHash;

/// A set of hashes with a cap; those that were not used for the longest time are forgotten. Only a valid credential is
/// added, so that made-up ones displace nothing.
#[derive(Debug)]
pub(super) struct KnownCredentials {
    generations: Mutex<Generations>,
    /// Entries of a generation.
    max: usize,
}

#[derive(Debug, Default)]
struct Generations {
    recent: HashSet<TokenHash>,
    older: HashSet<TokenHash>,
}

impl KnownCredentials {
    /// An empty set of at most `max` entries.
    pub(super) fn new(max: usize) -> Self {
        Self { generations: Mutex::default(), max: max.div_ceil(2) }
    }

    /// Whether a credential was valid when it was last used.
    pub(super) fn contains(&self, credential: &TokenHash) -> bool {
        let generations = self.lock();
        generations.recent.contains(credential) || generations.older.contains(credential)
    }

    /// Adds a valid credential, or notes that it was used.
    pub(super) fn note(&self, credential: TokenHash) {
        let mut generations = self.lock();
        if generations.recent.contains(&credential) {
            return;
        }
        if generations.recent.len() >= self.max {
            generations.older = mem::take(&mut generations.recent);
        }
        generations.recent.insert(credential);
    }

    /// Removes a credential that is no longer valid.
    pub(super) fn forget(&self, credential: &TokenHash) {
        let mut generations = self.lock();
        generations.recent.remove(credential);
        generations.older.remove(credential);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_use_are_kept_and_the_set_is_bounded() {
        let known = KnownCredentials::new(4);
        let hash = |n: usize| TokenHash::of(&format!("{n}"));
        for n in 0..100 {
            known.note(hash(n));
            known.note(hash(0));
        }
        assert!(known.contains(&hash(0)) && known.contains(&hash(99)) && !known.contains(&hash(50)));
        assert!((1..100).filter(|n| known.contains(&hash(*n))).count() <= 4);
        known.forget(&hash(0));
        assert!(!known.contains(&hash(0)));
    }
}
