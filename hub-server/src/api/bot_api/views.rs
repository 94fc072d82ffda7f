//! Responses to apps: bare objects, with the fields of the older dialect in addition.

use std::collections::BTreeMap;

use hub_core::{
    apps::AppConfig,
    bots::{Bot, BotStatus, Contact, Sent},
    id::{BotId, MessageId, TraceId},
    openapi::Api,
    page::Page,
    secret::ShownOnce,
    time::Timestamp,
};
use poem_openapi::Enum;

use crate::{
    envelope::Always,
    wire::{NextCursor, view},
};

view! {
    /// An accepted message.
    #[derive(Debug, Api)]
    #[api(like = Sent)]
    #[expect(missing_docs, reason = "the other fields are those of `Sent`")]
    pub struct BotSentView from sent: Sent {
        /// Always `true`.
        pub success: Always<true> = Always,
        /// Always `true`.
        pub ok: Always<true> = Always,
        pub message_id: MessageId,
        /// Network id of its first part.
        pub client_id: String,
        pub trace_id: TraceId,
    }
}

view! {
    /// A person with whom the bot has exchanged messages. Unknown texts are empty, never absent.
    #[derive(Debug, Api)]
    #[api(like = Contact)]
    #[expect(missing_docs, reason = "the other fields are those of `Contact`")]
    pub struct BotContactView from contact: Contact {
        pub user_id: String,
        pub user_name: String,
        /// Remark of the owner.
        pub remark: String,
        pub avatar_url: String,
        pub last_message_at: Timestamp,
        pub message_count: i64,
        /// `last_message_at` in Unix seconds.
        pub last_msg_at: i64 = contact.last_message_at.as_seconds(),
        /// The same as `message_count`.
        pub msg_count: i64 = contact.message_count,
    }
}

/// The contacts of a bot.
#[derive(Debug, Api)]
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

view! {
    /// The bot.
    #[derive(Debug, Api)]
    #[api(like = Bot)]
    #[expect(missing_docs, reason = "the other fields are those of `Bot`")]
    pub struct BotInfoView from bot: Bot {
        /// Always `true`.
        pub ok: Always<true> = Always,
        /// Id of the bot.
        pub bot_id: BotId = bot.id,
        pub name: String = bot.name.clone(),
        pub status: BotStatus,
        pub wx_id: String = bot.wx_id.clone(),
        pub created_at: Timestamp,
        /// The bot in the older dialect.
        pub bot: OlderBotView = bot.into(),
    }
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

view! {
    /// The bot, in the older dialect.
    #[derive(Debug, Api)]
    #[api(like = Bot)]
    #[expect(missing_docs, reason = "the other fields are those of `Bot`")]
    pub struct OlderBotView from bot: Bot {
        pub id: BotId,
        pub name: String,
        /// Chat network.
        pub provider: String = bot.network,
        /// Connection status, with the older values.
        pub status: OlderBotStatus = bot.status.into(),
        /// When it was bound, in Unix seconds.
        pub created_at: i64 = bot.created_at.as_seconds(),
    }
}

/// The configuration of an app on its bot.
#[derive(Debug, Api)]
pub struct AppConfigView {
    /// Always `true`.
    pub ok: Always<true>,
    /// Values by name.
    pub config: BTreeMap<String, ShownOnce>,
}

impl From<AppConfig> for AppConfigView {
    fn from(config: AppConfig) -> Self {
        Self {
            ok: Always,
            config: config.into_iter().map(|(name, value)| (name, ShownOnce(value))).collect(),
        }
    }
}

/// Number of tools after the change.
#[derive(Debug, Api)]
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
