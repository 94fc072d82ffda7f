//! Latency and cost of messages under load.

use std::time::Duration;

use hub_core::time::Clock;

use crate::{
    Result,
    hub::Hub,
    moments::now_us,
    peer::{Counts, Peer},
    stage::Stage,
};

/// Messages under load.
pub struct Flow {
    pub messages: u64,
    /// Per second, until the last arrival.
    pub rate: f64,
    /// From the network's answer to the arrival of the webhook.
    pub p50: Duration,
    pub p99: Duration,
    pub max: Duration,
    /// Processor time per message, in microseconds.
    pub hub_cpu: f64,
    pub database_cpu: f64,
    /// Per message; `None` if the hub does not report them.
    pub commits: Option<f64>,
    pub rss: u64,
    pub order_breaks: u64,
    pub repeated: u64,
}

/// Counters at the start of a measurement.
pub struct Meter {
    hub: Duration,
    database: Duration,
    commits: Option<f64>,
    began: u64,
}

/// Rate per second of `count` in `time`.
pub fn per_second(count: u64, time: Duration) -> f64 {
    float(count) / time.as_secs_f64()
}

/// Time per item, in microseconds.
pub fn share(time: Duration, count: u64) -> f64 {
    time.as_secs_f64() * 1e6 / float(count)
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub fn float(count: u64) -> f64 {
    count as f64
}

impl Meter {
    pub async fn start(stage: &Stage<'_>, hub: &Hub) -> Self {
        Self { hub: hub.cpu(), database: stage.place.cpu(), commits: hub.commits().await, began: now_us() }
    }

    /// Reads everything again, once every message has arrived.
    pub async fn read(self, stage: &Stage<'_>, hub: &Hub, messages: u64) -> Result<Flow> {
        // Work after the last arrival, such as its commit, belongs to the messages too.
        Clock::system().sleep(Duration::from_millis(500)).await;
        let hub_cpu = hub.cpu().saturating_sub(self.hub);
        let database_cpu = stage.place.cpu().saturating_sub(self.database);
        let commits = match (self.commits, hub.commits().await) {
            (Some(before), Some(after)) => Some((after - before) / float(messages)),
            _ => None,
        };
        let Counts { repeated, order_breaks, .. } = stage.receiver.counts().await?;
        let (waits, last) = waits(&stage.simulator, &stage.receiver).await?;
        let at = |percent: usize| {
            let place = (waits.len() * percent / 100).min(waits.len().saturating_sub(1));
            Duration::from_micros(waits.get(place).copied().unwrap_or(0))
        };
        Ok(Flow {
            messages,
            rate: per_second(messages, Duration::from_micros(last.saturating_sub(self.began))),
            p50: at(50),
            p99: at(99),
            max: at(100),
            hub_cpu: share(hub_cpu, messages),
            database_cpu: share(database_cpu, messages),
            commits,
            rss: hub.rss(),
            order_breaks,
            repeated: repeated.saturating_sub(messages * (stage.options.channels - 1)),
        })
    }
}

/// From answer to first arrival, in order, and the moment of the last arrival.
async fn waits(simulator: &Peer, receiver: &Peer) -> Result<(Vec<u64>, u64)> {
    let (answered, arrived) = (simulator.moments().await?, receiver.moments().await?);
    let both = answered.iter().zip(&arrived).filter(|(answered, arrived)| **answered > 0 && **arrived > 0);
    let mut waits: Vec<u64> = both.map(|(answered, arrived)| arrived.saturating_sub(*answered)).collect();
    waits.sort_unstable();
    Ok((waits, arrived.iter().copied().max().unwrap_or_default()))
}
