//! Requirements on implementations of this crate's traits, as tests that their authors run.
//!
//! The hub relies on every rule that is checked here: a network that breaks one loses messages, repeats them or
//! shows secrets, with a hub that does everything right. The suites run against the implementation alone, without a
//! hub, and report every broken rule with the observed behaviour.
//!
//! - [`check_network`]: [`Network`](crate::network::Network) and its connections.
//! - [`check_tools`]: [`Tools`](crate::ai::Tools) that models may call.

use std::fmt;

mod network;
#[cfg(test)]
mod tests;
mod tools;

pub use network::{NetworkHarness, check_network};
pub use tools::check_tools;

/// A rule that an implementation breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The rule, as a sentence that should be true.
    pub rule: &'static str,
    /// The observed behaviour.
    pub seen: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.seen)
    }
}

/// Collects the broken rules.
#[derive(Debug, Default)]
struct Findings(Vec<Broken>);

impl Findings {
    /// Notes a broken rule unless `holds`.
    fn check(&mut self, holds: bool, rule: &'static str, seen: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Broken { rule, seen: seen() });
        }
    }

    /// Returns the value of a call without which the rest cannot be checked, or records the broken rule.
    fn need<T, E: fmt::Debug>(&mut self, came: Result<T, E>, rule: &'static str) -> Option<T> {
        came.map_err(|error| self.check(false, rule, || format!("{error:?}"))).ok()
    }
}
