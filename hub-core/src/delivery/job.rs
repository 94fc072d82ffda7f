//! A delivery in memory: a message on its way to one sink.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lanes::Queued;
use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    network::{MessageKind, Quote},
    secret::{Sealed, Sealer, Secret},
    store::deliveries::{JobMessage, JobRow},
    time::Timestamp,
};

/// What a sink needs of a message; shared by the jobs of all channels.
#[derive(Debug)]
pub struct Content {
    /// Id.
    pub message_id: MessageId,
    /// Sender.
    pub from_user_id: String,
    /// Sender's display name.
    pub user_name: String,
    /// The person on the other side; replies go there.
    pub peer: String,
    /// Conversation.
    pub session_id: String,
    /// Group, or empty.
    pub group_id: String,
    /// Kind.
    pub kind: MessageKind,
    /// Text.
    pub text: String,
    /// Parts, as JSON.
    pub items: String,
    /// Quote.
    pub quote: Option<Quote>,
    /// Permission to answer.
    pub context_token: Option<Secret>,
    /// When it was sent.
    pub sent_at: Timestamp,
}

/// One delivery.
#[derive(Debug)]
pub struct Job {
    /// Id; `webhook-id` of every attempt.
    pub id: DeliveryId,
    /// Its trace.
    pub trace_id: TraceId,
    /// Its bot.
    pub bot_id: BotId,
    /// Its channel.
    pub channel_id: ChannelId,
    /// The lease under which it is held.
    pub fence: i64,
    /// Place in the channel's log; 0 for a replay.
    pub seq: i64,
    /// Attempts made.
    pub attempts: u32,
    /// When it was first attempted.
    pub first_attempt_at: Option<Timestamp>,
    /// Where a replay goes.
    pub target_url: Option<String>,
    /// The text as the channel sees it, where that differs.
    pub channel_text: Option<String>,
    /// The message.
    pub content: Arc<Content>,
}

impl Job {
    /// The text as the channel sees it.
    pub fn text(&self) -> &str {
        self.channel_text.as_deref().unwrap_or(&self.content.text)
    }
}

impl Queued for Job {
    fn is_retry(&self) -> bool {
        self.attempts > 0
    }
}

/// The secret half of a stored message: sealed as one JSON text.
#[derive(Debug, Serialize, Deserialize)]
struct Private {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_token: Option<String>,
    raw: String,
}

/// Seals what is secret in a message for its row.
pub(crate) fn seal_private(sealer: &Sealer, id: MessageId, token: Option<&Secret>, raw: &Secret) -> Sealed {
    let private =
        Private { context_token: token.map(|token| token.expose().to_owned()), raw: raw.expose().to_owned() };
    sealer.seal(&private_place(id), &Secret::new(crate::store::json(&private)))
}

fn private_place(id: MessageId) -> String {
    format!("messages.private:{id}")
}

impl Content {
    /// Reads a stored message.
    pub(crate) fn open(row: JobMessage, sealer: &Sealer) -> Result<Self> {
        let message_id: MessageId = row.message_id.parse()?;
        let context_token = match row.private {
            None => None,
            Some(sealed) => {
                let text = sealer.open(&private_place(message_id), &Sealed::from(sealed))?;
                let private: Private = serde_json::from_str(text.expose()).map_err(Error::internal)?;
                private.context_token.map(Secret::new)
            }
        };
        Ok(Self {
            message_id,
            from_user_id: row.from_user_id,
            user_name: row.user_name,
            peer: row.peer,
            session_id: row.session_id,
            group_id: row.group_id,
            kind: MessageKind::from_word(&row.kind),
            text: row.content,
            items: row.items,
            quote: row.quoted.map(|text| serde_json::from_str(&text)).transpose().map_err(Error::internal)?,
            context_token,
            sent_at: Timestamp::from_millis(row.sent_at),
        })
    }
}

/// Reads a stored delivery; the lane and the due time belong to the queue.
pub(crate) fn open_job(row: JobRow, bot_id: BotId, fence: i64, sealer: &Sealer) -> Result<Job> {
    Ok(Job {
        id: row.id.parse()?,
        trace_id: row.trace_id.parse()?,
        bot_id,
        channel_id: row.channel_id.parse()?,
        fence,
        seq: row.seq,
        attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        first_attempt_at: row.first_attempt_at.map(Timestamp::from_millis),
        target_url: row.target_url,
        channel_text: row.channel_content,
        content: Arc::new(Content::open(row.message, sealer)?),
    })
}
