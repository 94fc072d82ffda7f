//! The world around the nodes: what people wrote, what the receiver was sent, what is on disk, which faults occur,
//! and the ledger that compares them. One lock around all of it; nothing waits while holding it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{
    store::{CommitResult, Waiting},
    tables::{Delivery, Tables},
};
use crate::{
    id::{BotId, DeliveryId, NodeId, OutboxId},
    model::{
        sinks::{Ordering, SinkId, SinkKey},
        trace::DeliveryState,
    },
    network::Outgoing,
    random::Random,
    store::sending::ItemState,
    time::{ManualClock, Timestamp},
};

/// The world, shared by all nodes of a run.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

/// Faults that may occur in a run. Each seed picks some of them: faults that always come together hide one another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Nodes are killed and start again.
    pub crashes: bool,
    /// Nodes are paused, long enough to lose their leases.
    pub pauses: bool,
    /// Commits fail.
    pub commits: bool,
    /// Commits succeed, and the caller gets an error.
    pub unacknowledged: bool,
    /// Reads fail.
    pub reads: bool,
    /// Reads are old.
    pub slow_reads: bool,
    /// The chat network fails, and the outcome of sends is unknown.
    pub network: bool,
    /// The chat network repeats itself.
    pub repeats: bool,
    /// The receiver fails, is slow, asks for pauses.
    pub receiver: bool,
    /// The receiver wants nothing more.
    pub gone: bool,
    /// The wall clock is set back and forth.
    pub clock: bool,
}

/// A message that a person wrote.
#[derive(Debug, Clone)]
pub struct PeerMessage {
    pub peer: String,
    pub text: String,
    pub at: Timestamp,
}

/// Delivery of one message to one sink, as the receiver saw it.
#[derive(Debug, Default)]
struct Delivered {
    id: Option<DeliveryId>,
    /// Nodes whose request was answered with a success, once for each.
    accepted: Vec<NodeId>,
}

pub struct World {
    random: Random,
    pub clock: ManualClock,
    pub faults: Faults,
    pub tables: Tables,
    /// Messages to each bot, in the order of the network.
    pub messages: BTreeMap<BotId, Vec<PeerMessage>>,
    pub new_message: Arc<Notify>,
    /// Ids that the nodes gave themselves.
    pub nodes: BTreeMap<usize, NodeId>,
    waiting: VecDeque<Waiting>,
    /// Everything that happened, for comparing runs and for reading one.
    pub log: Vec<String>,
    /// Grows whenever a node does something that others can see.
    pub activity: u64,
    delivered: BTreeMap<(SinkKey, String), Delivered>,
    /// Sink and text of the message of each delivery.
    ids: BTreeMap<DeliveryId, (SinkKey, String)>,
    /// Sends that the network took, by client id.
    sent: BTreeMap<String, usize>,
    /// Client ids of replies by their text, which is one per delivery and attempt.
    replies: BTreeMap<String, BTreeSet<String>>,
    /// The first broken promise.
    pub violation: Option<String>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl World {
    pub fn new(random: Random, clock: ManualClock, faults: Faults) -> Self {
        Self {
            random,
            clock,
            faults,
            tables: Tables::default(),
            messages: BTreeMap::new(),
            new_message: Arc::default(),
            nodes: BTreeMap::new(),
            waiting: VecDeque::new(),
            log: Vec::new(),
            activity: 0,
            delivered: BTreeMap::new(),
            ids: BTreeMap::new(),
            sent: BTreeMap::new(),
            replies: BTreeMap::new(),
            violation: None,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Once in `n` times.
    pub fn chance(&self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    pub fn note(&mut self, what: impl fmt::Display) {
        self.activity += 1;
        let at = self.now().as_millis() - super::START.as_millis();
        self.log.push(format!("{at:>7} {what}"));
    }

    fn violate(&mut self, violation: impl fmt::Display) {
        let violation = violation.to_string();
        self.note(format_args!("VIOLATION: {violation}"));
        self.violation.get_or_insert(violation);
    }

    // The committer.

    pub fn submit(&mut self, write: Waiting) {
        self.activity += 1;
        self.waiting.push_back(write);
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// One transaction for the first of the writes that wait.
    pub fn commit(&mut self) {
        let most = self.waiting.len() as u64;
        let count = if self.chance(3) { 1 + self.below(most) } else { most };
        let result = if self.faults.commits && self.chance(12) {
            CommitResult::Failed
        } else if self.faults.unacknowledged && self.chance(12) {
            CommitResult::Unacknowledged
        } else {
            CommitResult::Committed
        };
        let batch: Vec<Waiting> = (0..count).filter_map(|_| self.waiting.pop_front()).collect();
        for write in batch {
            let node = write.node;
            let what = write.end(&mut self.tables, result);
            self.note(format_args!("n{node} {what}: {result:?}"));
        }
    }

    /// Ends the writes of a killed node: a first part of them may have been committed, and the rest never was.
    pub fn abandon_writes(&mut self, node: usize) {
        let (mine, others): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(|write| write.node == node);
        self.waiting = others;
        let committed = self.below(mine.len() as u64 + 1);
        for (write, place) in mine.into_iter().zip(0..) {
            let result = if place < committed { CommitResult::Unacknowledged } else { CommitResult::Failed };
            let what = write.end(&mut self.tables, result);
            self.note(format_args!("n{node} {what}: {result:?} in the crash"));
        }
    }

    // The chat network.

    pub fn write(&mut self, bot: BotId, peer: &str) {
        let at = self.now();
        let messages = self.messages.entry(bot).or_default();
        let text = format!("{}:{peer}:{}", bot.as_u128(), messages.len());
        messages.push(PeerMessage { peer: peer.to_owned(), text: text.clone(), at });
        self.note(format_args!("wrote {text}"));
        self.new_message.notify_waiters();
    }

    /// Lets people write if items wait for that, according to the reasons that the hub stored.
    pub fn answer_silence(&mut self) {
        let silent: BTreeSet<(BotId, String)> = self
            .tables
            .outbox
            .values()
            .filter(|item| item.is_open() && item.waits_for_person())
            .map(|item| (item.bot, item.open.peer.clone()))
            .collect();
        for (bot, peer) in silent {
            self.write(bot, &peer);
        }
    }

    /// A poll acknowledges what is before its cursor: all of that has to be on disk.
    pub fn poll(&mut self, bot: BotId, cursor: usize) {
        self.note(format_args!("poll {} from {cursor}", bot.as_u128()));
        let lost = self.messages[&bot]
            .iter()
            .take(cursor)
            .find(|message| !self.tables.keys.contains_key(&(bot, message.text.clone())))
            .map(|message| message.text.clone());
        if let Some(text) = lost {
            self.violate(format_args!("{text} was acknowledged and is not on disk"));
        }
    }

    pub fn send(&mut self, bot: BotId, outgoing: &Outgoing) {
        let Outgoing { to_user_id, client_id, text, .. } = outgoing;
        self.note(format_args!("send {to_user_id} {text}"));
        let known = text.split(' ').nth(1).and_then(|id| id.parse::<DeliveryId>().ok());
        let Some((_, message)) = known.and_then(|id| self.ids.get(&id).cloned()) else {
            return self.violate(format_args!("the reply {text:?} was never requested"));
        };
        if !message.starts_with(&format!("{}:{to_user_id}:", bot.as_u128())) {
            self.violate(format_args!("the reply {text:?} went to {to_user_id}"));
        }
        // Ids are given before the commit, so two replies may be stored the other way round: then either may go
        // first. What is earlier in both ways goes first.
        let own = self.tables.outbox.values().find(|item| item.open.client_id == *client_id);
        let own = own.map_or((OutboxId::MAX, 0), |own| (own.open.id, own.place));
        let overtaken = self.tables.outbox.values().find(|item| {
            let same = item.bot == bot && item.open.peer == *to_user_id;
            same && item.is_open() && item.open.id < own.0 && item.place < own.1
        });
        let overtaken = overtaken.map(|item| item.open.text.clone());
        let first = !self.sent.contains_key(client_id);
        if let Some(overtaken) = overtaken.filter(|_| first) {
            self.violate(format_args!("{text:?} overtook {overtaken:?}"));
        }
        let delivery = known.map(|id| id.to_string()).unwrap_or_default();
        let handles = self.replies.entry(delivery).or_default();
        handles.insert(client_id.clone());
        if handles.len() > 1 {
            self.violate(format_args!("a delivery replied twice: {text:?}"));
        }
        let times = self.sent.entry(client_id.clone()).or_default();
        *times += 1;
        if *times > 2 {
            self.violate(format_args!("{text:?} was sent a third time"));
        }
    }

    // The receiver.

    /// A request arrived; `ok` when it is answered with a success.
    pub fn receive(&mut self, node: usize, sink: SinkKey, id: DeliveryId, text: &str, ok: bool) {
        let (name, done) = (name(sink), if ok { "taken" } else { "refused" });
        self.note(format_args!("n{node} -> {name}: {text} {done}"));
        let Some((bot, place)) = self.find(text) else {
            return self.violate(format_args!("{text:?} was never written"));
        };
        let key = (sink, text.to_owned());
        if self.ids.entry(id).or_insert_with(|| key.clone()) != &key {
            self.violate(format_args!("{id} is the id of two messages"));
        }
        let delivered = self.delivered.entry(key).or_default();
        if delivered.id.get_or_insert(id) != &id {
            return self.violate(format_args!("{text} has two ids"));
        }
        let first = delivered.accepted.is_empty();
        let node = self.nodes.get(&node).copied();
        if let Some(node) = node.filter(|_| ok) {
            delivered.accepted.push(node);
            let times = delivered.accepted.iter().filter(|by| **by == node).count();
            let granted = self.tables.grants.get(&(bot, node)).copied().unwrap_or(0);
            if times > granted {
                self.violate(format_args!("{text} was delivered {times} times under {granted} lease(s)"));
            }
        }
        let is_ordered = match sink {
            SinkKey::Channel(channel, _) => self.tables.webhook(channel).ordering == Ordering::Conversation,
            SinkKey::App(_) => true,
        };
        if first && is_ordered {
            self.check_order(bot, sink, place);
        }
    }

    /// Whatever the same person wrote before was delivered already, or is out of its lane.
    fn check_order(&mut self, bot: BotId, sink: SinkKey, place: usize) {
        let messages = &self.messages[&bot];
        let peer = &messages[place].peer;
        let waiting = messages[..place].iter().filter(|earlier| earlier.peer == *peer).find(|earlier| {
            let key = (sink, earlier.text.clone());
            let taken = self.delivered.get(&key).is_some_and(|delivered| !delivered.accepted.is_empty());
            !taken && !self.is_out_of_lane(sink, &earlier.text)
        });
        if let Some(earlier) = waiting.map(|earlier| earlier.text.clone()) {
            let text = messages[place].text.clone();
            self.violate(format_args!("{text} overtook {earlier} in {}", name(sink)));
        }
    }

    /// Whether a message is out of its lane, or was never in it because the channel was off.
    fn is_out_of_lane(&self, sink: SinkKey, text: &str) -> bool {
        match (self.delivery(sink, text), sink) {
            (Some(delivery), _) => delivery.is_over() || delivery.state == DeliveryState::Parked,
            (None, SinkKey::Channel(channel, _)) => !self.tables.webhook(channel).enabled,
            (None, SinkKey::App(_)) => false,
        }
    }

    fn delivery(&self, sink: SinkKey, text: &str) -> Option<&Delivery> {
        self.tables.deliveries.values().find(|delivery| delivery.sink == sink && delivery.text == text)
    }

    fn find(&self, text: &str) -> Option<(BotId, usize)> {
        let mut parts = text.split(':');
        let bot = BotId::from_u128(parts.next()?.parse().ok()?);
        let place: usize = parts.nth(1)?.parse().ok()?;
        let message = self.messages.get(&bot)?.get(place)?;
        (message.text == text).then_some((bot, place))
    }

    // The end.

    /// Returns the work that is not done yet; empty when every message was delivered everywhere it should be.
    pub fn unsettled(&self) -> Vec<String> {
        let mut unsettled = Vec::new();
        for (bot, messages) in &self.messages {
            for message in messages {
                if !self.tables.keys.contains_key(&(*bot, message.text.clone())) {
                    unsettled.push(format!("{} is not on disk", message.text));
                }
            }
        }
        let quarantined = &self.tables.quarantined;
        unsettled.extend(quarantined.iter().map(|key| format!("{key} was readable and is quarantined")));
        for (id, delivery) in &self.tables.deliveries {
            if !delivery.is_over() {
                let Delivery { text, state, claim, due_at, .. } = delivery;
                unsettled.push(format!("{text} is {state:?}, {id}, claim {claim}, due {due_at}"));
            }
        }
        for item in self.tables.outbox.values().filter(|item| item.is_open()) {
            let (text, state, due) = (&item.open.text, item.open.state, item.open.due_at);
            unsettled.push(format!("reply {text:?} is {state}, due {due}"));
        }
        unsettled
    }

    /// Compares the tables at the end with what the receiver got.
    pub fn check_end(&mut self) {
        let mut wrong = Vec::new();
        for (bot, messages) in &self.messages {
            let channels = self.tables.channels.values().filter(|channel| channel.bot_id == *bot);
            let channels = channels.map(|channel| {
                (SinkKey::Channel(channel.id, SinkId::Webhook), channel.webhook_disabled.is_some())
            });
            let apps = self.tables.apps.iter().filter(|(_, app)| app.runtime.app.bot_id == *bot);
            let apps = apps.map(|(id, _)| (SinkKey::App(*id), false));
            for (sink, is_disabled) in channels.chain(apps) {
                for message in messages {
                    let taken = self
                        .delivered
                        .get(&(sink, message.text.clone()))
                        .is_some_and(|delivered| !delivered.accepted.is_empty());
                    let state = self.delivery(sink, &message.text).map(|delivery| delivery.state);
                    let is_right = match state {
                        Some(DeliveryState::Done) => taken,
                        Some(DeliveryState::Dead) => true,
                        Some(_) => false,
                        None => is_disabled,
                    };
                    if !is_right {
                        wrong.push(format!("{} is {state:?}, and taken: {taken}", message.text));
                    }
                }
            }
        }
        // Everyone wrote again: what waited for that was sent. Only the network makes an outcome unknown.
        let unsent = self.tables.outbox.values().filter(|item| match item.state {
            Some(ItemState::Sent | ItemState::Unknown) => false,
            Some(ItemState::Expired) => !item.is_excused,
            _ => true,
        });
        wrong.extend(unsent.map(|item| format!("the reply {:?} is {:?}", item.open.text, item.state)));
        for wrong in wrong {
            self.violate(wrong);
        }
    }
}

/// The short name of a sink in the log of a run.
fn name(sink: SinkKey) -> String {
    match sink {
        SinkKey::Channel(channel, _) => format!("channel {}", channel.as_u128()),
        SinkKey::App(installation) => format!("app {}", installation.as_u128()),
    }
}
