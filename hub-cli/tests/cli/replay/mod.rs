//! Deliveries that are exported, replayed, compared and converted to tests: what receivers get, what is printed, and
//! every error.

mod bulk;
mod errors;
mod local;
pub mod sink;
mod through_hub;
mod to_test;
