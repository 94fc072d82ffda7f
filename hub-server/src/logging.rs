//! Logs on stderr, and spans to a collector where one is configured.

use std::io::{self, IsTerminal};

use tokio::runtime::Handle;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{Config, LogFormat};

/// What has to be flushed before the process ends.
#[derive(Debug)]
#[must_use]
pub struct Logging {
    #[cfg(feature = "otel")]
    spans: Option<crate::otel::Spans>,
}

/// The format of log lines: the setting, otherwise text at a terminal and JSON elsewhere.
pub fn format(config: &Config) -> LogFormat {
    config
        .log_format
        .unwrap_or_else(|| if io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json })
}

/// Writes the log to stderr. The runtime carries the export of spans.
///
/// # Errors
/// Message about the log filter or the collector.
pub fn start(config: &Config, runtime: &Handle) -> Result<Logging, String> {
    let filter = EnvFilter::try_new(&config.log).map_err(|error| format!("log: {error}"))?;
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format(config) {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).with_filter(filter).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(filter).boxed(),
    };
    let mut layers: Layers = vec![lines];
    let logging = add_spans(config, runtime, &mut layers)?;
    tracing_subscriber::registry().with(layers).init();
    Ok(logging)
}

type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

#[cfg(feature = "otel")]
fn add_spans(config: &Config, runtime: &Handle, layers: &mut Layers) -> Result<Logging, String> {
    let Some(endpoint) = &config.otlp_endpoint else { return Ok(Logging { spans: None }) };
    let client = hub_core::egress::Egress::new(hub_core::egress::EgressConfig::default())
        .map(|client| client.trusted())
        .map_err(|error| format!("otlp_endpoint: {error}"))?;
    let spans = crate::otel::Spans::start(endpoint, &config.hub.node_name, client, runtime.clone())
        .map_err(|error| format!("otlp_endpoint: {error}"))?;
    layers.push(spans.layer());
    Ok(Logging { spans: Some(spans) })
}

#[cfg(not(feature = "otel"))]
#[expect(clippy::unnecessary_wraps, reason = "the version with the feature can fail")]
fn add_spans(_: &Config, _: &Handle, _: &mut Layers) -> Result<Logging, String> {
    Ok(Logging {}) // The configuration refuses a collector without the feature.
}

impl Logging {
    /// Sends the remaining spans to the collector; waits a few seconds at most.
    pub fn finish(self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = self.spans {
            spans.finish();
        }
    }
}
