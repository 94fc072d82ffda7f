//! The delivery pipeline under a seed: its parts, on one or several nodes, in a simulated world with faults.
//!
//! No part of the pipeline is replaced by a model. Poller, inbox, backlog, queue, worker, outbox and supervisor run as in
//! production; what they read, write and wait for is given to them: the store is a [`tables`] behind
//! [`WorkStore`](crate::delivery::work_store::WorkStore), the chat network a [`chat`], the webhook a [`receiver`],
//! time a clock that the simulation moves. Each node has a runtime of its own on the one thread of a [`run`], so
//! that a crash is the loss of the runtime, and a pause is not running it. One stream of randomness decides
//! everything; the same seed is the same run.
//!
//! `HUB_TEST_SEED=7 cargo test -p hub-core simulation` repeats one run and prints it; `HUB_TEST_SEEDS=10000` runs
//! more of them, and `HUB_TEST_FIRST_SEED` others.

use std::{
    env, panic,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use self::run::{Endpoints, play};
use crate::time::Timestamp;

mod chat;
mod receiver;
mod run;
mod store;
mod tables;
mod world;

const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

#[test]
fn promises_hold_under_a_thousand_seeds() {
    if let Some(seed) = number("HUB_TEST_SEED") {
        let (result, log) = play(seed, &Endpoints::new());
        println!("{}", log.join("\n"));
        assert_eq!(result, Ok(()), "seed {seed}");
        return;
    }
    let first = number("HUB_TEST_FIRST_SEED").unwrap_or(1);
    let last = first + number("HUB_TEST_SEEDS").unwrap_or(1_000);
    let next = AtomicU64::new(first);
    let worker = || {
        let endpoints = Endpoints::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return None;
            }
            if let (Err(violation), log) = play(seed, &endpoints) {
                next.store(last, Ordering::Relaxed);
                let end: Vec<_> = log.iter().rev().take(60).rev().cloned().collect();
                return Some(format!(
                    "{violation}\nrepeat with HUB_TEST_SEED={seed}; the end of its log:\n{}",
                    end.join("\n")
                ));
            }
        }
    };
    let violations = thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        let ends =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| panic::resume_unwind(p)));
        ends.flatten().collect::<Vec<_>>()
    });
    assert!(violations.is_empty(), "{}", violations.join("\n\n"));
}

#[test]
fn a_seed_repeats_itself() {
    let endpoints = Endpoints::new();
    for seed in 1..=10 {
        let (first, second) = (play(seed, &endpoints), play(seed, &endpoints));
        let differs = first.1.iter().zip(&second.1).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.1.len(), second.1.len(), "seed {seed}");
    }
}
