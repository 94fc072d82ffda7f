//! Statistics of the whole hub.

use hub_core::{
    Hub,
    admin::{self, BotCounts, Stats},
    bots,
    openapi::Api,
    time::Timestamp,
};
use poem::web::Data;
use poem_openapi::OpenApi;

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::view,
};

/// Statistics.
#[derive(Debug, Clone, Copy)]
pub struct StatsApi;

/// Statistics of a hub. Counts of other nodes in the last ten seconds may be missing.
#[derive(Debug, Api)]
#[api(example = {
    "bots": {
        "by_status": {
            "connecting": 0,
            "degraded": 0,
            "error": 0,
            "expired": 0,
            "offline": 0,
            "online": 1,
            "pending": 0
        },
        "total": 1
    },
    "channels": 2,
    "deliveries": {
        "dead": 1,
        "done": 118,
        "parked": 0,
        "pending": 1
    },
    "messages": {
        "in": 120,
        "out": 87
    },
    "oldest_pending_at": "2026-11-21T09:30:00.000Z",
    "plugin_runs": 40,
    "series": [
        {
            "at": "2026-11-21T09:30:00.000Z",
            "delivered": 2,
            "failed": 0,
            "messages_in": 2,
            "messages_out": 1,
            "plugin_runs": 1
        }
    ],
    "users": {
        "active": 2,
        "admins": 1,
        "disabled": 1,
        "total": 3
    }
})]
pub struct StatsView {
    /// Users.
    pub users: UserStats,
    /// Bots.
    pub bots: BotStats,
    /// Number of channels.
    pub channels: u64,
    /// Messages since the database was created.
    pub messages: MessageStats,
    /// Deliveries to webhooks.
    pub deliveries: DeliveryStats,
    /// When the oldest pending delivery was accepted; absent if no delivery is pending.
    pub oldest_pending_at: Option<Timestamp>,
    /// Plugin runs since the database was created.
    pub plugin_runs: u64,
    /// The last sixty minutes, oldest first; the last one is not complete.
    pub series: Vec<MinuteStats>,
}

/// Users by status and role.
#[derive(Debug, Api)]
pub struct UserStats {
    /// All users.
    pub total: u64,
    /// Active users.
    pub active: u64,
    /// Disabled users.
    pub disabled: u64,
    /// Administrators.
    pub admins: u64,
}

/// Bots by status.
#[derive(Debug, Api)]
pub struct BotStats {
    /// All bots.
    pub total: u64,
    /// By status.
    pub by_status: BotStatusCounts,
}

/// Bots in each status.
#[derive(Debug, Default, Api)]
pub struct BotStatusCounts {
    /// Bound, not connected yet.
    pub pending: u64,
    /// The hub is connecting.
    pub connecting: u64,
    /// The network responds.
    pub online: u64,
    /// The network responds irregularly.
    pub degraded: u64,
    /// The network has not responded for some time, or the owner is disabled.
    pub offline: u64,
    /// The network requires a new login.
    pub expired: u64,
    /// An error that needs attention.
    pub error: u64,
}

/// Messages by direction.
#[derive(Debug, Api)]
pub struct MessageStats {
    /// Received from people.
    #[api(name = "in")]
    pub inbound: u64,
    /// Accepted by the chat network; a long text counts once per part.
    #[api(name = "out")]
    pub outbound: u64,
}

/// Deliveries by state. `done` and `dead` are counted since the database was created; a replay is counted separately.
#[derive(Debug, Api)]
pub struct DeliveryStats {
    /// In their lane.
    pub pending: u64,
    /// Waiting for a retry.
    pub parked: u64,
    /// Successful.
    pub done: u64,
    /// Failed permanently.
    pub dead: u64,
}

view! {
    /// Counts of one minute.
    #[derive(Debug, Api)]
    pub struct MinuteStats from minute: admin::Minute {
        /// When the minute began.
        pub at: Timestamp,
        /// Messages received.
        pub messages_in: u64 = minute.counts.messages_in,
        /// Messages accepted by the chat network.
        pub messages_out: u64 = minute.counts.messages_out,
        /// Successful deliveries.
        pub delivered: u64 = minute.counts.delivered,
        /// Deliveries that failed permanently.
        pub failed: u64 = minute.counts.failed,
        /// Plugin runs.
        pub plugin_runs: u64 = minute.counts.plugin_runs,
    }
}

#[OpenApi(tag = "Tag::Admin")]
impl StatsApi {
    /// Shows statistics of the whole hub
    ///
    /// Counts only, without contents of messages.
    #[oai(path = "/api/admin/stats", method = "get", operation_id = "getStats")]
    async fn get(&self, hub: Data<&Hub>, admin: Administrator) -> ApiResult<StatsView> {
        ok(hub.admin().stats(&admin.0).await?.into())
    }
}

impl From<Stats> for StatsView {
    fn from(stats: Stats) -> Self {
        let users = stats.users;
        let totals = stats.totals;
        Self {
            users: UserStats {
                total: users.total,
                active: users.active,
                disabled: users.disabled,
                admins: users.admins,
            },
            bots: stats.bots.into(),
            channels: stats.channels,
            messages: MessageStats { inbound: totals.messages_in, outbound: totals.messages_out },
            deliveries: DeliveryStats {
                pending: stats.deliveries.pending,
                parked: stats.deliveries.parked,
                done: totals.delivered,
                dead: totals.failed,
            },
            oldest_pending_at: stats.oldest_pending_at,
            plugin_runs: totals.plugin_runs,
            series: stats.series.into_iter().map(MinuteStats::from).collect(),
        }
    }
}

impl From<BotCounts> for BotStats {
    fn from(counts: BotCounts) -> Self {
        let mut by_status = BotStatusCounts::default();
        for (status, count) in counts.by_status {
            *match status {
                bots::BotStatus::Pending => &mut by_status.pending,
                bots::BotStatus::Connecting => &mut by_status.connecting,
                bots::BotStatus::Online => &mut by_status.online,
                bots::BotStatus::Degraded => &mut by_status.degraded,
                bots::BotStatus::Offline => &mut by_status.offline,
                bots::BotStatus::Expired => &mut by_status.expired,
                bots::BotStatus::Error => &mut by_status.error,
            } = count;
        }
        Self { total: counts.total, by_status }
    }
}
