//! Statistics of a user's own bots and channels.

use std::time::Duration;

use crate::{
    access::Actor,
    bots::Bots,
    error::Result,
    model::{
        admin::{BotCounts, MinuteCounts},
        channel::ChannelTotals,
    },
    time::Timestamp,
};

/// Minutes of the series.
const MINUTES: i64 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum number of messages and of traces of the last hour that are counted.
const MAX_COUNTED: u32 = 100_000;

/// Maximum number of listed channels, the newest ones.
const MAX_CHANNELS: u32 = 1_000;

/// Size and activity of a user's bots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserStats {
    /// Bots.
    pub bots: BotCounts,
    /// The newest 1,000 channels, newest first.
    pub channels: Vec<ChannelTotals>,
    /// Acceptance time of the oldest open delivery.
    pub oldest_pending_at: Option<Timestamp>,
    /// The last sixty minutes, oldest first; the last one is still in progress. At most 100,000 messages and 100,000
    /// traces of that hour are counted.
    pub series: Vec<(Timestamp, MinuteCounts)>,
}

impl UserStats {
    /// The sums of the series.
    pub fn last_hour(&self) -> MinuteCounts {
        self.series.iter().fold(MinuteCounts::default(), |sum, (_, minute)| MinuteCounts {
            messages_in: sum.messages_in + minute.messages_in,
            messages_out: sum.messages_out + minute.messages_out,
            delivered: sum.delivered + minute.delivered,
            failed: sum.failed + minute.failed,
        })
    }
}

impl Bots<'_> {
    /// Returns the current statistics of the actor's own bots.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn stats(&self, actor: &Actor) -> Result<UserStats> {
        let owner = actor.user()?.user_id;
        let current = self.ctx.store.now().as_millis() / 60_000;
        let at = |minute: i64| Timestamp::from_millis(0) + MINUTE * u32::try_from(minute).unwrap_or(0);
        let first = current - MINUTES + 1;
        let mut read = self.ctx.store.read().await?;
        let minutes = read.stats().minutes_of(owner, at(first), MAX_COUNTED).await?;
        Ok(UserStats {
            bots: BotCounts::of(&read.stats().bots_of(owner).await?),
            channels: read.channels().totals(owner, MAX_CHANNELS).await?,
            oldest_pending_at: read.stats().oldest_open_of(owner).await?,
            series: (first..=current)
                .map(|minute| (at(minute), minutes.get(&minute).copied().unwrap_or_default()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        access::Actor,
        error::ErrorCode,
        model::{admin::MinuteCounts, sinks::WebhookUpdate, trace::TraceStatus},
        testing::{Receiver, TestHub},
        traces::TraceQuery,
    };

    #[tokio::test]
    async fn statistics_count_the_own_bots_channels_and_the_last_hour() {
        let shop = Receiver::new();
        let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
        let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
        let bot = hub.bind(&ada).await;
        let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
        let orders = hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        hub.say(&bot, "order 1");
        hub.until("a delivery", async || {
            let traces = hub.traces(&ada, bot.id, &TraceQuery::default()).await;
            traces.into_iter().find(|trace| trace.status == TraceStatus::Ok)
        })
        .await;
        shop.answer(500, "{}");
        hub.say(&bot, "order 2");
        hub.until("a failure", async || {
            let channel = hub.hub().channels().get(&ada, bot.id, orders).await.unwrap();
            channel.health.failing_since
        })
        .await;

        let bots = hub.hub().bots();
        let stats = bots.stats(&ada).await.unwrap();
        assert_eq!((stats.bots.total, stats.channels.len(), stats.series.len()), (1, 1, 60));
        let channel = &stats.channels[0];
        assert_eq!((channel.id, channel.bot_id, channel.name.as_str()), (orders, bot.id, "orders"));
        assert_eq!(
            (channel.received, channel.pending + channel.health.parked, channel.health.dead),
            (2, 1, 0)
        );
        assert!(channel.health.last_ok_at.is_some() && channel.health.next_attempt_at.is_some());
        assert!(stats.oldest_pending_at.is_some());
        let hour = stats.last_hour();
        assert_eq!((hour.messages_in, hour.messages_out, hour.delivered, hour.failed), (2, 0, 1, 0));
        let shown = hub.hub().channels().get(&ada, bot.id, orders).await.unwrap();
        assert_eq!(shown.health, channel.health);

        let theirs = bots.stats(&eve).await.unwrap();
        assert_eq!((theirs.bots.total, theirs.channels.len(), theirs.oldest_pending_at), (0, 0, None));
        assert_eq!(theirs.last_hour(), MinuteCounts::default());
        assert_eq!(bots.stats(&Actor::Operator).await.unwrap_err().code(), ErrorCode::Forbidden);
    }
}
