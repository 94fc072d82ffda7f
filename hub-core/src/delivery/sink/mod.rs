//! Sinks: where messages go.

pub(super) mod ai;
mod webhook;
