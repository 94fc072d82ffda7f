//! Message Hub as a library.
#![warn(missing_docs)]

pub mod access;
pub mod accounts;
pub mod bots;
pub mod channels;
pub mod config;
pub mod context;
pub mod delivery;
pub mod egress;
pub mod error;
pub mod events;
pub mod hub;
pub mod id;
pub mod idempotency;
pub mod local_http;
pub mod network;
pub mod page;
pub mod private_files;
pub mod random;
pub mod secret;
pub mod store;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod time;
pub mod traces;

pub use error::{Error, ErrorCode, Result};
pub use hub::{Hub, HubBuilder};
