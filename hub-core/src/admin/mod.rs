//! Administration: users, everybody's bots, statistics, invitations, links for lost passwords, the
//! audit log (`contract.md` §9). Every operation
//! asks for an administrator first, and every change stands in the audit log.

use crate::context::Context;

pub mod ai_config;
mod audit;
mod bots;
mod invite;
mod reset;
mod sessions;
mod stats;
pub(crate) mod tally;
#[cfg(test)]
mod tests;
mod users;

pub use bots::{AdminBot, BotQuery};
pub use invite::{INVITE_DAYS, Invite, MAX_INVITE_DAYS};
pub use reset::{RESET_LINK_LIFETIME, ResetLink};
pub use stats::{BotCounts, DeliveryCounts, Minute, Stats, UserCounts};
pub use users::{AdminUser, UserPatch, UserQuery};

/// Administration: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Admin<'h> {
    ctx: &'h Context,
}

impl<'h> Admin<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }
}
