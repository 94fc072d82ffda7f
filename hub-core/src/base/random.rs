//! Randomness as a value, so that a test run can be repeated from its seed.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

/// A source of random bytes. Cheap to clone; clones share the stream.
#[derive(Clone)]
pub struct Random(Source);

#[derive(Clone)]
enum Source {
    System,
    Seeded(Arc<Mutex<ChaCha20Rng>>),
}

impl Random {
    /// The operating system's generator.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A stream that is the same for the same seed. For tests: never for secrets.
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(ChaCha20Rng::seed_from_u64(seed)))))
    }

    /// Fills a buffer.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing can be done safely then.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system for randomness")]
    pub fn fill(&self, buffer: &mut [u8]) {
        match &self.0 {
            Source::System => getrandom::fill(buffer).expect("the operating system provides randomness"),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(buffer),
        }
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut buffer = [0; N];
        self.fill(&mut buffer);
        buffer
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias is below 2⁻³² for bounds that fit in 32 bits.
    pub fn below(&self, bound: u64) -> u64 {
        u64::from_le_bytes(self.bytes()).checked_rem(bound).unwrap_or(0)
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Random::System",
            Source::Seeded(_) => "Random::Seeded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let (a, b) = (Random::seeded(7), Random::seeded(7));
        assert_eq!(a.bytes::<16>(), b.bytes::<16>());
        assert_ne!(a.bytes::<16>(), Random::seeded(8).bytes::<16>());
        assert!((0..100).all(|_| a.below(3) < 3));
        assert_eq!(a.below(0), 0);
    }
}
