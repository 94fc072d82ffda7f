//! Channels: the settings that say which messages go where.

pub mod handle;
pub mod sinks;
