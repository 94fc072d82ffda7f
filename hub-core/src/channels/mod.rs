//! Channels: the settings that say which messages go where.

pub mod filter;
pub mod handle;
pub mod sinks;
