//! What is read off the hub and the listeners at the moment of asking.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use hub_core::{Hub, counters::Spread};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::serve::ServeStats;

/// A registry of one moment.
pub(super) fn registry(hub: &Hub, listeners: Option<&Arc<ServeStats>>) -> Registry {
    let mut registry = Registry::with_prefix("hub");
    registry.register_collector(Box::new(Reading { hub: hub.clone(), listeners: listeners.cloned() }));
    registry
}

#[derive(Debug)]
struct Reading {
    hub: Hub,
    listeners: Option<Arc<ServeStats>>,
}

impl Collector for Reading {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.messages(&mut page)?;
        self.store(&mut page)?;
        if let Some(listeners) = &self.listeners {
            connections(&mut page, listeners)?;
        }
        page.gauges("build_info", "The version that runs", "version", [(env!("CARGO_PKG_VERSION"), 1)])
    }
}

impl Reading {
    fn messages(&self, page: &mut Page<'_>) -> fmt::Result {
        let counters = &self.hub.context().node.counters;
        let load = self.hub.load();
        page.counters("messages_in", "Inbound messages stored", "result", counters.messages.counts())?;
        page.counters("delivery_attempts", "Attempts at webhooks", "class", counters.attempts.counts())?;
        page.counters("ai_calls", "Calls to models", "class", counters.ai_calls.counts())?;
        page.counters("ai_tokens", "Tokens that models read and wrote", "kind", counters.ai_tokens.counts())?;
        let deliveries: Vec<_> = counters.deliveries.counts().collect();
        let of = |names: &'static [&'static str]| {
            deliveries.iter().copied().filter(move |(name, _)| names.contains(name))
        };
        let outcomes = of(&["done", "dead", "skipped"]);
        page.counters("deliveries", "Deliveries that ended; dead ones may be replayed", "outcome", outcomes)?;
        let retries = of(&["pending", "parked"]);
        page.counters("delivery_retries", "Attempts that will be made again", "state", retries)?;
        page.counters("sends", "Attempts to send to a person", "outcome", counters.sends.counts())?;
        page.counters(
            "media_fetches",
            "Tries to fetch files of messages",
            "result",
            counters.media.counts(),
        )?;
        let runs = counters.plugin_runs.counts();
        page.counters("plugin_runs", "Hooks of plugins that ran", "outcome", runs)?;
        page.gauge("deliveries_queued", "Deliveries in memory that wait for their turn", load.queued)?;
        page.gauge("deliveries_in_flight", "Deliveries being attempted", load.in_flight)?;
        let what = "Deliveries that were answered and whose outcome is not stored yet";
        page.gauge("deliveries_answered", what, load.answered)?;
        let bots = load.bots.iter().map(|(status, count)| (status.as_str(), *count));
        page.gauges("bots", "Bots this node works for", "status", bots)?;
        let violations = self.hub.violations();
        page.counter("invariant_violations", "Rules that must hold and did not; see the log", violations)?;
        page.counter("task_panics", "Background tasks that ended with a panic", load.panics)
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        let stats = self.hub.context().store.stats();
        let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        page.counter("store_reads", "Connections taken for reading", load(&stats.reads))?;
        page.counter("store_flushes", "Times that tables followed the commit log", load(&stats.flushes))?;
        page.counter("store_commits", "Transactions committed", load(&stats.commits))?;
        page.counter("store_failures", "Batches of writes that failed as a whole", load(&stats.failures))?;
        let backups = self.hub.context().node.counters.backups.counts();
        page.counters("backups", "Nightly backups; failed ones are tried again", "outcome", backups)?;
        page.spread("store_commit_commands", "Commands per transaction", &stats.batch, 1.0)?;
        page.spread("store_commit_seconds", "Time from begin to commit", &stats.latency, 1e6)
    }
}

fn connections(page: &mut Page<'_>, stats: &ServeStats) -> fmt::Result {
    page.gauge("http_connections", "Connections open", stats.open())?;
    page.counter("http_connections_accepted", "Connections served", stats.accepted())?;
    let refused = stats.turned_away();
    page.counters("http_connections_refused", "Connections turned away unserved", "reason", refused)?;
    let closed = stats.ended_early();
    page.counters("http_connections_closed", "Connections ended for what their client did", "reason", closed)
}

/// Writes one metric after the other.
struct Page<'e>(DescriptorEncoder<'e>);

impl Page<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    fn counters<'n>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'n str, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in values {
            ConstCounter::new(count).encode(metric.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(signed(value)).encode(metric)
    }

    fn gauges<'n>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'n str, usize)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (value, count) in values {
            ConstGauge::new(signed(count)).encode(metric.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    /// `scale` is how many of the spread's units make one of the metric's.
    #[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
    fn spread<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        spread: &Spread<N>,
        scale: f64,
    ) -> fmt::Result {
        let buckets: Vec<(f64, u64)> = spread
            .buckets()
            .map(|(bound, count)| (bound.map_or(f64::INFINITY, |bound| bound as f64 / scale), count))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(spread.sum() as f64 / scale, count, &buckets, None)
    }
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
