//! Rules that must hold whatever happens, checked in release too. A violation is caused by a bug or a corrupt store:
//! the caller stops that lane or bot and keeps its data; nothing is guessed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// How many rules did not hold since this hub was opened, for health and metrics. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Violations(Arc<AtomicU64>);

impl Violations {
    /// The number.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns whether a rule holds. A violation is counted and logged with the fields that follow; the caller stops the
/// affected work, so that each violation is reported once.
macro_rules! invariant {
    ($violations:expr, $holds:expr, $rule:literal, $($field:tt)+) => {{
        let holds: bool = $holds;
        if !holds {
            $violations.add();
            tracing::error!(rule = $rule, $($field)+, "an invariant is violated; the affected operation stops");
        }
        holds
    }};
}
pub(crate) use invariant;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_counted() {
        let violations = Violations::default();
        assert!(invariant!(violations, 1 < 2, "numbers grow", case = 1));
        assert_eq!(violations.count(), 0);
        assert!(!invariant!(violations.clone(), 2 < 1, "numbers grow", case = 2));
        assert_eq!(violations.count(), 1);
    }
}
