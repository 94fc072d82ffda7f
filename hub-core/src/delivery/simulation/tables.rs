//! The store as tables in memory: what the statements of `store::{inbox, deliveries, leases, sending, outbox}`
//! do, without SQL. A call is one transaction: it changes nothing or everything.

use std::collections::{BTreeMap, HashSet};

use crate::{
    channels::ChannelRecord,
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, NodeId, OutboxId, UserId},
    model::{
        bot::BotStatus,
        sinks::{SinkKey, WebhookSettings},
        trace::DeliveryState,
    },
    network::WindowRules,
    secret::Sealed,
    store::{
        deliveries::{Finished, HealthReport, JobMessage, JobRow},
        due::{self, Followed, Noted, Reading, Step},
        inbox::{Accept, Accepted, ContactUpdate, MessageRow},
        leases::{Lease, WorkRow},
        outbox::NewOutbound,
        sending::{ItemState, OpenItem, Settled},
    },
    time::Timestamp,
};

/// When the lease of a bot ends that no node has.
pub const FREE: Timestamp = Timestamp::from_millis(0);

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
    pub row: JobRow,
    pub bot: BotId,
    pub state: DeliveryState,
    pub claim: i64,
}

/// A message on its way out.
#[derive(Debug)]
pub struct Item {
    pub open: OpenItem,
    pub bot: BotId,
    /// Its place among all items in the order of their commits.
    pub place: usize,
    pub state: Option<ItemState>,
}

#[derive(Debug, Default)]
struct Contact {
    token: Option<Sealed>,
    opened_at: Option<Timestamp>,
    sends: i64,
    closed: Option<String>,
}

/// Everything that is on disk.
#[derive(Debug, Default)]
pub struct Tables {
    pub bots: BTreeMap<BotId, Bot>,
    pub channels: BTreeMap<ChannelId, ChannelRecord>,
    /// Inbound and outbound messages of a bot by dedupe key.
    pub keys: BTreeMap<(BotId, String), MessageId>,
    /// Dedupe keys of messages that were put aside as unreadable. None is.
    pub quarantined: Vec<String>,
    pub deliveries: BTreeMap<DeliveryId, Delivery>,
    pub outbox: BTreeMap<OutboxId, Item>,
    contacts: BTreeMap<(BotId, String), Contact>,
    clock: Option<Noted>,
    /// Grants of each bot's lease, by node: how often each may rightly deliver one message.
    pub grants: BTreeMap<(BotId, NodeId), usize>,
}

impl Tables {
    pub fn is_fenced(&self, bot: BotId, fence: i64) -> bool {
        self.bots.get(&bot).is_none_or(|bot| bot.fence != fence)
    }

    pub fn void_leases(&mut self) {
        for bot in self.bots.values_mut() {
            (bot.owner, bot.until) = (None, FREE);
        }
    }

    pub fn extend_leases(&mut self, node: NodeId, now: Timestamp, until: Timestamp) -> Vec<Lease> {
        let mut held = Vec::new();
        for (id, bot) in &mut self.bots {
            if bot.owner != Some(node) {
                if bot.until > now {
                    continue;
                }
                bot.owner = Some(node);
                bot.fence += 1;
                *self.grants.entry((*id, node)).or_default() += 1;
            }
            bot.until = until;
            held.push(Lease { bot_id: *id, fence: bot.fence });
        }
        held
    }

    pub fn release_leases(&mut self, node: NodeId) {
        for bot in self.bots.values_mut().filter(|bot| bot.owner == Some(node)) {
            (bot.owner, bot.until) = (None, FREE);
        }
    }

    pub fn give_up_lease(&mut self, lease: &Lease) {
        if let Some(bot) = self.bots.get_mut(&lease.bot_id).filter(|bot| bot.fence == lease.fence) {
            (bot.owner, bot.until) = (None, FREE);
        }
    }

    pub fn follow_clock(&mut self, before: Option<Followed>, reading: Reading) -> (Followed, Option<Step>) {
        let noted = self.clock.unwrap_or(Noted { seen_at: reading.wall, moved_ms: 0 });
        let (followed, step) = noted.follow(before, reading);
        self.clock = Some(followed.into());
        if let Some(step) = step {
            self.shift(step);
        }
        (followed, step)
    }

    fn shift(&mut self, step: Step) {
        let shift = |at: &mut Timestamp| *at = step.apply(*at);
        for bot in self.bots.values_mut() {
            shift(&mut bot.until);
        }
        for delivery in self.deliveries.values_mut().filter(|one| !one.is_over()) {
            shift(&mut delivery.row.due_at);
            if let Some(at) = &mut delivery.row.first_attempt_at {
                shift(at);
            }
        }
        for item in self.outbox.values_mut().filter(|one| one.is_open()) {
            shift(&mut item.open.due_at);
            shift(&mut item.open.expires_at);
        }
    }

    pub fn work(&self, lease: &Lease) -> Option<WorkRow> {
        let bot = self.bots.get(&lease.bot_id).filter(|bot| bot.fence == lease.fence)?;
        Some(WorkRow {
            network: "chat".to_owned(),
            credentials: bot.credentials.clone(),
            cursor: bot.cursor.clone(),
            status: bot.status,
            wx_id: String::new(),
            owner_id: UserId::from_u128(0),
            last_message_id: self.last_message(lease.bot_id),
            last_delivery_id: self.last_delivery(lease.bot_id),
        })
    }

    fn last_message(&self, bot: BotId) -> Option<MessageId> {
        self.keys.iter().filter(|((of, _), _)| *of == bot).map(|(_, id)| *id).max()
    }

    fn last_delivery(&self, bot: BotId) -> Option<DeliveryId> {
        let open = self.deliveries.iter().filter(|(_, one)| one.bot == bot && !one.is_over());
        open.map(|(id, _)| *id).max()
    }

    pub fn with_work(&self, node: NodeId, now: Timestamp) -> (Vec<BotId>, Vec<BotId>) {
        let mine = || self.bots.iter().filter(|(_, bot)| bot.owner == Some(node));
        let deliveries = mine().filter(|(id, bot)| {
            self.deliveries.values().any(|d| d.bot == **id && d.claim != bot.fence && d.is_open(now))
        });
        let outbox =
            mine().filter(|(id, _)| self.outbox.values().any(|item| item.bot == **id && item.is_open()));
        (deliveries.map(|(id, _)| *id).collect(), outbox.map(|(id, _)| *id).collect())
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
            if message.row.status == "quarantined" {
                self.quarantined.push(message.row.dedupe_key.clone());
            }
            if let Some(contact) = &message.contact {
                self.hear(batch.bot_id, &message.row.from_user_id, contact);
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
                    let (bot, state) = (batch.bot_id, DeliveryState::Pending);
                    self.deliveries.insert(new.id, Delivery { row, bot, state, claim: new.claim });
                }
            }
            stored.push(Some(seqs));
        }
        if let (Some(bot), Some(cursor)) = (self.bots.get_mut(&batch.bot_id), &batch.cursor) {
            bot.cursor.clone_from(cursor);
        }
        Accepted::Stored(stored)
    }

    fn hear(&mut self, bot: BotId, user: &str, heard: &ContactUpdate) {
        let contact = self.contacts.entry((bot, user.to_owned())).or_default();
        if Some(heard.opened_at) >= contact.opened_at {
            contact.opened_at = Some(heard.opened_at);
            (contact.sends, contact.closed) = (0, None);
            contact.token.clone_from(&heard.context_token);
        }
    }

    pub fn backlog(
        &self,
        lease: &Lease,
        full: &[SinkKey],
        now: Timestamp,
        limit: u32,
    ) -> Vec<Result<JobRow>> {
        let open = self.deliveries.values().filter(|delivery| {
            delivery.bot == lease.bot_id
                && delivery.claim != lease.fence
                && delivery.is_open(now)
                && !full.contains(&SinkKey { channel: delivery.row.channel_id, sink: delivery.row.sink })
        });
        open.take(limit as usize).map(|delivery| Ok(delivery.row.clone())).collect()
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

    pub fn finish(&mut self, finished: &Finished) {
        let Some(bot) = self.deliveries.get(&finished.id).map(|delivery| delivery.bot) else { return };
        if self.is_fenced(bot, finished.fence) {
            return;
        }
        let Some(delivery) = self.deliveries.get_mut(&finished.id) else { return };
        if delivery.row.attempts != finished.attempts - 1 {
            return;
        }
        delivery.state = finished.state;
        delivery.claim = if finished.keep { finished.fence } else { 0 };
        let row = &mut delivery.row;
        row.state = finished.state;
        row.attempts = finished.attempts;
        row.due_at = finished.due_at;
        row.first_attempt_at = Some(finished.first_attempt_at);
        for reply in &finished.replies {
            self.enqueue(reply);
        }
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

    pub fn reply(&mut self, lease: &Lease, replies: &[NewOutbound]) -> bool {
        if self.is_fenced(lease.bot_id, lease.fence) {
            return false;
        }
        for reply in replies {
            self.enqueue(reply);
        }
        true
    }

    fn enqueue(&mut self, new: &NewOutbound) {
        let key = (new.bot_id, new.dedupe_key.clone());
        if self.keys.contains_key(&key) {
            return;
        }
        self.keys.insert(key, new.message_id);
        for (place, part) in (0..).zip(&new.parts) {
            let open = OpenItem {
                id: part.id,
                message_id: new.message_id,
                trace_id: new.trace_id,
                dedupe_key: new.dedupe_key.clone(),
                peer: new.peer.clone(),
                part: place,
                parts: i64::try_from(new.parts.len()).unwrap_or(1),
                client_id: part.client_id.clone(),
                text: part.text.clone(),
                media_id: None,
                state: ItemState::Queued,
                attempts: 0,
                unknowns: 0,
                due_at: new.now,
                expires_at: new.expires_at,
                context_token: None,
                private: None,
                window_opened_at: None,
                window_sends: None,
                window_closed: None,
                recent_sends: None,
            };
            self.outbox
                .insert(part.id, Item { open, bot: new.bot_id, place: self.outbox.len(), state: None });
        }
    }

    pub fn open_items(&self, bot: BotId, rules: &WindowRules, now: Timestamp, limit: u32) -> Vec<OpenItem> {
        let oldest = rules.age.map_or(Timestamp::MIN, |age| now - age);
        let mut held_back = HashSet::new();
        let mut open = Vec::new();
        for item in self.outbox.values().filter(|item| item.bot == bot && item.is_open()) {
            if !due::wait(item.open.due_at, now).is_zero() {
                held_back.insert(item.open.peer.as_str());
            }
            let Some(contact) = self.contacts.get(&(bot, item.open.peer.clone())) else { continue };
            let ready = contact.closed.is_none()
                && contact.opened_at.is_some_and(|at| at > oldest)
                && contact.sends < rules.sends.map_or(i64::MAX, i64::from)
                && !held_back.contains(item.open.peer.as_str());
            if ready || item.open.expires_at <= now {
                open.push(OpenItem {
                    context_token: contact.token.clone(),
                    window_opened_at: contact.opened_at,
                    window_sends: Some(contact.sends),
                    window_closed: contact.closed.clone(),
                    recent_sends: None,
                    ..item.open.clone()
                });
            }
        }
        open.truncate(limit as usize);
        open
    }

    pub fn begin(&mut self, lease: &Lease, id: OutboxId, peer: &str) -> bool {
        if self.is_fenced(lease.bot_id, lease.fence) {
            return false;
        }
        let Some(item) = self.outbox.get_mut(&id).filter(|item| item.is_open()) else { return false };
        item.open.attempts += 1;
        item.open.unknowns += i64::from(item.open.state == ItemState::Sending);
        item.open.state = ItemState::Sending;
        if let Some(contact) = self.contacts.get_mut(&(lease.bot_id, peer.to_owned())) {
            contact.sends += 1;
        }
        true
    }

    pub fn settle(&mut self, settled: &Settled) -> bool {
        let found = self.outbox.get_mut(&settled.id);
        let Some(item) = found.filter(|item| item.is_open() && item.open.attempts == settled.attempts) else {
            return false;
        };
        item.open.due_at = settled.due_at;
        item.open.unknowns += i64::from(settled.unknown);
        item.open.state = settled.state;
        item.state = (settled.state != ItemState::Queued).then_some(settled.state);
        let contact = self.contacts.get_mut(&(settled.bot_id, settled.peer.clone()));
        if let Some(contact) = contact.filter(|contact| contact.opened_at == settled.window_opened_at) {
            contact.sends = (contact.sends - i64::from(settled.uncount)).max(0);
            contact.closed = settled.close_window.clone().or(contact.closed.take());
        }
        true
    }

    pub fn webhook(&self, channel: ChannelId) -> WebhookSettings {
        self.channels[&channel].webhook().expect("the settings were written by the simulation")
    }
}

impl Delivery {
    fn is_open(&self, now: Timestamp) -> bool {
        match self.state {
            DeliveryState::Pending => true,
            DeliveryState::Parked => due::wait(self.row.due_at, now).is_zero(),
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
        private: Some(row.private.clone()),
        sent_at: row.sent_at,
    }
}
