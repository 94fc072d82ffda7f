//! The outbox: `store::{outbox, sending}`.

use std::collections::{BTreeSet, HashSet};

use super::{Item, Tables};
use crate::{
    id::{BotId, OutboxId},
    network::WindowRules,
    store::{
        deliveries::Finished,
        due::{self, Reading},
        leases::Lease,
        outbox::NewOutbound,
        sending::{ItemState, OpenItem, Permit, SendAtOnce, Settled},
    },
    time::Timestamp,
};

impl Tables {
    pub fn reply(&mut self, lease: &Lease, replies: &[NewOutbound]) -> bool {
        if self.is_fenced(lease.bot_id, lease.fence) {
            return false;
        }
        for reply in replies {
            self.enqueue(reply);
        }
        true
    }

    /// Stores the replies of an outcome. Returns a permit if the first of them is to be sent at once.
    pub(super) fn enqueue_replies(&mut self, finished: &Finished) -> Option<Permit> {
        let mut replies = finished.replies.iter();
        let first = replies.next()?;
        let condition = finished.send_at_once.as_ref();
        let permit = condition.and_then(|condition| self.permit(first, condition));
        let is_new = self.enqueue(first);
        let permit = permit.filter(|_| is_new);
        if permit.is_some()
            && let Some(contact) = self.contacts.get_mut(&(first.bot_id, first.peer.clone()))
            && let Some(item) = self.outbox.get_mut(&first.parts[0].id)
        {
            contact.sends += 1;
            (item.open.state, item.open.attempts) = (ItemState::Sending, 1);
        }
        for reply in replies {
            self.enqueue(reply);
        }
        permit
    }

    fn permit(&self, reply: &NewOutbound, condition: &SendAtOnce) -> Option<Permit> {
        let contact = self.contacts.get(&(reply.bot_id, reply.peer.clone()))?;
        let mut items = self.outbox.values();
        let is_first =
            !items.any(|item| item.bot == reply.bot_id && item.open.peer == reply.peer && item.is_open());
        let window_opened_at = contact.opened_at.filter(|at| *at > condition.wrote_after)?;
        let is_open = contact.closed.is_none() && contact.sends < condition.most_sends;
        let context_token = contact.token.clone().filter(|_| is_first && is_open)?;
        Some(Permit { context_token, window_opened_at })
    }

    /// `false` for a message that is there already.
    pub(super) fn enqueue(&mut self, new: &NewOutbound) -> bool {
        let key = (new.bot_id, new.dedupe_key.clone());
        if self.keys.contains_key(&key) {
            return false;
        }
        self.keys.insert(key, new.message_id);
        for open in (0..).map_while(|place| OpenItem::new(new, place)) {
            let item = Item {
                bot: new.bot_id,
                created_at: new.now,
                updated_at: new.now,
                place: self.outbox.len(),
                state: None,
                is_excused: false,
                open,
            };
            self.outbox.insert(item.open.id, item);
        }
        true
    }

    pub fn people_to_write(
        &self,
        bot: BotId,
        after: &str,
        rules: &WindowRules,
        now: Timestamp,
    ) -> BTreeSet<String> {
        let items = self.open_items(bot, rules, now).into_iter();
        items.map(|item| item.peer).filter(|person| person.as_str() > after).collect()
    }

    pub fn open_items(&self, bot: BotId, rules: &WindowRules, now: Timestamp) -> Vec<OpenItem> {
        let oldest = rules.age.map_or(Timestamp::MIN, |age| now - age);
        let mut blocked = HashSet::new();
        let mut open = Vec::new();
        for item in self.outbox.values().filter(|item| item.bot == bot && item.is_open()) {
            if !due::wait(item.open.due_at, now).is_zero() {
                blocked.insert(item.open.peer.as_str());
            }
            let Some(contact) = self.contacts.get(&(bot, item.open.peer.clone())) else { continue };
            let is_window_open = contact.closed.is_none()
                && contact.opened_at.is_some_and(|at| at > oldest)
                && contact.sends < rules.sends.map_or(i64::MAX, i64::from);
            let ready = is_window_open && !blocked.contains(item.open.peer.as_str());
            if ready || !is_window_open && item.is_unexplained() || item.open.expires_at <= now {
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

    pub fn settle(&mut self, mut settled: Settled, now: Reading) -> bool {
        if let Some(step) = self.step_for(settled.stamp, now) {
            settled.follow(step);
        }
        let found = self.outbox.get_mut(&settled.id);
        let Some(item) = found.filter(|item| item.is_open() && item.open.attempts == settled.attempts) else {
            return false;
        };
        if settled.state == ItemState::Expired && item.open.expires_at > settled.stamp.read.wall {
            return false;
        }
        (item.open.due_at, item.updated_at) = (settled.due_at, settled.stamp.read.wall);
        item.open.unknowns += i64::from(settled.unknown);
        item.open.state = settled.state;
        item.open.last_error = settled.error;
        item.state = (settled.state != ItemState::Queued).then_some(settled.state);
        item.is_excused = self.long_steps.excuses();
        let contact = self.contacts.get_mut(&(settled.bot_id, settled.peer.clone()));
        if let Some(contact) = contact.filter(|contact| contact.opened_at == settled.window_opened_at) {
            contact.sends = (contact.sends - i64::from(settled.uncount)).max(0);
            contact.closed = settled.close_window.clone().or(contact.closed.take());
        }
        true
    }
}
