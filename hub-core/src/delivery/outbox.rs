//! Sends for one bot: in order per person, one at a time, within the network's window
//! (`docs/ilink.md#sending-window`).
//!
//! An item is marked `sending`, in a commit, before it is written to the network: after a crash the mark means that
//! its outcome is unknown. Such an item is retried once under the same client id, by which a network can recognise a
//! repeat, and never automatically after that.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use tracing::Instrument;

use self::handover::{Handed, Handover};
use super::node::{BotWork, Engine};
use crate::{
    bots::pacing::RecentSends,
    error::{ErrorCode, Result},
    id::OutboxId,
    model::{private, window::Window},
    network::{Outgoing, WindowRules},
    secret::Secret,
    spans,
    store::{
        due,
        sending::{Begun, ItemState, OpenItem},
    },
    time::{Instant, Timestamp},
    wake::Hint,
};

mod handover;
mod settlement;

/// Items looked at in one round.
const MAX_PER_ROUND: u32 = 500;
/// People written to at the same time.
const MAX_PEERS: usize = 32;
/// What is said of such an account.
pub(super) const SUSPECT: &str = "the network accepts messages without ids; people may not see them";
/// People whose last sends are remembered; beyond that those are forgotten who count for no limit any more.
const MAX_REMEMBERED: usize = 4_096;

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
    recent: HashMap<String, VecDeque<Instant>>,
    /// Until when each item was said to wait for the limit on recent sends.
    paced: HashMap<OutboxId, Instant>,
    /// How often the network throttled each item that waits for it.
    throttled: HashMap<OutboxId, u32>,
    /// Files that the network has and that wait to be sent.
    handed: HashMap<OutboxId, Handed>,
    /// How often each item's file could not be handed over.
    failures: HashMap<OutboxId, u32>,
    confirmed_before: bool,
    unconfirmed_in_a_row: u32,
}

/// Whether the person's next item may follow.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Wait,
    /// The person got as many messages as the network allows within a span.
    Paced,
}

impl Engine {
    /// Starts sending for a bot.
    pub(super) fn start_outbox(self: &Arc<Self>, bot: &Arc<BotWork>) {
        let outbox = Arc::new(Outbox {
            engine: Arc::clone(self),
            bot: Arc::clone(bot),
            rules: self.ctx.config.window_rules(&*bot.network),
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
            return Ok(()); // Kept until there is a new login.
        }
        let store = &self.engine.ctx.store;
        // Of people who were being written to, what is read may be older than what comes of it.
        let writing = self.state().busy.clone();
        let items = store.open_items(self.bot.lease.bot_id, &self.rules, store.now(), MAX_PER_ROUND).await?;
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
        for (place, item) in items.iter().enumerate() {
            if self.bot.tasks.stopping() || self.bot.is_expired() {
                return false;
            }
            match self.send_one(item, sent_now).await {
                Ok(Go::On) => sent_now += 1,
                Ok(Go::Wait) => return false,
                Ok(Go::Paced) => {
                    if let Err(error) = self.note_paced(&items[place..]).await {
                        Engine::report("why items wait could not be stored", &self.bot, &error);
                    }
                    return false;
                }
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
        if !self.bot.wait_for_lease(&self.engine.ctx.clock).await {
            return Ok(Go::Wait);
        }
        let now = self.engine.ctx.store.now();
        if now >= item.expires_at {
            let told = "expired while waiting for the person to write";
            self.settle(item, now, ItemState::Expired, now, Some(told), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Go::On);
        }
        if !due::wait(item.due_at, now).is_zero() || self.waits_for_window(item, sent_now, now) {
            return Ok(Go::Wait);
        }
        let was_unknown = item.state == ItemState::Sending;
        if was_unknown && item.unknowns >= 1 {
            let told = "unknown whether the network accepted it; not retried";
            self.settle(item, now, ItemState::Unknown, now, Some(told), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Go::On);
        }
        failpoint!("outbox.token");
        let Some(token) = self.token(item)? else { return Ok(Go::Wait) };
        // Before anything is marked: no one sees a file that is uploaded and not sent, so this part may be repeated.
        let media = match self.hand_over(item, was_unknown).await? {
            Handover::Nothing => None,
            Handover::Done(media) => Some(media),
            Handover::Not(go) => return Ok(go),
        };
        let go = self.wait_for_gap(item).await;
        if go != Go::On {
            return Ok(go);
        }
        let store = &self.engine.ctx.store;
        let shown_to = self.bot.channels().shown_outbound();
        let begun = Begun {
            lease: self.bot.lease.clone(),
            id: item.id,
            peer: item.peer.clone(),
            shown_to: shown_to.clone(),
            recent_sends: self.recent_sends(&item.peer).to_text(),
            now: store.now(),
        };
        if !store.begin(begun).await? {
            return Ok(Go::Wait);
        }
        for channel in shown_to {
            if self.engine.ctx.node.live.refresh(channel) {
                self.engine.ctx.node.wake.hint(Hint::Log(channel));
            }
        }
        failpoint!("outbox.begun", passed);
        let outgoing = Outgoing {
            to_user_id: item.peer.clone(),
            context_token: token,
            client_id: item.client_id.clone(),
            text: item.text.clone(),
            media,
        };
        let started = self.engine.ctx.store.now();
        let span = spans::outbox_send(self.bot.lease.bot_id, item.message_id, item.trace_id);
        let outcome = self.bot.connection.send(&outgoing).instrument(span.clone()).await;
        span.record("hub.outcome", self.engine.ctx.node.counters.count_send(&outcome));
        failpoint!("outbox.answered", passed);
        // The gap counts from the answer: the network orders by arrival.
        if let Some(last) = self.state().recent.get_mut(&item.peer).and_then(VecDeque::back_mut) {
            *last = self.engine.ctx.clock.instant();
        }
        let unknowns = item.unknowns + i64::from(was_unknown);
        self.conclude(item, unknowns, started, outcome).await
    }

    /// Whether the person has to write first.
    fn waits_for_window(&self, item: &OpenItem, sent_now: u32, now: Timestamp) -> bool {
        let sends =
            u32::try_from(item.window_sends.unwrap_or(0)).unwrap_or(u32::MAX).saturating_add(sent_now);
        let window = Window { opened_at: item.window_opened_at, sends, closed: item.window_closed.clone() };
        window.check(&self.rules, now).is_err()
    }

    fn token(&self, item: &OpenItem) -> Result<Option<Secret>> {
        let sealer = &self.engine.ctx.sealer;
        if let Some(chosen) = private::context_token(sealer, item.message_id, item.private.as_ref())? {
            return Ok(Some(chosen));
        }
        let Some(sealed) = &item.context_token else { return Ok(None) };
        let place = private::token_place(self.bot.lease.bot_id, &item.peer);
        sealer.open(&place, sealed).map(Some)
    }

    /// Keeps the smallest gap between two sends; [`Go::Paced`] when the person got too many of late, [`Go::Wait`] when
    /// the bot is asked to stop.
    async fn wait_for_gap(&self, item: &OpenItem) -> Go {
        let clock = &self.engine.ctx.clock;
        loop {
            let (now, wall) = (clock.instant(), self.engine.ctx.store.now());
            let wait = {
                let mut guard = self.state();
                let state = &mut *guard;
                // What an earlier process or node sent.
                let stored = || {
                    let stored = RecentSends::parse(item.recent_sends.as_deref().unwrap_or_default(), wall);
                    stored.iter().map(|at| now - wall.since(at)).collect()
                };
                let recent = state.recent.entry(item.peer.clone()).or_insert_with(stored);
                while recent.front().is_some_and(|at| now.since(*at) >= WindowRules::BURST_SPAN) {
                    recent.pop_front();
                }
                if self.rules.burst.is_some_and(|burst| recent.len() >= burst as usize) {
                    return Go::Paced; // The next look finds it again.
                }
                let until = recent.back().map_or(now, |last| *last + self.rules.gap);
                if until <= now {
                    if self.rules.burst.is_some() || !self.rules.gap.is_zero() {
                        recent.push_back(now);
                    }
                    state.paced.remove(&item.id);
                    if state.recent.len() > MAX_REMEMBERED {
                        state.recent.retain(|_, sends| {
                            sends.back().is_some_and(|at| now.since(*at) < WindowRules::BURST_SPAN)
                        });
                    }
                    return Go::On;
                }
                until
            };
            tokio::select! {
                biased;
                () = clock.sleep_until(wait) => {}
                () = self.bot.tasks.stop_token().cancelled() => return Go::Wait,
            }
        }
    }

    /// When a person was last sent something, by the clock of the store.
    fn recent_sends(&self, peer: &str) -> RecentSends {
        let (now, wall) = (self.engine.ctx.clock.instant(), self.engine.ctx.store.now());
        let state = self.state();
        state.recent.get(peer).into_iter().flatten().map(|at| wall - now.since(*at)).collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Sending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
