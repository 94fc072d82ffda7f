//! Sends for one bot: in order per person, one at a time, within the network's window
//! (`protocols/ilink.md` §9, §10.4, §13).
//!
//! An item is marked `sending`, in a commit, before it is written to the network: after a crash the mark says
//! that nobody knows what became of it. Such an item is tried once more under the same client id, by which a
//! network can tell a repeat, and then never by itself again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use serde_json::json;
use tracing::Instrument;

use super::node::{BotWork, Engine};
use crate::{
    bots::{BotStatus, window::Window},
    error::{ErrorCode, Result},
    events::Event,
    id::{BotId, Kind, MessageId, OutboxId, TraceId, kind},
    network::{Outgoing, SendOutcome, WindowRules},
    secret::{Sealed, Secret},
    spans,
    store::{
        sending::{ItemState, OpenItem, Settled},
        traces::TraceUpdate,
    },
    time::Timestamp,
    traces::{Step, StepName, TraceStatus, steps_text},
};

/// Items looked at in one round.
const ROUND: u32 = 500;
/// People written to at the same time.
const MAX_PEERS: usize = 32;
/// Pauses after a request that was never written.
const NOT_SENT_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// And when those are used up.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(30);
/// Pause before the one repeat of a send whose outcome is unknown.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(5);
/// First pause after the network throttles; doubles up to the second.
const THROTTLE_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// Throttled tries before an item is given up.
const THROTTLE_TRIES: u32 = 5;
/// Unconfirmed sends in a row, where ids were seen before, that make an account suspect.
const SUSPICIOUS: u32 = 3;
/// What is said of such an account.
pub(super) const SUSPECT: &str = "the network takes messages without giving ids; people may not see them";
/// People whose last sends are remembered; beyond that those are forgotten who count for no limit any more.
const REMEMBERED: usize = 4_096;

/// Where a person's permission to answer is sealed for.
pub(super) fn token_place(bot_id: BotId, user_id: &str) -> String {
    format!("contacts.context_token:{bot_id}:{user_id}")
}

/// One bot's sending.
struct Outbox {
    engine: Arc<Engine>,
    bot: Arc<BotWork>,
    rules: WindowRules,
    state: Mutex<Sending>,
}

#[derive(Default)]
struct Sending {
    /// People being written to.
    busy: HashSet<String>,
    /// When each person was last written to, within the span that bursts are counted over.
    recent: HashMap<String, VecDeque<Timestamp>>,
    /// How often the network throttled each item that waits for it.
    throttled: HashMap<String, u32>,
    confirmed_before: bool,
    unconfirmed_in_a_row: u32,
}

/// Whether the person's next item may follow.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Wait,
}

impl Engine {
    /// Starts sending for a bot.
    pub(super) fn start_outbox(self: &Arc<Self>, bot: &Arc<BotWork>) {
        let outbox = Arc::new(Outbox {
            engine: Arc::clone(self),
            bot: Arc::clone(bot),
            rules: bot.network.window_rules(),
            state: Mutex::default(),
        });
        let (engine, work) = (Arc::clone(self), Arc::clone(bot));
        bot.tasks.spawn("outbox", async move {
            if AssertUnwindSafe(outbox.run()).catch_unwind().await.is_err() {
                engine.start_over(&work, "its outbox panicked").await;
            }
        });
        bot.outbox_ready.notify_one();
    }
}

impl Outbox {
    async fn run(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.bot.tasks.stop_token().cancelled() => return,
                () = self.bot.outbox_ready.notified() => {}
            }
            if let Err(error) = self.start_open_items().await {
                Engine::report("the outbox could not be read", &self.bot, &error);
                self.engine.ctx.clock.sleep(Duration::from_secs(1)).await;
                self.bot.outbox_ready.notify_one();
            }
        }
    }

    /// Starts a task for every person with open items that has none.
    async fn start_open_items(self: &Arc<Self>) -> Result<()> {
        if self.bot.is_expired() {
            return Ok(()); // Kept until there is a new login (`protocols/ilink.md` §13.1).
        }
        let store = &self.engine.ctx.store;
        // Of people who were being written to, what is read may be older than what comes of it.
        let writing = self.state().busy.clone();
        let items = store.open_items(self.bot.lease.bot_id, &self.rules, store.now(), ROUND).await?;
        let mut by_peer: Vec<(String, Vec<OpenItem>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for item in items {
            let place = *places.entry(item.peer.clone()).or_insert_with(|| {
                by_peer.push((item.peer.clone(), Vec::new()));
                by_peer.len() - 1
            });
            by_peer[place].1.push(item);
        }
        for (peer, items) in by_peer {
            {
                let mut state = self.state();
                if state.busy.len() >= MAX_PEERS {
                    return Ok(()); // Each one that ends looks again.
                }
                if writing.contains(&peer) || !state.busy.insert(peer.clone()) {
                    continue;
                }
            }
            let outbox = Arc::clone(self);
            self.bot.tasks.spawn("send", async move {
                let busy = Busy { outbox: &outbox, peer: &peer };
                let went_through = outbox.send_in_order(items).await;
                drop(busy);
                if went_through {
                    // More may have come for this person, or for one there was no slot for.
                    outbox.bot.outbox_ready.notify_one();
                }
            });
        }
        Ok(())
    }

    /// Sends one person's items until one of them has to wait; `true` when none had to.
    async fn send_in_order(&self, items: Vec<OpenItem>) -> bool {
        // The window as read; sends of this run are counted on top.
        let mut sent_now = 0;
        for item in items {
            if self.bot.tasks.stopping() || self.bot.is_expired() {
                return false;
            }
            match self.send_one(&item, sent_now).await {
                Ok(Go::On) => sent_now += 1,
                Ok(Go::Wait) => return false,
                Err(error) => {
                    if error.code() != ErrorCode::Unavailable {
                        Engine::report("an item could not be sent", &self.bot, &error);
                    }
                    self.engine.ctx.clock.sleep(Duration::from_secs(1)).await;
                    return false;
                }
            }
        }
        true
    }

    async fn send_one(&self, item: &OpenItem, sent_now: u32) -> Result<Go> {
        let now = self.engine.ctx.store.now();
        if now.as_millis() >= item.expires_at {
            let told = "it waited too long for the person to write";
            self.settle(item, now, ItemState::Expired, now, Some(told), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Go::On);
        }
        if item.due_at > now.as_millis() || self.waits_for_window(item, sent_now, now) {
            return Ok(Go::Wait);
        }
        let was_unknown = item.state == "sending";
        if was_unknown && item.unknowns >= 1 {
            let told = "nobody knows whether the network took it; not tried again";
            self.settle(item, now, ItemState::Unknown, now, Some(told), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Go::On);
        }
        failpoint!("outbox.token");
        let Some(token) = self.token(item)? else { return Ok(Go::Wait) };
        if !self.wait_for_gap(&item.peer).await {
            return Ok(Go::Wait);
        }
        let (store, id) = (&self.engine.ctx.store, item.id.parse::<OutboxId>()?);
        if !store.begin(&self.bot.lease, id, &item.peer, store.now()).await? {
            return Ok(Go::Wait);
        }
        failpoint!("outbox.begun", passed);
        let outgoing = Outgoing {
            to_user_id: item.peer.clone(),
            context_token: token,
            client_id: item.client_id.clone(),
            text: item.text.clone(),
        };
        let started = self.engine.ctx.store.now();
        let span = spans::outbox_send(self.bot.lease.bot_id, &item.message_id, item.trace_id.as_deref());
        let outcome = self.bot.connection.send(&outgoing).instrument(span.clone()).await;
        span.record("hub.outcome", self.engine.ctx.counters.count_send(&outcome));
        failpoint!("outbox.answered", passed);
        // The gap counts from the answer: the network orders by arrival (ilink §10.4).
        if let Some(last) = self.state().recent.get_mut(&item.peer).and_then(VecDeque::back_mut) {
            *last = self.engine.ctx.clock.now();
        }
        let unknowns = item.unknowns + i64::from(was_unknown);
        self.conclude(item, unknowns, started, outcome).await
    }

    /// Whether the person has to write first.
    fn waits_for_window(&self, item: &OpenItem, sent_now: u32, now: Timestamp) -> bool {
        let sends =
            u32::try_from(item.window_sends.unwrap_or(0)).unwrap_or(u32::MAX).saturating_add(sent_now);
        let window = Window {
            opened_at: item.window_opened_at.map(Timestamp::from_millis),
            sends,
            closed: item.window_closed.clone(),
        };
        window.check(&self.rules, now).is_err()
    }

    fn token(&self, item: &OpenItem) -> Result<Option<Secret>> {
        let Some(sealed) = &item.context_token else { return Ok(None) };
        let place = token_place(self.bot.lease.bot_id, &item.peer);
        self.engine.ctx.sealer.open(&place, &Sealed::from(sealed.clone())).map(Some)
    }

    /// Keeps the smallest gap; `false` when the burst limit is reached or the bot is asked to stop.
    async fn wait_for_gap(&self, peer: &str) -> bool {
        let clock = &self.engine.ctx.clock;
        loop {
            let now = clock.now();
            let wait = {
                let mut state = self.state();
                let recent = state.recent.entry(peer.to_owned()).or_default();
                while recent.front().is_some_and(|at| now.since(*at) >= WindowRules::BURST_SPAN) {
                    recent.pop_front();
                }
                if self.rules.burst.is_some_and(|burst| recent.len() >= burst as usize) {
                    return false; // Long enough to let others go first: the next look finds it again.
                }
                let until = recent.back().map_or(now, |last| *last + self.rules.gap);
                if until <= now {
                    if self.rules.burst.is_some() || !self.rules.gap.is_zero() {
                        recent.push_back(now);
                    }
                    if state.recent.len() > REMEMBERED {
                        state.recent.retain(|_, sends| {
                            sends.back().is_some_and(|at| now.since(*at) < WindowRules::BURST_SPAN)
                        });
                    }
                    return true;
                }
                until
            };
            tokio::select! {
                biased;
                () = clock.sleep_until(wait) => {}
                () = self.bot.tasks.stop_token().cancelled() => return false,
            }
        }
    }

    /// What an outcome means for the item, the window and the items behind it.
    async fn conclude(
        &self,
        item: &OpenItem,
        unknowns: i64,
        started: Timestamp,
        outcome: SendOutcome,
    ) -> Result<Go> {
        let now = self.engine.ctx.store.now();
        self.watch_account(&outcome).await;
        if !matches!(outcome, SendOutcome::Throttled { .. } | SendOutcome::NotSent(_)) {
            self.state().throttled.remove(&item.id);
        }
        match outcome {
            SendOutcome::Sent { network_id } => {
                self.settle(item, started, ItemState::Sent, now, None, |s| s.network_id = Some(network_id))
                    .await?;
                Ok(Go::On)
            }
            SendOutcome::AcceptedUnconfirmed => {
                let told = "the network took it and gave no id";
                self.settle(item, started, ItemState::Unconfirmed, now, Some(told), |_| {}).await?;
                Ok(Go::On)
            }
            SendOutcome::Rejected(reason) => {
                self.settle(item, started, ItemState::Failed, now, Some(&reason), |_| {}).await?;
                Ok(Go::On)
            }
            SendOutcome::WindowClosed(reason) => {
                self.settle(item, started, ItemState::Queued, now, Some(&reason), |s| {
                    s.close_window = Some(reason.clone());
                })
                .await?;
                Ok(Go::Wait)
            }
            SendOutcome::LoginExpired(reason) => {
                // Seen for old permissions while the login is fine: a poll tells which.
                self.settle(item, started, ItemState::Queued, now, Some(&reason), |s| {
                    s.close_window = Some(reason.clone());
                })
                .await?;
                self.bot.poke.notify_one();
                Ok(Go::Wait)
            }
            SendOutcome::Throttled { message, retry_after } => {
                let times = self.count_throttled(item);
                if times >= THROTTLE_TRIES {
                    self.settle(item, started, ItemState::Failed, now, Some(&message), |_| {}).await?;
                    return Ok(Go::On);
                }
                let pause = (THROTTLE_PAUSE.0 * 2_u32.pow(times - 1)).min(THROTTLE_PAUSE.1);
                self.later(item, started, pause.max(retry_after.unwrap_or_default()), &message, |_| {}).await
            }
            SendOutcome::NotSent(message) => {
                let tries = usize::try_from(item.attempts).unwrap_or(usize::MAX);
                let pause = NOT_SENT_PAUSES.get(tries).copied().unwrap_or(NOT_SENT_PAUSE);
                self.later(item, started, pause, &message, |s| s.uncount = true).await
            }
            SendOutcome::Unknown(message) if unknowns == 0 => {
                self.later(item, started, UNKNOWN_PAUSE, &message, |s| s.unknown = true).await
            }
            SendOutcome::Unknown(message) => {
                self.settle(item, started, ItemState::Unknown, now, Some(&message), |s| s.unknown = true)
                    .await?;
                Ok(Go::On)
            }
        }
    }

    /// Puts the item back for a while, and the person's other items behind it.
    async fn later(
        &self,
        item: &OpenItem,
        started: Timestamp,
        pause: Duration,
        message: &str,
        more: impl FnOnce(&mut Settled),
    ) -> Result<Go> {
        let due_at = self.engine.ctx.store.now() + pause;
        self.settle(item, started, ItemState::Queued, due_at, Some(message), more).await?;
        let (bot, clock) = (Arc::clone(&self.bot), self.engine.ctx.clock.clone());
        self.bot.tasks.spawn("send later", async move {
            tokio::select! {
                biased;
                () = clock.sleep(pause) => bot.outbox_ready.notify_one(),
                () = bot.tasks.stop_token().cancelled() => {}
            }
        });
        Ok(Go::Wait)
    }

    /// Stores an outcome of what `started` at that time, as long as storing takes.
    async fn settle(
        &self,
        item: &OpenItem,
        started: Timestamp,
        state: ItemState,
        due_at: Timestamp,
        error: Option<&str>,
        more: impl FnOnce(&mut Settled),
    ) -> Result<()> {
        let now = self.engine.ctx.store.now();
        let message_id: MessageId = item.message_id.parse()?;
        let mut settled = Settled {
            id: item.id.parse()?,
            message_id,
            bot_id: self.bot.lease.bot_id,
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
            now,
            trace: None,
        };
        more(&mut settled);
        settled.trace = trace_of(item, started, &settled);
        loop {
            match self.engine.ctx.store.settle(settled.clone()).await {
                Ok(true) => break,
                Ok(false) => return Ok(()), // Another node tries it by now.
                Err(error) if error.code() == ErrorCode::Unavailable && !self.bot.tasks.stopping() => {
                    self.engine.ctx.clock.sleep(Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
        }
        failpoint!("outbox.settled", passed);
        let (bot_id, status) = (self.bot.lease.bot_id, state.as_str());
        self.engine.ctx.events.tell(Event::Sent { bot_id, message_id, status });
        Ok(())
    }

    /// Counts one more throttled try of an item.
    fn count_throttled(&self, item: &OpenItem) -> u32 {
        let mut state = self.state();
        let times = state.throttled.entry(item.id.clone()).or_default();
        *times += 1;
        let times = *times;
        if times >= THROTTLE_TRIES {
            state.throttled.remove(&item.id);
        }
        times
    }

    /// Sends that are taken without an id, where ids were seen before, mean that people see nothing.
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
            state.confirmed_before && state.unconfirmed_in_a_row >= SUSPICIOUS
        };
        // The next answered poll tells the bot's status; a first suspicion is told at once.
        if suspect != self.bot.suspect.swap(suspect, Ordering::Relaxed) && suspect {
            self.engine.move_bot(&self.bot, BotStatus::Degraded, Some(SUSPECT.to_owned())).await;
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Sending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The step `reply` of the message's trace.
fn trace_of(item: &OpenItem, started: Timestamp, settled: &Settled) -> Option<TraceUpdate> {
    let id: TraceId = item.trace_id.as_deref()?.parse().ok()?;
    let status = match settled.state {
        ItemState::Sent | ItemState::Unconfirmed => TraceStatus::Ok,
        ItemState::Queued => TraceStatus::Pending,
        ItemState::Failed | ItemState::Unknown | ItemState::Expired => TraceStatus::Error,
    };
    let detail = json!({
        "to": item.peer,
        "message_id": item.message_id,
        "part": item.part + 1,
        "parts": item.parts,
        "state": settled.state.as_str(),
        "attempt": item.attempts + 1,
        "network_id": settled.network_id,
        "error": settled.error,
    });
    let step = Step::new(StepName::Reply, "outbox", status, started, settled.now, detail);
    // A reply is one step of its delivery's trace; any other send has a trace of its own, which ends here.
    let own = !item.dedupe_key.starts_with(<kind::Delivery as Kind>::PREFIX);
    let over =
        own && (status == TraceStatus::Error || (status == TraceStatus::Ok && item.part + 1 == item.parts));
    let summary = settled.error.clone().unwrap_or_else(|| settled.state.as_str().to_owned());
    Some(TraceUpdate {
        id,
        status: over.then_some(status.as_str()),
        summary: own.then_some(summary),
        attempts: None,
        ended_at: settled.now.as_millis(),
        steps: steps_text(&[step]),
    })
}

/// Frees the person whatever happens, a panic included.
struct Busy<'o> {
    outbox: &'o Outbox,
    peer: &'o str,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.outbox.state().busy.remove(self.peer);
    }
}
