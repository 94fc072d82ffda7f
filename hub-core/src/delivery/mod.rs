//! The way of a message to its sinks.

pub mod redact;
pub mod retry;
pub mod signing;
