//! Statistics of the signed-in user's bots.

use hub_core::{Hub, bots::UserStats, channels::ChannelTotals, openapi::Api, time::Timestamp};
use poem::web::Data;
use poem_openapi::OpenApi;

use super::{
    Tag,
    admin::stats::{BotStats, MessageStats},
};
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
};

/// Statistics of a user.
#[derive(Debug, Clone, Copy)]
pub struct UserStatsApi;

/// Statistics of your bots.
#[derive(Debug, Api)]
pub struct UserStatsView {
    /// Bots.
    pub bots: BotStats,
    /// The newest 1000 channels, newest first.
    pub channels: Vec<ChannelTotals>,
    /// Messages of the last hour.
    pub messages: MessageStats,
    /// Deliveries.
    pub deliveries: UserDeliveryStats,
    /// When the oldest pending or parked delivery was accepted; absent if no delivery is.
    pub oldest_pending_at: Option<Timestamp>,
    /// The last sixty minutes, oldest first; the last one is not complete. At most 100,000 messages and 100,000 traces
    /// of the hour are counted.
    pub series: Vec<UserMinuteStats>,
}

/// Deliveries by state, of the listed channels.
#[derive(Debug, Api)]
pub struct UserDeliveryStats {
    /// In their lane.
    pub pending: u64,
    /// Waiting for a retry.
    pub parked: u64,
    /// Failed permanently, of those still retained.
    pub dead: u64,
    /// Traces that began in the last hour and succeeded.
    pub delivered: u64,
    /// Traces that began in the last hour and failed.
    pub failed: u64,
}

/// Counts of one minute.
#[derive(Debug, Api)]
pub struct UserMinuteStats {
    /// When the minute began.
    pub at: Timestamp,
    /// Messages received.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Traces that began in the minute and succeeded.
    pub delivered: u64,
    /// Traces that began in the minute and failed.
    pub failed: u64,
}

impl From<UserStats> for UserStatsView {
    fn from(stats: UserStats) -> Self {
        let hour = stats.last_hour();
        let sum = |count: fn(&ChannelTotals) -> u64| stats.channels.iter().map(count).sum();
        let minute = |(at, counts): (Timestamp, hub_core::admin::MinuteCounts)| UserMinuteStats {
            at,
            messages_in: counts.messages_in,
            messages_out: counts.messages_out,
            delivered: counts.delivered,
            failed: counts.failed,
        };
        Self {
            deliveries: UserDeliveryStats {
                pending: sum(|channel| channel.pending),
                parked: sum(|channel| channel.health.parked),
                dead: sum(|channel| channel.health.dead),
                delivered: hour.delivered,
                failed: hour.failed,
            },
            messages: MessageStats { inbound: hour.messages_in, outbound: hour.messages_out },
            bots: stats.bots.into(),
            channels: stats.channels,
            oldest_pending_at: stats.oldest_pending_at,
            series: stats.series.into_iter().map(minute).collect(),
        }
    }
}

#[OpenApi(tag = "Tag::User")]
impl UserStatsApi {
    /// Shows statistics of your bots
    ///
    /// Counts only, without contents of messages: per channel, and per minute of the last hour.
    #[oai(path = "/api/user/stats", method = "get", operation_id = "getUserStats")]
    async fn get(&self, hub: Data<&Hub>, user: User) -> ApiResult<UserStatsView> {
        ok(hub.bots().stats(&user.0).await?.into())
    }
}
