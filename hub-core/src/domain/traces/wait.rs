//! Waiting for a delivery without a loop.

use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{TraceQuery, Traces};
use crate::{
    access::Actor,
    error::Result,
    events::Event,
    id::{BotId, TraceId},
    model::trace::{Trace, TraceStatus},
    page::PageRequest,
};

/// Time between two reads without an event: a listener that lags loses events, and so can the path between nodes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Traces<'_> {
    /// Waits until the deliveries of a trace have succeeded or failed, at most `within` by the hub's clock, and
    /// returns the trace as it is then.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn wait(&self, actor: &Actor, bot_id: BotId, id: TraceId, within: Duration) -> Result<Trace> {
        let ended = self.until_ended(bot_id, async || self.get(actor, bot_id, id).await.map(Some));
        match self.ctx.clock.timeout(within, ended).await {
            Some(trace) => trace,
            None => self.get(actor, bot_id, id).await,
        }
    }

    /// Waits for the oldest trace that a query finds, as [`wait`](Self::wait) does; `None` if it did not begin and
    /// end `within` that time. Ignores the order of the query; its `since` excludes earlier traces.
    ///
    /// # Errors
    /// As [`list`](Self::list), without waiting.
    pub async fn wait_for(
        &self,
        actor: &Actor,
        bot_id: BotId,
        query: &TraceQuery,
        within: Duration,
    ) -> Result<Option<Trace>> {
        let query = TraceQuery { oldest_first: true, ..query.clone() };
        let list = query.list_name(bot_id);
        let oldest = async || {
            let mut cursor = None;
            loop {
                let one = PageRequest::parse(&list, Some(1), cursor.as_deref())?;
                let mut page = self.list(actor, bot_id, &query, &one).await?;
                match (page.items.pop(), page.next_cursor) {
                    (None, Some(next)) => cursor = Some(next),
                    (found, _) => return Ok(found),
                }
            }
        };
        match self.ctx.clock.timeout(within, self.until_ended(bot_id, oldest)).await.transpose()? {
            Some(trace) => self.get(actor, bot_id, trace.trace_id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn until_ended(
        &self,
        bot_id: BotId,
        read: impl AsyncFn() -> Result<Option<Trace>>,
    ) -> Result<Trace> {
        let mut events = self.ctx.node.events.listen();
        loop {
            match read().await? {
                Some(trace) if trace.status != TraceStatus::Pending => return Ok(trace),
                _ => self.ctx.clock.timeout(POLL_INTERVAL, news(&mut events, bot_id)).await,
            };
        }
    }
}

/// Ends when a trace of the bot may have changed.
async fn news(events: &mut Receiver<Event>, bot: BotId) {
    loop {
        match events.recv().await {
            Ok(Event::Trace { bot_id, .. }) if bot_id == bot => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // The hub is going down, and its store may answer for a while.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::{
        error::ErrorCode,
        model::sinks::WebhookUpdate,
        testing::{Receiver, TestHub},
        traces::ReplayTo,
    };

    const WITHIN: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_delivery_is_waited_for_until_it_has_ended() {
        let shop = Receiver::new();
        let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
        hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        let (traces, all) = (hub.hub().traces(), TraceQuery::default());

        let waiting = traces.wait_for(&ada, bot.id, &all, WITHIN);
        let (first, _) = tokio::join!(waiting, async { hub.say(&bot, "order 42") });
        let first = first.unwrap().unwrap();
        assert_eq!(first.status, TraceStatus::Ok);
        assert!(!first.steps.is_empty());
        // It has ended already: nothing is waited for.
        let id = first.trace_id;
        assert_eq!(traces.wait(&ada, bot.id, id, Duration::ZERO).await.unwrap(), first);
        let again = traces.replay(&ada, bot.id, id, ReplayTo::Webhook, None).await.unwrap();
        let again = traces.wait(&ada, bot.id, again, WITHIN).await.unwrap();
        assert_eq!((again.status, again.replay_of), (TraceStatus::Ok, Some(id)));
    }

    #[tokio::test]
    async fn a_wait_ends_at_its_timeout() {
        let shop = Receiver::new();
        let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
        let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
        let bot = hub.bind(&ada).await;
        let (traces, all) = (hub.hub().traces(), TraceQuery::default());
        let waiting = traces.wait_for(&ada, bot.id, &all, WITHIN);
        tokio::pin!(waiting);
        let step = Duration::from_secs(1);
        let nothing = hub.advance_until("the wait's end", step, async || (&mut waiting).now_or_never()).await;
        assert_eq!(nothing.unwrap(), None);

        let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
        hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        shop.answer(500, "{}");
        hub.say(&bot, "order 42");
        let tried = hub.until("a try", async || hub.traces(&ada, bot.id, &all).await.pop()).await;
        let waiting = traces.wait(&ada, bot.id, tried.trace_id, Duration::ZERO);
        assert_eq!(waiting.await.unwrap().status, TraceStatus::Pending);

        let refused = traces.wait_for(&eve, bot.id, &all, WITHIN).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
        let refused = traces.wait(&eve, bot.id, tried.trace_id, WITHIN).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
    }
}
