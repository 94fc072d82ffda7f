//! The outcome of a message: its delivery, its trace, the replies and the health of the webhook.

use std::sync::{Arc, PoisonError};

use super::{After, Conclusion, Policy, abandoned};
use crate::{
    delivery::{
        bot::BotWork,
        channels::ChannelRuntime,
        job::Job,
        outbox::Turn,
        replies::Replies,
        retry::Verdict,
        stage::{Concluded, Outcome, Reply},
    },
    error::Error,
    events::Event,
    model::{
        cause::Cause,
        sinks::SinkId,
        trace::{DeliveryState, StepKind, TraceStatus},
    },
    store::{
        ai::AiUsage,
        deliveries::{Finished, HealthReport, SinkHealth},
    },
    time::Timestamp,
};

impl Conclusion {
    /// Stores the outcome of an attempt. `None` when it is not stored: the node stops, or the delivery was abandoned.
    pub(in crate::engine::delivery) async fn conclude(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        concluded: Concluded,
        usage: Option<AiUsage>,
    ) -> Option<After> {
        let (mut finished, after) = self.rows(bot, channel, job, concluded, usage).await;
        let turn = finished.replies.first().and_then(|first| bot.outbox()?.turn_for(first));
        let (turn, condition) = turn.unzip();
        finished.send_at_once = condition;
        self.store(bot, finished, turn).await.then_some(after)
    }

    async fn rows(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        concluded: Concluded,
        usage: Option<AiUsage>,
    ) -> (Finished, After) {
        let stamp = self.shared_clock.stamp();
        let now = stamp.read.wall;
        let Concluded { outcome, mut replies, mut steps } = concluded;
        let since_first = self.since(job.first_attempt);
        let judged = self.judge(&Policy::of(channel, job), (job.attempts, since_first), &outcome, now);
        let after = judged.after;
        let health = (job.sink == SinkId::Webhook).then(|| self.health(channel, &outcome, now)).flatten();
        let failed = after == After::Over(DeliveryState::Dead);
        if failed && job.sink == SinkId::Ai && !channel.ai.error_reply.trim().is_empty() {
            replies.push(Reply::text(StepKind::Ai, channel.ai.error_reply.clone()));
        }
        let attempt = (!matches!(outcome, Outcome::Waits { .. })).then_some(job.attempts);
        let to_sender = Replies::to_message(&self.ctx, bot, job);
        let (judged, replies) = judged.with_replies(&to_sender, replies, &mut steps, attempt, now).await;
        let (state, due_at, keep) = after.stored(now);
        let finished = Finished {
            id: job.id,
            channel: job.channel_id,
            fence: job.fence,
            state,
            attempts: i64::from(job.attempts),
            due_at,
            first_attempt_at: now - since_first,
            keep,
            last_error: judged.error.clone(),
            stamp,
            is_followed: job.is_followed,
            trace: judged.trace(job.trace_id, &steps, attempt, now),
            replies,
            send_at_once: None,
            health,
            usage,
        };
        (finished, after)
    }

    /// Stores an outcome and retries while the store is unavailable; `false` when the node stops first, or the
    /// delivery is abandoned. The attempt is not repeated because the store is slow.
    async fn store(&self, bot: &BotWork, finished: Finished, turn: Option<Turn>) -> bool {
        let (bot_id, trace_id) = (bot.lease.bot_id, finished.trace.id);
        let status = match finished.state {
            // The receiver has the message, and a plugin or a reply failed afterwards.
            DeliveryState::Done if finished.trace.status == Some(TraceStatus::Error) => TraceStatus::Error,
            DeliveryState::Done => TraceStatus::Ok,
            DeliveryState::Skipped => TraceStatus::Skipped,
            DeliveryState::Dead => TraceStatus::Error,
            DeliveryState::Pending | DeliveryState::Parked => TraceStatus::Pending,
        };
        let finished = Arc::new(finished);
        let permit = match self.persist(bot, || self.ctx.store.finish(Arc::clone(&finished))).await {
            None => return false,
            Some(Ok(permit)) => permit,
            Some(Err(error)) => {
                self.abandon(bot, &finished, &error).await;
                return false;
            }
        };
        self.count(finished.state);
        match (turn, permit) {
            (Some(turn), Some(permit)) => turn.send(&finished.replies, permit),
            _ if finished.replies.is_empty() => {}
            (turn, _) => {
                drop(turn);
                if let Some(outbox) = bot.outbox() {
                    outbox.check_people(finished.replies.iter().map(|reply| &*reply.peer));
                }
            }
        }
        self.ctx.node.events.notify(Event::Trace { bot_id, trace_id, status });
        true
    }

    /// Abandons a delivery whose outcome the store rejects because of its content. Its trace gets an error step
    /// without that content.
    async fn abandon(&self, bot: &BotWork, finished: &Finished, refused: &Error) {
        let (id, fence, now, trace_id) =
            (finished.id, finished.fence, self.ctx.store.now(), finished.trace.id);
        let (reason, trace) =
            (Cause::NotStored.to_string(), abandoned(trace_id, finished.attempts, refused, now));
        match self.ctx.store.abandon(id, fence, reason, now, trace).await {
            Ok(true) => {
                let (bot_id, status) = (bot.lease.bot_id, TraceStatus::Error);
                self.ctx.node.events.notify(Event::Trace { bot_id, trace_id, status });
            }
            Ok(false) => {} // Another node has the bot now and tries again.
            Err(error) => {
                let what = "a delivery could not be abandoned; it is attempted again after the next start";
                bot.report(what, &error);
            }
        }
    }

    /// Returns what the outcome shows about the webhook's health; `None` if it shows nothing new.
    fn health(&self, channel: &ChannelRuntime, outcome: &Outcome, now: Timestamp) -> Option<SinkHealth> {
        let mut healthy = self.healthy.lock().unwrap_or_else(PoisonError::into_inner);
        let report = match outcome {
            // These outcomes are not caused by the receiver.
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
