//! `/metrics` for Prometheus, in the OpenMetrics text format: what the server counts itself, and what it reads
//! off the hub and the listeners when it is asked. No label has an open set of values: routes are templates,
//! and nothing is named after a bot, a channel or a person.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use hub_core::Hub;
use poem::{
    Result,
    http::{Method, StatusCode},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use crate::serve::ServeStats;

mod hub;
#[cfg(test)]
mod tests;

/// The path.
pub const PATH: &str = "/metrics";

/// Upper bounds of the buckets of request durations, in seconds; the last ones are for long polls.
const SECONDS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0, 60.0];

/// What the HTTP layer counts. Clones share it.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabel, Histogram, fn() -> Histogram>,
    panics: Counter,
    listeners: OnceLock<Arc<ServeStats>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: Arc<str>,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: Arc<str>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let (requests, panics) = (Family::default(), Counter::default());
        let seconds = Family::new_with_constructor(seconds);
        let mut registry = Registry::with_prefix("hub");
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("http_request_seconds", "Time from head to answer", seconds.clone());
        registry.register("http_panics", "Requests that ended with a panic", panics.clone());
        Self(Arc::new(Counted { registry, requests, seconds, panics, listeners: OnceLock::new() }))
    }
}

impl Metrics {
    /// Shows the counters of these listeners too; the first ones stay.
    pub fn show_listeners(&self, stats: Arc<ServeStats>) {
        let _ = self.0.listeners.set(stats);
    }

    /// A request was answered. `route` is a template.
    pub(crate) fn count(&self, route: &Arc<str>, method: &Method, status: StatusCode, took: Duration) {
        let labels =
            RequestLabels { route: Arc::clone(route), method: method_label(method), status: status.as_u16() };
        self.0.requests.get_or_create(&labels).inc();
        self.0.seconds.get_or_create(&RouteLabel { route: Arc::clone(route) }).observe(took.as_secs_f64());
    }

    /// A request ended with a panic.
    pub(crate) fn count_panic(&self) {
        self.0.panics.inc();
    }

    pub(crate) fn page(&self, hub: &Hub) -> Result<String, std::fmt::Error> {
        let mut page = String::with_capacity(16 * 1024);
        text::encode_registry(&mut page, &self.0.registry)?;
        text::encode_registry(&mut page, &hub::registry(hub, self.0.listeners.get()))?;
        text::encode_eof(&mut page)?;
        Ok(page)
    }
}

/// Clients may make up methods; those share one label.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
