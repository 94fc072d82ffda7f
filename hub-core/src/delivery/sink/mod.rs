//! Sinks: where messages go.

use async_trait::async_trait;

use super::stage::{Answered, Prepared};
use crate::delivery::work_store::WorkContext;

pub(super) mod ai;
pub mod webhook;

/// Delivers a prepared message once. Retrying is decided by the worker, from what the answer says.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Makes one attempt. It ends by itself within the sink's deadline.
    async fn attempt<'j>(&self, ctx: &WorkContext, prepared: Prepared<'j>) -> Answered<'j>;
}
