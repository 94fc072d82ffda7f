//! Runs deliveries: takes a job from the lanes, sends it through the stages, stores the outcome.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tracing::Instrument;

use super::{
    backlog::Backlog,
    bot::BotWork,
    bots::Bots,
    conclusion::{After, Conclusion},
    job::{Delivery, EventJob, Job},
    lanes::Slot,
    media,
    queue::Queue,
    replies::Replies,
    sink::{
        ai,
        app::{self, SentEvent},
    },
    stage::{Concluded, Filtered, Outcome, Prepared},
    work_store::WorkContext,
};
use crate::{
    delivery::channels::ChannelRuntime,
    id::MessageId,
    invariants::invariant,
    model::{
        app_event::AppEventState,
        cause::Cause,
        sinks::{MAX_RETRIES, SinkId, SinkKind},
        trace::{DeliveryState, Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    spans,
    store::ai::AiUsage,
    tasks::Tasks,
    time::{Instant, Timestamp},
};

/// Time for which a lane is stopped after a violated invariant; the next start tries again.
const VIOLATION_PAUSE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Pause before a delivery is attempted again after the hub itself failed.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

/// Position of a delivery after an attempt.
enum Attempted {
    /// The delivery waits at the head of its lane.
    Held(Instant),
    /// The delivery waits at the head of its lane for the files of its message, until then at the latest.
    Waits(MessageId, Instant),
    /// The sink accepted it, and more of the channel may be loaded.
    Delivered(Arc<BotWork>),
    /// It is out of its lane, or belongs to another node.
    Left,
}

/// Runs the deliveries of a node.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) ctx: WorkContext,
    pub(super) tasks: Tasks,
    pub(super) bots: Arc<Bots>,
    pub(super) queue: Arc<Queue>,
    pub(super) backlog: Arc<Backlog>,
    pub(super) conclusion: Conclusion,
}

impl Worker {
    /// Starts jobs as long as there are slots, until the tasks stop.
    pub(super) async fn work(self: Arc<Self>) {
        let stop = self.tasks.stop_token().clone();
        loop {
            // Registered before looking, so that no wake-up is lost.
            let ready = self.queue.ready.notified();
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

    /// Starts every job that may run now. Returns the time at which more may run.
    fn start_jobs(self: &Arc<Self>) -> Option<Instant> {
        SinkKind::ALL.into_iter().filter_map(|sink| self.start_jobs_of(sink)).min()
    }

    fn start_jobs_of(self: &Arc<Self>, sink: SinkKind) -> Option<Instant> {
        loop {
            let now = self.ctx.clock.instant();
            let mut lanes = self.queue.lanes(sink);
            let popped = lanes.pop(now);
            for (sink, lane) in lanes.take_doubled() {
                invariant!(self.ctx.node.violations, false, "one head per lane", ?sink, %lane);
            }
            let Some((slot, delivery)) = popped else { return lanes.next_timer() };
            drop(lanes);
            let worker = Arc::clone(self);
            let (id, bot, attempt) = (delivery.id(), delivery.bot_id(), delivery.attempts() + 1);
            let span = spans::delivery_attempt(delivery.trace_id(), id, bot, delivery.key().owner(), attempt);
            // Boxed, its kilobytes are not copied by everything that wraps it.
            let run = Box::pin(async move { worker.run(slot, delivery).await });
            self.tasks.spawn("delivery", run.instrument(span));
        }
    }

    /// One attempt, from the lane to the commit and back.
    async fn run(&self, slot: Slot, mut delivery: Delivery) {
        let key = delivery.key();
        let mut guard = SlotGuard { queue: &self.queue, sink: key.kind(), slot: Some(slot) };
        match AssertUnwindSafe(self.attempt(&mut delivery, &mut guard)).catch_unwind().await {
            Ok(Attempted::Held(until)) => guard.hold(delivery, until),
            Ok(Attempted::Waits(message_id, until)) => {
                guard.hold(delivery, until);
                // They may have arrived between the query and the hold.
                if media::is_complete(&self.ctx, message_id).await {
                    self.queue.release(message_id);
                }
            }
            Ok(Attempted::Left) => drop(guard),
            Ok(Attempted::Delivered(bot)) => {
                drop(guard);
                // For a receiver that takes nothing, the regular poll loads more.
                self.backlog.refill(&bot, key).await;
            }
            // A bug of ours outside the sink: the delivery stays at the head of its lane.
            Err(_) => {
                tracing::error!(delivery_id = %delivery.id(), "a delivery panicked and is tried again");
                guard.hold(delivery, self.ctx.clock.instant() + PANIC_PAUSE);
            }
        }
        self.queue.ready.notify_one();
    }

    /// One attempt and its commit.
    async fn attempt(&self, delivery: &mut Delivery, guard: &mut SlotGuard<'_>) -> Attempted {
        // If another node has the bot now, it finds the row.
        let (bot, fence) = (self.bots.get(delivery.bot_id()), delivery.fence());
        let Some(bot) = bot.filter(|bot| bot.lease.fence == fence) else {
            return Attempted::Left;
        };
        let _running = bot.tasks.token();
        // After a sleep, or while the store does not respond, nothing is sent until the lease is renewed.
        if !bot.wait_for_lease().await {
            return Attempted::Left; // The holder of the lease finds the row.
        }
        let attempts = delivery.attempts() as usize;
        if !invariant!(
            self.ctx.node.violations,
            attempts <= MAX_RETRIES,
            "attempts within the longest schedule",
            delivery_id = %delivery.id(),
            attempts
        ) {
            return Attempted::Held(self.ctx.clock.instant() + VIOLATION_PAUSE);
        }
        let after = match delivery {
            Delivery::Message(job) => self.attempt_message(&bot, job, guard).await,
            Delivery::Event(job) => self.attempt_event(&bot, job, guard).await,
        };
        match after {
            Ok(After::Hold { until, .. }) => Attempted::Held(until),
            Ok(After::Over(DeliveryState::Done)) => Attempted::Delivered(bot),
            Ok(After::Over(_) | After::Park(_)) => Attempted::Left,
            Err(attempted) => attempted,
        }
    }

    /// One attempt to deliver a message; fails with its position if nothing was concluded.
    async fn attempt_message(
        &self,
        bot: &Arc<BotWork>,
        job: &mut Job,
        guard: &mut SlotGuard<'_>,
    ) -> Result<After, Attempted> {
        let Some(channel) = self.channel_of(bot, job).await else {
            return Err(Attempted::Left); // Deleted, and its rows with it.
        };
        match media::of_job(&self.ctx, job).await {
            Ok(Ok(media)) => job.media = media,
            Ok(Err(until)) => return Err(Attempted::Waits(job.content.message_id, until)),
            Err(error) => {
                bot.report("the files of a message could not be looked for", &error);
                return Err(Attempted::Held(self.ctx.clock.instant() + PANIC_PAUSE));
            }
        }
        failpoint!("attempt.before", passed);
        let (started, begun) = (self.ctx.store.now(), self.ctx.clock.instant());
        let sent = AssertUnwindSafe(self.send(bot, &channel, job, started)).catch_unwind().await;
        let (concluded, usage) = sent.unwrap_or_else(|_| (panicked(job.sink, started), None));
        job.is_followed = guard.answered();
        failpoint!("attempt.answered", passed);
        job.attempts += 1;
        job.first_attempt.get_or_insert(begun);
        let after = self.conclusion.conclude(bot, &channel, job, concluded, usage).await;
        failpoint!("attempt.stored", passed);
        after.ok_or(Attempted::Left)
    }

    /// One attempt to deliver an event; fails with its position if nothing was concluded.
    async fn attempt_event(
        &self,
        bot: &BotWork,
        job: &mut EventJob,
        guard: &mut SlotGuard<'_>,
    ) -> Result<After, Attempted> {
        let mut event = match self.ctx.store.event(job.event_id).await {
            Ok(Some(event)) if event.state == AppEventState::Pending => event,
            // Deleted, or written to a socket; its row went with it.
            Ok(_) => return Err(Attempted::Left),
            Err(error) => {
                bot.report("an event for an app could not be read", &error);
                return Err(Attempted::Held(self.ctx.clock.instant() + PANIC_PAUSE));
            }
        };
        failpoint!("attempt.before", passed);
        let begun = self.ctx.clock.instant();
        let sent = AssertUnwindSafe(app::send(&self.ctx, &mut event)).catch_unwind().await;
        let sent = sent.unwrap_or_else(|_| SentEvent::panicked());
        guard.answered();
        failpoint!("attempt.answered", passed);
        job.attempts += 1;
        job.first_attempt.get_or_insert(begun);
        let after = self.conclusion.conclude_event(bot, job, &event, sent).await;
        failpoint!("attempt.stored", passed);
        after.ok_or(Attempted::Left)
    }

    /// Sends the message to the sink, through the stages.
    async fn send(
        &self,
        bot: &BotWork,
        channel: &Arc<ChannelRuntime>,
        job: &Job,
        started: Timestamp,
    ) -> (Concluded, Option<AiUsage>) {
        let is_on = match job.sink {
            SinkId::Webhook => channel.webhook.enabled || job.target_url.is_some(),
            SinkId::Ai => channel.ai.enabled,
        };
        match job.sink {
            _ if !is_on => (off(job.sink, started), None),
            SinkId::Webhook => {
                let drafted = Filtered { job, channel: Arc::clone(channel) }.draft();
                let mut prepared = drafted.on_request(&self.ctx).await;
                self.reply_at_once(bot, job, &mut prepared).await;
                (prepared.attempt(&self.ctx).await.on_response(&self.ctx).await, None)
            }
            SinkId::Ai => {
                let ai::Answered { concluded, usage } = ai::answer(&self.ctx, bot, channel, job).await;
                (concluded, usage)
            }
        }
    }

    /// Sends the replies of request hooks without waiting for the receiver. Replies that cannot be stored now are
    /// stored with the outcome, under the same keys.
    async fn reply_at_once(&self, bot: &BotWork, job: &Job, prepared: &mut Prepared<'_>) {
        if prepared.replies.is_empty() {
            return;
        }
        prepared.replied = true;
        let to_sender = Replies::to_message(&self.ctx, bot, job);
        if to_sender.closed_group(self.ctx.store.now()).is_some() {
            // The outcome shows them, with the reason.
            return;
        }
        let mut steps = Vec::new();
        let rows = to_sender.rows(prepared.replies.clone(), None, &mut steps).await;
        match self.ctx.store.reply(&bot.lease, rows).await {
            Ok(true) => {
                prepared.replies.clear();
                prepared.steps.append(&mut steps);
                if let Some(outbox) = bot.outbox() {
                    outbox.check_people([&*job.content.peer]);
                }
            }
            // The node that has the bot now repeats the attempt; or the store is busy.
            Ok(false) => {}
            Err(error) => bot.report("replies wait for the outcome", &error),
        }
    }

    /// A delivery's channel; reloaded if it is newer than the loaded ones.
    async fn channel_of(&self, bot: &BotWork, job: &Job) -> Option<Arc<ChannelRuntime>> {
        let known = || bot.channels().channels.iter().find(|channel| channel.id == job.channel_id).cloned();
        if let Some(channel) = known() {
            return Some(channel);
        }
        if let Err(error) = bot.reload_channels().await {
            bot.report("a bot's channels could not be read", &error);
        }
        known()
    }
}

/// The step of an attempt at a sink that failed at once.
fn failed(sink: SinkId, at: Timestamp, error: &str) -> Step {
    let (name, kind) = match sink {
        SinkId::Webhook => (StepName::Request, StepKind::Webhook),
        SinkId::Ai => (StepName::Ai, StepKind::Ai),
    };
    let detail = StepDetail { error: Some(StepError::new(error)), ..StepDetail::default() };
    Step::new(name, kind, TraceStatus::Error, at, at, detail)
}

/// The attempt at a sink that was switched off meanwhile.
fn off(sink: SinkId, now: Timestamp) -> Concluded {
    let name = match sink {
        SinkId::Webhook => "webhook",
        SinkId::Ai => "AI sink",
    };
    let summary = Cause::SinkOff { sink: name.to_owned() }.to_string();
    let steps = vec![failed(sink, now, &summary)];
    Concluded { outcome: Outcome::Failure { summary, permanent: true }, replies: Vec::new(), steps }
}

/// Concludes an attempt in which the hub itself failed. It counts, so that a delivery that always fails ends.
fn panicked(sink: SinkId, started: Timestamp) -> Concluded {
    Concluded {
        outcome: Outcome::Failure { summary: Cause::InternalError.to_string(), permanent: false },
        replies: Vec::new(),
        steps: vec![failed(sink, started, &Cause::InternalError.to_string())],
    }
}

/// Gives the slot back whatever happens, a panic included.
struct SlotGuard<'q> {
    queue: &'q Queue,
    sink: SinkKind,
    slot: Option<Slot>,
}

impl SlotGuard<'_> {
    /// Gives the slot to another delivery; only the lane waits for the commit of the outcome. Returns whether
    /// another delivery waits in the lane.
    fn answered(&mut self) -> bool {
        let Some(slot) = &mut self.slot else { return false };
        let is_followed = self.queue.lanes(self.sink).answer(slot);
        self.queue.ready.notify_one();
        is_followed
    }

    fn hold(mut self, delivery: Delivery, until: Instant) {
        if let Some(slot) = self.slot.take() {
            self.queue.lanes(self.sink).hold(slot, delivery, until);
        }
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.queue.lanes(self.sink).finish(slot);
            self.queue.ready.notify_one();
        }
    }
}
