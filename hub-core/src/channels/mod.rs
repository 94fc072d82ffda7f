//! Channels and their settings.

use crate::context::Context;

pub mod filter;
pub mod handle;
pub mod sinks;

/// Channels and their settings: every operation takes the actor who asks.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'h> {
    ctx: &'h Context,
}

impl<'h> Channels<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }
}
