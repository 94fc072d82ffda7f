//! Responses to apps: bare objects, with the fields of the older dialect in addition.

use hub_core::{
    bots::{Bot, Contact, Sent},
    page::Page,
};
use poem_openapi::{Enum, Object};

use crate::{
    api::bots::BotStatus,
    envelope::Always,
    wire::{BotId, MessageId, NextCursor, Time, TraceId},
};

/// An accepted message.
#[derive(Debug, Object)]
pub struct BotSentView {
    /// Always `true`.
    pub success: Always<true>,
    /// Always `true`.
    pub ok: Always<true>,
    /// Id of the message.
    pub message_id: MessageId,
    /// Network id of its first part.
    pub client_id: String,
    /// Id of the trace of the send.
    pub trace_id: TraceId,
}

impl From<Sent> for BotSentView {
    fn from(sent: Sent) -> Self {
        Self {
            success: Always,
            ok: Always,
            message_id: sent.message_id.into(),
            client_id: sent.client_id,
            trace_id: sent.trace_id.into(),
        }
    }
}

/// A person with whom the bot has exchanged messages. Unknown texts are empty, never absent.
#[derive(Debug, Object)]
pub struct BotContactView {
    /// Id on the chat network, case-sensitive.
    pub user_id: String,
    /// Display name on the chat network.
    pub user_name: String,
    /// Remark of the owner.
    pub remark: String,
    /// URL of the picture.
    pub avatar_url: String,
    /// Time of the last message in either direction.
    pub last_message_at: Time,
    /// Number of messages.
    pub message_count: i64,
    /// `last_message_at` in Unix seconds.
    pub last_msg_at: i64,
    /// The same as `message_count`.
    pub msg_count: i64,
}

impl From<Contact> for BotContactView {
    fn from(contact: Contact) -> Self {
        Self {
            user_id: contact.user_id,
            user_name: contact.user_name,
            remark: contact.remark,
            avatar_url: contact.avatar_url,
            last_message_at: contact.last_message_at.into(),
            message_count: contact.message_count,
            last_msg_at: contact.last_message_at.as_seconds(),
            msg_count: contact.message_count,
        }
    }
}

/// The contacts of a bot.
#[derive(Debug, Object)]
pub struct BotContactsView {
    /// Always `true`.
    pub ok: Always<true>,
    /// Most recently active first.
    pub contacts: Vec<BotContactView>,
    /// Cursor of the next page; `null` on the last one.
    pub next_cursor: NextCursor,
}

impl From<Page<Contact>> for BotContactsView {
    fn from(page: Page<Contact>) -> Self {
        let contacts = page.items.into_iter().map(Into::into).collect();
        Self { ok: Always, contacts, next_cursor: NextCursor(page.next_cursor) }
    }
}

/// The bot.
#[derive(Debug, Object)]
pub struct BotInfoView {
    /// Always `true`.
    pub ok: Always<true>,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Name.
    pub name: String,
    /// Connection status.
    pub status: BotStatus,
    /// Id of the account on the chat network.
    pub wx_id: String,
    /// When it was bound.
    pub created_at: Time,
    /// The bot in the older dialect.
    pub bot: OlderBotView,
}

/// Connection status of a bot, with the values that published apps test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum OlderBotStatus {
    /// The network responds.
    Connected,
    /// The network does not respond, or was not contacted yet.
    Disconnected,
    /// The network requires a new login.
    SessionExpired,
    /// An error that needs attention.
    Error,
}

impl From<hub_core::bots::BotStatus> for OlderBotStatus {
    fn from(status: hub_core::bots::BotStatus) -> Self {
        use hub_core::bots::BotStatus as Status;
        match status {
            Status::Online | Status::Degraded => Self::Connected,
            Status::Pending | Status::Connecting | Status::Offline => Self::Disconnected,
            Status::Expired => Self::SessionExpired,
            Status::Error => Self::Error,
        }
    }
}

/// The bot, in the older dialect.
#[derive(Debug, Object)]
pub struct OlderBotView {
    /// Id of the bot.
    pub id: BotId,
    /// Name.
    pub name: String,
    /// Chat network.
    pub provider: String,
    /// Connection status, with the older values.
    pub status: OlderBotStatus,
    /// When it was bound, in Unix seconds.
    pub created_at: i64,
}

impl From<Bot> for BotInfoView {
    fn from(bot: Bot) -> Self {
        Self {
            ok: Always,
            bot_id: bot.id.into(),
            name: bot.name.clone(),
            status: bot.status.into(),
            wx_id: bot.wx_id,
            created_at: bot.created_at.into(),
            bot: OlderBotView {
                id: bot.id.into(),
                name: bot.name,
                provider: bot.network,
                status: bot.status.into(),
                created_at: bot.created_at.as_seconds(),
            },
        }
    }
}

/// Number of tools after the change.
#[derive(Debug, Object)]
pub struct ToolsView {
    /// Always `true`.
    pub ok: Always<true>,
    /// Number of tools.
    pub tool_count: u64,
}

impl ToolsView {
    pub(super) fn of(count: usize) -> Self {
        Self { ok: Always, tool_count: count as u64 }
    }
}
