//! Users, their passwords and sessions.

use crate::context::Context;

/// Users, their passwords and sessions: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Accounts<'h> {
    ctx: &'h Context,
}

impl<'h> Accounts<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }
}
