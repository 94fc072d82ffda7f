//! Sends for one bot: in order per person, one at a time, within the network's window
//! (`docs/ilink.md#sending-window`).
//!
//! An item is marked `sending`, in a commit, before it is written to the network: after a crash the mark means that
//! its outcome is unknown. Such an item is retried once under the same client id, by which a network can recognise a
//! repeat, and never automatically after that.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;
use tracing::Instrument;

use self::{
    turns::Turns,
    upload::{CachedUpload, Upload},
};
use super::{bot::BotWork, shared_clock::SharedClock, work_store::WorkContext};
use crate::{
    error::{ErrorCode, Result},
    id::OutboxId,
    model::{cause::Cause, private, window::Window},
    network::{Outgoing, UploadedMedia, WindowRules},
    secret::Secret,
    spans,
    store::{
        due,
        sending::{Begun, ItemState, OpenItem},
    },
    time::{Instant, Timestamp},
    wake::Hint,
};

mod immediate_send;
mod pace;
mod settlement;
mod turns;
mod upload;

pub(super) use turns::Turn;

/// Items read in one round.
const MAX_PER_ROUND: u32 = 500;
/// People found by one search.
const MAX_FOUND: u32 = 500;
/// People whose last sends are kept in memory; beyond that, people whose sends no longer count for a limit are
/// removed.
const MAX_REMEMBERED: usize = 4_096;

#[derive(Debug)]
pub(super) struct Outbox {
    ctx: WorkContext,
    shared_clock: Arc<SharedClock>,
    bot: Arc<BotWork>,
    rules: WindowRules,
    state: Mutex<Sending>,
    /// Notified when someone may get a turn.
    ready: Notify,
}

#[derive(Debug, Default)]
struct Sending {
    turns: Turns,
    /// People who get nothing until they write again, as far as that was noticed; others are found by a search.
    silent: HashSet<String>,
    /// Times of the recent sends to each person, within the span over which bursts are counted.
    recent: HashMap<String, VecDeque<Instant>>,
    /// Time until which each item waits for the limit on recent sends, as its trace shows.
    paced: HashMap<OutboxId, Instant>,
    /// Number of times that the network throttled each waiting item.
    throttled: HashMap<OutboxId, u32>,
    /// Ends the pause of the throttled item of each of these people.
    pauses: HashMap<String, Arc<Notify>>,
    /// Files that the network has and that wait to be sent.
    uploads: HashMap<OutboxId, CachedUpload>,
    /// Number of failed uploads of each item's file.
    failures: HashMap<OutboxId, u32>,
    confirmed_before: bool,
    unconfirmed_in_a_row: u32,
}

/// Whether the person's next item may follow.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Wait,
    /// The person has to write first.
    Closed(Cause),
    /// The person got as many messages as the network allows within a span.
    Paced,
}

impl Sending {
    /// Records that a person gets nothing until they write again.
    fn must_write(&mut self, person: &str) {
        if self.silent.len() < MAX_REMEMBERED {
            self.silent.insert(person.to_owned());
        }
    }
}

impl Outbox {
    /// Creates the outbox of a bot, which may have items from before. It sends once it [runs](Self::run).
    pub(super) fn open(
        ctx: &WorkContext,
        shared_clock: &Arc<SharedClock>,
        bot: &Arc<BotWork>,
        has_items: bool,
    ) -> Arc<Self> {
        let outbox = Arc::new(Self {
            ctx: ctx.clone(),
            shared_clock: Arc::clone(shared_clock),
            bot: Arc::clone(bot),
            rules: ctx.config.window_rules(&*bot.network),
            state: Mutex::default(),
            ready: Notify::new(),
        });
        bot.set_outbox(&outbox);
        if has_items {
            outbox.search();
        }
        outbox
    }

    /// Requests a search for people who may have items to send.
    pub(super) fn search(&self) {
        self.state().turns.search();
        self.ready.notify_one();
    }

    /// Checks these people for items to send.
    pub(super) fn check_people<'p>(&self, people: impl IntoIterator<Item = &'p str>) {
        let mut state = self.state();
        for person in people {
            state.turns.add(person);
        }
        drop(state);
        self.ready.notify_one();
    }

    /// Resumes sending to these people, who just wrote.
    pub(super) fn wrote<'p>(&self, people: impl IntoIterator<Item = &'p str>) {
        let mut state = self.state();
        if state.silent.is_empty() && state.pauses.is_empty() {
            return;
        }
        for person in people {
            if let Some(pause) = state.pauses.get(person) {
                pause.notify_one();
            }
            if state.silent.remove(person) {
                state.turns.add(person);
                self.ready.notify_one();
            }
        }
    }

    pub(super) async fn run(self: &Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.bot.tasks.stop_token().cancelled() => return,
                () = self.ready.notified() => {}
            }
            if self.bot.is_expired() {
                continue; // Kept until there is a new login.
            }
            if let Err(error) = self.give_turns().await {
                self.bot.report("the outbox could not be read", &error);
                self.ctx.clock.sleep(Duration::from_secs(1)).await;
                self.search();
            }
        }
    }

    /// Gives turns to people who wait, as many as there are places.
    async fn give_turns(self: &Arc<Self>) -> Result<()> {
        let (store, bot_id) = (&self.ctx.store, self.bot.lease.bot_id);
        let search = self.state().turns.begin_search();
        if let Some(after) = search {
            let people = store.people_to_write(bot_id, &after, &self.rules, store.now(), MAX_FOUND).await?;
            self.state().turns.found(&people, people.len() < MAX_FOUND as usize);
        }
        // Taken before their items are read, so that the items reflect every earlier send to these people.
        let people = self.state().turns.take_next();
        if people.is_empty() {
            return Ok(());
        }
        let turn = |person: &String| Turn { outbox: Arc::clone(self), person: person.clone() };
        let turns: Vec<Turn> = people.iter().map(turn).collect();
        let read_at = store.now();
        let items = store.open_items(bot_id, &people, &self.rules, read_at, MAX_PER_ROUND).await?;
        let is_all = items.len() < MAX_PER_ROUND as usize;
        let mut by_person: HashMap<String, Vec<OpenItem>> = HashMap::new();
        for item in items {
            by_person.entry(item.peer.clone()).or_default().push(item);
        }
        for turn in turns {
            let Some(items) = by_person.remove(&turn.person) else {
                if !is_all {
                    self.check_people([&*turn.person]);
                }
                continue;
            };
            let outbox = Arc::clone(self);
            self.bot.tasks.spawn("send", async move {
                let went_through = outbox.send_in_order(items, read_at).await;
                if went_through && !is_all {
                    outbox.check_people([&*turn.person]);
                }
            });
        }
        Ok(())
    }

    /// Sends one person's items, as they were read at `read_at`, until one of them has to wait; `true` when none had to.
    async fn send_in_order(&self, items: Vec<OpenItem>, read_at: Timestamp) -> bool {
        for (place, item) in items.iter().enumerate() {
            if self.bot.tasks.stopping() || self.bot.is_expired() {
                return false;
            }
            // The window as read; sends of this run are counted on top.
            let next = self.send_one(item, u32::try_from(place).unwrap_or(u32::MAX), read_at).await;
            if !self.goes_on(next, &items[place..]).await {
                return false;
            }
        }
        true
    }

    /// Returns whether the person's next item may follow. If not, stores the reason for `items`, or logs it.
    async fn goes_on(&self, next: Result<Next>, items: &[OpenItem]) -> bool {
        match next {
            Ok(Next::Continue) => return true,
            Ok(Next::Wait) => {}
            Ok(Next::Closed(closed)) => {
                if let Err(error) = self.note_closed(items, &closed).await {
                    self.bot.report("why items wait could not be stored", &error);
                }
            }
            Ok(Next::Paced) => {
                if let Err(error) = self.note_paced(items).await {
                    self.bot.report("why items wait could not be stored", &error);
                }
            }
            Err(error) => {
                if error.code() != ErrorCode::Unavailable {
                    self.bot.report("an item could not be sent", &error);
                }
                self.ctx.clock.sleep(Duration::from_secs(1)).await;
            }
        }
        false
    }

    async fn send_one(&self, item: &OpenItem, sent_now: u32, read_at: Timestamp) -> Result<Next> {
        if !self.bot.wait_for_lease().await {
            return Ok(Next::Wait);
        }
        let now = self.ctx.store.now();
        if now < read_at {
            // The clock was set back. If the person's window seemed closed, earlier items may be missing.
            self.check_people([&*item.peer]);
            return Ok(Next::Wait);
        }
        if now >= item.expires_at {
            if !self.shared_clock.was_read_by_all() {
                return Ok(Next::Wait);
            }
            let reason = Cause::ExpiredWaiting.to_string();
            let is_over = self
                .settle(item, now, ItemState::Expired, now, Some(&reason), |s| s.attempts = item.attempts)
                .await?;
            // It may only seem expired until its times are shifted by a step of the clock.
            return Ok(if is_over { Next::Continue } else { Next::Wait });
        }
        if !due::wait(item.due_at, now).is_zero() {
            return Ok(Next::Wait);
        }
        let was_unknown = item.state == ItemState::Sending;
        if was_unknown && item.unknowns >= 1 {
            let reason = Cause::NotRetried.to_string();
            self.settle(item, now, ItemState::Unknown, now, Some(&reason), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Next::Continue);
        }
        if let Err(closed) = self.check_window(item, sent_now, now) {
            self.state().must_write(&item.peer);
            return Ok(Next::Closed(closed));
        }
        failpoint!("outbox.token");
        let Some(token) = self.token(item)? else { return Ok(Next::Wait) };
        // Before the item is marked: no one sees a file that is uploaded and not sent, so this part may be
        // repeated.
        let media = match self.upload_file(item, was_unknown).await? {
            Upload::NoFile => None,
            Upload::Done(media) => Some(media),
            Upload::NotDone(next) => return Ok(next),
        };
        let next = self.wait_for_gap(item).await;
        if next != Next::Continue {
            return Ok(next);
        }
        let store = &self.ctx.store;
        let shown_to = self.bot.channels().shown_outbound();
        let begun = Begun {
            lease: self.bot.lease.clone(),
            id: item.id,
            peer: item.peer.clone(),
            shown_to: shown_to.clone(),
            recent_sends: self.recent_sends(&item.peer).to_text(),
            now: store.now(),
        };
        if !store.begin_send(begun).await? {
            return Ok(Next::Wait);
        }
        for channel in shown_to {
            if self.ctx.node.channel_listeners.refresh(channel) {
                self.ctx.node.wake.hint(Hint::Log(channel));
            }
        }
        self.send_marked(item, token, media, was_unknown).await
    }

    /// Sends an item that is marked as being sent, and stores the outcome.
    async fn send_marked(
        &self,
        item: &OpenItem,
        token: Secret,
        media: Option<UploadedMedia>,
        was_unknown: bool,
    ) -> Result<Next> {
        failpoint!("outbox.begun", passed);
        let outgoing = Outgoing {
            to_user_id: item.peer.clone(),
            context_token: token,
            client_id: item.client_id.clone(),
            text: item.text.clone(),
            media,
        };
        let started = self.ctx.store.now();
        let span = spans::outbox_send(self.bot.lease.bot_id, item.message_id, item.trace_id);
        let outcome = self.bot.connection.send(&outgoing).instrument(span.clone()).await;
        span.record("hub.outcome", self.ctx.node.counters.count_send(&outcome));
        failpoint!("outbox.answered", passed);
        // The gap counts from the answer: the network orders by arrival.
        if let Some(last) = self.state().recent.get_mut(&item.peer).and_then(VecDeque::back_mut) {
            *last = self.ctx.clock.instant();
        }
        let unknowns = item.unknowns + i64::from(was_unknown);
        self.conclude(item, unknowns, started, outcome).await
    }

    /// Returns why the person has to write first, if they have to.
    fn check_window(&self, item: &OpenItem, sent_now: u32, now: Timestamp) -> Result<(), Cause> {
        let sends =
            u32::try_from(item.window_sends.unwrap_or(0)).unwrap_or(u32::MAX).saturating_add(sent_now);
        let window = Window { opened_at: item.window_opened_at, sends, closed: item.window_closed.clone() };
        window.check(&self.rules, now).map(drop)
    }

    fn token(&self, item: &OpenItem) -> Result<Option<Secret>> {
        let sealer = &self.ctx.sealer;
        let to = (self.bot.lease.bot_id, &*item.peer);
        let chosen = private::context_token(sealer, item.message_id, to, item.private.as_ref())?;
        // The network refuses old permissions: a repeat uses the person's newest one.
        if chosen.is_some() && (item.attempts == 0 || item.context_token.is_none()) {
            return Ok(chosen);
        }
        let Some(sealed) = &item.context_token else { return Ok(None) };
        sealer.open(&private::token_place(to.0, to.1), sealed).map(Some)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Sending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
