//! Renewing leases.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::{bot::Validity, node::Engine};
use crate::{
    error::Result,
    store::{
        due::{Followed, Reading, Step},
        leases::Extended,
    },
    wake::Hint,
};

/// Bots taken over in one round.
const MAX_ACQUIRED: u32 = 100;

impl Engine {
    /// Moves due times along with the shared clock, extends our leases, stops what is no longer ours, takes free
    /// ones; `true` when more bots may be free.
    pub(super) async fn renew(self: &Arc<Self>) -> Result<bool> {
        let lease = self.ctx.config.lease;
        let (before, validity) = (*self.followed(), Validity::of(lease, &self.ctx.clock));
        let name = &self.ctx.config.node_name;
        let Extended { held, is_full, followed, step } =
            self.ctx.store.extend_leases(self.node, name, lease, before, MAX_ACQUIRED).await?;
        if let Some(step) = step {
            tracing::warn!(by_ms = step.by(), "the clock was set; due times are moved along");
            self.ctx.node.wake.hint(Hint::Released);
        }
        *self.followed() = Some(followed);
        self.hold(held, validity).await;
        Ok(is_full)
    }

    /// Reads the shared clock.
    pub(super) fn read_clock(&self) -> Reading {
        Reading { at: self.ctx.clock.instant(), wall: self.ctx.store.now() }
    }

    /// The step of the shared clock since a reading, which is taken again then. A step by which times in the store have
    /// still to be moved does not count: it moves what is stored before.
    pub(super) fn clock_step(&self, read: &mut Reading) -> Option<Step> {
        if self.has_unfollowed_step() {
            return None;
        }
        let before = std::mem::replace(read, self.read_clock());
        before.step_to(*read)
    }

    /// Whether the shared clock was set and due times in the store are not moved along yet.
    pub(super) fn has_unfollowed_step(&self) -> bool {
        self.followed().is_some_and(|followed| followed.reading.step_to(self.read_clock()).is_some())
    }

    fn followed(&self) -> MutexGuard<'_, Option<Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every bot's lease was renewed in time: otherwise nothing is delivered or sent for it.
    pub fn leases_are_current(&self) -> bool {
        let bots = self.bots.read().unwrap_or_else(PoisonError::into_inner);
        bots.values().all(|bot| bot.validity.get().holds(&self.ctx.clock))
    }
}
