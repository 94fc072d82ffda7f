//! The nouns: queries and changes, with their authorization.

pub mod accounts;
pub mod admin;
pub mod apps;
pub mod bots;
pub mod channels;
pub mod media;
pub mod plugins;
pub mod traces;
