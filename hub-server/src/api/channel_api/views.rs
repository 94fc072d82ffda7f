//! Responses to channel clients.

use std::collections::HashMap;

use hub_core::{
    Error, Hub, Result,
    access::Actor,
    bots::{BotStatus, Direction, Quoted},
    channels::{Channel, log::Polled},
    id::{BotId, ChannelId, MediaId, MessageId},
    media::{MediaView, UploadTicket},
    network::MessageItem,
    openapi::Api,
    time::Timestamp,
};
use serde_json::Value;

use super::ticket;
use crate::{
    AppSettings,
    serve::websocket,
    wire::{Stored, view},
};

/// A message, as in `data` of a `message` frame. Some fields have two spellings, for the dialects of clients.
#[derive(Debug, Api)]
pub struct ChannelMessage {
    /// Always `message`.
    #[api(name = "type")]
    pub kind: String,
    /// Text of the message.
    pub content: String,
    /// Sender.
    pub sender: MessageSender,
    /// Conversation.
    #[api(name = "sessionID")]
    pub session_id_camel: String,
    /// Token that permits a reply.
    #[api(name = "contextToken")]
    pub context_token_camel: String,
    /// Kind: 1 text, 3 image, 34 voice, 43 video, 49 file, 0 other.
    pub msg_type: i64,
    /// Unix seconds.
    pub timestamp: i64,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Id of the channel.
    pub channel_id: ChannelId,
    /// Id of the message.
    pub id: MessageId,
    /// Number in the channel, without gaps.
    pub seq: i64,
    /// Direction; `outbound` only if the channel shows what the bot sends.
    pub direction: Direction,
    /// Parts.
    pub items: Vec<MessageItem>,
    /// Files, with links to download them.
    pub media: Option<Vec<MediaView>>,
    /// The quoted message.
    pub quoted: Option<Quoted>,
    /// Token that permits a reply.
    pub context_token: String,
    /// Conversation.
    pub session_id: String,
    /// Id of the sender.
    pub from_user_id: String,
    /// Display name of the sender.
    pub from_user_name: String,
    /// The same as `seq`.
    pub seq_id: i64,
    /// Id on the network.
    pub external_id: Option<String>,
    /// Id of the recipient.
    pub recipient: String,
    /// Group; empty for a direct chat.
    pub group_id: String,
    /// Unix milliseconds.
    pub timestamp_ms: i64,
    /// Always 2: finished.
    pub message_state: i64,
}

/// Sender of a message.
#[derive(Debug, Api)]
pub struct MessageSender {
    /// Id of the person on the network.
    pub user_id: String,
    /// Display name; empty if the network has none.
    pub user_name: String,
}

/// A page of a channel's log.
#[derive(Debug, Api)]
pub struct ChannelMessages {
    /// Oldest first.
    pub items: Vec<Stored<ChannelMessage>>,
    /// Cursor for the next request, also if there was no message. Presenting it acknowledges everything before it.
    pub next_cursor: String,
}

impl TryFrom<Polled> for ChannelMessages {
    type Error = Error;

    fn try_from(polled: Polled) -> Result<Self> {
        let message = |data: &[u8]| -> Result<Stored<ChannelMessage>> {
            Ok(serde_json::from_slice::<Value>(data).map_err(Error::internal)?.into())
        };
        Ok(Self {
            items: polled.entries.iter().map(|entry| message(entry.data())).collect::<Result<_>>()?,
            next_cursor: polled.next_cursor,
        })
    }
}

view! {
    /// Target of an upload.
    #[derive(Debug, Api)]
    pub struct UploadView from ticket: UploadTicket {
        /// Id of the upload, for the `media` of a send.
        pub upload_id: MediaId,
        /// URL for the bytes. Everyone with this URL can upload.
        pub upload_url: String = ticket.url.as_str().to_owned(),
        /// Always `PUT`.
        pub method: String = "PUT".to_owned(),
        /// Headers that the request must have.
        pub headers: HashMap<String, String> =
            HashMap::from([("Content-Type".to_owned(), ticket.content_type)]),
        /// When it expires.
        pub expires_at: Timestamp,
    }
}

/// Result of a typing indicator.
#[derive(Debug, Api)]
pub struct TypingView {
    /// Whether the network accepted it; it accepts none for a person who has never written.
    pub shown: bool,
}

/// The bot of the channel.
#[derive(Debug, Api)]
pub struct ChannelStatus {
    /// Id of the channel.
    pub channel_id: ChannelId,
    /// Name of the channel.
    pub channel_name: String,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Connection status of the bot.
    pub bot_status: BotStatus,
}

/// Configuration of a channel, for its clients.
#[derive(Debug, Api)]
pub struct ChannelConfig {
    /// The channel.
    pub channel: Channel,
    /// Connection status of the bot.
    pub bot_status: BotStatus,
    /// Limits.
    pub limits: ChannelLimits,
    /// Ticket that names the owner of the account in `typing` and `send_typing`.
    pub typing_ticket: String,
}

/// Limits of the hub.
#[derive(Debug, Api)]
pub struct ChannelLimits {
    /// Maximum text of a message, in bytes: the setting `max_text`.
    pub text_bytes: u64,
    /// Maximum frame of a client, in bytes.
    pub frame_bytes: u64,
    /// Maximum JSON body, in bytes.
    pub body_bytes: u64,
    /// Maximum WebSockets of this channel.
    pub sockets: u64,
    /// Maximum waiting polls of this channel.
    pub polls: u64,
    /// Maximum wait of a poll, in seconds.
    pub poll_seconds: u64,
    /// Maximum sends and typing indicators per minute.
    pub sends_per_minute: u32,
}

pub(super) async fn status(hub: &Hub, client: &Actor) -> Result<ChannelStatus> {
    let (channel, bot) =
        (hub.channels().of_client(client.client()?).await?, hub.bots().of_client(client).await?);
    Ok(ChannelStatus {
        channel_id: channel.id,
        channel_name: channel.name,
        bot_id: channel.bot_id,
        bot_status: bot.status,
    })
}

pub(super) async fn config(hub: &Hub, settings: &AppSettings, client: &Actor) -> Result<ChannelConfig> {
    let (channel, bot) =
        (hub.channels().of_client(client.client()?).await?, hub.bots().of_client(client).await?);
    let limits = &hub.context().config;
    Ok(ChannelConfig {
        typing_ticket: ticket::issue(channel.id, &bot.owner_user_id),
        channel,
        bot_status: bot.status,
        limits: ChannelLimits {
            text_bytes: limits.max_text as u64,
            frame_bytes: websocket::MAX_FRAME as u64,
            body_bytes: settings.max_body as u64,
            sockets: limits.max_sockets_per_channel as u64,
            polls: limits.max_polls_per_channel as u64,
            poll_seconds: hub_core::channels::log::MAX_POLL.as_secs(),
            sends_per_minute: settings.rate_limits.sends.get(),
        },
    })
}
