//! Sinks: where messages go.

pub(super) mod ai;
pub(super) mod app;
mod webhook;
