//! The deliveries this node has in memory: the lanes of each kind of sink, and the signal that one may start.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    channels::ChannelRuntime,
    job::Job,
    lanes::{Lanes, Pace},
};
use crate::{config::HubConfig, id::MessageId, model::sinks::SinkId, time::Instant};

/// The pace of a channel whose settings are gone: its jobs only have to end.
const DEFAULT_PACE: Pace = Pace { max_in_flight: 8, spacing: Duration::ZERO };
/// Messages of one channel that models answer at the same time.
const MAX_AI_IN_FLIGHT: usize = 4;

/// The deliveries in memory.
#[derive(Debug)]
pub(super) struct Queue {
    /// One value per kind of sink: models take minutes where webhooks take milliseconds, and neither may use up the
    /// other's slots or memory.
    webhook: Mutex<Lanes<Job>>,
    ai: Mutex<Lanes<Job>>,
    /// Notified when a delivery may start that could not before.
    pub(super) ready: Notify,
}

impl Queue {
    pub(super) fn new(config: &HubConfig) -> Self {
        Self {
            webhook: Mutex::new(Lanes::new(config.max_jobs, config.max_in_flight)),
            ai: Mutex::new(Lanes::new(config.max_jobs, config.max_ai_in_flight)),
            ready: Notify::new(),
        }
    }

    /// The lanes of a kind of sink.
    pub(super) fn lanes(&self, sink: SinkId) -> MutexGuard<'_, Lanes<Job>> {
        let lanes = match sink {
            SinkId::Webhook => &self.webhook,
            SinkId::Ai => &self.ai,
        };
        lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job at the end of its lane, at the pace of its channel; [`Lanes::push`] describes `not_before`.
    pub(super) fn push(
        &self,
        job: Job,
        lane: &str,
        channel: Option<&ChannelRuntime>,
        not_before: Option<Instant>,
    ) {
        let pace = channel.map_or(DEFAULT_PACE, |channel| pace(channel, job.sink));
        self.lanes(job.sink).push(job.key(), &Arc::from(lane), pace, job, not_before);
    }

    /// Removes every waiting job that `gone` matches.
    pub(super) fn forget(&self, gone: impl Fn(&Job) -> bool) {
        for sink in SinkId::ALL {
            self.lanes(sink).forget(&gone);
        }
    }

    /// Lets the deliveries go on that waited for the files of a message.
    pub(super) fn release(&self, message_id: MessageId) {
        let waits = |job: &Job| job.attempts == 0 && job.content.message_id == message_id;
        for sink in SinkId::ALL {
            if self.lanes(sink).release(waits) {
                self.ready.notify_one();
            }
        }
    }

    /// Deliveries that wait, those in flight, and those answered whose outcome is not stored yet.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let (mut queued, mut in_flight, mut answered) = (0, 0, 0);
        for sink in SinkId::ALL {
            let lanes = self.lanes(sink);
            queued += lanes.len().saturating_sub(lanes.in_flight() + lanes.answered());
            in_flight += lanes.in_flight();
            answered += lanes.answered();
        }
        (queued, in_flight, answered)
    }
}

/// Returns the limits on running the jobs of a channel's sink.
fn pace(channel: &ChannelRuntime, sink: SinkId) -> Pace {
    if sink == SinkId::Ai {
        return Pace { max_in_flight: MAX_AI_IN_FLIGHT, spacing: Duration::ZERO };
    }
    let spacing = channel
        .webhook
        .rate_limit_per_s
        .map_or(Duration::ZERO, |rate| Duration::from_millis(1000 / u64::from(rate.max(1))));
    Pace { max_in_flight: channel.webhook.max_concurrency as usize, spacing }
}
