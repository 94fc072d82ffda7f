//! A message of a channel's log in the form that clients get, rendered once for all of them.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId},
    model::{
        media::{MediaState, MediaView},
        message::{Direction, Quoted},
        private,
    },
    network::items,
    secret::{Sealer, Secret},
    store::log::LogRow,
    time::Timestamp,
};

/// The part of the frame before the message.
const HEAD: &str = r#"{"type":"message","data":"#;
/// Time after which the state of a file that is being fetched is read again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A message under its number in the channel.
#[derive(Debug)]
pub struct LogEntry {
    /// The number.
    pub seq: i64,
    frame: Bytes,
    /// Time after which the states of its files must be read again.
    stale_at: Option<Timestamp>,
}

/// The webhook's payload, the socket's own fields, and the spellings of published clients.
#[derive(Debug, Serialize)]
struct Message<'a> {
    r#type: &'static str,
    content: &'a str,
    sender: Sender<'a>,
    #[serde(rename = "sessionID")]
    session_id_camel: &'a str,
    #[serde(rename = "contextToken")]
    context_token_camel: &'a str,
    msg_type: i64,
    timestamp: i64,
    bot_id: String,
    channel_id: String,
    id: MessageId,
    seq: i64,
    direction: Direction,
    items: Box<RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    media: &'a [MediaView],
    #[serde(skip_serializing_if = "Option::is_none")]
    quoted: Option<Quoted>,
    context_token: &'a str,
    session_id: &'a str,
    from_user_id: &'a str,
    from_user_name: &'a str,
    seq_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'a str>,
    recipient: &'a str,
    group_id: &'a str,
    timestamp_ms: i64,
    #[serde(rename = "message_state")]
    state: i64,
}

#[derive(Debug, Serialize)]
struct Sender<'a> {
    user_id: &'a str,
    user_name: &'a str,
}

impl LogEntry {
    /// Renders a row with its files.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for a corrupt row, or one that was sealed under another key.
    pub(crate) fn open(
        row: LogRow,
        media: &[MediaView],
        place: (BotId, ChannelId),
        sealer: &Sealer,
        now: Timestamp,
    ) -> Result<Self> {
        let message = &row.message;
        let from = (place.0, &*message.from_user_id);
        let token = private::context_token(sealer, message.message_id, from, message.private.as_ref())?;
        Self::new(row, token.as_ref(), media, place, now)
    }

    /// Renders a row with its files, and the network's permission to reply.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for a corrupt row.
    pub(crate) fn new(
        row: LogRow,
        token: Option<&Secret>,
        media: &[MediaView],
        (bot_id, channel_id): (BotId, ChannelId),
        now: Timestamp,
    ) -> Result<Self> {
        let LogRow { seq, channel_content, direction, to_user_id, network_id, message } = row;
        let id = message.message_id;
        let token = token.map_or("", Secret::expose);
        let quoted =
            message.quoted.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?;
        // The name that an outbound message has is its receiver's.
        let outbound = direction == Direction::Outbound;
        let from_user_name = if outbound { "" } else { message.user_name.as_str() };
        let from_user_id = message.from_user_id.as_str();
        let message = Message {
            r#type: "message",
            content: channel_content.as_deref().unwrap_or(&message.content),
            sender: Sender { user_id: from_user_id, user_name: from_user_name },
            session_id_camel: &message.session_id,
            context_token_camel: token,
            msg_type: message.kind.msg_type(),
            timestamp: message.sent_at.as_seconds(),
            bot_id: bot_id.to_string(),
            channel_id: channel_id.to_string(),
            id,
            seq,
            direction,
            items: RawValue::from_string(items::whole(message.items, &message.content))
                .map_err(Error::internal)?,
            media,
            quoted,
            context_token: token,
            session_id: &message.session_id,
            from_user_id,
            from_user_name,
            seq_id: seq,
            external_id: network_id.as_deref(),
            recipient: &to_user_id,
            group_id: &message.group_id,
            timestamp_ms: message.sent_at.as_millis(),
            state: 2,
        };
        let mut frame = HEAD.to_owned();
        frame.push_str(&crate::text::json(&message));
        frame.push('}');
        Ok(Self { seq, frame: frame.into(), stale_at: stale_at(media, now) })
    }

    /// Whether the states of its files are still valid.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.stale_at.is_none_or(|at| now < at)
    }

    /// Returns the whole frame: a JSON object of the type `message`. Clones share the bytes, which are UTF-8.
    pub fn frame(&self) -> Bytes {
        self.frame.clone()
    }

    /// Returns the message alone: a JSON object.
    pub fn data(&self) -> &[u8] {
        &self.frame[HEAD.len()..self.frame.len() - 1]
    }
}

/// A file that is on its way may be there in a moment; a link is to work for a good while after it was read.
fn stale_at(media: &[MediaView], now: Timestamp) -> Option<Timestamp> {
    if media.iter().any(|file| file.status == MediaState::Downloading) {
        return Some(now + RECHECK_INTERVAL);
    }
    let first = media.iter().filter_map(|file| file.url_expires_at).min()?;
    Some(now + first.since(now) / 2)
}
