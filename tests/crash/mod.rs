//! Crashes and faults of the storage under load, against the shipped program. The chat network and the receivers live
//! in the test's process and survive; the ledger says what was lost, made up, reordered or repeated.
//!
//! A run for CI is short. To run longer, with what it prints at its start as the seed of a run that failed:
//!
//! ```text
//! HUB_TEST_KILL_CYCLES=1000 cargo test -p hub-tests crash::kill::     # kills per database
//! HUB_TEST_KILL_CYCLES=200 cargo test -p hub-tests sockets::acks::   # kills while clients acknowledge
//! HUB_TEST_DRAIN_CYCLES=100 cargo test -p hub-tests crash::drain::
//! HUB_TEST_OUTAGES=60 cargo test -p hub-tests crash::postgres::
//! HUB_TEST_RATE=500 …                                                 # messages per second, 48 by default; 400 in bursts
//! HUB_TEST_SEED=42 …                                                  # the same kill times and messages
//! ```

mod drain;
mod ilink;
mod kill;
mod load;
mod postgres;
mod server;
mod sinks;
pub mod stage;
mod storage;
mod sync;
mod upstream;

/// A number from the environment, or its default.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
