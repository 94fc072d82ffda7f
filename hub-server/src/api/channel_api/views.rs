//! What channel clients see.

use std::collections::HashMap;

use hub_core::{Error, Hub, Result, access::Actor, channels::log::Polled, media::UploadTicket};
use poem_openapi::{Object, types::ParseFromJSON};

use super::ticket;
use crate::{
    AppSettings,
    api::{
        bots::{BotStatus, Direction, ItemView, MediaView, QuotedView},
        channels::ChannelView,
    },
    serve::websocket,
    wire::{BotId, ChannelId, MediaId, MessageId, Time},
};

/// A message, as a `message` frame's `data` has it too. Some fields stand there in two spellings, for the
/// dialects of clients.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ChannelMessage {
    /// Always `message`.
    #[oai(rename = "type")]
    pub kind: String,
    /// Text of the message.
    pub content: String,
    /// Who wrote it.
    pub sender: MessageSender,
    /// Conversation.
    #[oai(rename = "sessionID")]
    pub session_id_camel: String,
    /// Permission to answer.
    #[oai(rename = "contextToken")]
    pub context_token_camel: String,
    /// Kind, as the network's number: 1 text, 3 image, 34 voice, 43 video, 49 file, 0 other.
    pub msg_type: i64,
    /// Unix seconds.
    pub timestamp: i64,
    /// The bot.
    pub bot_id: BotId,
    /// The channel.
    pub channel_id: ChannelId,
    /// Id.
    pub id: MessageId,
    /// Number in the channel, without a gap.
    pub seq: i64,
    /// Which way it went; `outbound` only where the channel shows what the bot sends.
    pub direction: Direction,
    /// Its parts.
    pub items: Vec<ItemView>,
    /// Its files, when there are any, with links to read them.
    pub media: Option<Vec<MediaView>>,
    /// What it refers to.
    pub quoted: Option<QuotedView>,
    /// Permission to answer.
    pub context_token: String,
    /// Conversation.
    pub session_id: String,
    /// The sender's id.
    pub from_user_id: String,
    /// The sender's display name.
    pub from_user_name: String,
    /// `seq` again.
    pub seq_id: i64,
    /// The network's id.
    pub external_id: Option<String>,
    /// The receiver's id.
    pub recipient: String,
    /// Group; empty for a direct chat.
    pub group_id: String,
    /// Unix milliseconds.
    pub timestamp_ms: i64,
    /// Always 2: finished.
    pub message_state: i64,
}

/// Who wrote a message.
#[derive(Debug, Object)]
pub struct MessageSender {
    /// Id on the network.
    pub user_id: String,
    /// Display name; empty when the network has none.
    pub user_name: String,
}

/// A piece of a channel's log.
#[derive(Debug, Object)]
pub struct ChannelMessages {
    /// Oldest first.
    pub items: Vec<ChannelMessage>,
    /// Where to go on; also there when nothing came. Presenting it acknowledges everything before it.
    pub next_cursor: String,
}

impl TryFrom<Polled> for ChannelMessages {
    type Error = Error;

    fn try_from(polled: Polled) -> Result<Self> {
        let message = |data: &[u8]| -> Result<ChannelMessage> {
            let value = serde_json::from_slice(data).map_err(Error::internal)?;
            ChannelMessage::parse_from_json(Some(value))
                .map_err(|error| Error::internal(error.into_message()))
        };
        Ok(Self {
            items: polled.entries.iter().map(|entry| message(entry.data())).collect::<Result<_>>()?,
            next_cursor: polled.next_cursor,
        })
    }
}

/// Where a file is uploaded to.
#[derive(Debug, Object)]
pub struct UploadView {
    /// Names the file in the `media` of a send.
    pub upload_id: MediaId,
    /// Where its bytes go. Whoever has this URL may upload.
    pub upload_url: String,
    /// Always `PUT`.
    pub method: String,
    /// What the request has to carry.
    pub headers: HashMap<String, String>,
    /// Until when.
    pub expires_at: Time,
}

impl From<UploadTicket> for UploadView {
    fn from(ticket: UploadTicket) -> Self {
        Self {
            upload_id: ticket.upload_id.into(),
            upload_url: ticket.url.as_str().to_owned(),
            method: "PUT".to_owned(),
            headers: HashMap::from([("Content-Type".to_owned(), ticket.content_type)]),
            expires_at: Time(ticket.expires_at),
        }
    }
}

/// Whether the sign was shown.
#[derive(Debug, Object)]
pub struct TypingView {
    /// Whether the network took it; it takes none for a person who never wrote.
    pub shown: bool,
}

/// The channel's bot.
#[derive(Debug, Object)]
pub struct ChannelStatus {
    /// The channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// Its bot.
    pub bot_id: BotId,
    /// Where the bot's connection stands.
    pub bot_status: BotStatus,
}

/// What a client may want to know of its channel.
#[derive(Debug, Object)]
pub struct ChannelConfig {
    /// The channel.
    pub channel: ChannelView,
    /// Where the bot's connection stands.
    pub bot_status: BotStatus,
    /// What the hub takes.
    pub limits: ChannelLimits,
    /// Names the person who owns the account in `typing` and `send_typing`.
    pub typing_ticket: String,
}

/// What the hub takes.
#[derive(Debug, Object)]
pub struct ChannelLimits {
    /// Longest text of a message to send, in bytes.
    pub text_bytes: u64,
    /// Largest frame of a client, in bytes.
    pub frame_bytes: u64,
    /// Largest JSON body, in bytes.
    pub body_bytes: u64,
    /// WebSockets on this channel.
    pub sockets: u64,
    /// Polls waiting on this channel.
    pub polls: u64,
    /// Longest wait of a poll, in seconds.
    pub poll_seconds: u64,
    /// Sends and typing signs per minute.
    pub sends_per_minute: u32,
}

pub(super) async fn status(hub: &Hub, client: &Actor) -> Result<ChannelStatus> {
    let (channel, bot) =
        (hub.channels().of_client(client.client()?).await?, hub.bots().of_client(client).await?);
    Ok(ChannelStatus {
        channel_id: channel.id.into(),
        channel_name: channel.name,
        bot_id: channel.bot_id.into(),
        bot_status: bot.status.into(),
    })
}

pub(super) async fn config(hub: &Hub, settings: &AppSettings, client: &Actor) -> Result<ChannelConfig> {
    let (channel, bot) =
        (hub.channels().of_client(client.client()?).await?, hub.bots().of_client(client).await?);
    let limits = &hub.context().config;
    Ok(ChannelConfig {
        typing_ticket: ticket::issue(channel.id, &bot.owner_user_id),
        channel: channel.into(),
        bot_status: bot.status.into(),
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
