//! What a bot is: its record, its states, and what is derived from both.

use crate::{
    id::{BindId, BotId, UserId},
    model::window::Window,
    network::WindowRules,
    secret::Sealed,
    time::Timestamp,
};

/// A bot as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    /// Id.
    pub id: BotId,
    /// Name.
    pub name: String,
    /// Chat network, for example `ilink`.
    pub network: String,
    /// Status of its connection.
    pub status: BotStatus,
    /// Why, where the status alone does not say.
    pub status_reason: Option<String>,
    /// The account's id on the chat network.
    pub wx_id: String,
    /// The hub user it belongs to.
    pub owner_id: UserId,
    /// Whether a message to the account's own person would be taken now.
    pub can_send: bool,
    /// Why not.
    pub send_disabled_reason: Option<String>,
    /// When the last message came.
    pub last_inbound_at: Option<Timestamp>,
    /// When it was bound.
    pub created_at: Timestamp,
}

/// A bot, with what its poller last noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotHealth {
    /// The bot.
    pub bot: Bot,
    /// Since when it has its status.
    pub since: Timestamp,
    /// When the network last answered a poll.
    pub last_poll_at: Option<Timestamp>,
    /// What last went wrong.
    pub last_error: Option<String>,
    /// The node that works for it, by its name or else its id; absent when none does.
    pub poller_node: Option<String>,
}

/// Status of a bot's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BotStatus {
    /// Bound, and no poller has taken it yet.
    Pending,
    /// A poller is making contact.
    Connecting,
    /// The network answers.
    Online,
    /// The network answers irregularly.
    Degraded,
    /// The network has not answered for a while; the hub goes on trying.
    Offline,
    /// The network wants a new login.
    Expired,
    /// Something a person has to look at.
    Error,
}

impl BotStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Connecting,
        Self::Online,
        Self::Degraded,
        Self::Offline,
        Self::Expired,
        Self::Error,
    ];

    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connecting => "connecting",
            Self::Online => "online",
            Self::Degraded => "degraded",
            Self::Offline => "offline",
            Self::Expired => "expired",
            Self::Error => "error",
        }
    }

    /// The status of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether a poller may move a bot from this status to another; staying is always allowed. A login that expired
    /// comes back only through `connecting`: by a new login, or by a try that succeeded.
    pub const fn may_become(self, next: Self) -> bool {
        use BotStatus::{Connecting, Degraded, Error, Expired, Offline, Online, Pending};
        match next {
            Pending => matches!(self, Pending),
            Connecting | Expired | Error => true,
            Online | Degraded | Offline => matches!(self, Connecting | Online | Degraded | Offline),
        }
    }
}

/// Everything the store knows of a bot but its login.
#[derive(Debug, Clone)]
pub struct BotRecord {
    /// Id.
    pub id: BotId,
    /// The hub user it belongs to.
    pub owner_id: UserId,
    /// Name.
    pub name: String,
    /// Chat network.
    pub network: String,
    /// Status of its connection.
    pub status: BotStatus,
    /// Why.
    pub status_reason: Option<String>,
    /// Since when.
    pub status_since: Timestamp,
    /// The account's id on the chat network.
    pub wx_id: String,
    /// The person the account belongs to, on the chat network.
    pub owner_user_id: String,
    /// When the last message came.
    pub last_inbound_at: Option<Timestamp>,
    /// When the network last answered a poll.
    pub last_poll_at: Option<Timestamp>,
    /// What last went wrong.
    pub last_error: Option<String>,
    /// The node that holds the lease.
    pub lease_owner: Option<String>,
    /// What people call that node, if they named it.
    pub lease_name: Option<String>,
    /// Until when.
    pub lease_until: Timestamp,
    /// When it was bound.
    pub created_at: Timestamp,
    /// The sending window of the account's own person.
    pub owner_window: Window,
}

impl BotRecord {
    /// The node that works for the bot now: its name, or its id when it has none.
    pub fn poller_node(&self, now: Timestamp) -> Option<&str> {
        let owner = self.lease_owner.as_deref().filter(|_| self.lease_until > now)?;
        Some(self.lease_name.as_deref().unwrap_or(owner))
    }

    /// What the owner sees. `rules` are those of the bot's network; `None` when this hub does not have it.
    pub fn into_view(self, rules: Option<WindowRules>, now: Timestamp) -> Bot {
        let disabled = match (self.status, rules) {
            (_, None) => Some(format!("this hub does not serve the network {}", self.network)),
            (BotStatus::Expired, _) => Some("the network requires a new login".to_owned()),
            (_, Some(rules)) => self.owner_window.check(&rules, now).err().map(|closed| closed.to_string()),
        };
        Bot {
            id: self.id,
            name: self.name,
            network: self.network,
            status: self.status,
            status_reason: self.status_reason,
            wx_id: self.wx_id,
            owner_id: self.owner_id,
            can_send: disabled.is_none(),
            send_disabled_reason: disabled,
            last_inbound_at: self.last_inbound_at,
            created_at: self.created_at,
        }
    }
}

/// A person as the store keeps them.
#[derive(Debug, Clone)]
pub struct StoredContact {
    /// Id on the network, byte for byte.
    pub user_id: String,
    /// Display name on the network.
    pub user_name: String,
    /// The owner's own note.
    pub remark: String,
    /// Picture.
    pub avatar_url: String,
    /// When the last message went either way.
    pub last_message_at: Timestamp,
    /// Messages so far.
    pub message_count: i64,
    /// The accounting of their sending window.
    pub window: Window,
    /// When they were last sent something, as stored.
    pub recent_sends: String,
}

/// Status of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindStatus {
    /// The code was not scanned yet.
    Waiting,
    /// Scanned, not yet confirmed on the phone.
    Scanned,
    /// The phone shows a number; the next confirm has to bring it.
    NeedCode,
    /// Done: the bot has its login.
    Confirmed,
    /// Time, or the last code, ran out.
    Expired,
    /// The account was bound here before; its login is used again.
    AlreadyBound,
    /// It cannot succeed.
    Refused,
}

impl BindStatus {
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Scanned,
        Self::NeedCode,
        Self::Confirmed,
        Self::Expired,
        Self::AlreadyBound,
        Self::Refused,
    ];

    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Scanned => "scanned",
            Self::NeedCode => "need_code",
            Self::Confirmed => "confirmed",
            Self::Expired => "expired",
            Self::AlreadyBound => "already_bound",
            Self::Refused => "refused",
        }
    }

    /// The status of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing follows any more.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Scanned | Self::NeedCode)
    }
}

/// A login in progress as the store keeps it.
#[derive(Debug, Clone)]
pub struct StoredBind {
    /// Id.
    pub id: BindId,
    /// The hub user it is for.
    pub owner_id: UserId,
    /// The one bot it is for.
    pub for_bot: Option<BotId>,
    /// Chat network.
    pub network: String,
    /// Wanted name; empty for none.
    pub name: String,
    /// Status.
    pub status: BindStatus,
    /// What only this hub may read.
    pub private: Sealed,
    /// Codes shown so far.
    pub codes_shown: u32,
    /// Grows with every change.
    pub rev: i64,
    /// The bot it ended with.
    pub bot_id: Option<BotId>,
    /// When it ends.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_statuses_are_one_to_one() {
        for status in BotStatus::ALL {
            assert_eq!(BotStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(BotStatus::parse("Online"), None);
    }

    #[test]
    fn transitions() {
        // Rows: from; columns: to, in the order of `ALL`.
        let allowed = [
            ("pending", "1100011"),
            ("connecting", "0111111"),
            ("online", "0111111"),
            ("degraded", "0111111"),
            ("offline", "0111111"),
            ("expired", "0100011"),
            ("error", "0100011"),
        ];
        for (from, row) in allowed {
            let from = BotStatus::parse(from).unwrap();
            let found: String =
                BotStatus::ALL.iter().map(|to| if from.may_become(*to) { '1' } else { '0' }).collect();
            assert_eq!(found, row, "{from:?}");
        }
    }
}
