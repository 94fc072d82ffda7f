//! Runs deliveries: takes a job from the lanes, sends it through the stages, stores what came of it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use serde_json::json;
use tracing::{Instrument, Span};

use super::{
    conclusion::After,
    job::Job,
    lanes::{Pace, Slot},
    node::{BotWork, Engine},
    sink::{Sink, ai, webhook::Webhook},
    stage::{Concluded, Filtered, Outcome, Prepared},
};
use crate::{
    delivery::channels::ChannelRuntime,
    error::{Error, ErrorCode},
    events::Event,
    invariants::invariant,
    model::{
        sinks::{MAX_RETRIES, SinkId, SinkKey},
        trace::{DeliveryState, Step, StepName, TraceStatus, steps_text},
    },
    spans,
    store::{deliveries::Finished, due::Reading, traces::TraceUpdate},
    time::{Instant, Timestamp},
};

/// How long a lane is stopped after a violated invariant; the next start tries again.
const VIOLATION_PAUSE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Before a delivery is tried again whose outcome could not be worked out.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// The pace of a channel whose settings are gone: its jobs only have to end.
pub(super) const DEFAULT_PACE: Pace = Pace { max_in_flight: 8, spacing: Duration::ZERO };

/// Messages of one channel that models answer at the same time.
const AI_IN_FLIGHT: usize = 4;

/// How much of a channel's sink may run.
pub(super) fn pace(channel: &ChannelRuntime, sink: SinkId) -> Pace {
    if sink == SinkId::Ai {
        return Pace { max_in_flight: AI_IN_FLIGHT, spacing: Duration::ZERO };
    }
    let spacing = channel
        .webhook
        .rate_limit_per_s
        .map_or(Duration::ZERO, |rate| Duration::from_millis(1000 / u64::from(rate.max(1))));
    Pace { max_in_flight: channel.webhook.max_concurrency as usize, spacing }
}

/// What an attempt leaves behind.
enum Attempted {
    /// The delivery waits at the head of its lane.
    Held(Instant),
    /// The delivery waits there for the files of its message, until then at the latest.
    Waits(Instant),
    /// The sink has it, and more of the channel may be loaded.
    Delivered(Arc<BotWork>),
    /// It is out of its lane, or belongs to another node.
    Left,
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
    fn start_jobs(self: &Arc<Self>) -> Option<Instant> {
        SinkId::ALL.into_iter().filter_map(|sink| self.start_jobs_of(sink)).min()
    }

    fn start_jobs_of(self: &Arc<Self>, sink: SinkId) -> Option<Instant> {
        loop {
            let now = self.ctx.clock.instant();
            let mut lanes = self.lanes(sink);
            let popped = lanes.pop(now);
            for (SinkKey { channel: channel_id, .. }, lane) in lanes.take_doubled() {
                invariant!(self.ctx.node.violations, false, "one head per lane", %channel_id, %lane);
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
        let guard = SlotGuard { engine: self, sink: job.sink, slot: Some(slot) };
        match AssertUnwindSafe(self.attempt(&mut job)).catch_unwind().await {
            Ok(Attempted::Held(until)) => guard.hold(job, until),
            Ok(Attempted::Waits(until)) => {
                let message_id = job.content.message_id;
                guard.hold(job, until);
                // They may have come between the look and the hold.
                self.release_if_there(message_id).await;
            }
            Ok(Attempted::Left) => drop(guard),
            Ok(Attempted::Delivered(bot)) => {
                drop(guard);
                // A receiver that takes nothing is not fed faster than the regular look does.
                self.refill(&bot, job.key()).await;
            }
            // A bug of ours outside the sink: the delivery stays at the head of its lane.
            Err(_) => {
                tracing::error!(delivery_id = %job.id, "a delivery panicked and is tried again");
                guard.hold(job, self.ctx.clock.instant() + AFTER_PANIC);
            }
        }
        self.work_ready.notify_one();
    }

    /// One attempt and its commit.
    async fn attempt(&self, job: &mut Job) -> Attempted {
        // If another node has the bot now, it finds the row.
        let Some(bot) = self.bot(job.bot_id).filter(|bot| bot.lease.fence == job.fence) else {
            return Attempted::Left;
        };
        // After a sleep, or without an answer of the store, nothing goes out until the lease is renewed.
        if !bot.wait_for_lease(&self.ctx.clock).await {
            return Attempted::Left; // The holder of the lease finds the row.
        }
        let attempts = job.attempts as usize;
        if !invariant!(
            self.ctx.node.violations,
            attempts <= MAX_RETRIES,
            "attempts within the longest schedule",
            delivery_id = %job.id,
            attempts
        ) {
            return Attempted::Held(self.ctx.clock.instant() + VIOLATION_PAUSE);
        }
        let Some(channel) = self.channel_of(&bot, job).await else {
            return Attempted::Left; // Deleted, and its rows with it.
        };
        match self.media_for(job).await {
            Ok(Ok(media)) => job.media = media,
            Ok(Err(until)) => return Attempted::Waits(until),
            Err(error) => {
                Self::report("the files of a message could not be looked for", &bot, &error);
                return Attempted::Held(self.ctx.clock.instant() + AFTER_PANIC);
            }
        }
        failpoint!("attempt.before", passed);
        let (started, begun) = (self.ctx.store.now(), self.ctx.clock.instant());
        let mut usage = None;
        let is_on = match job.sink {
            SinkId::Webhook => channel.webhook.enabled || job.target_url.is_some(),
            SinkId::Ai => channel.ai.enabled,
        };
        let asked = async {
            match job.sink {
                _ if !is_on => off(job.sink, started),
                SinkId::Webhook => {
                    let drafted = Filtered { job, channel: Arc::clone(&channel) }.draft();
                    let mut prepared = drafted.on_request(&self.ctx).await;
                    self.reply_at_once(&bot, &channel, job, &mut prepared).await;
                    Webhook.attempt(&self.ctx, prepared).await.on_response(&self.ctx).await
                }
                SinkId::Ai => {
                    let answered = ai::answer(&self.ctx, &bot, &channel, job).await;
                    usage = answered.usage;
                    answered.concluded
                }
            }
        };
        let asked = AssertUnwindSafe(asked).catch_unwind().await;
        let concluded = asked.unwrap_or_else(|_| panicked(job.sink, started));
        failpoint!("attempt.answered", passed);
        job.attempts += 1;
        job.first_attempt.get_or_insert(begun);
        let concluded_at = self.read_clock();
        let (mut finished, after) = self.conclude(&bot, &channel, job, concluded).await;
        finished.usage = usage;
        if !self.store_outcome(&bot, finished, concluded_at).await {
            return Attempted::Left;
        }
        failpoint!("attempt.stored", passed);
        match after {
            After::Hold { until, .. } => Attempted::Held(until),
            After::Over(DeliveryState::Done) => Attempted::Delivered(bot),
            After::Over(_) | After::Park(_) => Attempted::Left,
        }
    }

    /// Sends what request hooks replied without waiting for the receiver. What cannot be stored now is stored with
    /// the outcome, under the same keys.
    async fn reply_at_once(
        &self,
        bot: &BotWork,
        channel: &ChannelRuntime,
        job: &Job,
        prepared: &mut Prepared<'_>,
    ) {
        if prepared.replies.is_empty() {
            return;
        }
        prepared.replied = true;
        if Self::closed_group(bot, job, self.ctx.store.now()).is_some() {
            // The outcome shows them, with the reason.
            return;
        }
        let mut steps = Vec::new();
        let rows = self.replies(bot, channel, job, (prepared.replies.clone(), None), &mut steps).await;
        match self.ctx.store.reply(&bot.lease, rows).await {
            Ok(true) => {
                prepared.replies.clear();
                prepared.steps.append(&mut steps);
                bot.outbox_ready.notify_one();
            }
            // The node that has the bot now repeats the attempt; or the store is busy.
            Ok(false) => {}
            Err(error) => Self::report("replies wait for the outcome", bot, &error),
        }
    }

    /// A delivery's channel; reloaded if it is newer than the loaded ones.
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

    /// Stores an outcome, as long as it takes; `false` when the node stops first. The attempt is not made
    /// again for a store that is slow.
    async fn store_outcome(&self, bot: &BotWork, finished: Finished, mut read: Reading) -> bool {
        let (bot_id, trace_id) = (bot.lease.bot_id, finished.trace.id);
        let status = match finished.state {
            // The receiver has the message, and a plugin or a reply failed afterwards.
            DeliveryState::Done if finished.trace.status == Some(TraceStatus::Error) => TraceStatus::Error,
            DeliveryState::Done => TraceStatus::Ok,
            DeliveryState::Skipped => TraceStatus::Skipped,
            DeliveryState::Dead => TraceStatus::Error,
            DeliveryState::Pending | DeliveryState::Parked => TraceStatus::Pending,
        };
        let mut finished = Arc::new(finished);
        let mut refused = false;
        loop {
            if let Some(step) = self.clock_step(&mut read) {
                Arc::make_mut(&mut finished).follow(step);
            }
            match self.ctx.store.finish(Arc::clone(&finished)).await {
                Ok(()) => {
                    let outcome = self.ctx.node.counters.count_delivery(finished.state);
                    Span::current().record("hub.outcome", outcome);
                    break;
                }
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    if self.tasks.stopping() {
                        return false; // The attempt is made again after the next start.
                    }
                    tracing::warn!(%bot_id, %error, "an outcome could not be stored; retrying");
                    self.ctx.clock.sleep(Duration::from_secs(1)).await;
                }
                // Once may be a bug's doing; what is refused twice is refused for what it is.
                Err(_) if !refused => refused = true,
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
        self.ctx.node.events.tell(Event::Trace { bot_id, trace_id, status });
        true
    }

    /// An outcome that the store refuses for what it is, not for its own state: the delivery is given up, and
    /// its trace says so without what was refused.
    async fn abandon(&self, bot: &BotWork, finished: &Finished, refused: &Error) {
        let (id, fence, now, trace_id) = (finished.id, finished.fence, finished.now, finished.trace.id);
        let (reason, attempts) = ("the outcome of an attempt could not be stored", finished.attempts);
        let detail = json!({ "error": reason, "reason": refused.message() });
        let step = Step::new(StepName::Response, "store", TraceStatus::Error, now, now, detail);
        let trace = TraceUpdate {
            id: trace_id,
            status: Some(TraceStatus::Error),
            ended: 1,
            summary: Some(format!("abandoned after {attempts} attempt(s): {reason}")),
            attempts: Some(attempts),
            ended_at: now,
            steps: steps_text(&[step]),
        };
        match self.ctx.store.abandon(id, fence, reason, now, trace).await {
            Ok(true) => {
                let (bot_id, status) = (bot.lease.bot_id, TraceStatus::Error);
                self.ctx.node.events.tell(Event::Trace { bot_id, trace_id, status });
            }
            Ok(false) => {} // Another node has the bot now and tries again.
            Err(error) => Self::report(
                "a delivery could not be abandoned; it is attempted again after the next start",
                bot,
                &error,
            ),
        }
    }
}

/// The step of an attempt at a sink.
fn step_of(sink: SinkId) -> StepName {
    match sink {
        SinkId::Webhook => StepName::Request,
        SinkId::Ai => StepName::Ai,
    }
}

/// The attempt at a sink that was switched off meanwhile.
fn off(sink: SinkId, now: Timestamp) -> Concluded {
    let name = match sink {
        SinkId::Webhook => "webhook",
        SinkId::Ai => "AI sink",
    };
    let told = format!("the channel's {name} is off");
    let detail = json!({ "error": told });
    Concluded {
        outcome: Outcome::Failure { summary: told, permanent: true },
        replies: Vec::new(),
        steps: vec![Step::new(step_of(sink), sink.as_str(), TraceStatus::Error, now, now, detail)],
    }
}

/// An attempt in which the hub itself failed: it counts, so that what always fails ends.
fn panicked(sink: SinkId, started: Timestamp) -> Concluded {
    let detail = json!({ "error": "internal error during this attempt" });
    Concluded {
        outcome: Outcome::Failure { summary: "internal error".to_owned(), permanent: false },
        replies: Vec::new(),
        steps: vec![Step::new(step_of(sink), sink.as_str(), TraceStatus::Error, started, started, detail)],
    }
}

/// Gives the slot back whatever happens, a panic included.
struct SlotGuard<'e> {
    engine: &'e Engine,
    sink: SinkId,
    slot: Option<Slot>,
}

impl SlotGuard<'_> {
    fn hold(mut self, job: Job, until: Instant) {
        if let Some(slot) = self.slot.take() {
            self.engine.lanes(self.sink).hold(slot, job, until);
        }
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.engine.lanes(self.sink).finish(slot);
            self.engine.work_ready.notify_one();
        }
    }
}
