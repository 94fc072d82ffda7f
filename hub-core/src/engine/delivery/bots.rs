//! The bots this node works for.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard},
};

use super::{bot::BotWork, queue::Queue};
use crate::{
    bots::BotStatus,
    id::BotId,
    model::cause::Cause,
    store::{bots::Answered, leases::Lease},
    time::Timestamp,
};

/// The bots whose leases this node holds.
#[derive(Debug, Default)]
pub(super) struct Bots {
    /// In order, so that a run can be repeated.
    held: RwLock<BTreeMap<BotId, Arc<BotWork>>>,
    /// Bots whose network answered a poll with nothing new, until this is stored for all of them together.
    answered: Mutex<HashMap<BotId, Answered>>,
    /// Bots whose backlog could not be read, or that have deliveries of which it is unknown who holds them.
    uncertain: Mutex<BTreeSet<BotId>>,
    /// Bots that are being handed over to another node.
    moving: Mutex<BTreeMap<BotId, Arc<BotWork>>>,
    /// Bots that violated an invariant: nothing runs for them on this node until its next start.
    stopped: Mutex<HashSet<BotId>>,
}

impl Bots {
    pub(super) fn get(&self, id: BotId) -> Option<Arc<BotWork>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<BotWork>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whether a bot is worked for, being handed over, or stopped.
    pub(super) fn is_known(&self, id: BotId) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
            || self.moving().contains_key(&id)
            || self.is_stopped(id)
    }

    /// Removes this many bots of a network, to be handed over to another node.
    pub(super) fn move_away(&self, network: &str, count: usize) -> Vec<Arc<BotWork>> {
        let mut held = self.write();
        let of_network = held.values().rev().filter(|bot| bot.network.name() == network).take(count);
        let moved: Vec<_> = of_network.cloned().collect();
        let mut moving = self.moving();
        for bot in &moved {
            held.remove(&bot.lease.bot_id);
            moving.insert(bot.lease.bot_id, Arc::clone(bot));
        }
        moved
    }

    /// The bots whose leases this node holds, those that are being handed over included.
    pub(super) fn leased(&self) -> Vec<Arc<BotWork>> {
        let mut leased = self.all();
        leased.extend(self.moving().values().cloned());
        leased
    }

    /// Notes that bots were handed over.
    pub(super) fn moved(&self, bots: &[Arc<BotWork>]) {
        let mut moving = self.moving();
        for bot in bots {
            moving.remove(&bot.lease.bot_id);
        }
    }

    /// Whether no bot is being handed over.
    pub(super) fn are_all_staying(&self) -> bool {
        self.moving().is_empty()
    }

    fn moving(&self) -> MutexGuard<'_, BTreeMap<BotId, Arc<BotWork>>> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Notes that a bot's network answered.
    pub(super) fn note_answer(&self, lease: &Lease, at: Timestamp) {
        let answered = Answered { bot_id: lease.bot_id, fence: lease.fence, at };
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).insert(lease.bot_id, answered);
    }

    /// The answers noted since the last call.
    pub(super) fn take_answers(&self) -> Vec<Answered> {
        let noted = std::mem::take(&mut *self.answered.lock().unwrap_or_else(PoisonError::into_inner));
        noted.into_values().collect()
    }

    /// Has the backlog of a bot scanned when work is next polled for.
    pub(super) fn scan_later(&self, id: BotId) {
        self.uncertain.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// The bots to scan since the last call.
    pub(super) fn take_uncertain(&self) -> BTreeSet<BotId> {
        std::mem::take(&mut *self.uncertain.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn insert(&self, bot: &Arc<BotWork>) {
        self.write().insert(bot.lease.bot_id, Arc::clone(bot));
    }

    /// Removes the bots that `gone` names.
    pub(super) fn remove(&self, gone: impl Fn(&BotWork) -> bool) -> Vec<Arc<BotWork>> {
        self.write().extract_if(.., |_, bot| gone(bot)).map(|(_, bot)| bot).collect()
    }

    /// Whether the work for a bot was stopped until the next start.
    pub(super) fn is_stopped(&self, id: BotId) -> bool {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    pub(super) fn set_stopped(&self, id: BotId) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Stops the work for a bot that violated an invariant. Its lease stays, so that no other node continues it.
    pub(super) async fn stop(&self, bot: &BotWork, queue: &Queue, cause: &Cause) {
        let bot_id = bot.lease.bot_id;
        self.set_stopped(bot_id);
        bot.set_status(BotStatus::Error, Some(&cause.to_string())).await;
        self.write().remove(&bot_id);
        bot.tasks.stop();
        queue.forget(|delivery| delivery.bot_id() == bot_id);
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<BotId, Arc<BotWork>>> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}
