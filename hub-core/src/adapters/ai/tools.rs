//! Interface of the tools that a model may call while it responds. Installed apps provide them.

use std::fmt;

use async_trait::async_trait;

use super::{Tool, ToolCall};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
};

/// The conversation for which tools are offered and called. A tool has no authority beyond it, whatever the model
/// claims about the request or its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolScope {
    /// The bot.
    pub bot_id: BotId,
    /// The channel that responds.
    pub channel_id: ChannelId,
    /// The message to respond to.
    pub message_id: MessageId,
    /// Its delivery to the model. Together with [`ToolScope::place`] it identifies a call; only a repeat after a
    /// crash has the same pair.
    pub delivery_id: DeliveryId,
    /// Number of the call within the delivery, from 0.
    pub place: u32,
    /// The trace.
    pub trace_id: TraceId,
    /// Author of the message.
    pub user_id: String,
    /// The person or group on the other side.
    pub peer: String,
    /// The conversation.
    pub session_id: String,
}

/// Offers tools and calls them.
#[async_trait]
pub trait Tools: fmt::Debug + Send + Sync + 'static {
    /// Returns the tools that the model may call in this conversation. Names are unique.
    ///
    /// # Errors
    /// The message is then processed later.
    async fn offered(&self, scope: &ToolScope) -> Result<Vec<Tool>>;

    /// Calls a tool that was offered. The call is cancelled when the time for the answer is over.
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
