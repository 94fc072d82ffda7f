//! Leases of bots, and due times after a step of the clock: `store::{leases, due}`.

use super::{FREE, NETWORK, Node, Tables};
use crate::{
    id::{BotId, DeliveryId, MessageId, NodeId, UserId},
    store::{
        due::{Followed, Reading, Step, StoredClock},
        leases::{Lease, NodeEntry, Share, WorkRow},
    },
    time::Timestamp,
};

impl Tables {
    pub fn void_leases(&mut self) {
        for bot in self.bots.values_mut() {
            (bot.owner, bot.until) = (None, FREE);
        }
    }

    pub fn shares(&self, now: Timestamp) -> Vec<Share> {
        let alive = self.nodes.iter().filter(|(_, node)| node.until > now && node.takes_bots);
        let count = |node| self.bots.values().filter(|bot| bot.owner == Some(node)).count();
        let share = |(node, _): (&NodeId, _)| Share {
            node: *node,
            network: NETWORK.to_owned(),
            bots: i64::try_from(count(*node)).unwrap_or(i64::MAX),
        };
        alive.map(share).collect()
    }

    pub fn hand_over(&mut self, leases: &[Lease], to: NodeId, now: Timestamp) {
        let alive = self.nodes.get(&to).filter(|node| node.until > now && node.takes_bots);
        let until = alive.map(|node| node.until);
        for lease in leases {
            if let Some(bot) = self.bots.get_mut(&lease.bot_id).filter(|bot| bot.fence == lease.fence) {
                (bot.owner, bot.fence, bot.until) = (until.map(|_| to), bot.fence + 1, until.unwrap_or(FREE));
                if until.is_some() {
                    *self.grants.entry((lease.bot_id, to)).or_default() += 1;
                }
            }
        }
    }

    pub fn extend_leases(&mut self, entry: &NodeEntry, now: Timestamp, until: Timestamp) -> Vec<Lease> {
        let (node, takes_bots) = (entry.id, !entry.networks.is_empty());
        self.nodes.insert(node, Node { until, takes_bots });
        let mut held = Vec::new();
        for (id, bot) in &mut self.bots {
            if bot.owner != Some(node) {
                if bot.until > now || !takes_bots {
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
        self.nodes.remove(&node);
        for bot in self.bots.values_mut().filter(|bot| bot.owner == Some(node)) {
            (bot.owner, bot.until) = (None, FREE);
        }
    }

    pub fn give_up_leases(&mut self, leases: &[Lease]) {
        for lease in leases {
            if let Some(bot) = self.bots.get_mut(&lease.bot_id).filter(|bot| bot.fence == lease.fence) {
                (bot.owner, bot.until) = (None, FREE);
            }
        }
    }

    pub fn follow_clock(&mut self, before: Option<Followed>, reading: Reading) -> (Followed, Option<Step>) {
        let noted = self.clock.unwrap_or(StoredClock { seen_at: reading.wall, moved_ms: 0 });
        let (followed, step) = noted.follow(before, reading);
        self.clock = Some(followed.into());
        if let Some(step) = step {
            self.shift(step);
        }
        if let Some(step) = noted.hidden_step(before, reading) {
            self.shift_expiry(step);
        }
        self.long_steps.read(before);
        (followed, step)
    }

    fn shift(&mut self, step: Step) {
        let shift = |at: &mut Timestamp| *at = step.apply(*at);
        self.nodes.values_mut().for_each(|node| shift(&mut node.until));
        for bot in self.bots.values_mut() {
            shift(&mut bot.until);
        }
        for delivery in self.deliveries.values_mut().filter(|one| !one.is_over()) {
            shift(&mut delivery.due_at);
            if let Some(at) = &mut delivery.first_attempt_at {
                shift(at);
            }
        }
        for item in self.outbox.values_mut().filter(|one| one.is_open()) {
            shift(&mut item.open.due_at);
        }
        self.shift_expiry(step);
    }

    fn shift_expiry(&mut self, step: Step) {
        for item in self.outbox.values_mut().filter(|one| one.is_open()) {
            item.open.expires_at = step.apply_to_expiry(item.open.expires_at, item.created_at);
        }
    }

    pub fn work(&self, lease: &Lease) -> Option<WorkRow> {
        let bot = self.bots.get(&lease.bot_id).filter(|bot| bot.fence == lease.fence)?;
        Some(WorkRow {
            network: NETWORK.to_owned(),
            credentials: bot.credentials.clone(),
            cursor: bot.cursor.clone(),
            status: bot.status,
            wx_id: String::new(),
            owner_id: UserId::from_u128(0),
            last_message_id: self.last_message(lease.bot_id),
            last_delivery_id: self.last_delivery(lease.bot_id),
            has_items: self.outbox.values().any(|item| item.bot == lease.bot_id && item.is_open()),
            has_files: false,
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
}
