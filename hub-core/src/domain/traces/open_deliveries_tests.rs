use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    channels::{ChannelOptions, NewChannel},
    error::ErrorCode,
    id::ChannelId,
    model::sinks::WebhookUpdate,
    testing::{Receiver, TestBot, TestHub},
};

const HOOK: &str = "http://shop.test/orders";
const ELSEWHERE: ReplayTo<'static> = ReplayTo::Url("http://shop.test/elsewhere");
const SUPERSEDE: ReplayOptions<'static> = ReplayOptions { to: ReplayTo::Webhook, supersede: true };

/// A channel whose deliveries are parked after their first attempt.
struct Shop {
    hub: TestHub,
    receiver: Arc<Receiver>,
    ada: Actor,
    bot: TestBot,
    channel: ChannelId,
}

impl Shop {
    async fn open() -> Self {
        let receiver = Receiver::new();
        let hub = TestHub::builder().receiver("shop.test", &receiver).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let webhook = WebhookUpdate { url: HOOK.to_owned(), ..WebhookUpdate::default() };
        let options = ChannelOptions { lane_hold_s: 0, ..ChannelOptions::default() };
        let new = NewChannel { webhook: Some(webhook), options, ..NewChannel::named("orders") };
        let channel = hub.channel(&ada, bot.id, new).await;
        Self { hub, receiver, ada, bot, channel }
    }

    async fn traced(&self, what: &str, is: impl Fn(&Trace) -> bool) -> Trace {
        let query = TraceQuery { channel_id: Some(self.channel), ..TraceQuery::default() };
        self.hub
            .until(what, async || {
                self.hub.traces(&self.ada, self.bot.id, &query).await.into_iter().find(|trace| is(trace))
            })
            .await
    }

    async fn trace(&self, id: TraceId) -> Trace {
        self.hub.hub().traces().get(&self.ada, self.bot.id, id).await.unwrap()
    }

    /// A message whose delivery failed once and waits for its next attempt.
    async fn parked(&self, text: &str) -> TraceId {
        self.receiver.answer(500, "{}");
        self.hub.say(&self.bot, text);
        let is_parked = |trace: &Trace| {
            trace.preview == text && trace.steps.last().is_some_and(|step| step.detail.parked == Some(true))
        };
        self.traced("a parked delivery", is_parked).await.trace_id
    }

    async fn replay(&self, id: TraceId, how: impl Into<ReplayOptions<'_>>) -> Result<TraceId> {
        self.hub.hub().traces().replay(&self.ada, self.bot.id, id, how, None).await
    }

    async fn delivered(&self, id: TraceId) {
        self.traced("a delivered replay", |trace| trace.trace_id == id && trace.status == TraceStatus::Ok)
            .await;
    }

    async fn bulk(&self, ids: &[TraceId], how: BulkOptions<'_>) -> BulkReplay {
        let selection = ReplaySelection::Ids(ids.to_vec());
        self.hub.hub().traces().replay_all(&self.ada, selection, how, None).await.unwrap()
    }

    /// Texts that arrive when so much time has passed that every waiting delivery is due.
    async fn texts_after_a_day(&self) -> Vec<String> {
        self.hub.clock().advance(Duration::from_hours(24));
        self.hub.say(&self.bot, "the end");
        self.traced("the last message", |trace| {
            trace.preview == "the end" && trace.status == TraceStatus::Ok
        })
        .await;
        self.receiver.texts()
    }
}

fn refused(replay: Result<TraceId>) -> String {
    let error = replay.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    error.message().to_owned()
}

#[tokio::test]
async fn a_replay_next_to_a_delivery_that_waits_is_refused_or_takes_its_place() {
    let shop = Shop::open().await;
    let waiting = shop.parked("order 1").await;
    let why = refused(shop.replay(waiting, ReplayTo::Webhook).await);
    assert!(why.contains(&waiting.to_string()), "{why}");
    for way_out in ["attempt it now", "cancel it", "supersede"] {
        assert!(why.contains(way_out), "{why}");
    }
    refused(shop.replay(waiting, ReplayTo::Url(HOOK)).await);
    let elsewhere = shop.replay(waiting, ELSEWHERE).await.unwrap();
    shop.delivered(elsewhere).await;
    assert_eq!(shop.trace(waiting).await.status, TraceStatus::Pending, "another receiver got it in addition");

    let new = shop.replay(waiting, SUPERSEDE).await.unwrap();
    let old = shop.trace(waiting).await;
    assert_eq!((old.status, old.summary.as_str()), (TraceStatus::Error, "superseded by a replay"));
    assert_eq!(old.steps.last().unwrap().kind, StepKind::Cancel);
    shop.delivered(new).await;
    let texts = shop.texts_after_a_day().await;
    assert_eq!(texts, ["order 1", "order 1", "order 1", "the end"], "attempt, elsewhere, replay");
}

#[tokio::test]
async fn a_cancelled_delivery_can_be_replayed_once_at_a_time() {
    let shop = Shop::open().await;
    let waiting = shop.parked("order 1").await;
    let traces = shop.hub.hub().traces();
    traces.cancel(&shop.ada, shop.bot.id, waiting).await.unwrap();
    shop.receiver.answer(500, "{}");
    let first = shop.replay(waiting, ReplayTo::Webhook).await.unwrap();
    let is_parked = |trace: &Trace| trace.trace_id == first && trace.attempts == 1;
    shop.traced("the failed replay", is_parked).await;
    let why = refused(shop.replay(waiting, ReplayTo::Webhook).await);
    assert!(why.contains(&first.to_string()), "the replay waits, not what it repeats: {why}");
    traces.attempt_now(&shop.ada, shop.bot.id, first).await.unwrap();
    shop.delivered(first).await;
    let second = shop.replay(waiting, ReplayTo::Webhook).await.unwrap();
    shop.delivered(second).await;
    assert_eq!(
        shop.texts_after_a_day().await.len(),
        5,
        "two attempts failed, two replays arrived, and the end"
    );
}

#[tokio::test]
async fn a_delivery_in_flight_is_neither_replayed_nor_superseded() {
    let shop = Shop::open().await;
    shop.receiver.hold();
    shop.hub.say(&shop.bot, "order 1");
    shop.hub.until("a request", async || (shop.receiver.requests().len() == 1).then_some(())).await;
    let first = shop.traced("its trace", |trace| trace.preview == "order 1").await.trace_id;
    for how in [ReplayOptions::default(), SUPERSEDE] {
        let why = refused(shop.replay(first, how).await);
        assert!(why.contains("in flight"), "{why}");
        let bulk =
            shop.bulk(&[first], BulkOptions { supersede: how.supersede, ..BulkOptions::default() }).await;
        assert_eq!((bulk.total, bulk.refused.len()), (0, 1));
    }
    shop.receiver.release();
    shop.delivered(first).await;

    shop.receiver.hold();
    let replay = shop.replay(first, ReplayTo::Webhook).await.unwrap();
    shop.hub.until("its request", async || (shop.receiver.requests().len() == 2).then_some(())).await;
    refused(shop.replay(first, SUPERSEDE).await);
    shop.receiver.release();
    shop.delivered(replay).await;
    assert_eq!(shop.texts_after_a_day().await.len(), 3);
}

#[tokio::test]
async fn many_replays_report_what_waits_or_take_its_place_and_send_a_message_once() {
    let shop = Shop::open().await;
    let waiting = shop.parked("order 1").await;
    shop.hub.say(&shop.bot, "order 2");
    let is_done = |trace: &Trace| trace.preview == "order 2" && trace.status == TraceStatus::Ok;
    let done = shop.traced("a delivery", is_done).await.trace_id;
    let replay = shop.replay(done, ReplayTo::Webhook).await.unwrap();
    shop.delivered(replay).await;

    let all = [waiting, done, replay];
    for dry_run in [true, false] {
        let replayed = shop.bulk(&all, BulkOptions { dry_run, ..BulkOptions::default() }).await;
        assert_eq!((replayed.total, replayed.refused.len()), (1, 2), "{replayed:?}");
        let reason = |id| &replayed.refused.iter().find(|refused| refused.trace_id == id).unwrap().reason;
        assert!(reason(waiting).contains("still waits"), "{replayed:?}");
        assert!(reason(replay).contains("another trace of the same message"), "{replayed:?}");
        if let Some(id) = replayed.id {
            shop.hub
                .until("the end of the replay", async || {
                    let replayed = shop.hub.hub().traces().bulk_replay(&shop.ada, id).await.unwrap();
                    (replayed.pending == 0).then_some(())
                })
                .await;
        }
    }
    let supersede = BulkOptions { supersede: true, ..BulkOptions::default() };
    let dry = shop.bulk(&all, BulkOptions { dry_run: true, ..supersede }).await;
    assert_eq!((dry.total, shop.trace(waiting).await.status), (2, TraceStatus::Pending));
    let replayed = shop.bulk(&all, supersede).await;
    assert_eq!((replayed.total, replayed.refused.len()), (2, 1), "{replayed:?}");
    assert_eq!(shop.trace(waiting).await.summary, "superseded by a replay");
    let texts = shop.texts_after_a_day().await;
    let count = |text: &str| texts.iter().filter(|seen| *seen == text).count();
    assert_eq!((count("order 1"), count("order 2")), (2, 4), "{texts:?}");
}
