//! The outcome of an event: its delivery, its entry in the log of events, its trace and the replies.

use std::time::Duration;

use super::{After, Conclusion, Policy, abandoned};
use crate::{
    delivery::{
        bot::BotWork,
        job::EventJob,
        replies::Replies,
        retry::Verdict,
        sink::app::SentEvent,
        stage::{Concluded, Outcome},
    },
    error::Error,
    events::Event,
    model::{
        app_event::AppEventState,
        cause::Cause,
        channel::DEFAULT_LANE_HOLD_S,
        sinks::DEFAULT_SCHEDULE_S,
        trace::{DeliveryState, Step, StepName, TraceStatus},
    },
    store::{
        app_events::{DueEvent, EventAttempt},
        deliveries::FinishedEvent,
        traces::TraceUpdate,
    },
};

/// The default of channels: an app has no settings for its lanes.
const LANE_HOLD: Duration = Duration::from_secs(DEFAULT_LANE_HOLD_S as u64);

impl Conclusion {
    /// Stores the outcome of an attempt to deliver an event. `None` when the node stops before it is stored.
    pub(in crate::engine::delivery) async fn conclude_event(
        &self,
        bot: &BotWork,
        job: &EventJob,
        event: &DueEvent,
        sent: SentEvent,
    ) -> Option<After> {
        let (mut finished, mut after) = self.event_rows(bot, job, event, sent).await;
        if let Err(error) = self.persist(bot, || self.ctx.store.finish_event(finished.clone())).await? {
            (finished, after) = (without_content(finished, &error), After::Over(DeliveryState::Dead));
            self.persist(bot, || self.ctx.store.finish_event(finished.clone())).await?.ok()?;
        }
        self.count(finished.state);
        if !finished.replies.is_empty()
            && let Some(outbox) = bot.outbox()
        {
            outbox.check_people([&*event.peer]);
        }
        if let Some(TraceUpdate { id: trace_id, status: Some(status), .. }) = finished.trace {
            self.ctx.node.events.notify(Event::Trace { bot_id: bot.lease.bot_id, trace_id, status });
        }
        Some(after)
    }

    async fn event_rows(
        &self,
        bot: &BotWork,
        job: &EventJob,
        event: &DueEvent,
        sent: SentEvent,
    ) -> (FinishedEvent, After) {
        let stamp = self.shared_clock.stamp();
        let now = stamp.read.wall;
        // The room of a fetched file is given back at the end, when the file is stored.
        let SentEvent { concluded: Concluded { outcome, replies, mut steps }, status, body, took, .. } = sent;
        let (made, since_first) = (event.attempts + 1, self.since(job.first_attempt));
        let policy = Policy { schedule_s: &DEFAULT_SCHEDULE_S, hold: (!job.is_alone).then_some(LANE_HOLD) };
        let judged = self.judge(&policy, (made, since_first), &outcome, now);
        let after = judged.after;
        let attempt = (!matches!(outcome, Outcome::Waits { .. })).then_some(made);
        let to_person = Replies::to_event(&self.ctx, bot, job, event);
        let (judged, replies) = judged.with_replies(&to_person, replies, &mut steps, attempt, now).await;
        let (state, due_at, keep) = after.stored(now);
        let log = EventAttempt {
            id: event.id,
            state: match after {
                After::Over(DeliveryState::Done) => AppEventState::Delivered,
                After::Over(_) => AppEventState::Failed,
                After::Hold { .. } | After::Park(_) => AppEventState::Pending,
            },
            response_status: status,
            response_body: body,
            error: judged.error.clone().or_else(|| unsent_reply(&steps)),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        // A receiver that responds with 410 gets no further events until it is verified again.
        let is_gone = matches!(outcome, Outcome::Answer { verdict: Verdict::Gone, .. });
        let finished = FinishedEvent {
            id: job.id,
            fence: job.fence,
            state,
            attempts: i64::from(job.attempts),
            due_at,
            first_attempt_at: now - since_first,
            keep,
            last_error: judged.error.clone(),
            stamp,
            attempt: attempt.map(|_| log),
            trace: job.trace_id.map(|id| judged.trace(id, &steps, attempt, now)),
            replies,
            gone: event.webhook_url.clone().filter(|_| is_gone).map(|url| (event.app_id, url)),
        };
        (finished, after)
    }
}

/// The end of a delivery whose outcome the store rejects because of its content.
fn without_content(finished: FinishedEvent, refused: &Error) -> FinishedEvent {
    let (now, attempts) = (finished.stamp.read.wall, finished.attempts);
    let attempt = finished.attempt.map(|attempt| EventAttempt {
        state: AppEventState::Failed,
        response_body: String::new(),
        error: Some(Cause::NotStored.to_string()),
        ..attempt
    });
    let trace = finished.trace.map(|trace| abandoned(trace.id, attempts, refused, now));
    FinishedEvent {
        state: DeliveryState::Dead,
        keep: false,
        last_error: None,
        replies: Vec::new(),
        attempt,
        trace,
        ..finished
    }
}

/// The reason why the reply of an app was not sent, for the log of events.
fn unsent_reply(steps: &[Step]) -> Option<String> {
    let reply =
        steps.iter().find(|step| step.name == StepName::Reply && step.status != TraceStatus::Pending)?;
    let failed = reply.detail.error.as_ref().map(|error| error.message.as_str());
    failed.or(reply.detail.reason.as_deref()).map(|why| format!("the reply was not sent: {why}"))
}
