//! Users as administrators see them, and totals of the hub.

use serde_json::{Map, Value};

use crate::{
    access::Role,
    model::{
        bot::BotStatus,
        user::{User, UserStatus},
    },
    time::Timestamp,
};

/// A user, for administrators.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "users")]
#[api(example = {
    "api_keys": 0,
    "bots": 2,
    "created_at": "2026-11-21T09:30:00.000Z",
    "display_name": "Alice",
    "email": "",
    "has_password": true,
    "id": "usr_01KAJJS8P00000000000000001",
    "last_seen_at": "2026-11-21T09:30:00.000Z",
    "role": "member",
    "sessions": 1,
    "status": "active",
    "username": "alice",
})]
pub struct AdminUser {
    /// The account.
    #[row(flatten)]
    #[api(flatten)]
    pub user: User,
    /// Whether the user can sign in with a password.
    pub has_password: bool,
    /// Number of bots.
    #[row(number)]
    pub bots: u32,
    /// Number of sessions.
    #[row(number)]
    pub sessions: u32,
    /// Number of API keys.
    #[row(number)]
    pub api_keys: u32,
    /// When a session was last used, to the minute; absent if the user has no session.
    #[api(and(created_at: Timestamp = |row: &Self| row.user.created_at, "When the account was created."))]
    pub last_seen_at: Option<Timestamp>,
}

/// Filters of a list of users; `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserQuery {
    /// With this role.
    pub role: Option<Role>,
    /// In this status.
    pub status: Option<UserStatus>,
    /// With this text in the username or display name, without regard to case.
    pub q: Option<String>,
}

impl UserQuery {
    /// The name of this list for [`PageRequest::parse`](crate::page::PageRequest::parse): a cursor of another filter is
    /// refused.
    pub fn list_name(&self) -> String {
        format!("admin.users:{self:?}")
    }
}

/// A change of a user; absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, hub_macros::Api)]
#[api(name = "UpdateUser", input, checked, example = { "role": "admin" })]
pub struct UserPatch {
    /// The new role.
    pub role: Option<Role>,
    /// `disabled` revokes all sessions at once; API keys stop working and bots are paused until the user is `active`
    /// again.
    pub status: Option<UserStatus>,
    /// Display name.
    #[api(line = 1..=64)]
    pub display_name: Option<String>,
}

impl UserPatch {
    /// The entry of the audit log for the change.
    pub(crate) fn summary(&self) -> Value {
        let mut summary = Map::new();
        if let Some(role) = self.role {
            summary.insert("role".into(), role.as_str().into());
        }
        if let Some(status) = self.status {
            summary.insert("status".into(), status.as_str().into());
        }
        if let Some(name) = &self.display_name {
            summary.insert("display_name".into(), name.as_str().into());
        }
        Value::Object(summary)
    }
}

/// Users by what they may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names of roles and statuses")]
pub struct UserCounts {
    pub total: u64,
    pub active: u64,
    pub disabled: u64,
    pub admins: u64,
}

/// Bots by status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BotCounts {
    /// All.
    pub total: u64,
    /// By status; every status is there.
    pub by_status: Vec<(BotStatus, u64)>,
}

impl BotCounts {
    /// All statuses, with the counts of those that bots have.
    pub(crate) fn of(counts: &[(BotStatus, u64)]) -> Self {
        let count = |status| counts.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| *count);
        Self {
            total: counts.iter().map(|(_, count)| count).sum(),
            by_status: BotStatus::ALL.into_iter().map(|status| (status, count(status))).collect(),
        }
    }
}

/// Numbers of messages and traces of a user's bots in one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinuteCounts {
    /// Messages received from people.
    pub messages_in: u64,
    /// Messages sent to people.
    pub messages_out: u64,
    /// Traces that began in the minute and succeeded, in channels.
    pub delivered: u64,
    /// Traces that began in the minute and failed, in channels.
    pub failed: u64,
}

/// Deliveries that are still to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    /// In their lane.
    pub pending: u64,
    /// Waiting for their next try.
    pub parked: u64,
}
