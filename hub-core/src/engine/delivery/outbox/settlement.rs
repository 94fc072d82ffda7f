//! The outcome of a send: for its item, the person's window, the items after it and the account.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::Notify;

use super::{MAX_REMEMBERED, Next, Outbox};
use crate::{
    bots::BotStatus,
    error::{ErrorCode, Result},
    events::Event,
    id::{Kind, kind},
    model::{
        cause::Cause,
        trace::{PackedSteps, Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    network::SendOutcome,
    store::{
        sending::{ItemState, OpenItem, Settled},
        traces::TraceUpdate,
    },
    time::Timestamp,
};

/// Pauses after a request that was never written.
const NOT_SENT_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Pause when those are used up.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(30);
/// Pause before the one repeat of a send whose outcome is unknown.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);
/// First pause after the network throttles; doubles up to the second.
const THROTTLE_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Throttled attempts before the person's window counts as closed.
const MAX_THROTTLED: u32 = 5;
/// Unconfirmed sends in a row, where ids were seen before, that make an account suspect.
const MAX_UNCONFIRMED: u32 = 3;

impl Outbox {
    /// Applies an outcome to the item, the window and the items after it.
    pub(super) async fn conclude(
        &self,
        item: &OpenItem,
        unknowns: i64,
        started: Timestamp,
        outcome: SendOutcome,
    ) -> Result<Next> {
        let now = self.ctx.store.now();
        self.watch_account(&outcome).await;
        if !matches!(outcome, SendOutcome::Throttled { .. } | SendOutcome::NotSent(_)) {
            self.state().throttled.remove(&item.id);
        }
        match outcome {
            SendOutcome::Sent { network_id } => {
                self.settle(item, started, ItemState::Sent, now, None, |s| s.network_id = Some(network_id))
                    .await?;
                Ok(Next::Continue)
            }
            SendOutcome::AcceptedUnconfirmed => {
                let reason = Cause::NoMessageId.to_string();
                self.settle(item, started, ItemState::Unconfirmed, now, Some(&reason), |_| {}).await?;
                Ok(Next::Continue)
            }
            SendOutcome::Rejected(reason) => {
                self.settle(item, started, ItemState::Failed, now, Some(&reason), |_| {}).await?;
                Ok(Next::Continue)
            }
            SendOutcome::WindowClosed(reason) => self.close_window(item, started, reason, |_| {}).await,
            SendOutcome::LoginExpired(reason) => {
                // Also seen for old permissions while the login is valid: a poll shows which.
                self.settle(item, started, ItemState::Queued, now, Some(&reason), |s| {
                    s.close_window = Some(reason.clone());
                })
                .await?;
                self.bot.poll_now.notify_one();
                Ok(Next::Wait)
            }
            SendOutcome::Throttled { message, retry_after } => {
                let times = self.count_throttled(item);
                if times >= MAX_THROTTLED {
                    // The cause may be a closed window instead of a limit: the network's text does not tell which.
                    return self.close_window(item, started, message, |s| s.uncount = true).await;
                }
                let pause = (THROTTLE_PAUSE.0 * 2_u32.pow(times - 1)).min(THROTTLE_PAUSE.1);
                let pause = pause.max(retry_after.unwrap_or_default());
                self.postpone(item, started, pause, &message, |s| s.uncount = true).await
            }
            SendOutcome::NotSent(message) => {
                let tries = usize::try_from(item.attempts).unwrap_or(usize::MAX);
                let pause = NOT_SENT_PAUSES.get(tries).copied().unwrap_or(NOT_SENT_PAUSE);
                self.postpone(item, started, pause, &message, |s| s.uncount = true).await
            }
            SendOutcome::Unknown(message) if unknowns == 0 => {
                self.postpone(item, started, UNKNOWN_PAUSE, &message, |s| s.unknown = true).await
            }
            SendOutcome::Unknown(message) => {
                self.settle(item, started, ItemState::Unknown, now, Some(&message), |s| s.unknown = true)
                    .await?;
                Ok(Next::Continue)
            }
        }
    }

    /// Closes the person's window: the item and those after it wait until the person writes.
    async fn close_window(
        &self,
        item: &OpenItem,
        started: Timestamp,
        reason: String,
        more: impl FnOnce(&mut Settled),
    ) -> Result<Next> {
        let (now, reason_text) = (self.ctx.store.now(), Cause::closed_by_network(&reason).to_string());
        self.settle(item, started, ItemState::Queued, now, Some(&reason_text), |s| {
            s.close_window = Some(reason);
            more(s);
        })
        .await?;
        Ok(Next::Wait)
    }

    /// Postpones the item, and with it the person's other items. If the network throttles it, a message of the person
    /// ends the pause: it brings a new permission.
    pub(super) async fn postpone(
        &self,
        item: &OpenItem,
        started: Timestamp,
        pause: Duration,
        message: &str,
        more: impl FnOnce(&mut Settled),
    ) -> Result<Next> {
        let due_at = self.ctx.store.now() + pause;
        self.settle(item, started, ItemState::Queued, due_at, Some(message), |s| {
            s.next_attempt_at = Some(due_at);
            more(s);
        })
        .await?;
        let wrote = Arc::new(Notify::new());
        let is_throttled = {
            let mut state = self.state();
            let is_throttled = state.throttled.contains_key(&item.id);
            if is_throttled {
                state.pauses.insert(item.peer.clone(), Arc::clone(&wrote));
            }
            is_throttled
        };
        let (bot, clock) = (Arc::clone(&self.bot), self.ctx.clock.clone());
        let item = OpenItem { attempts: item.attempts + 1, state: ItemState::Queued, ..item.clone() };
        self.bot.tasks.spawn("send later", async move {
            let is_early = tokio::select! {
                biased;
                () = clock.sleep(pause) => false,
                () = wrote.notified() => true,
                () = bot.tasks.stop_token().cancelled() => return,
            };
            let Some(outbox) = bot.outbox() else { return };
            if is_throttled {
                outbox.end_pause(&item, &wrote, is_early).await;
            }
            outbox.check_people([&*item.peer]);
        });
        Ok(Next::Wait)
    }

    /// Ends the pause of a throttled item. If the person wrote meanwhile, the item is due now and its throttled
    /// tries are reset.
    async fn end_pause(&self, item: &OpenItem, wrote: &Arc<Notify>, is_early: bool) {
        {
            let mut state = self.state();
            if state.pauses.get(&item.peer).is_some_and(|pause| Arc::ptr_eq(pause, wrote)) {
                state.pauses.remove(&item.peer);
            }
            if is_early {
                state.throttled.remove(&item.id);
            }
        }
        if is_early && let Err(error) = self.note_waiting(item, &Cause::PersonWrote.to_string(), None).await {
            self.bot.report("a pause could not be ended", &error);
        }
    }

    /// Stores why a person's items wait and until when, once for each such time.
    pub(super) async fn note_paced(&self, items: &[OpenItem]) -> Result<()> {
        let Some(first) = items.first() else { return Ok(()) };
        let recent = self.recent_sends(&first.peer);
        let (clock, store) = (&self.ctx.clock, &self.ctx.store);
        for (ahead, item) in items.iter().enumerate() {
            let (now, wall) = (clock.instant(), store.now());
            let Some(until) = recent.next_at(&self.rules, ahead).filter(|until| *until > wall) else {
                continue;
            };
            {
                let mut state = self.state();
                if state.paced.get(&item.id).is_some_and(|until| *until > now) {
                    continue;
                }
                if state.paced.len() >= MAX_REMEMBERED {
                    state.paced.retain(|_, until| *until > now);
                }
                state.paced.insert(item.id, now + until.since(wall));
            }
            let sends = self.rules.burst.unwrap_or_default();
            let reason = Cause::Paced { until, sends }.to_string();
            tracing::info!(
                bot_id = %self.bot.lease.bot_id, message_id = %item.message_id, %until,
                "a message is queued: the limit of messages to its person within 5 minutes is reached"
            );
            self.note_waiting(item, &reason, Some(until)).await?;
        }
        Ok(())
    }

    /// Stores the reason why a person's items wait until the person writes, unless it is stored already.
    pub(super) async fn note_closed(&self, items: &[OpenItem], closed: &Cause) -> Result<()> {
        let reason = closed.to_string();
        // An item whose second try has an unknown outcome is not queued again.
        let may_wait = |item: &&OpenItem| item.state == ItemState::Queued || item.unknowns == 0;
        let unsaid = |item: &&OpenItem| item.last_error.as_ref() != Some(&reason);
        for item in items.iter().filter(may_wait).filter(unsaid) {
            tracing::info!(
                bot_id = %self.bot.lease.bot_id, message_id = %item.message_id, reason,
                "a message is queued until its person writes"
            );
            self.note_waiting(item, &reason, None).await?;
        }
        Ok(())
    }

    /// Stores why an item waits, and until when if that is known.
    async fn note_waiting(&self, item: &OpenItem, reason: &str, until: Option<Timestamp>) -> Result<()> {
        // Not the due time that was read, which is by an earlier clock.
        let now = self.ctx.store.now();
        self.settle(item, now, ItemState::Queued, now, Some(reason), |s| {
            s.attempts = item.attempts;
            // An earlier try with an unknown outcome stays counted.
            s.unknown = item.state == ItemState::Sending;
            s.next_attempt_at = until;
        })
        .await
        .map(drop)
    }

    /// Stores the outcome of an attempt that began at `started`, and retries while the store is unavailable;
    /// `false` when the store has another outcome by now, or the item has not expired by the store's clock.
    pub(super) async fn settle(
        &self,
        item: &OpenItem,
        started: Timestamp,
        state: ItemState,
        due_at: Timestamp,
        error: Option<&str>,
        more: impl FnOnce(&mut Settled),
    ) -> Result<bool> {
        if state != ItemState::Queued {
            self.forget_upload(item);
            self.state().throttled.remove(&item.id);
        }
        let mut settled = Settled {
            id: item.id,
            message_id: item.message_id,
            bot_id: self.bot.lease.bot_id,
            parts: item.parts,
            peer: item.peer.clone(),
            attempts: item.attempts + 1,
            window_opened_at: item.window_opened_at,
            state,
            due_at,
            unknown: false,
            uncount: false,
            error: error.map(str::to_owned),
            network_id: None,
            close_window: None,
            next_attempt_at: None,
            stamp: self.shared_clock.stamp(),
            trace: None,
        };
        more(&mut settled);
        settled.trace = trace_of(item, started, &settled);
        if settled.close_window.is_some() {
            self.state().must_write(&item.peer);
        }
        loop {
            match self.ctx.store.settle_send(settled.clone()).await {
                Ok(true) => break,
                Ok(false) => return Ok(false), // Another node sends it by now.
                Err(error) if error.code() == ErrorCode::Unavailable && !self.bot.tasks.stopping() => {
                    self.ctx.clock.sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
        }
        failpoint!("outbox.settled", passed);
        let (bot_id, status) = (self.bot.lease.bot_id, state.as_str().into());
        self.ctx.node.events.notify(Event::Sent { bot_id, message_id: item.message_id, status });
        Ok(true)
    }

    /// Counts one more throttled try of an item.
    fn count_throttled(&self, item: &OpenItem) -> u32 {
        let mut state = self.state();
        let times = state.throttled.entry(item.id).or_default();
        *times += 1;
        let times = *times;
        if times >= MAX_THROTTLED {
            state.throttled.remove(&item.id);
        }
        times
    }

    /// Marks the account as suspect after sends that are accepted without an id, where ids were seen before: people
    /// see none of these messages.
    async fn watch_account(&self, outcome: &SendOutcome) {
        let suspect = {
            let mut state = self.state();
            match outcome {
                SendOutcome::Sent { .. } => {
                    state.confirmed_before = true;
                    state.unconfirmed_in_a_row = 0;
                }
                SendOutcome::AcceptedUnconfirmed => state.unconfirmed_in_a_row += 1,
                _ => {}
            }
            state.confirmed_before && state.unconfirmed_in_a_row >= MAX_UNCONFIRMED
        };
        // The next successful poll sets the bot's status; a first suspicion is reported at once.
        if suspect != self.bot.suspect.swap(suspect, Ordering::Relaxed) && suspect {
            self.bot.set_status(BotStatus::Degraded, Some(&Cause::NoMessageIds.to_string())).await;
        }
    }
}

/// The step `reply` of the message's trace.
fn trace_of(item: &OpenItem, started: Timestamp, settled: &Settled) -> Option<TraceUpdate> {
    let id = item.trace_id?;
    let status = match settled.state {
        ItemState::Sent | ItemState::Unconfirmed => TraceStatus::Ok,
        ItemState::Queued | ItemState::Sending => TraceStatus::Pending,
        ItemState::Failed | ItemState::Unknown | ItemState::Expired => TraceStatus::Error,
    };
    let count = |number: i64| u64::try_from(number).ok();
    let detail = StepDetail {
        to: Some(item.peer.clone()),
        message_id: Some(item.message_id),
        part: count(item.part + 1),
        parts: count(item.parts),
        state: Some(settled.state.as_str().to_owned()),
        network_id: settled.network_id.clone(),
        error: settled.error.as_deref().map(StepError::new),
        next_attempt_at: settled.next_attempt_at,
        ..StepDetail::default()
    };
    let ended = settled.stamp.read.wall;
    let step = Step::new(StepName::Reply, StepKind::Outbox, status, started, ended, detail)
        .of_attempt(u32::try_from(item.attempts + 1).unwrap_or(u32::MAX));
    // A reply is one step of its delivery's trace; any other send has a trace of its own, which ends here.
    let own = !item.dedupe_key.starts_with(<kind::Delivery as Kind>::PREFIX);
    let over =
        own && (status == TraceStatus::Error || (status == TraceStatus::Ok && item.part + 1 == item.parts));
    let summary = settled.error.clone().unwrap_or_else(|| settled.state.as_str().to_owned());
    Some(TraceUpdate {
        id,
        status: over.then_some(status),
        ended: 0,
        summary: own.then_some(summary),
        attempts: None,
        ended_at: settled.stamp.read.wall,
        steps: PackedSteps::new(id, &[step]),
    })
}
