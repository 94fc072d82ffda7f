//! What callers see.

use hub_core::{
    bots::{self, BindStep, BindView, Bot, BotHealth, Contact, Message, Sent},
    media,
    network::{self, Quote},
    secret::Secret,
};
use poem_openapi::Object;

use crate::wire::{BindId, BotId, ChannelId, MediaId, MessageId, Time, TraceId, UserId, enumeration};

enumeration! {
    /// Where a bot's connection stands.
    BotStatus = bots::BotStatus {
        /// Bound, and not taken up yet.
        Pending,
        /// The hub is making contact.
        Connecting,
        /// The network answers.
        Online,
        /// The network answers irregularly.
        Degraded,
        /// The network has not answered for a while; the hub goes on trying.
        Offline,
        /// The network wants a new login: bind the account again.
        Expired,
        /// Something a person has to look at.
        Error,
    }
}

enumeration! {
    /// Where a bind stands.
    BindStatus = bots::BindStatus {
        /// Nobody scanned the code yet.
        Waiting,
        /// Scanned, not yet confirmed on the phone.
        Scanned,
        /// The phone shows a number; the next confirm has to bring it.
        NeedCode,
        /// Done.
        Confirmed,
        /// Time, or the last code, ran out.
        Expired,
        /// The account was bound here before; its login is used again.
        AlreadyBound,
        /// It cannot succeed.
        Refused,
    }
}

enumeration! {
    /// Where a file stands.
    MediaStatus = media::MediaState {
        /// Announced; nobody has uploaded it yet.
        Pending,
        /// It is being uploaded.
        Uploading,
        /// It is being fetched from the chat network.
        Downloading,
        /// It can be read.
        Ready,
        /// It could not be fetched; it can be tried anew.
        Failed,
    }
}

enumeration! {
    /// Which way a message went.
    Direction = bots::Direction {
        /// From a person to the bot.
        Inbound,
        /// From the bot to a person.
        Outbound,
    }
}

enumeration! {
    /// What a part of a message is.
    ItemType = network::MessageKind {
        /// Text.
        Text,
        /// A picture.
        Image,
        /// A voice note.
        Voice,
        /// A video.
        Video,
        /// A file.
        File,
        /// Something the network has and the hub does not know.
        Other,
    }
}

/// A bot.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BotView {
    /// Id.
    pub id: BotId,
    /// Name.
    pub name: String,
    /// Chat network.
    pub network: String,
    /// Where its connection stands.
    pub status: BotStatus,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// The account's id on the chat network.
    pub wx_id: String,
    /// The user it belongs to.
    pub owner_id: UserId,
    /// Whether a message to the account's own person would be taken now.
    pub can_send: bool,
    /// Why not.
    pub send_disabled_reason: Option<String>,
    /// When the last message came.
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

/// A bot's connection.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BotHealthView {
    /// The bot.
    pub bot_id: BotId,
    /// Where the connection stands.
    pub status: BotStatus,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// Since when.
    pub since: Time,
    /// When the network last answered a poll.
    pub last_poll_at: Option<Time>,
    /// What last went wrong.
    pub last_error: Option<String>,
    /// The node that works for the bot; absent when none does.
    pub poller_node: Option<String>,
    /// Whether a message to the account's own person would be taken now.
    pub can_send: bool,
    /// Why not.
    pub send_disabled_reason: Option<String>,
    /// When the last message came.
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

/// A bind that was started.
#[derive(Debug, Object)]
pub struct StartedBindView {
    /// Names the bind in every confirm.
    pub bind_id: BindId,
    /// Text to be shown as a QR code.
    pub qr_text: String,
    /// The code as an SVG document.
    pub qr_svg: String,
    /// When the bind ends; a code that runs out before is replaced.
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

/// Where a bind stands.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BindStepView {
    /// Where it stands.
    pub status: BindStatus,
    /// The code to scan now; only while it waits to be scanned.
    pub qr_text: Option<String>,
    /// The code as an SVG document, once it is another than the first.
    pub qr_svg: Option<String>,
    /// Why, where the status alone does not say.
    pub reason: Option<String>,
    /// The bot, once the bind ended well.
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
    /// Its id.
    pub message_id: MessageId,
    /// Where it stands: `queued`.
    pub status: String,
    /// Names the send in traces.
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
    /// Id.
    pub id: MessageId,
    /// Bot.
    pub bot_id: BotId,
    /// Channels that received it, or the one that sent it.
    pub channel_ids: Vec<ChannelId>,
    /// Which way it went.
    pub direction: Direction,
    /// Sender.
    pub from_user_id: String,
    /// Receiver.
    pub to_user_id: String,
    /// Display name of the person on the other side; empty when unknown.
    pub user_name: String,
    /// Its text.
    pub content: String,
    /// What it is: 1 text, 3 image, 34 voice, 43 video, 49 file, 0 other.
    pub msg_type: i64,
    /// Its parts.
    pub items: Vec<ItemView>,
    /// Conversation; empty when the network has no label for it.
    pub session_id: String,
    /// What it refers to.
    pub quoted: Option<QuotedView>,
    /// Files of the message, with links to read them.
    pub media: Vec<MediaView>,
    /// What became of it.
    pub status: String,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// The trace that tells of it.
    pub trace_id: Option<TraceId>,
    /// When the hub took it.
    pub created_at: Time,
}

/// A part of a message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ItemView {
    /// What it is.
    #[oai(rename = "type")]
    pub kind: ItemType,
    /// Text, or the network's transcript of a voice note.
    pub text: Option<String>,
    /// Name of a file.
    pub file_name: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Length of voice or video in milliseconds.
    pub duration_ms: Option<u64>,
}

/// A message that another one refers to.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct QuotedView {
    /// The network's id of it.
    pub network_id: Option<String>,
    /// Its text, as far as known.
    pub text: Option<String>,
}

/// A file of a message.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct MediaView {
    /// Id.
    pub id: MediaId,
    /// Which of the items it is, from 0.
    pub item: u32,
    /// What it is.
    #[oai(rename = "type")]
    pub kind: ItemType,
    /// Whether it is there.
    pub status: MediaStatus,
    /// Its name; empty until it has one.
    pub file_name: String,
    /// Media type, once it is known.
    pub content_type: Option<String>,
    /// Size in bytes, once it is known.
    pub size: Option<u64>,
    /// Where to read it, without any other credential; absent when it failed. Reading waits up to 20 seconds for
    /// a file that is still being fetched; ranges, `HEAD` and `If-None-Match` are understood.
    pub url: Option<String>,
    /// Until when that works.
    pub url_expires_at: Option<Time>,
    /// Why it failed.
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

/// A person the bot talks to. Unknown texts are empty, never absent.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct ContactView {
    /// Id on the chat network, case-sensitive.
    pub user_id: String,
    /// Display name on the chat network.
    pub user_name: String,
    /// Your own note.
    pub remark: String,
    /// Picture.
    pub avatar_url: String,
    /// When the last message went either way.
    pub last_message_at: Time,
    /// Messages so far.
    pub message_count: i64,
    /// When sending to them ends unless they write again; absent when nothing may be sent, or it has no end.
    pub window_expires_at: Option<Time>,
    /// Sends that are possible now: what is left until they write again, and within five minutes; absent when there
    /// is no limit.
    pub sends_left: Option<u32>,
    /// When the next message is sent to them, while the limit of messages to one person within five minutes is
    /// reached (setting `sends_per_five_minutes`). What is sent until then is accepted and queued.
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
