//! Deliveries taken elsewhere, sent again, compared and made into tests: what reaches receivers, what is printed, and
//! every refusal.

mod here;
mod many;
mod refusals;
pub mod sink;
mod through_hub;
mod to_test;
