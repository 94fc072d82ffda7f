//! The HTTP frontend of Message Hub: wire formats, credentials, limits. Everything that is true without HTTP is in
//! `hub-core`.

pub mod advice;
pub mod api;
pub mod app;
mod app_calls;
#[cfg(test)]
mod app_tests;
mod appearance;
pub mod banner;
mod body_cap;
pub mod boot;
mod client;
pub mod command_line;
pub mod config;
mod console;
pub mod credentials;
mod docs;
mod edge;
#[cfg(test)]
mod edge_tests;
pub mod envelope;
mod files;
mod gateway;
mod headers;
pub mod health;
mod in_process;
pub mod logging;
mod login_page;
mod mcp;
pub mod metrics;
mod metrics_page;
mod oauth_complete;
mod older_paths;
pub mod openapi;
#[cfg(feature = "otel")]
pub mod otel;
mod parameters;
mod path_prefix;
mod paths;
pub mod rate_limit;
mod routes;
pub mod running_server;
pub mod serve;
pub mod service_manager;
pub mod settings;
#[cfg(test)]
mod strangers_tests;
#[cfg(test)]
mod testing;
mod webhook_payload;
pub mod wire;
pub mod with_simulator;

pub use app::{app, metrics_app};
pub use client::{Client, ProxyHeader};
pub use in_process::InProcess;
pub use settings::AppSettings;
