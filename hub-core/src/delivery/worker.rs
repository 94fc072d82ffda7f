//! Runs deliveries: takes a job from the lanes, sends it through the stages, stores what came of it.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use serde_json::json;
use tracing::{Instrument, Span};

use super::{
    job::Job,
    lanes::{Pace, Slot},
    node::{BotWork, Engine},
    retry::{self, Next, Verdict},
    sink::{Sink, webhook::Webhook},
    stage::{Concluded, Filtered, Outcome},
};
use crate::{
    channels::{
        runtime::ChannelRuntime,
        sinks::{MAX_RETRIES, Ordering},
    },
    error::{Error, ErrorCode},
    events::Event,
    invariants::invariant,
    network::TextFormat,
    spans,
    store::{
        deliveries::{DeliveryState, Finished, HealthReport, SinkHealth},
        outbox::{NewOutbound, NewPart},
        traces::TraceUpdate,
    },
    time::Timestamp,
    traces::{Step, StepName, TraceStatus, steps_text},
};

/// How long a lane whose delivery breaks a rule stands still; the next start looks again.
const STANDSTILL: Duration = Duration::from_secs(365 * 24 * 3600);
/// The pace of a channel whose settings are gone: its jobs only have to end.
pub(super) const DEFAULT_PACE: Pace = Pace { max_in_flight: 8, spacing: Duration::ZERO };

/// How much of a channel may run.
pub(super) fn pace(channel: &ChannelRuntime) -> Pace {
    let spacing = channel
        .webhook
        .rate_limit_per_s
        .map_or(Duration::ZERO, |rate| Duration::from_millis(1000 / u64::from(rate.max(1))));
    Pace { max_in_flight: channel.webhook.max_concurrency as usize, spacing }
}

/// What happens to a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It is over.
    Over(DeliveryState),
    /// It waits at the head of its lane.
    Hold(Timestamp),
    /// It leaves its lane and waits in the store.
    Park(Timestamp),
}

impl Engine {
    /// Starts jobs as long as there are slots; ends when asked to, after everything in flight has ended.
    pub(super) async fn work(self: &Arc<Self>) {
        let stop = self.tasks.stop_token().clone();
        loop {
            // Registered before looking, so that no wake-up is lost.
            let ready = self.work_ready.notified();
            let next_timer = if stop.is_cancelled() { None } else { self.start_jobs() };
            if stop.is_cancelled() {
                return;
            }
            let timer = async {
                match next_timer {
                    Some(at) => self.ctx.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = ready => {}
                () = timer => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Starts what may run now; says when more may.
    fn start_jobs(self: &Arc<Self>) -> Option<Timestamp> {
        loop {
            let now = self.ctx.clock.now();
            let mut lanes = self.lanes();
            let popped = lanes.pop(now);
            for (channel_id, lane) in lanes.take_doubled() {
                invariant!(self.ctx.violations, false, "one head per lane", %channel_id, %lane);
            }
            let Some((slot, job)) = popped else { return lanes.next_timer() };
            drop(lanes);
            let engine = Arc::clone(self);
            let span =
                spans::delivery_attempt(job.trace_id, job.id, job.bot_id, job.channel_id, job.attempts + 1);
            self.tasks.spawn("delivery", async move { engine.run(slot, job).await }.instrument(span));
        }
    }

    /// One attempt, from the lane to the commit and back.
    async fn run(&self, slot: Slot, mut job: Job) {
        let guard = SlotGuard { engine: self, slot: Some(slot) };
        let Some(bot) = self.bot(job.bot_id).filter(|bot| bot.lease.fence == job.fence) else {
            return; // The bot changed hands: whoever has it now finds the row.
        };
        // After a sleep, or without an answer of the store, nothing goes out until the lease is renewed.
        if !bot.wait_for_lease(&self.ctx.clock).await {
            return; // Whoever has the lease then finds the row.
        }
        let attempts = job.attempts as usize;
        if !invariant!(
            self.ctx.violations,
            attempts <= MAX_RETRIES,
            "attempts within the longest schedule",
            delivery_id = %job.id,
            attempts
        ) {
            let far = self.ctx.clock.now() + STANDSTILL;
            guard.hold(job, far);
            return;
        }
        let Some(channel) = self.channel_of(&bot, &job).await else { return }; // Deleted, its rows with it.
        let started = self.ctx.store.now();
        let concluded = if channel.webhook.enabled || job.target_url.is_some() {
            let prepared = Filtered { job: &job, channel: Arc::clone(&channel) }.draft().on_request();
            Webhook.attempt(&self.ctx, prepared).await.on_response()
        } else {
            off(started)
        };
        job.attempts += 1;
        job.first_attempt_at.get_or_insert(started);
        let (finished, after) = self.conclude(&bot, &channel, &job, concluded);
        if !self.store_outcome(&bot, finished).await {
            return;
        }
        match after {
            After::Hold(until) => guard.hold(job, until),
            After::Over(_) | After::Park(_) => drop(guard),
        }
        self.work_ready.notify_one();
        // A receiver that takes nothing is not fed faster than the regular look does.
        if after == After::Over(DeliveryState::Done) {
            self.refill(&bot, channel.id).await;
        }
    }

    /// A delivery's channel; read anew when it is younger than what is known of the bot.
    async fn channel_of(&self, bot: &BotWork, job: &Job) -> Option<Arc<ChannelRuntime>> {
        let known = || bot.channels().channels.iter().find(|channel| channel.id == job.channel_id).cloned();
        if let Some(channel) = known() {
            return Some(channel);
        }
        if let Err(error) = bot.reload_channels(&self.ctx).await {
            Self::report("a bot's channels could not be read", bot, &error);
        }
        known()
    }

    /// What follows from an attempt, as rows.
    fn conclude(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        concluded: Concluded,
    ) -> (Finished, After) {
        let now = self.ctx.store.now();
        let Concluded { outcome, replies, mut steps } = concluded;
        let (after, status, summary, error) = self.judge(channel, job, &outcome, now);
        let health = self.health(channel, &outcome, now);
        if let After::Hold(at) | After::Park(at) = after
            && let Some(last) = steps.last_mut()
        {
            last.detail["next_attempt_at"] = json!(at);
            last.detail["parked"] = json!(matches!(after, After::Park(_)));
        }
        let replies = self.replies(bot, channel, job, replies, now, &mut steps);
        let (state, due_at, keep) = match after {
            After::Over(state) => (state, now, false),
            After::Hold(at) => (DeliveryState::Pending, at, true),
            After::Park(at) => (DeliveryState::Parked, at, false),
        };
        let finished = Finished {
            id: job.id,
            fence: job.fence,
            state,
            attempts: i64::from(job.attempts),
            due_at,
            first_attempt_at: job.first_attempt_at.unwrap_or(now),
            keep,
            last_error: error,
            now,
            trace: TraceUpdate {
                id: job.trace_id,
                status: Some(status.as_str()),
                summary: Some(summary),
                attempts: Some(i64::from(job.attempts)),
                ended_at: now.as_millis(),
                steps: steps_text(&steps),
            },
            replies,
            health,
        };
        (finished, after)
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
            Outcome::Answer { verdict: Verdict::Success, summary, .. } => {
                return (After::Over(DeliveryState::Done), TraceStatus::Ok, summary.clone(), None);
            }
            Outcome::Answer { verdict: Verdict::Gone, summary, .. } => {
                (format!("{summary}: the receiver wants nothing more"), None)
            }
            Outcome::Failure { summary, permanent: true } => (summary.clone(), None),
            Outcome::Failure { summary, permanent: false } => (summary.clone(), Some(None)),
            Outcome::Answer { verdict: Verdict::Retry { after }, summary, .. } => {
                (summary.clone(), Some(*after))
            }
        };
        let next = after.map_or(Next::Dead, |after| {
            retry::next_attempt(job.attempts, &channel.webhook.retry.schedule_s, after, now, &self.ctx.random)
        });
        match next {
            Next::Dead => {
                let told = format!("given up after {} attempt(s): {summary}", job.attempts);
                (After::Over(DeliveryState::Dead), TraceStatus::Error, told, Some(summary))
            }
            Next::At(at) => {
                let first = job.first_attempt_at.unwrap_or(now);
                let holds = job.seq > 0
                    && channel.webhook.ordering == Ordering::Conversation
                    && at.since(first) <= channel.lane_hold;
                let after = if holds { After::Hold(at) } else { After::Park(at) };
                let told = format!("attempt {} failed: {summary}; next at {at}", job.attempts);
                (after, TraceStatus::Pending, told, Some(summary))
            }
        }
    }

    /// What the channel's webhook shows of itself; `None` when that is known.
    fn health(&self, channel: &ChannelRuntime, outcome: &Outcome, now: Timestamp) -> Option<SinkHealth> {
        let mut healthy = self.healthy.lock().unwrap_or_else(PoisonError::into_inner);
        let report = match outcome {
            Outcome::Skipped | Outcome::Failure { permanent: true, .. } => return None,
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

    /// Rows for the texts that the sender gets; one text is one row keyed (delivery, ordinal), so that a second
    /// run adds none (`contract.md` §6.6).
    fn replies(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        texts: Vec<String>,
        now: Timestamp,
        steps: &mut Vec<Step>,
    ) -> Vec<NewOutbound> {
        let row = |(ordinal, text): (usize, String)| {
            let parts = bot.network.split_text(&text, TextFormat::Markdown);
            let detail = json!({ "to": job.content.peer, "parts": parts.len(), "state": "queued" });
            steps.push(Step::new(StepName::Reply, "webhook", TraceStatus::Pending, now, now, detail));
            NewOutbound {
                message_id: self.ctx.ids.next(),
                bot_id: job.bot_id,
                peer: job.content.peer.clone(),
                dedupe_key: format!("{}:{ordinal}", job.id),
                content: text,
                parts: parts.into_iter().map(|text| NewPart::new(&self.ctx.ids, text)).collect(),
                channel_id: Some(channel.id),
                trace_id: Some(job.trace_id),
                expires_at: now + self.ctx.config.outbox_lifetime,
                now,
            }
        };
        texts.into_iter().enumerate().map(row).collect()
    }

    /// Stores an outcome, as long as it takes; `false` when the node stops first. The attempt is not made
    /// again for a store that is slow.
    async fn store_outcome(&self, bot: &BotWork, finished: Finished) -> bool {
        let (bot_id, trace_id) = (bot.lease.bot_id, finished.trace.id);
        let status = match finished.state {
            DeliveryState::Done => TraceStatus::Ok,
            DeliveryState::Skipped => TraceStatus::Skipped,
            DeliveryState::Dead => TraceStatus::Error,
            DeliveryState::Pending | DeliveryState::Parked => TraceStatus::Pending,
        };
        let finished = Arc::new(finished);
        loop {
            match self.ctx.store.finish(Arc::clone(&finished)).await {
                Ok(()) => {
                    let outcome = self.ctx.counters.count_delivery(finished.state);
                    Span::current().record("hub.outcome", outcome);
                    break;
                }
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    if self.tasks.stopping() {
                        return false; // The attempt is made again after the next start.
                    }
                    tracing::warn!(%bot_id, %error, "an outcome could not be stored; trying again");
                    self.ctx.clock.sleep(Duration::from_secs(1)).await;
                }
                Err(error) => {
                    Self::report("an outcome could not be stored", bot, &error);
                    self.abandon(bot, &finished, &error).await;
                    return false;
                }
            }
        }
        if !finished.replies.is_empty() {
            bot.outbox_ready.notify_one();
        }
        self.ctx.events.tell(Event::Trace { bot_id, trace_id, status });
        true
    }
}

impl Engine {
    /// An outcome that the store refuses for what it is, not for its own state: the delivery is given up, and
    /// its trace says so without what was refused.
    async fn abandon(&self, bot: &BotWork, finished: &Finished, refused: &Error) {
        let (id, fence, now, trace_id) = (finished.id, finished.fence, finished.now, finished.trace.id);
        let (reason, attempts) = ("the outcome of an attempt could not be stored", finished.attempts);
        let detail = json!({ "error": reason, "reason": refused.message() });
        let step = Step::new(StepName::Response, "store", TraceStatus::Error, now, now, detail);
        let trace = TraceUpdate {
            id: trace_id,
            status: Some(TraceStatus::Error.as_str()),
            summary: Some(format!("abandoned after {attempts} attempt(s): {reason}")),
            attempts: Some(attempts),
            ended_at: now.as_millis(),
            steps: steps_text(&[step]),
        };
        match self.ctx.store.abandon(id, fence, reason, now, trace).await {
            Ok(true) => {
                let (bot_id, status) = (bot.lease.bot_id, TraceStatus::Error);
                self.ctx.events.tell(Event::Trace { bot_id, trace_id, status });
            }
            Ok(false) => {} // The bot changed hands: whoever has it now tries again.
            Err(error) => Self::report(
                "a delivery could not be given up; it is made again after the next start",
                bot,
                &error,
            ),
        }
    }
}

/// The attempt at a webhook that was switched off meanwhile.
fn off(now: Timestamp) -> Concluded {
    let detail = json!({ "error": "the channel's webhook is off" });
    Concluded {
        outcome: Outcome::Failure { summary: "the channel's webhook is off".to_owned(), permanent: true },
        replies: Vec::new(),
        steps: vec![Step::new(StepName::Request, "webhook", TraceStatus::Error, now, now, detail)],
    }
}

/// Gives the slot back whatever happens, a panic included.
struct SlotGuard<'e> {
    engine: &'e Engine,
    slot: Option<Slot>,
}

impl SlotGuard<'_> {
    fn hold(mut self, job: Job, until: Timestamp) {
        if let Some(slot) = self.slot.take() {
            self.engine.lanes().hold(slot, job, until);
        }
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.engine.lanes().finish(slot);
            self.engine.work_ready.notify_one();
        }
    }
}
