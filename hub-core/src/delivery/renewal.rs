//! Renewing leases, and noticing that a clock was set.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{bot::Validity, node::Engine};
use crate::{
    error::Result,
    store::{due::Step, leases::Extended},
    time::{Instant, Timestamp},
};

/// Bots taken over in one round.
const TAKE: u32 = 100;
/// A smaller change of the offset between two clocks is drift.
const SMALLEST_STEP: Duration = Duration::from_secs(2);

impl Engine {
    pub(super) fn offset(&self, wall: Timestamp) -> Offset {
        Offset { at: self.ctx.clock.instant(), wall }
    }

    /// As [`renew`](Self::renew), after the due times of our bots were moved along with the store's clock, if that was
    /// set. Until the leases are renewed nothing is sent and nothing expires.
    pub(super) async fn follow_clock_and_renew(self: &Arc<Self>, shared: &mut Offset) -> Result<bool> {
        let store = &self.ctx.store;
        store.sync_clock().await?;
        let mut read = *shared;
        if let Some(step) = read.step(self.ctx.clock.instant(), store.now()) {
            tracing::warn!(by_ms = step.by(), "the clock was set; due times are moved along");
            store.shift_due_times(self.node, step).await?;
        }
        *shared = read;
        self.renew().await
    }

    /// Extends our leases, stops what is no longer ours, takes free ones; `true` when more bots may be
    /// free.
    pub(super) async fn renew(self: &Arc<Self>) -> Result<bool> {
        let lease = self.ctx.config.lease;
        let (node, now, validity) = (self.node, self.ctx.store.now(), Validity::of(lease, &self.ctx.clock));
        let name = self.ctx.config.node_name.clone();
        let Extended { held, is_full } =
            self.ctx.store.extend_leases(node, &name, now, now + lease, TAKE).await?;
        self.hold(held, validity).await;
        Ok(is_full)
    }

    /// Whether every bot's lease was renewed in time: otherwise nothing is delivered or sent for it.
    pub fn leases_are_current(&self) -> bool {
        let bots = self.bots.read().unwrap_or_else(PoisonError::into_inner);
        bots.values().all(|bot| bot.validity.get().holds(&self.ctx.clock))
    }
}

/// A reading of a clock, to notice when it is set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offset {
    at: Instant,
    wall: Timestamp,
}

impl Offset {
    /// Takes another reading; `Some` when the clock moved by more or less than time passed.
    pub(super) fn step(&mut self, at: Instant, now: Timestamp) -> Option<Step> {
        let within = at.since(self.at);
        let step = Step { expected: self.wall + within, now, within };
        *self = Self { at, wall: now };
        (Duration::from_millis(step.by().unsigned_abs()) >= SMALLEST_STEP).then_some(step)
    }
}
