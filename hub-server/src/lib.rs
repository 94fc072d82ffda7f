//! The HTTP frontend of Message Hub: shapes on the wire, credentials, limits. What is true without HTTP lives
//! in `hub-core`.

pub mod api;
pub mod app;
mod app_calls;
#[cfg(test)]
mod app_tests;
pub mod banner;
pub mod beside;
mod body_cap;
pub mod boot;
mod client;
pub mod command_line;
pub mod config;
pub mod credentials;
mod docs;
mod edge;
#[cfg(test)]
mod edge_tests;
pub mod envelope;
mod files;
pub mod health;
pub mod logging;
mod login_page;
mod mcp;
pub mod metrics;
mod oauth_complete;
mod older_paths;
pub mod openapi;
#[cfg(feature = "otel")]
pub mod otel;
pub mod rate_limit;
mod routes;
pub mod running;
pub mod serve;
pub mod service_manager;
pub mod settings;
mod start_page;
#[cfg(test)]
mod testing;
mod webhook_payload;
pub mod wire;

pub use app::{app, metrics_app};
pub use client::{Client, ProxyHeader};
pub use settings::AppSettings;
