//! Response bodies.

use hub_core::{
    bots::{
        self, BindStep, BindView, Bot, BotHealth, Contact, ListedMessage, Message, MessageOutcome, Quoted,
        Sent,
    },
    media, network,
    secret::Secret,
};
use poem_openapi::Object;

use crate::api::traces::TraceStatus;
use crate::wire::{BindId, BotId, ChannelId, MediaId, MessageId, Time, TraceId, UserId, enumeration, view};

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
    /// Status of a message.
    MessageStatus = bots::MessageStatus {
        /// Received.
        Received,
        /// Received, but the hub could not read it.
        Quarantined,
        /// Received from a bot, and not delivered.
        Ignored,
        /// Received, and the sender took it back.
        Recalled,
        /// Received before the sender had finished it, and not delivered.
        Unfinished,
        /// Waiting for the network.
        Queued,
        /// The network accepted it.
        Sent,
        /// The network accepted it without an id.
        Unconfirmed,
        /// It is unknown whether the network has it; it is not sent again.
        Unknown,
        /// The network refused it.
        Failed,
        /// It waited too long.
        Expired,
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

view! {
    /// A bot.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct BotView from bot: Bot {
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
}

view! {
    /// Connection of a bot.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct BotHealthView from health: BotHealth {
        /// Id of the bot.
        pub bot_id: BotId = health.bot.id.into(),
        /// Connection status.
        pub status: BotStatus = health.bot.status.into(),
        /// Reason for the status, if known.
        pub status_reason: Option<String> = health.bot.status_reason,
        /// Time of the last change of the status.
        pub since: Time,
        /// When the network last responded to a poll.
        pub last_poll_at: Option<Time>,
        /// The last error.
        pub last_error: Option<String>,
        /// Node that works for the bot; absent if no node does.
        pub poller_node: Option<String>,
        /// Whether a message to the owner of the account can be sent now.
        pub can_send: bool = health.bot.can_send,
        /// Reason if it cannot.
        pub send_disabled_reason: Option<String> = health.bot.send_disabled_reason,
        /// When the last message was received.
        pub last_inbound_at: Option<Time> = health.bot.last_inbound_at.map(Time),
    }
}

view! {
    /// A started bind.
    #[derive(Debug, Object)]
    pub struct StartedBindView from bind: BindView {
        /// Id of the bind, for every confirm.
        pub bind_id: BindId,
        /// Text to show as a QR code.
        pub qr_text: String = bind.qr_text.expose().to_owned(),
        /// The code as an SVG document.
        pub qr_svg: String = bind.qr_svg.expose().to_owned(),
        /// When the bind expires; a code that expires earlier is replaced.
        pub expires_at: Time,
    }
}

/// Status of a bind.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BindStepView {
    /// Chat network of the account.
    pub network: String,
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
            network: step.network,
            status: step.status.into(),
            qr_text: step.qr_text.map(shown),
            qr_svg: step.qr_svg.map(shown),
            reason: step.reason,
            bot: step.bot.map(Into::into),
        }
    }
}

view! {
    /// An accepted message.
    #[derive(Debug, Object)]
    pub struct SentView from sent: Sent {
        /// Id of the message.
        pub message_id: MessageId,
        /// State: `queued`.
        pub status: String,
        /// Id of the trace of the send.
        pub trace_id: TraceId,
    }
}

view! {
    /// A message.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct MessageView from message: Message {
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
        pub msg_type: i64 = message.kind.msg_type(),
        /// Parts.
        pub items: Vec<ItemView>,
        /// Conversation; empty if the network has no id for it.
        pub session_id: String,
        /// The quoted message.
        pub quoted: Option<QuotedView>,
        /// Files, with links to download them.
        pub media: Vec<MediaView>,
        /// Status.
        pub status: MessageStatus,
        /// Reason for the status, if known.
        pub status_reason: Option<String>,
        /// Id of its trace.
        pub trace_id: Option<TraceId>,
        /// When the hub received it.
        pub created_at: Time,
    }
}

enumeration! {
    /// Outcome of a message in a channel.
    Outcome = bots::Outcome {
        /// The delivery failed.
        Failed,
        /// The delivery or the send has not ended.
        InFlight,
        /// A filter or a plugin skipped the message.
        Skipped,
        /// The message was delivered.
        Delivered,
    }
}

view! {
    /// Outcome of a message in one channel: its newest trace there.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct MessageOutcomeView from outcome: MessageOutcome {
        /// Id of the channel; absent for an app, and for a send that no channel caused.
        pub channel_id: Option<ChannelId>,
        /// Name of the channel.
        pub channel_name: Option<String>,
        /// Id of the trace.
        pub trace_id: TraceId,
        /// Status of the trace.
        pub status: TraceStatus,
        /// Number of attempts at the sink.
        pub attempts: u64,
        /// Summary of the trace, unless the message was delivered.
        pub reason: Option<String>,
        /// When the next attempt is due; absent if no attempt is planned.
        pub next_attempt_at: Option<Time>,
    }
}

view! {
    /// A message in a list over all bots.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct ListedMessageView from listed: ListedMessage {
        /// The message.
        #[oai(flatten)]
        pub message: MessageView = listed.message.into(),
        /// Name of the bot.
        pub bot_name: String,
        /// Outcome in each channel.
        pub outcomes: Vec<MessageOutcomeView>,
    }
}

view! {
    /// A part of a message.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct ItemView from item: network::MessageItem {
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
}

view! {
    /// A quoted message.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct QuotedView from quoted: Quoted {
        /// Id of the quoted message, if the hub has it.
        pub message_id: Option<MessageId>,
        /// Id of the quoted message on the network.
        pub network_id: Option<String>,
        /// Kind of the quoted message, if known.
        #[oai(rename = "type")]
        pub kind: Option<ItemType>,
        /// The quoted text, if known: of a part of the message, that part; of a file its name.
        pub text: Option<String>,
        /// Name of the quoted file.
        pub file_name: Option<String>,
    }
}

view! {
    /// A file of a message.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct MediaView from file: media::MediaView {
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
        pub url: Option<String> = file.url.map(|url| url.as_str().to_owned()),
        /// When the URL expires.
        pub url_expires_at: Option<Time>,
        /// Reason of the failure.
        pub error: Option<String>,
    }
}

view! {
    /// A person with whom the bot has exchanged messages. Unknown texts are empty, never absent.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct ContactView from contact: Contact {
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
        /// Number of sends that are possible now, within the window and within five minutes; absent if there is no
        /// limit.
        pub sends_left: Option<u32>,
        /// When the next message is sent, if the limit per five minutes is reached (setting `sends_per_five_minutes`).
        /// Messages until then are accepted and queued.
        pub next_send_at: Option<Time>,
    }
}
