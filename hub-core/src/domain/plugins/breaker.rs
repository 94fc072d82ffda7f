//! Stops a plugin in a channel that hangs or kills its worker again and again: each such run takes a processor for
//! as long as the plugin may run, and nothing comes of it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::model::cause::Cause;

/// Runs in a row that did not end by themselves, after which a plugin is stopped.
pub const MAX_OVERRUNS: u32 = 5;

/// Counts the runs in a row of one installed plugin that timed out or brought their worker down. Clones share the
/// count; it restarts when the channel's settings are reloaded.
#[derive(Debug, Clone, Default)]
pub struct Breaker(Arc<AtomicU32>);

impl Breaker {
    /// Notes how a run ended; says whether the plugin is to be stopped.
    pub fn note(&self, ended_by_itself: bool) -> bool {
        if ended_by_itself {
            self.0.store(0, Ordering::Relaxed);
            return false;
        }
        self.0.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_OVERRUNS
    }

    /// The reason of a stop.
    pub fn reason() -> String {
        Cause::PluginStopped { overruns: MAX_OVERRUNS }.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_in_a_row_are_enough_and_four_are_not() {
        let breaker = Breaker::default();
        let overruns = |count: u32| (0..count).filter(|_| breaker.note(false)).count();
        assert_eq!(overruns(4), 0);
        assert!(!breaker.note(true));
        assert_eq!(overruns(4), 0);
        // And again, should the store not have taken it.
        assert_eq!(overruns(2), 2);
    }
}
