//! The outside world: chat networks, outbound HTTP, the sandbox of plugins, models, and services without a port.

pub mod ai;
pub mod egress;
pub mod local_http;
pub mod network;
pub mod sandbox;
