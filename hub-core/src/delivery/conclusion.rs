//! What follows from an attempt: what happens to its delivery and its channel.

use std::{sync::PoisonError, time::Duration};

use serde_json::{Value, json};

use super::{
    job::Job,
    node::{BotWork, Engine},
    retry::{self, Next, Verdict},
    sink::ai,
    stage::{Concluded, Outcome, Reply},
};
use crate::{
    delivery::channels::ChannelRuntime,
    model::{
        sinks::{Ordering, SinkId},
        trace::{DeliveryState, Step, StepName, TraceStatus, steps_text},
    },
    store::{
        deliveries::{Finished, HealthReport, SinkHealth},
        traces::TraceUpdate,
    },
    time::{Instant, Timestamp},
};

/// What happens to a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It is over.
    Over(DeliveryState),
    /// It waits at the head of its lane.
    Hold {
        /// As it is stored.
        due_at: Timestamp,
        /// By the clock that the lane goes by.
        until: Instant,
    },
    /// It leaves its lane and waits in the store.
    Park(Timestamp),
}

impl Engine {
    /// What follows from an attempt, as rows.
    pub(super) async fn conclude(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        concluded: Concluded,
    ) -> (Finished, After) {
        let now = self.ctx.store.now();
        let Concluded { outcome, mut replies, mut steps } = concluded;
        let (after, mut status, mut summary, error) = self.judge(channel, job, &outcome, now);
        let health = (job.sink == SinkId::Webhook).then(|| self.health(channel, &outcome, now)).flatten();
        if let After::Hold { due_at: at, .. } | After::Park(at) = after
            && let Some(last) = steps.last_mut()
        {
            last.detail["next_attempt_at"] = json!(at);
            last.detail["parked"] = json!(matches!(after, After::Park(_)));
        }
        let failed = after == After::Over(DeliveryState::Dead);
        if failed && job.sink == SinkId::Ai && !channel.ai.error_reply.trim().is_empty() {
            replies.push(Reply::text("ai", channel.ai.error_reply.clone()));
        }
        let is_attempt = !matches!(outcome, Outcome::Waits { .. });
        let closed = Self::closed_group(bot, job, now).filter(|_| !replies.is_empty());
        let replies = self.replies(bot, channel, job, (replies, closed), &mut steps).await;
        let unsent = status == TraceStatus::Skipped && closed.is_some();
        if (status == TraceStatus::Ok || unsent)
            && let Some(failed) = failed_afterwards(&steps)
        {
            status = TraceStatus::Error;
            summary = format!("{summary}; {failed}");
        }
        let (state, due_at, keep) = match after {
            After::Over(state) => (state, now, false),
            After::Hold { due_at, .. } => (DeliveryState::Pending, due_at, true),
            After::Park(at) => (DeliveryState::Parked, at, false),
        };
        let finished = Finished {
            id: job.id,
            fence: job.fence,
            state,
            attempts: i64::from(job.attempts),
            due_at,
            first_attempt_at: now - self.since_first_attempt(job),
            keep,
            last_error: error,
            now,
            trace: TraceUpdate {
                id: job.trace_id,
                status: Some(status),
                ended: i64::from(matches!(after, After::Over(_))),
                summary: Some(summary),
                attempts: is_attempt.then(|| i64::from(job.attempts)),
                ended_at: now,
                steps: steps_text(&steps),
            },
            replies,
            health,
            usage: None,
        };
        (finished, after)
    }

    fn since_first_attempt(&self, job: &Job) -> Duration {
        job.first_attempt.map_or(Duration::ZERO, |first| self.ctx.clock.instant().since(first))
    }

    fn judge(
        &self,
        channel: &ChannelRuntime,
        job: &Job,
        outcome: &Outcome,
        now: Timestamp,
    ) -> (After, TraceStatus, String, Option<String>) {
        let (summary, after) = match outcome {
            Outcome::Skipped => {
                let after = After::Over(DeliveryState::Skipped);
                return (after, TraceStatus::Skipped, "skipped by a plugin".to_owned(), None);
            }
            Outcome::Ignored { reason } => {
                let after = After::Over(DeliveryState::Skipped);
                return (after, TraceStatus::Skipped, (*reason).to_owned(), None);
            }
            Outcome::Waits { reason, recheck } => {
                let error = Some((*reason).to_owned());
                return (After::Park(now + *recheck), TraceStatus::Pending, (*reason).to_owned(), error);
            }
            Outcome::Answer { verdict: Verdict::Success, summary, .. } => {
                return (After::Over(DeliveryState::Done), TraceStatus::Ok, summary.clone(), None);
            }
            Outcome::Answer { verdict: Verdict::Gone, summary, .. } => {
                (format!("{summary}: the receiver accepts no more messages"), None)
            }
            Outcome::Failure { summary, permanent: true }
            | Outcome::PluginFailed { summary, retry: false } => (summary.clone(), None),
            Outcome::Failure { summary, permanent: false }
            | Outcome::PluginFailed { summary, retry: true } => (summary.clone(), Some(None)),
            Outcome::Answer { verdict: Verdict::Retry { after }, summary, .. } => {
                (summary.clone(), Some(*after))
            }
        };
        let webhook = &channel.webhook;
        let (schedule_s, ordering) = match job.sink {
            SinkId::Webhook => (&webhook.retry.schedule_s[..], webhook.ordering),
            SinkId::Ai => (&ai::SCHEDULE_S[..], Ordering::Conversation),
        };
        let next = after.map_or(Next::Dead, |after| {
            retry::next_attempt(job.attempts, schedule_s, after, now, &self.ctx.random)
        });
        match next {
            Next::Dead => {
                let told = format!("failed after {} attempt(s): {summary}", job.attempts);
                (After::Over(DeliveryState::Dead), TraceStatus::Error, told, Some(summary))
            }
            Next::At(at) => {
                let held_for = self.since_first_attempt(job) + at.since(now);
                let holds =
                    job.seq > 0 && ordering == Ordering::Conversation && held_for <= channel.lane_hold;
                let until = self.ctx.clock.instant() + at.since(now);
                let after = if holds { After::Hold { due_at: at, until } } else { After::Park(at) };
                let told = format!("attempt {} failed: {summary}; next at {at}", job.attempts);
                (after, TraceStatus::Pending, told, Some(summary))
            }
        }
    }

    /// What the channel's webhook shows of itself; `None` when that is known.
    fn health(&self, channel: &ChannelRuntime, outcome: &Outcome, now: Timestamp) -> Option<SinkHealth> {
        let mut healthy = self.healthy.lock().unwrap_or_else(PoisonError::into_inner);
        let report = match outcome {
            // What a plugin does says nothing about the receiver.
            Outcome::Skipped
            | Outcome::Ignored { .. }
            | Outcome::Waits { .. }
            | Outcome::PluginFailed { .. }
            | Outcome::Failure { permanent: true, .. } => return None,
            Outcome::Answer { verdict: Verdict::Success, .. } => {
                if !healthy.insert(channel.id) {
                    return None;
                }
                HealthReport::Works
            }
            Outcome::Answer { verdict: Verdict::Gone, .. } => HealthReport::Gone,
            Outcome::Answer { .. } | Outcome::Failure { .. } => {
                HealthReport::Fails { now, give_up_before: now - self.ctx.config.disable_failing_after }
            }
        };
        if report != HealthReport::Works {
            healthy.remove(&channel.id);
        }
        Some(SinkHealth { channel: channel.id, report })
    }
}

/// What failed although the receiver has the message: a response hook, or a reply that cannot be sent. The delivery is
/// done, and the trace does not say that all went well.
fn failed_afterwards(steps: &[Step]) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    steps.iter().filter(|step| step.status == TraceStatus::Error).find_map(|step| match step.name {
        StepName::PluginOnResponse => {
            let (plugin, kind) = (text(&step.detail["plugin"]), text(&step.detail["error"]["kind"]));
            Some(format!("plugin {plugin} failed after the request: {kind}"))
        }
        StepName::Reply => Some(format!("a reply could not be sent: {}", text(&step.detail["error"]))),
        _ => None,
    })
}
