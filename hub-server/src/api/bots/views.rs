//! Response bodies.

use hub_core::{
    bots::{self, BindStep, BindView, Bot, BotHealth, Contact, Message, Sent},
    media,
    network::{self, Quote},
    secret::Secret,
};
use poem_openapi::Object;

use crate::wire::{BindId, BotId, ChannelId, MediaId, MessageId, Time, TraceId, UserId, enumeration};

enumeration! {
    /// Connection status of a bot.
    BotStatus = bots::BotStatus {
        /// Bound, not connected yet.
        Pending,
        /// The hub is connecting.
        Connecting,
        /// The network responds.
        Online,
        /// The network responds irregularly.
        Degraded,
        /// The network has not responded for some time; the hub keeps trying.
        Offline,
        /// The network requires a new login: bind the account again.
        Expired,
        /// An error that needs attention.
        Error,
    }
}

enumeration! {
    /// Status of a bind.
    BindStatus = bots::BindStatus {
        /// The code was not scanned yet.
        Waiting,
        /// Scanned, not yet confirmed on the phone.
        Scanned,
        /// The phone shows a number, which the next confirm has to contain.
        NeedCode,
        /// Done.
        Confirmed,
        /// Time or codes ran out.
        Expired,
        /// The account was already bound here; its login is used again.
        AlreadyBound,
        /// Refused by the network or the hub.
        Refused,
    }
}

enumeration! {
    /// State of a file.
    MediaStatus = media::MediaState {
        /// Announced, not uploaded yet.
        Pending,
        /// It is being uploaded.
        Uploading,
        /// It is being downloaded from the chat network.
        Downloading,
        /// It is available.
        Ready,
        /// The download failed; it can be retried.
        Failed,
    }
}

enumeration! {
    /// Direction of a message.
    Direction = bots::Direction {
        /// From a person to the bot.
        Inbound,
        /// From the bot to a person.
        Outbound,
    }
}

enumeration! {
    /// Kind of a message or of a part.
    ItemType = network::MessageKind {
        /// Text.
        Text,
        /// An image.
        Image,
        /// A voice message.
        Voice,
        /// A video.
        Video,
        /// A file.
        File,
        /// A kind that the hub does not know.
        Other,
    }
}

/// A bot.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BotView {
    /// Id of the bot.
    pub id: BotId,
    /// Name of the bot.
    pub name: String,
    /// Chat network.
    pub network: String,
    /// Connection status.
    pub status: BotStatus,
    /// Reason for the status, if known.
    pub status_reason: Option<String>,
    /// Id of the account on the chat network.
    pub wx_id: String,
    /// User who owns the bot.
    pub owner_id: UserId,
    /// Whether a message to the owner of the account can be sent now.
    pub can_send: bool,
    /// Reason if it cannot.
    pub send_disabled_reason: Option<String>,
    /// When the last message was received.
    pub last_inbound_at: Option<Time>,
    /// When it was bound.
    pub created_at: Time,
}

impl From<Bot> for BotView {
    fn from(bot: Bot) -> Self {
        Self {
            id: bot.id.into(),
            name: bot.name,
            network: bot.network,
            status: bot.status.into(),
            status_reason: bot.status_reason,
            wx_id: bot.wx_id,
            owner_id: bot.owner_id.into(),
            can_send: bot.can_send,
            send_disabled_reason: bot.send_disabled_reason,
            last_inbound_at: bot.last_inbound_at.map(Time),
            created_at: bot.created_at.into(),
        }
    }
}

/// Connection of a bot.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BotHealthView {
    /// Id of the bot.
    pub bot_id: BotId,
    /// Connection status.
    pub status: BotStatus,
    /// Reason for the status, if known.
    pub status_reason: Option<String>,
    /// Time of the last change of the status.
    pub since: Time,
    /// When the network last responded to a poll.
    pub last_poll_at: Option<Time>,
    /// The last error.
    pub last_error: Option<String>,
    /// Node that works for the bot; absent if there is none.
    pub poller_node: Option<String>,
    /// Whether a message to the owner of the account can be sent now.
    pub can_send: bool,
    /// Reason if it cannot.
    pub send_disabled_reason: Option<String>,
    /// When the last message was received.
    pub last_inbound_at: Option<Time>,
}

impl From<BotHealth> for BotHealthView {
    fn from(health: BotHealth) -> Self {
        let bot = health.bot;
        Self {
            bot_id: bot.id.into(),
            status: bot.status.into(),
            status_reason: bot.status_reason,
            since: health.since.into(),
            last_poll_at: health.last_poll_at.map(Time),
            last_error: health.last_error,
            poller_node: health.poller_node,
            can_send: bot.can_send,
            send_disabled_reason: bot.send_disabled_reason,
            last_inbound_at: bot.last_inbound_at.map(Time),
        }
    }
}

/// A started bind.
#[derive(Debug, Object)]
pub struct StartedBindView {
    /// Id of the bind, for every confirm.
    pub bind_id: BindId,
    /// Text to show as a QR code.
    pub qr_text: String,
    /// The code as an SVG document.
    pub qr_svg: String,
    /// When the bind expires; a code that expires earlier is replaced.
    pub expires_at: Time,
}

impl From<BindView> for StartedBindView {
    fn from(bind: BindView) -> Self {
        Self {
            bind_id: bind.bind_id.into(),
            qr_text: bind.qr_text.expose().to_owned(),
            qr_svg: bind.qr_svg.expose().to_owned(),
            expires_at: bind.expires_at.into(),
        }
    }
}

/// Status of a bind.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BindStepView {
    /// The status.
    pub status: BindStatus,
    /// The current code, while it waits to be scanned.
    pub qr_text: Option<String>,
    /// The code as an SVG document, if it differs from the first one.
    pub qr_svg: Option<String>,
    /// Reason for the status, if known.
    pub reason: Option<String>,
    /// The bot, after a successful bind.
    pub bot: Option<BotView>,
}

impl From<BindStep> for BindStepView {
    fn from(step: BindStep) -> Self {
        let shown = |secret: Secret| secret.expose().to_owned();
        Self {
            status: step.status.into(),
            qr_text: step.qr_text.map(shown),
            qr_svg: step.qr_svg.map(shown),
            reason: step.reason,
            bot: step.bot.map(Into::into),
        }
    }
}

/// An accepted message.
#[derive(Debug, Object)]
pub struct SentView {
    /// Id of the message.
    pub message_id: MessageId,
    /// State: `queued`.
    pub status: String,
    /// Id of the trace of the send.
    pub trace_id: TraceId,
}

impl From<Sent> for SentView {
    fn from(sent: Sent) -> Self {
        Self { message_id: sent.message_id.into(), status: sent.status, trace_id: sent.trace_id.into() }
    }
}

/// A message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct MessageView {
    /// Id of the message.
    pub id: MessageId,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Channels that received it, or the channel that sent it.
    pub channel_ids: Vec<ChannelId>,
    /// Direction.
    pub direction: Direction,
    /// Id of the sender.
    pub from_user_id: String,
    /// Id of the recipient.
    pub to_user_id: String,
    /// Display name of the other person; empty if unknown.
    pub user_name: String,
    /// Text.
    pub content: String,
    /// Kind: 1 text, 3 image, 34 voice, 43 video, 49 file, 0 other.
    pub msg_type: i64,
    /// Parts.
    pub items: Vec<ItemView>,
    /// Conversation; empty if the network has no id for it.
    pub session_id: String,
    /// The quoted message.
    pub quoted: Option<QuotedView>,
    /// Files, with links to download them.
    pub media: Vec<MediaView>,
    /// Delivery status.
    pub status: String,
    /// Reason for the status, if known.
    pub status_reason: Option<String>,
    /// Id of its trace.
    pub trace_id: Option<TraceId>,
    /// When the hub received it.
    pub created_at: Time,
}

/// A part of a message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ItemView {
    /// Kind of the part.
    #[oai(rename = "type")]
    pub kind: ItemType,
    /// Text, or the network's transcript of a voice message.
    pub text: Option<String>,
    /// File name.
    pub file_name: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Duration of voice or video in milliseconds.
    pub duration_ms: Option<u64>,
}

/// A quoted message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct QuotedView {
    /// Id of the quoted message on the network.
    pub network_id: Option<String>,
    /// Text of the quoted message, if known.
    pub text: Option<String>,
}

/// A file of a message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct MediaView {
    /// Id of the file.
    pub id: MediaId,
    /// Index of its item, from 0.
    pub item: u32,
    /// Kind of the file.
    #[oai(rename = "type")]
    pub kind: ItemType,
    /// State of the file.
    pub status: MediaStatus,
    /// File name; empty if unknown.
    pub file_name: String,
    /// Media type, once known.
    pub content_type: Option<String>,
    /// Size in bytes, once known.
    pub size: Option<u64>,
    /// URL to download it, without further credentials; absent if the download failed. A request waits up to 20
    /// seconds for a file that is still being downloaded; ranges, `HEAD` and `If-None-Match` are supported.
    pub url: Option<String>,
    /// When the URL expires.
    pub url_expires_at: Option<Time>,
    /// Reason of the failure.
    pub error: Option<String>,
}

impl From<media::MediaView> for MediaView {
    fn from(file: media::MediaView) -> Self {
        Self {
            id: file.id.into(),
            item: file.item,
            kind: file.kind.into(),
            status: file.status.into(),
            file_name: file.file_name,
            content_type: file.content_type,
            size: file.size,
            url: file.url.map(|url| url.as_str().to_owned()),
            url_expires_at: file.url_expires_at.map(Time),
            error: file.error,
        }
    }
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            id: message.id.into(),
            bot_id: message.bot_id.into(),
            channel_ids: message.channel_ids.into_iter().map(Into::into).collect(),
            direction: message.direction.into(),
            from_user_id: message.from_user_id,
            to_user_id: message.to_user_id,
            user_name: message.user_name,
            content: message.content,
            msg_type: message.kind.msg_type(),
            items: message.items.into_iter().map(Into::into).collect(),
            session_id: message.session_id,
            quoted: message.quoted.map(|Quote { network_id, text, .. }| QuotedView { network_id, text }),
            media: message.media.into_iter().map(Into::into).collect(),
            status: message.status,
            status_reason: message.status_reason,
            trace_id: message.trace_id.map(Into::into),
            created_at: message.created_at.into(),
        }
    }
}

impl From<network::MessageItem> for ItemView {
    fn from(item: network::MessageItem) -> Self {
        Self {
            kind: item.kind.into(),
            text: item.text,
            file_name: item.file_name,
            size: item.size,
            duration_ms: item.duration_ms,
        }
    }
}

/// A person with whom the bot has exchanged messages. Unknown texts are empty, never absent.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ContactView {
    /// Id on the chat network, case-sensitive.
    pub user_id: String,
    /// Display name on the chat network.
    pub user_name: String,
    /// Your remark.
    pub remark: String,
    /// URL of the picture.
    pub avatar_url: String,
    /// Time of the last message in either direction.
    pub last_message_at: Time,
    /// Number of messages.
    pub message_count: i64,
    /// When the sending window closes unless they write again; absent if it is closed or has no end.
    pub window_expires_at: Option<Time>,
    /// Number of sends that are possible now, within the window and within five minutes; absent if there is no limit.
    pub sends_left: Option<u32>,
    /// When the next message is sent, if the limit per five minutes is reached (setting `sends_per_five_minutes`).
    /// Messages until then are accepted and queued.
    pub next_send_at: Option<Time>,
}

impl From<Contact> for ContactView {
    fn from(contact: Contact) -> Self {
        Self {
            user_id: contact.user_id,
            user_name: contact.user_name,
            remark: contact.remark,
            avatar_url: contact.avatar_url,
            last_message_at: contact.last_message_at.into(),
            message_count: contact.message_count,
            window_expires_at: contact.window_expires_at.map(Time),
            sends_left: contact.sends_left,
            next_send_at: contact.next_send_at.map(Time),
        }
    }
}
