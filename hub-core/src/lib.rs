//! Message Hub as a library.
#![warn(missing_docs)]

pub mod channels;
pub mod delivery;
pub mod egress;
pub mod error;
pub mod id;
pub mod local_http;
pub mod network;
pub mod page;
pub mod random;
pub mod secret;
pub mod tasks;
pub mod time;

pub use error::{Error, ErrorCode, Result};
