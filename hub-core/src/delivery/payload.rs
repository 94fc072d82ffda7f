//! The JSON body that a webhook receives.

use serde::Serialize;
use serde_json::value::RawValue;

use super::job::Job;
use crate::{
    model::media::MediaView,
    network::{MessageKind, Quote},
};

/// The fields of the webhook payload, in order. `items` is present if the message is more than one text, `media` if
/// it has files, `quoted` if it quotes.
#[derive(Debug, Serialize)]
pub struct Payload<'a> {
    /// Always `message`.
    pub r#type: &'static str,
    /// Text of the message.
    pub content: &'a str,
    /// Who wrote it.
    pub sender: Sender<'a>,
    /// Conversation.
    #[serde(rename = "sessionID")]
    pub session_id: &'a str,
    /// Permission to answer.
    #[serde(rename = "contextToken")]
    pub context_token: &'a str,
    /// Kind, as the network's number.
    pub msg_type: i64,
    /// Unix seconds.
    pub timestamp: i64,
    /// The bot that received it.
    pub bot_id: String,
    /// The channel that delivers it.
    pub channel_id: String,
    /// The message's id: the same on every attempt, and on every channel that received the message.
    pub id: String,
    /// Parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<RawValue>>,
    /// Files, with links to read them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub media: &'a [MediaView],
    /// What the message quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoted: Option<&'a Quote>,
}

/// Who wrote a message.
#[derive(Debug, Serialize)]
pub struct Sender<'a> {
    /// Id on the network.
    pub user_id: &'a str,
    /// Display name, or else the owner's remark; empty when neither is known.
    pub user_name: &'a str,
}

impl<'a> Payload<'a> {
    /// The payload of a job.
    pub fn of(job: &'a Job) -> Self {
        let content = &*job.content;
        let items = (content.kind != MessageKind::Text)
            .then(|| RawValue::from_string(content.items.clone()).ok())
            .flatten();
        Self {
            r#type: "message",
            content: job.text(),
            sender: Sender { user_id: &content.from_user_id, user_name: &content.user_name },
            session_id: &content.session_id,
            context_token: content.context_token.as_ref().map_or("", |token| token.expose()),
            msg_type: content.kind.msg_type(),
            timestamp: content.sent_at.as_seconds(),
            bot_id: job.bot_id.to_string(),
            channel_id: job.channel_id.to_string(),
            id: content.message_id.to_string(),
            items,
            media: &job.media,
            quoted: content.quote.as_ref(),
        }
    }
}
