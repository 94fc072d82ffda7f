//! Bots: their record, their states, and the views derived from both.

use crate::{
    id::{BindId, BotId, UserId},
    model::{cause::Cause, window::Window},
    network::WindowRules,
    secret::Sealed,
    time::Timestamp,
    words::words,
};

/// A bot.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct Bot {
    /// Id of the bot.
    pub id: BotId,
    /// Name of the bot.
    pub name: String,
    /// Chat network.
    pub network: String,
    /// Connection status.
    pub status: BotStatus,
    /// Reason for the status, if known.
    #[api(cause)]
    pub status_reason: Option<String>,
    /// Id of the account on the chat network.
    pub wx_id: String,
    /// User who owns the bot.
    pub owner_id: UserId,
    /// Whether a message to the owner of the account can be sent now.
    pub can_send: bool,
    /// Reason if it cannot.
    #[api(cause)]
    pub send_disabled_reason: Option<String>,
    /// When the last message was received.
    pub last_inbound_at: Option<Timestamp>,
    /// When it was bound.
    pub created_at: Timestamp,
}

/// Connection of a bot.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct BotHealth {
    /// The bot.
    #[api(
        skip,
        and(bot_id: BotId = |health: &Self| health.bot.id, "Id of the bot."),
        and(status: BotStatus = |health: &Self| health.bot.status, "Connection status."),
        and(
            cause status_reason: Option<String> = |health: &Self| health.bot.status_reason.clone(),
            "Reason for the status, if known."
        ),
        and(
            can_send: bool = |health: &Self| health.bot.can_send,
            "Whether a message to the owner of the account can be sent now."
        ),
        and(
            cause send_disabled_reason: Option<String> = |health: &Self| health.bot.send_disabled_reason.clone(),
            "Reason if it cannot."
        ),
        and(
            last_inbound_at: Option<Timestamp> = |health: &Self| health.bot.last_inbound_at,
            "When the last message was received."
        ),
    )]
    pub bot: Bot,
    /// Time of the last change of the status.
    pub since: Timestamp,
    /// When the network last responded to a poll.
    pub last_poll_at: Option<Timestamp>,
    /// The last error.
    #[api(cause)]
    pub last_error: Option<String>,
    /// Node that works for the bot; absent if no node does.
    pub poller_node: Option<String>,
}

words! {
    /// Connection status of a bot.
    #[derive(Hash)]
    pub enum BotStatus {
        /// Bound, not connected yet.
        Pending = "pending",
        /// The hub is connecting.
        Connecting = "connecting",
        /// The network responds.
        Online = "online",
        /// The network responds irregularly.
        Degraded = "degraded",
        /// The network has not responded for some time; the hub keeps trying.
        Offline = "offline",
        /// The network requires a new login: bind the account again.
        Expired = "expired",
        /// An error that needs attention.
        Error = "error",
    }
}

impl BotStatus {
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
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "bots")]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `Bot` and `BotHealth`")]
pub struct BotRecord {
    pub id: BotId,
    pub owner_id: UserId,
    pub name: String,
    pub network: String,
    pub status: BotStatus,
    pub status_reason: Option<String>,
    pub status_since: Timestamp,
    pub wx_id: String,
    /// The person the account belongs to, on the chat network.
    pub owner_user_id: String,
    pub last_inbound_at: Option<Timestamp>,
    pub last_poll_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// The node that holds the lease.
    pub lease_owner: Option<String>,
    /// Configured name of that node, if any.
    pub lease_name: Option<String>,
    pub lease_until: Timestamp,
    pub created_at: Timestamp,
    /// The sending window of the account's own person.
    #[row(flatten)]
    pub owner_window: Window,
}

impl BotRecord {
    /// The node that works for the bot now: its name, or its id when it has none.
    pub fn poller_node(&self, now: Timestamp) -> Option<&str> {
        let owner = self.lease_owner.as_deref().filter(|_| self.lease_until > now)?;
        Some(self.lease_name.as_deref().unwrap_or(owner))
    }

    /// Returns the bot as its owner sees it. `rules` are those of the bot's network; `None` if this hub does not
    /// serve the network.
    pub fn into_view(self, rules: Option<WindowRules>, now: Timestamp) -> Bot {
        let disabled = match (self.status, rules) {
            (_, None) => Some(Cause::OtherNetwork { network: self.network.clone() }.to_string()),
            (BotStatus::Expired, _) => Some(Cause::NewLogin.to_string()),
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
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "contacts")]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `Contact`")]
pub struct StoredContact {
    pub user_id: String,
    pub user_name: String,
    pub remark: String,
    pub avatar_url: String,
    pub last_message_at: Timestamp,
    pub message_count: i64,
    #[row(flatten)]
    pub window: Window,
    /// Times of the last sends to them, as stored.
    pub recent_sends: String,
}

words! {
    /// Status of a bind.
    #[derive(Hash)]
    pub enum BindStatus {
        /// The code was not scanned yet.
        Waiting = "waiting",
        /// Scanned, not yet confirmed on the phone.
        Scanned = "scanned",
        /// The phone shows a number, which the next confirm has to contain.
        NeedCode = "need_code",
        /// Done.
        Confirmed = "confirmed",
        /// Time or codes ran out.
        Expired = "expired",
        /// The account was already bound here; its login is used again.
        AlreadyBound = "already_bound",
        /// Refused by the network or the hub.
        Refused = "refused",
    }
}

impl BindStatus {
    /// Whether nothing follows any more.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Scanned | Self::NeedCode)
    }
}

/// A login in progress as the store keeps it.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "binds")]
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
    /// Data that only this hub can read.
    pub private: Sealed,
    /// Codes shown so far.
    #[row(number)]
    pub codes_shown: u32,
    /// Grows with every change.
    pub rev: i64,
    /// The bot it ended with.
    pub bot_id: Option<BotId>,
    /// Time of expiry.
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
