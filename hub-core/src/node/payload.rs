//! Data of a message that sinks need, and the JSON body that a webhook receives.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId},
    media_store::views::has_media,
    model::{media::MediaView, message::Quoted, private},
    network::{MessageKind, Quote},
    secret::{Sealer, Secret},
    store::deliveries::JobMessage,
    text,
    time::Timestamp,
};

/// Data of a message that sinks need; shared by the jobs of all channels.
#[derive(Debug)]
pub struct Content {
    pub message_id: MessageId,
    pub from_user_id: String,
    pub user_name: String,
    /// The person on the other side; replies go there.
    pub peer: String,
    pub session_id: String,
    /// Empty outside of groups.
    pub group_id: String,
    pub kind: MessageKind,
    pub text: String,
    /// Parts, as JSON.
    pub items: String,
    pub has_media: bool,
    pub quote: Option<Quote>,
    /// The network's permission to reply.
    pub context_token: Option<Secret>,
    pub sent_at: Timestamp,
}

impl Content {
    /// Reads a stored message of a bot.
    pub(crate) fn open(row: JobMessage, bot_id: BotId, sealer: &Sealer) -> Result<Self> {
        let (message_id, from) = (row.message_id, (bot_id, &*row.from_user_id));
        let context_token = private::context_token(sealer, message_id, from, row.private.as_ref())?;
        Ok(Self {
            message_id,
            from_user_id: row.from_user_id,
            user_name: row.user_name,
            peer: row.peer,
            session_id: row.session_id,
            group_id: row.group_id,
            kind: row.kind,
            has_media: has_media(&row.items),
            text: row.content,
            items: row.items,
            quote: row.quoted.map(|text| serde_json::from_str(&text)).transpose().map_err(Error::internal)?,
            context_token,
            sent_at: row.sent_at,
        })
    }
}

/// The fields of the webhook payload, in order. `items` is present if the message is more than one text, `media` if
/// it has files, `quoted` if it quotes.
#[derive(Debug, Serialize)]
pub struct Payload<'a> {
    /// Always `message`.
    pub r#type: &'static str,
    /// Text of the message.
    pub content: &'a str,
    /// Sender of the message.
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
    pub bot_id: BotId,
    /// The channel that delivers it.
    pub channel_id: ChannelId,
    /// The message's id: the same on every attempt, and on every channel that received the message.
    pub id: MessageId,
    /// Parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<RawValue>>,
    /// Files, with links to read them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub media: &'a [MediaView],
    /// Quoted message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quoted: Option<Quoted>,
}

/// Sender of a message.
#[derive(Debug, Serialize)]
pub struct Sender<'a> {
    /// Id on the network.
    pub user_id: &'a str,
    /// Display name, or else the owner's remark; empty when neither is known.
    pub user_name: &'a str,
}

impl<'a> Payload<'a> {
    /// Creates the payload of a message in a channel, with the text and files that the channel sees.
    pub fn new(
        content: &'a Content,
        text: &'a str,
        (bot_id, channel_id): (BotId, ChannelId),
        media: &'a [MediaView],
    ) -> Self {
        let items = (content.kind != MessageKind::Text)
            .then(|| RawValue::from_string(content.items.clone()).ok())
            .flatten();
        Self {
            r#type: "message",
            content: text,
            sender: Sender { user_id: &content.from_user_id, user_name: &content.user_name },
            session_id: &content.session_id,
            context_token: content.context_token.as_ref().map_or("", |token| token.expose()),
            msg_type: content.kind.msg_type(),
            timestamp: content.sent_at.as_seconds(),
            bot_id,
            channel_id,
            id: content.message_id,
            items,
            media,
            quoted: content.quote.clone().map(Quoted::from),
        }
    }

    /// As JSON.
    pub fn text(&self) -> String {
        text::json_of_size(self, 512 + self.content.len() * 5 / 4)
    }
}

/// Renders the payload of a stored message without files, with its secrets. All channels get the same text.
///
/// # Errors
/// As [`Content::open`].
pub(crate) fn of_stored(
    message: JobMessage,
    (bot_id, channel_id): (BotId, ChannelId),
    sealer: &Sealer,
) -> Result<(String, Option<Secret>)> {
    let content = Content::open(message, bot_id, sealer)?;
    let text = Payload::new(&content, &content.text, (bot_id, channel_id), &[]).text();
    Ok((text, content.context_token))
}
