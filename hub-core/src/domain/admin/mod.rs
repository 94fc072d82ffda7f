//! Administration: users, bots of all users, statistics, invitations, password reset links, the audit log. Every
//! operation requires an administrator, and every change is in the audit log.

use crate::context::Context;

pub mod ai_config;
pub mod ai_trial;
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

pub use crate::model::admin::{
    AdminUser, BotCounts, DeliveryCounts, MinuteCounts, UserCounts, UserPatch, UserQuery,
};
pub use bots::{AdminBot, BotQuery};
pub use invite::{INVITE_DAYS, Invite, MAX_INVITE_DAYS};
pub use reset::{RESET_LINK_LIFETIME, ResetLink};
pub use stats::{Minute, Stats};

/// Administration: every operation takes the actor of the caller.
#[derive(Debug, Clone, Copy)]
pub struct Admin<'h> {
    ctx: &'h Context,
}

impl<'h> Admin<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }
}
