//! Bots, the bind flow, contacts and messages.

use crate::context::Context;

pub mod credentials;
pub mod window;

/// Bots, the bind flow, contacts and messages: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Bots<'h> {
    ctx: &'h Context,
}

impl<'h> Bots<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }
}
