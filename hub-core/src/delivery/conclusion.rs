//! Turns the outcome of an attempt into rows for its delivery and its channel, and commits them.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tracing::Span;

use super::{
    bot::BotWork,
    job::Job,
    outbox::Turn,
    replies::Replies,
    retry::{self, Next, Verdict},
    shared_clock::SharedClock,
    sink::ai,
    stage::{Concluded, Outcome, Reply},
    work_store::WorkContext,
};
use crate::{
    delivery::channels::ChannelRuntime,
    error::{Error, ErrorCode},
    events::Event,
    id::ChannelId,
    model::{
        cause::Cause,
        sinks::{Ordering, SinkId},
        trace::{DeliveryState, PackedSteps, Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    store::{
        ai::AiUsage,
        deliveries::{Finished, HealthReport, SinkHealth},
        traces::TraceUpdate,
    },
    time::{Instant, Timestamp},
};

/// Pause before an outcome is stored again after the store was unavailable.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// State of a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Over(DeliveryState),
    /// It waits at the head of its lane.
    Hold {
        /// Due time as stored.
        due_at: Timestamp,
        /// Due time by the monotonic clock, which lanes use.
        until: Instant,
    },
    /// It leaves its lane and waits in the store.
    Park(Timestamp),
}

/// Draws the conclusions of attempts and stores them.
#[derive(Debug)]
pub(super) struct Conclusion {
    ctx: WorkContext,
    shared_clock: Arc<SharedClock>,
    /// Channels whose webhook accepted its last message. Their next success is not stored.
    healthy: Mutex<HashSet<ChannelId>>,
}

impl Conclusion {
    pub(super) fn new(ctx: WorkContext, shared_clock: Arc<SharedClock>) -> Self {
        Self { ctx, shared_clock, healthy: Mutex::default() }
    }

    /// Stores the outcome of an attempt. `None` when it is not stored: the node stops, or the delivery was abandoned.
    pub(super) async fn conclude(
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
        let (after, mut status, mut summary, error) = self.judge(channel, job, &outcome, now);
        let health = (job.sink == SinkId::Webhook).then(|| self.health(channel, &outcome, now)).flatten();
        if let After::Hold { due_at: at, .. } | After::Park(at) = after
            && let Some(last) = steps.last_mut()
        {
            last.detail.next_attempt_at = Some(at);
            last.detail.parked = Some(matches!(after, After::Park(_)));
        }
        let failed = after == After::Over(DeliveryState::Dead);
        if failed && job.sink == SinkId::Ai && !channel.ai.error_reply.trim().is_empty() {
            replies.push(Reply::text(StepKind::Ai, channel.ai.error_reply.clone()));
        }
        let is_attempt = !matches!(outcome, Outcome::Waits { .. });
        let to_sender = Replies { ctx: &self.ctx, bot, channel, job };
        let closed = to_sender.closed_group(now).filter(|_| !replies.is_empty());
        let replies = to_sender.rows(replies, closed, &mut steps).await;
        for step in steps.iter_mut().filter(|_| is_attempt) {
            step.attempt = Some(job.attempts);
        }
        let unsent = status == TraceStatus::Skipped && closed.is_some();
        if (status == TraceStatus::Ok || unsent)
            && let Some(failed) = failed_afterwards(&summary, &steps)
        {
            status = TraceStatus::Error;
            summary = failed.to_string();
        }
        let (state, due_at, keep) = match after {
            After::Over(state) => (state, now, false),
            After::Hold { due_at, .. } => (DeliveryState::Pending, due_at, true),
            After::Park(at) => (DeliveryState::Parked, at, false),
        };
        let finished = Finished {
            id: job.id,
            channel: job.channel_id,
            fence: job.fence,
            state,
            attempts: i64::from(job.attempts),
            due_at,
            first_attempt_at: now - self.since_first_attempt(job),
            keep,
            last_error: error,
            stamp,
            is_followed: job.is_followed,
            trace: TraceUpdate {
                id: job.trace_id,
                status: Some(status),
                ended: i64::from(matches!(after, After::Over(_))),
                summary: Some(summary),
                attempts: is_attempt.then(|| i64::from(job.attempts)),
                ended_at: now,
                steps: PackedSteps::new(job.trace_id, &steps),
            },
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
        let mut refused = false;
        let permit = loop {
            match self.ctx.store.finish(Arc::clone(&finished)).await {
                Ok(permit) => {
                    let outcome = self.ctx.node.counters.count_delivery(finished.state);
                    Span::current().record("hub.outcome", outcome);
                    break permit;
                }
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    if bot.is_node_stopping() {
                        return false; // The attempt is made again after the next start.
                    }
                    tracing::warn!(%bot_id, %error, "an outcome could not be stored; retrying");
                    self.ctx.clock.sleep(STORE_PAUSE).await;
                }
                // The first time may be a bug in the store; the second time the content is the cause.
                Err(_) if !refused => refused = true,
                Err(error) => {
                    bot.report("an outcome could not be stored", &error);
                    self.abandon(bot, &finished, &error).await;
                    return false;
                }
            }
        };
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
        let (reason, attempts) = (Cause::NotStored.to_string(), finished.attempts);
        let detail = StepDetail {
            error: Some(StepError::new(reason.clone())),
            reason: Some(refused.message().to_owned()),
            ..StepDetail::default()
        };
        let step = Step::new(StepName::Response, StepKind::Store, TraceStatus::Error, now, now, detail);
        let trace = TraceUpdate {
            id: trace_id,
            status: Some(TraceStatus::Error),
            ended: 1,
            summary: Some(Cause::Abandoned { attempts, cause: Box::new(Cause::NotStored) }.to_string()),
            attempts: Some(attempts),
            ended_at: now,
            steps: PackedSteps::new(trace_id, &[step]),
        };
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
                return (after, TraceStatus::Skipped, Cause::SkippedByPlugin.to_string(), None);
            }
            Outcome::Ignored { cause } => {
                let after = After::Over(DeliveryState::Skipped);
                return (after, TraceStatus::Skipped, cause.to_string(), None);
            }
            Outcome::Waits { cause, recheck } => {
                let error = Some(cause.to_string());
                return (After::Park(now + *recheck), TraceStatus::Pending, cause.to_string(), error);
            }
            Outcome::Answer { verdict: Verdict::Success, summary, .. } => {
                return (After::Over(DeliveryState::Done), TraceStatus::Ok, summary.clone(), None);
            }
            Outcome::Answer { verdict: Verdict::Gone, summary, .. } => {
                (Cause::Refused { cause: Box::new(Cause::read(summary)) }.to_string(), None)
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
                let text = Cause::Failed { attempts: job.attempts, cause: Box::new(Cause::read(&summary)) };
                (After::Over(DeliveryState::Dead), TraceStatus::Error, text.to_string(), Some(summary))
            }
            Next::At(at) => {
                let held_for = self.since_first_attempt(job) + at.since(now);
                let holds =
                    job.seq > 0 && ordering == Ordering::Conversation && held_for <= channel.lane_hold;
                let until = self.ctx.clock.instant() + at.since(now);
                let after = if holds { After::Hold { due_at: at, until } } else { After::Park(at) };
                let cause = Box::new(Cause::read(&summary));
                let text = Cause::Retrying { attempt: job.attempts, cause, next_at: at };
                (after, TraceStatus::Pending, text.to_string(), Some(summary))
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

/// Returns the first failure after the receiver got the message: a response hook, or a reply that cannot be sent.
/// The delivery is done, and its trace shows the error.
fn failed_afterwards(summary: &str, steps: &[Step]) -> Option<Cause> {
    let summary = || Box::new(Cause::read(summary));
    steps.iter().filter(|step| step.status == TraceStatus::Error).find_map(|step| {
        let error = step.detail.error.as_ref()?;
        match step.name {
            StepName::PluginOnResponse => {
                let plugin = step.detail.plugin.clone().unwrap_or_default();
                let kind = error.kind.clone().unwrap_or_default();
                Some(Cause::PluginFailedAfterwards { summary: summary(), plugin, kind })
            }
            StepName::Reply => {
                let message = Box::new(Cause::read(&error.message));
                Some(Cause::ReplyNotSent { summary: summary(), message })
            }
            _ => None,
        }
    })
}
