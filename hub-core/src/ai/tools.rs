//! What a model may call while it answers: the interface, which installed apps fill.

use std::fmt;

use async_trait::async_trait;

use super::{Tool, ToolCall};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
};

/// The conversation for which tools are offered and called. A tool has no authority beyond it: what the model says it
/// is asked for, by whomever, does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolScope {
    /// The bot.
    pub bot_id: BotId,
    /// The channel that answers.
    pub channel_id: ChannelId,
    /// The message that is answered.
    pub message_id: MessageId,
    /// Its delivery to the model. With [`ToolScope::place`] it tells a call from all others, but for a repeat after
    /// a crash, which has the same.
    pub delivery_id: DeliveryId,
    /// Which call of the delivery it is, from 0.
    pub place: u32,
    /// The trace.
    pub trace_id: TraceId,
    /// Who wrote.
    pub user_id: String,
    /// The person or group on the other side.
    pub peer: String,
    /// The conversation.
    pub session_id: String,
}

/// Offers tools and calls them.
#[async_trait]
pub trait Tools: fmt::Debug + Send + Sync + 'static {
    /// The tools that the model may ask for in this conversation. Names are unique.
    ///
    /// # Errors
    /// Then the message is answered later.
    async fn offered(&self, scope: &ToolScope) -> Result<Vec<Tool>>;

    /// Calls a tool that was offered. The call is given up when the answer's time is up.
    ///
    /// # Errors
    /// The error for the model, which may continue without the tool.
    async fn call(&self, scope: &ToolScope, call: &ToolCall) -> Result<String, String>;
}

/// Offers nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoTools;

#[async_trait]
impl Tools for NoTools {
    async fn offered(&self, _: &ToolScope) -> Result<Vec<Tool>> {
        Ok(Vec::new())
    }

    async fn call(&self, _: &ToolScope, call: &ToolCall) -> Result<String, String> {
        Err(format!("there is no tool called {}", call.name))
    }
}
