//! Records: plain values that the store returns and the nouns show. Nothing here reads a store or knows who asks.

pub mod access;
pub mod config;
pub mod counters;
pub mod events;
pub mod wake;

pub mod admin;
pub mod app;
pub mod app_event;
pub mod audit;
pub mod bot;
pub mod cause;
pub mod channel;
pub mod handle;
pub(crate) mod id_search;
pub mod media;
pub mod message;
pub mod plugin;
pub(crate) mod private;
pub mod replay;
pub mod revocation;
pub mod session;
pub mod sinks;
mod step;
mod step_dictionary;
mod stored_steps;
pub mod trace;
pub mod user;
pub mod window;
