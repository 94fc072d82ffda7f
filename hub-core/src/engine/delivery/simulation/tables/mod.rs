//! The store as tables in memory: what the statements of `store::{inbox, deliveries, leases, sending, outbox}`
//! do, without SQL. A call is one transaction: it changes nothing or everything.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{
    channels::ChannelRecord,
    delivery::work_store::BacklogRows,
    id::{BotId, ChannelId, DeliveryId, InstallationId, MessageId, NodeId, OutboxId},
    model::{
        bot::BotStatus,
        cause::{Cause, Sentence},
        message::MessageStatus,
        sinks::{SinkKey, WebhookSettings},
        trace::DeliveryState,
    },
    secret::Sealed,
    store::{
        app_events::DueEvent,
        deliveries::{EventJobRow, Finished, HealthReport, JobMessage, JobRow},
        due::{self, Followed, Reading, Stamp, Step, StoredClock},
        inbox::{Accept, AcceptMessage, Accepted, ContactUpdate, MessageRow},
        leases::Lease,
        sending::{ItemState, OpenItem, Permit},
    },
    time::{Instant, Timestamp},
};

mod events;
mod leases;
mod sending;

pub use events::InstalledApp;

/// End of the lease of a bot that no node holds.
pub const FREE: Timestamp = Timestamp::from_millis(0);

/// The network of all bots.
pub const NETWORK: &str = "chat";

/// A bot.
#[derive(Debug)]
pub struct Bot {
    pub credentials: Sealed,
    pub fence: i64,
    pub owner: Option<NodeId>,
    pub until: Timestamp,
    pub cursor: String,
    pub config_rev: i64,
    pub status: BotStatus,
}

/// A delivery.
#[derive(Debug)]
pub struct Delivery {
    pub sink: SinkKey,
    /// Text of the message.
    pub text: String,
    pub bot: BotId,
    pub state: DeliveryState,
    pub claim: i64,
    pub attempts: i64,
    pub due_at: Timestamp,
    pub first_attempt_at: Option<Timestamp>,
    stored: Stored,
}

/// The other columns of a delivery.
#[derive(Debug)]
enum Stored {
    Message(Box<JobRow>),
    Event(Box<EventJobRow>, Box<DueEvent>),
}

/// A message on its way out.
#[derive(Debug)]
pub struct Item {
    pub open: OpenItem,
    pub bot: BotId,
    pub created_at: Timestamp,
    updated_at: Timestamp,
    /// Its place among all items in the order of their commits.
    pub place: usize,
    pub state: Option<ItemState>,
    /// Whether it expired after a step of the clock that no node could tell from a downtime.
    pub is_excused: bool,
}

#[derive(Debug)]
struct Node {
    /// End of its lease.
    until: Timestamp,
    takes_bots: bool,
}

#[derive(Debug, Default)]
struct Contact {
    token: Option<Sealed>,
    opened_at: Option<Timestamp>,
    sends: i64,
    closed: Option<String>,
}

/// Steps forward by more than items live. A node that starts after one takes it for a downtime; what expires for it is
/// excused as long as no node that ran before has read the clock.
#[derive(Debug, Default)]
pub struct LongSteps {
    /// The steps that no such node has read yet.
    unread: Vec<Instant>,
    /// Whether a node took them for a downtime.
    is_hidden: bool,
    /// Whether the clock was set again before any other node read it: none ever knows.
    is_lost: bool,
}

impl LongSteps {
    /// The clock is set, forward by more than items live if `is_long`.
    pub fn set(&mut self, at: Instant, is_long: bool) {
        self.is_lost |= self.is_hidden;
        if is_long {
            self.unread.push(at);
        }
    }

    fn read(&mut self, before: Option<Followed>) {
        match before {
            Some(before) => self.unread.retain(|step| *step <= before.reading.at),
            None => self.is_hidden = true,
        }
        self.is_hidden &= !self.unread.is_empty();
    }

    fn excuses(&self) -> bool {
        self.is_lost || !self.unread.is_empty()
    }
}

/// Everything that is on disk.
#[derive(Debug, Default)]
pub struct Tables {
    pub bots: BTreeMap<BotId, Bot>,
    pub channels: BTreeMap<ChannelId, ChannelRecord>,
    pub apps: BTreeMap<InstallationId, InstalledApp>,
    /// Inbound and outbound messages of a bot by dedupe key.
    pub keys: BTreeMap<(BotId, String), MessageId>,
    /// Dedupe keys of messages that were quarantined as unreadable. There must be none.
    pub quarantined: Vec<String>,
    pub deliveries: BTreeMap<DeliveryId, Delivery>,
    pub outbox: BTreeMap<OutboxId, Item>,
    contacts: BTreeMap<(BotId, String), Contact>,
    clock: Option<StoredClock>,
    pub long_steps: LongSteps,
    nodes: BTreeMap<NodeId, Node>,
    /// Grants of each bot's lease, by node: how often each may rightly deliver one message.
    pub grants: BTreeMap<(BotId, NodeId), usize>,
}

impl Tables {
    pub fn is_fenced(&self, bot: BotId, fence: i64) -> bool {
        self.bots.get(&bot).is_none_or(|bot| bot.fence != fence)
    }

    pub fn accept(&mut self, batch: &Accept) -> Accepted {
        match self.bots.get(&batch.bot_id) {
            Some(bot) if bot.fence == batch.fence && bot.config_rev == batch.config_rev => {}
            Some(bot) if bot.fence == batch.fence => return Accepted::Stale,
            _ => return Accepted::Fenced,
        }
        let mut stored = Vec::new();
        for message in &batch.messages {
            let key = (batch.bot_id, message.row.dedupe_key.clone());
            if self.keys.contains_key(&key) {
                stored.push(None);
                continue;
            }
            self.keys.insert(key, message.row.id);
            if message.row.status == MessageStatus::Quarantined {
                self.quarantined.push(message.row.dedupe_key.clone());
            }
            if let Some(contact) = &message.contact {
                self.update_contact(batch.bot_id, &message.row.from_user_id, contact);
            }
            let mut seqs = Vec::new();
            for route in &message.routes {
                let channel = self.channels.get_mut(&route.channel_id);
                let (Some(taken), Some(channel)) = (&route.taken, channel) else {
                    seqs.push(0);
                    continue;
                };
                channel.last_seq += 1;
                seqs.push(channel.last_seq);
                for new in &taken.deliveries {
                    let row = JobRow {
                        id: new.id,
                        trace_id: route.trace.id,
                        channel_id: route.channel_id,
                        sink: new.sink,
                        lane: new.lane.clone(),
                        seq: channel.last_seq,
                        state: DeliveryState::Pending,
                        attempts: 0,
                        due_at: batch.now,
                        first_attempt_at: None,
                        target_url: None,
                        channel_content: taken.content.clone(),
                        message: job_message(&message.row),
                    };
                    let sink = SinkKey::Channel(route.channel_id, new.sink);
                    let delivery =
                        Delivery::new(sink, batch, message, Stored::Message(Box::new(row)), new.claim);
                    self.deliveries.insert(new.id, delivery);
                }
            }
            for queued in &message.apps {
                let delivery = self.app_delivery(queued, batch, message);
                self.deliveries.extend(queued.delivery.map(|id| (id, delivery)));
            }
            stored.push(Some(seqs));
        }
        if let (Some(bot), Some(cursor)) = (self.bots.get_mut(&batch.bot_id), &batch.cursor) {
            bot.cursor.clone_from(cursor);
        }
        Accepted::Stored(stored)
    }

    fn update_contact(&mut self, bot: BotId, user: &str, update: &ContactUpdate) {
        let contact = self.contacts.entry((bot, user.to_owned())).or_default();
        contact.opened_at = Some(update.opened_at);
        (contact.sends, contact.closed) = (0, None);
        contact.token.clone_from(&update.context_token);
    }

    pub fn backlog(&self, lease: &Lease, full: &[SinkKey], now: Timestamp, limit: u32) -> BacklogRows {
        let open = || {
            self.deliveries.values().filter(|delivery| {
                delivery.bot == lease.bot_id
                    && delivery.claim != lease.fence
                    && delivery.is_open(now)
                    && !full.contains(&delivery.sink)
            })
        };
        let messages = open().filter_map(Delivery::job_row).map(Ok).take(limit as usize).collect();
        BacklogRows {
            messages,
            events: open().filter_map(Delivery::event_row).take(limit as usize).collect(),
        }
    }

    pub fn claim(&mut self, ids: &[DeliveryId], fence: i64) -> HashSet<DeliveryId> {
        let mut claimed = HashSet::new();
        for id in ids {
            if let Some(delivery) = self.deliveries.get_mut(id)
                && self.bots.get(&delivery.bot).is_some_and(|bot| bot.fence == fence)
            {
                delivery.claim = fence;
                claimed.insert(*id);
            }
        }
        claimed
    }

    pub fn disclaim(&mut self, ids: &[DeliveryId], fence: i64) {
        for id in ids {
            if let Some(delivery) = self.deliveries.get_mut(id).filter(|delivery| delivery.claim == fence) {
                delivery.claim = 0;
            }
        }
    }

    /// The step that an outcome of `stamp` is moved by before it is stored.
    pub(super) fn step_for(&self, stamp: Stamp, now: Reading) -> Option<Step> {
        self.clock.and_then(|noted| noted.step_for(stamp, now))
    }

    pub fn finish(&mut self, mut finished: Arc<Finished>, now: Reading) -> Option<Permit> {
        if let Some(step) = self.step_for(finished.stamp, now) {
            Arc::make_mut(&mut finished).follow(step);
        }
        let bot = self.deliveries.get(&finished.id)?.bot;
        if self.is_fenced(bot, finished.fence) {
            return None;
        }
        let delivery = self.deliveries.get_mut(&finished.id)?;
        if delivery.attempts != finished.attempts - 1 {
            return None;
        }
        // What ended well is kept here, for the check at the end: nothing else reads it.
        delivery.state = finished.state;
        delivery.claim = if finished.keep { finished.fence } else { 0 };
        delivery.attempts = finished.attempts;
        delivery.due_at = finished.due_at;
        delivery.first_attempt_at = Some(finished.first_attempt_at);
        let permit = self.enqueue_replies(&finished);
        if let Some(health) = &finished.health
            && health.report == HealthReport::Gone
            && let Some(channel) = self.channels.get_mut(&health.channel)
            && channel.webhook_disabled.is_none()
        {
            channel.webhook_disabled = Some("gone".to_owned());
            if let Some(bot) = self.bots.get_mut(&bot) {
                bot.config_rev += 1;
            }
        }
        permit
    }

    pub fn abandon(&mut self, id: DeliveryId, fence: i64) -> bool {
        let Some(delivery) = self.deliveries.get_mut(&id).filter(|delivery| delivery.claim == fence) else {
            return false;
        };
        if self.bots.get(&delivery.bot).is_none_or(|bot| bot.fence != fence) {
            return false;
        }
        (delivery.state, delivery.claim) = (DeliveryState::Dead, 0);
        true
    }

    pub fn webhook(&self, channel: ChannelId) -> WebhookSettings {
        self.channels[&channel].webhook().expect("the settings were written by the simulation")
    }
}

impl Delivery {
    fn new(sink: SinkKey, batch: &Accept, message: &AcceptMessage, stored: Stored, claim: i64) -> Self {
        Self {
            sink,
            text: message.row.content.clone(),
            bot: batch.bot_id,
            state: DeliveryState::Pending,
            claim,
            attempts: 0,
            due_at: batch.now,
            first_attempt_at: None,
            stored,
        }
    }

    fn job_row(&self) -> Option<JobRow> {
        let Stored::Message(row) = &self.stored else { return None };
        let Self { state, attempts, due_at, first_attempt_at, .. } = *self;
        Some(JobRow { state, attempts, due_at, first_attempt_at, ..(**row).clone() })
    }

    fn event_row(&self) -> Option<EventJobRow> {
        let Stored::Event(row, _) = &self.stored else { return None };
        let Self { state, attempts, due_at, first_attempt_at, .. } = *self;
        Some(EventJobRow { state, attempts, due_at, first_attempt_at, ..(**row).clone() })
    }

    fn is_open(&self, now: Timestamp) -> bool {
        match self.state {
            DeliveryState::Pending => true,
            DeliveryState::Parked => due::wait(self.due_at, now).is_zero(),
            _ => false,
        }
    }

    pub fn is_over(&self) -> bool {
        !matches!(self.state, DeliveryState::Pending | DeliveryState::Parked)
    }
}

impl Item {
    pub fn is_open(&self) -> bool {
        self.state.is_none()
    }

    fn is_unexplained(&self) -> bool {
        let OpenItem { last_error, state, due_at, .. } = &self.open;
        last_error.is_none() || *state == ItemState::Sending || *due_at > self.updated_at
    }

    /// Whether its reason says that the person has to write.
    pub fn waits_for_person(&self) -> bool {
        let cause = self.open.last_error.cause();
        matches!(
            cause,
            Some(Cause::WroteTooLongAgo { .. } | Cause::SendsUsedUp | Cause::ClosedByNetwork { .. })
        )
    }
}

fn job_message(row: &MessageRow) -> JobMessage {
    JobMessage {
        message_id: row.id,
        from_user_id: row.from_user_id.clone(),
        user_name: row.user_name.clone(),
        peer: row.peer.clone(),
        session_id: row.session_id.clone(),
        group_id: row.group_id.clone(),
        kind: row.kind,
        content: row.content.clone(),
        items: row.items.clone(),
        quoted: row.quoted.clone(),
        private: row.private.clone(),
        sent_at: row.sent_at,
    }
}
