//! The vocabulary: values, text, time and files that know nothing of the hub.

pub mod body_text;
pub mod columns;
pub mod data_dir;
pub mod error;
#[cfg(feature = "testing")]
pub mod failpoints;
pub mod file_name;
pub mod file_type;
pub mod id;
pub mod input;
pub mod invariants;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod page;
pub mod private_files;
pub mod random;
pub mod secret;
pub mod spans;
pub mod sse;
pub mod tasks;
pub mod text;
pub mod time;
pub mod words;
