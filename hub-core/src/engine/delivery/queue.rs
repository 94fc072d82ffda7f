//! The deliveries this node has in memory: the lanes of each kind of sink, and the signal that one may start.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    channels::ChannelRuntime,
    job::Delivery,
    lanes::{Lanes, Pace},
};
use crate::{config::HubConfig, id::MessageId, model::sinks::SinkKind, time::Instant};

/// The pace of a channel whose settings are gone: its jobs only have to end.
const DEFAULT_PACE: Pace = Pace { max_in_flight: 8, spacing: Duration::ZERO };
/// Messages of one channel that models answer at the same time.
const MAX_AI_IN_FLIGHT: usize = 4;
/// Events of one installation that are sent to its app at the same time.
const MAX_APP_IN_FLIGHT: usize = 4;

/// The deliveries in memory.
#[derive(Debug)]
pub(super) struct Queue {
    /// One value per kind of sink: models take minutes where webhooks take milliseconds, and neither may use up the
    /// other's slots or memory.
    webhook: Mutex<Lanes<Delivery>>,
    ai: Mutex<Lanes<Delivery>>,
    app: Mutex<Lanes<Delivery>>,
    /// Notified when a delivery may start that could not before.
    pub(super) ready: Notify,
}

impl Queue {
    pub(super) fn new(config: &HubConfig) -> Self {
        Self {
            webhook: Mutex::new(Lanes::new(config.max_jobs, config.max_in_flight)),
            ai: Mutex::new(Lanes::new(config.max_jobs, config.max_ai_in_flight)),
            app: Mutex::new(Lanes::new(config.max_jobs, config.max_in_flight)),
            ready: Notify::new(),
        }
    }

    /// The lanes of a kind of sink.
    pub(super) fn lanes(&self, sink: SinkKind) -> MutexGuard<'_, Lanes<Delivery>> {
        let lanes = match sink {
            SinkKind::Webhook => &self.webhook,
            SinkKind::Ai => &self.ai,
            SinkKind::App => &self.app,
        };
        lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a delivery at the end of its lane, at the pace of its channel; [`Lanes::push`] describes `not_before`.
    pub(super) fn push(
        &self,
        delivery: Delivery,
        lane: &str,
        channel: Option<&ChannelRuntime>,
        not_before: Option<Instant>,
    ) {
        let key = delivery.key();
        let pace = pace(channel, key.kind());
        self.lanes(key.kind()).push(key, &Arc::from(lane), pace, delivery, not_before);
    }

    /// Removes every waiting job that `gone` matches.
    pub(super) fn forget(&self, gone: impl Fn(&Delivery) -> bool) {
        for sink in SinkKind::ALL {
            self.lanes(sink).forget(&gone);
        }
    }

    /// Lets the deliveries go on that waited for the files of a message.
    pub(super) fn release(&self, message_id: MessageId) {
        for sink in SinkKind::ALL {
            if self.lanes(sink).release(|delivery| delivery.waits_for_files_of(message_id)) {
                self.ready.notify_one();
            }
        }
    }

    /// Deliveries that wait, those in flight, and those answered whose outcome is not stored yet.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let (mut queued, mut in_flight, mut answered) = (0, 0, 0);
        for sink in SinkKind::ALL {
            let lanes = self.lanes(sink);
            queued += lanes.len().saturating_sub(lanes.in_flight() + lanes.answered());
            in_flight += lanes.in_flight();
            answered += lanes.answered();
        }
        (queued, in_flight, answered)
    }
}

/// Returns the limits on running the deliveries to a sink.
fn pace(channel: Option<&ChannelRuntime>, sink: SinkKind) -> Pace {
    let at_most = |max_in_flight| Pace { max_in_flight, spacing: Duration::ZERO };
    let channel = match (sink, channel) {
        (SinkKind::App, _) => return at_most(MAX_APP_IN_FLIGHT),
        (_, None) => return DEFAULT_PACE,
        (SinkKind::Ai, Some(_)) => return at_most(MAX_AI_IN_FLIGHT),
        (SinkKind::Webhook, Some(channel)) => channel,
    };
    let spacing = channel
        .webhook
        .rate_limit_per_s
        .map_or(Duration::ZERO, |rate| Duration::from_millis(1000 / u64::from(rate.max(1))));
    Pace { max_in_flight: channel.webhook.max_concurrency as usize, spacing }
}
