//! Turns the outcome of an attempt into rows for its delivery and whatever follows from it, and commits them.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tracing::Span;

use super::{
    bot::BotWork,
    channels::ChannelRuntime,
    job::Job,
    replies::Replies,
    retry::{self, Next, Verdict},
    shared_clock::SharedClock,
    sink::ai,
    stage::{Outcome, Reply},
    work_store::WorkContext,
};
use crate::{
    error::{Error, ErrorCode, Result},
    id::{ChannelId, TraceId},
    model::{
        cause::Cause,
        sinks::{Ordering, SinkId},
        trace::{DeliveryState, PackedSteps, Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    store::{outbox::NewOutbound, traces::TraceUpdate},
    time::{Instant, Timestamp},
};

mod events;
mod messages;

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

impl After {
    /// The state, the due time and whether this node keeps the delivery in memory.
    const fn stored(self, now: Timestamp) -> (DeliveryState, Timestamp, bool) {
        match self {
            Self::Over(state) => (state, now, false),
            Self::Hold { due_at, .. } => (DeliveryState::Pending, due_at, true),
            Self::Park(at) => (DeliveryState::Parked, at, false),
        }
    }
}

/// Rules for attempts that fail.
struct Policy<'a> {
    /// Pauses between attempts, in seconds.
    schedule_s: &'a [u32],
    /// Time after the first attempt for which the lane waits; `None` if the order does not matter.
    hold: Option<Duration>,
}

impl<'a> Policy<'a> {
    fn of(channel: &'a ChannelRuntime, job: &Job) -> Self {
        let webhook = &channel.webhook;
        let (schedule_s, ordering) = match job.sink {
            SinkId::Ai => (&ai::SCHEDULE_S[..], Ordering::Conversation),
            SinkId::Webhook => (&webhook.retry.schedule_s[..], webhook.ordering),
        };
        // What is alone in its lane is parked again: it keeps none waiting.
        let holds = !job.is_alone && ordering == Ordering::Conversation;
        Self { schedule_s, hold: holds.then_some(channel.lane_hold) }
    }
}

/// The consequences of an attempt for its delivery and its trace.
struct Judged {
    after: After,
    /// Status of the trace.
    status: TraceStatus,
    /// Summary of the trace.
    summary: String,
    /// Error of the attempt.
    error: Option<String>,
}

impl Judged {
    fn over(state: DeliveryState, status: TraceStatus, summary: String) -> Self {
        Self { after: After::Over(state), status, summary, error: None }
    }

    /// Adds the replies to the steps of the attempt, and returns their rows. A reply that cannot be sent, or a hook
    /// that failed after the receiver got the message, is an error of the trace.
    async fn with_replies(
        mut self,
        to: &Replies<'_>,
        replies: Vec<Reply>,
        steps: &mut Vec<Step>,
        attempt: Option<u32>,
        now: Timestamp,
    ) -> (Self, Vec<NewOutbound>) {
        if let After::Hold { due_at: at, .. } | After::Park(at) = self.after
            && let Some(last) = steps.last_mut()
        {
            last.detail.next_attempt_at = Some(at);
            last.detail.parked = Some(matches!(self.after, After::Park(_)));
        }
        let closed = to.closed_group(now).filter(|_| !replies.is_empty());
        let rows = to.rows(replies, closed.as_ref(), steps).await;
        for step in steps.iter_mut().filter(|_| attempt.is_some()) {
            step.attempt = attempt;
        }
        let unsent = self.status == TraceStatus::Skipped && closed.is_some();
        if (self.status == TraceStatus::Ok || unsent)
            && let Some(failed) = failed_afterwards(&self.summary, steps)
        {
            self.status = TraceStatus::Error;
            self.summary = failed.to_string();
        }
        (self, rows)
    }

    fn trace(self, id: TraceId, steps: &[Step], attempt: Option<u32>, now: Timestamp) -> TraceUpdate {
        TraceUpdate {
            id,
            status: Some(self.status),
            ended: i64::from(matches!(self.after, After::Over(_))),
            summary: Some(self.summary),
            attempts: attempt.map(i64::from),
            ended_at: now,
            steps: PackedSteps::new(id, steps),
        }
    }
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

    /// Stores an outcome, and retries while the store is unavailable: the attempt is not repeated because the store is
    /// slow. `None` when the node stops first; an error when the store rejects the outcome because of its content.
    async fn persist<'s, T>(
        &self,
        bot: &BotWork,
        store: impl Fn() -> BoxFuture<'s, Result<T>>,
    ) -> Option<Result<T>> {
        let mut refused = false;
        loop {
            match store().await {
                Ok(stored) => return Some(Ok(stored)),
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    if bot.is_node_stopping() {
                        return None; // The attempt is made again after the next start.
                    }
                    tracing::warn!(bot_id = %bot.lease.bot_id, %error, "an outcome could not be stored; retrying");
                    self.ctx.clock.sleep(STORE_PAUSE).await;
                }
                // The first time may be a bug in the store; the second time the content is the cause.
                Err(_) if !refused => refused = true,
                Err(error) => {
                    bot.report("an outcome could not be stored", &error);
                    return Some(Err(error));
                }
            }
        }
    }

    fn count(&self, state: DeliveryState) {
        let outcome = self.ctx.node.counters.count_delivery(state);
        Span::current().record("hub.outcome", outcome);
    }

    fn since(&self, first_attempt: Option<Instant>) -> Duration {
        first_attempt.map_or(Duration::ZERO, |first| self.ctx.clock.instant().since(first))
    }

    /// Decides what follows from the outcome of an attempt: the given one, so long after the first.
    fn judge(
        &self,
        policy: &Policy<'_>,
        (attempt, since_first): (u32, Duration),
        outcome: &Outcome,
        now: Timestamp,
    ) -> Judged {
        let skipped =
            |cause: &Cause| Judged::over(DeliveryState::Skipped, TraceStatus::Skipped, cause.to_string());
        let (summary, after) = match outcome {
            Outcome::Skipped => return skipped(&Cause::SkippedByPlugin),
            Outcome::Ignored { cause } => return skipped(cause),
            Outcome::Waits { cause, recheck } => {
                let (after, summary) = (After::Park(now + *recheck), cause.to_string());
                return Judged { after, status: TraceStatus::Pending, error: Some(summary.clone()), summary };
            }
            Outcome::Answer { verdict: Verdict::Success, summary, .. } => {
                return Judged::over(DeliveryState::Done, TraceStatus::Ok, summary.clone());
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
        let next = after.map_or(Next::Dead, |after| {
            retry::next_attempt(attempt, policy.schedule_s, after, now, &self.ctx.random)
        });
        let cause = Box::new(Cause::read(&summary));
        match next {
            Next::Dead => {
                let text = Cause::Failed { attempts: attempt.into(), cause }.to_string();
                let judged = Judged::over(DeliveryState::Dead, TraceStatus::Error, text);
                Judged { error: Some(summary), ..judged }
            }
            Next::At(at) => {
                let holds = policy.hold.is_some_and(|hold| since_first + at.since(now) <= hold);
                let until = self.ctx.clock.instant() + at.since(now);
                let after = if holds { After::Hold { due_at: at, until } } else { After::Park(at) };
                let text = Cause::Retrying { attempt, cause, next_at: at }.to_string();
                Judged { after, status: TraceStatus::Pending, summary: text, error: Some(summary) }
            }
        }
    }
}

/// The end of a trace whose outcome the store rejects because of its content: a step without that content.
fn abandoned(id: TraceId, attempts: i64, refused: &Error, now: Timestamp) -> TraceUpdate {
    let cause = Box::new(Cause::NotStored);
    let detail = StepDetail {
        error: Some(StepError::new(cause.to_string())),
        reason: Some(refused.message().to_owned()),
        ..StepDetail::default()
    };
    let step = Step::new(StepName::Response, StepKind::Store, TraceStatus::Error, now, now, detail);
    TraceUpdate {
        id,
        status: Some(TraceStatus::Error),
        ended: 1,
        summary: Some(Cause::Abandoned { attempts, cause }.to_string()),
        attempts: Some(attempts),
        ended_at: now,
        steps: PackedSteps::new(id, &[step]),
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
