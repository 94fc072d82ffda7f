//! The HTTP frontend of Message Hub: shapes on the wire, credentials, limits. What is true without HTTP lives
//! in `hub-core`.

pub mod api;
pub mod app;
#[cfg(test)]
mod app_tests;
mod body_cap;
mod client;
pub mod config;
pub mod credentials;
mod docs;
mod edge;
pub mod envelope;
pub mod openapi;
pub mod rate_limit;
mod routes;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod wire;

pub use app::app;
pub use client::Client;
pub use settings::AppSettings;
