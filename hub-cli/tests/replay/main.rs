//! Deliveries taken elsewhere, sent again, compared and made into tests: what reaches receivers, what is printed, and
//! every refusal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod here;
mod many;
mod refusals;
mod sink;
mod stage;
mod through_hub;
mod to_test;
