//! A step of the wall clock does not affect polling, deliveries and sends.

use std::time::Duration;

use hub_core::{
    channels::{
        ChannelOptions, NewChannel,
        sinks::{RetrySettings, WebhookUpdate},
    },
    time::Clock,
};
use hub_server::{AppSettings, app, settings::Values};
use poem::test::TestClient;
use serde_json::{Value, json};

use crate::support::{
    receiver::Reply,
    world::{START, TestBot, World},
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A running hub with leases as in production, a bot and a channel with a webhook.
async fn scene() -> (World, TestBot) {
    let hub = World::builder().config(|config| config.lease = SECOND * 12).start().await;
    let bot = hub.bot().await;
    hub.channel(&bot, World::webhook("/hook")).await;
    (hub, bot)
}

/// One message is polled and delivered within five seconds.
async fn is_delivered(hub: &World, bot: &TestBot, text: &str) {
    let (begun, before) = (clock(hub).instant(), hub.receiver.received().len());
    hub.say(bot, text);
    let received = hub.wait_received(before + 1).await;
    let took = clock(hub).instant().since(begun);
    assert_eq!(received[before].json()["content"], text);
    assert!(took < SECOND * 5, "{text} took {took:?}");
}

/// The response of a server of this hub to `/readyz`.
async fn readiness(hub: &World) -> (u16, Value) {
    let settings = AppSettings::from(Values::new("http://localhost:9800".parse().unwrap()));
    let mut response = TestClient::new(app(hub.hub.clone(), settings)).get("/readyz").send().await.0;
    (response.status().as_u16(), response.take_body().into_json().await.unwrap())
}

fn clock(hub: &World) -> &Clock {
    &hub.hub.context().clock
}

#[tokio::test]
async fn delivery_goes_on_after_the_clock_steps_back() {
    for by in [SECOND * 120, HOUR] {
        let (hub, bot) = scene().await;
        is_delivered(&hub, &bot, "before").await;
        hub.set_clock(hub.now() - by).await;
        is_delivered(&hub, &bot, "after the step").await;
        hub.hub.bots().reconnect(&hub.owner, bot.id).await.unwrap();
        is_delivered(&hub, &bot, "after a reconnect").await;
        hub.jump(HOUR).await;
        is_delivered(&hub, &bot, "an hour later").await;
        assert!(hub.hub.leases_are_current());
    }
}

#[tokio::test]
async fn delivery_goes_on_while_the_clock_steps_back_and_forth() {
    let (hub, bot) = scene().await;
    is_delivered(&hub, &bot, "in time").await;
    for (name, wall) in [
        ("a day back", START - HOUR * 24),
        ("two hours ahead", START + HOUR * 2),
        ("in time again", START + SECOND * 60),
        ("years ahead", START + YEAR * 3),
        ("the last step", START),
    ] {
        hub.set_clock(wall).await;
        is_delivered(&hub, &bot, name).await;
        let sent = hub.sent(&bot).len();
        hub.send(&bot, name).await.unwrap();
        hub.until("the send", async || (hub.sent(&bot).len() > sent).then_some(())).await;
    }
}

/// A message opens the window of its author, whatever the clock showed at their last message.
#[tokio::test]
async fn replies_are_sent_after_the_clock_steps_back() {
    for by in [SECOND * 600, HOUR * 24] {
        let hub = World::builder().config(|config| config.lease = SECOND * 12).start().await;
        let bot = hub.bot().await;
        hub.channel(&bot, WebhookUpdate { auto_reply: true, ..World::webhook("/hook") }).await;
        hub.receiver.always("/hook", Reply::json(&json!({ "reply": "pong" })));
        hub.say(&bot, "before the step");
        hub.wait_sent(&bot, 1).await;
        hub.set_clock(hub.now() - by).await;
        // More than a window has.
        for count in 2..=14 {
            hub.jump(SECOND * 30).await;
            hub.say(&bot, &format!("message {count}"));
            hub.wait_sent(&bot, count).await;
        }
    }
}

/// Retries, at the head of a lane and parked, that were scheduled while the clock was years ahead.
#[tokio::test]
async fn a_retry_scheduled_under_a_wrong_clock_does_not_wait_for_it() {
    for lane_hold_s in [60, 0] {
        let hub = World::builder().config(|config| config.lease = SECOND * 12).start().await;
        let bot = hub.bot().await;
        let mut webhook = World::webhook("/hook");
        webhook.retry = RetrySettings { schedule_s: vec![20, 20] };
        let options = ChannelOptions { lane_hold_s, ..ChannelOptions::default() };
        let new = NewChannel { webhook: Some(webhook), options, ..NewChannel::named("channel") };
        hub.channel_with(&bot, new).await;
        hub.receiver.then("/hook", [Reply::status(500), Reply::status(500)]);
        hub.set_clock(START + YEAR * 3).await;
        hub.say(&bot, "timeout");
        hub.wait_received(1).await;
        hub.set_clock(START).await;
        let begun = clock(&hub).instant();
        hub.wait_received(2).await;
        let took = clock(&hub).instant().since(begun);
        assert!(took < SECOND * 30, "lane_hold_s {lane_hold_s}: the retry came after {took:?}");
        hub.wait_received(3).await;
        let took = clock(&hub).instant().since(begun);
        assert!(took < SECOND * 60, "lane_hold_s {lane_hold_s}: the second one came after {took:?}");
    }
}

/// The step happened while nothing ran: the time that was noted before shows it.
#[tokio::test]
async fn a_start_does_not_wait_for_due_times_years_ahead() {
    for lane_hold_s in [60, 0] {
        let mut hub = World::start().await;
        let bot = hub.bot().await;
        let mut webhook = World::webhook("/hook");
        webhook.retry = RetrySettings { schedule_s: vec![20] };
        let options = ChannelOptions { lane_hold_s, ..ChannelOptions::default() };
        let new = NewChannel { webhook: Some(webhook), options, ..NewChannel::named("channel") };
        hub.channel_with(&bot, new).await;
        hub.receiver.then("/hook", [Reply::status(500)]);
        hub.set_clock(START + YEAR * 3).await;
        hub.say(&bot, "timeout");
        hub.wait_received(1).await;
        hub.settle().await;
        hub.stop().await;
        hub.set_clock(START).await;
        hub.restart().await;
        let begun = clock(&hub).instant();
        hub.wait_received(2).await;
        let took = clock(&hub).instant().since(begun);
        assert!(took < SECOND * 30, "lane_hold_s {lane_hold_s}: {took:?}");
    }
}

#[tokio::test]
async fn a_step_forward_makes_no_retry_early() {
    let (hub, bot) = scene().await;
    hub.receiver.then("/hook", [Reply::status(500)]);
    hub.say(&bot, "timeout");
    hub.wait_received(1).await;
    hub.set_clock(START + HOUR * 24).await;
    hub.jump(SECOND * 2).await;
    assert_eq!(hub.receiver.received().len(), 1, "the first retry is due after about five seconds");
    hub.wait_received(2).await;
}

#[tokio::test]
async fn a_node_whose_leases_are_not_renewed_is_not_ready_and_delivers_nothing() {
    let (hub, bot) = scene().await;
    is_delivered(&hub, &bot, "first").await;
    assert_eq!(readiness(&hub).await.0, 200);
    hub.sql(
        "CREATE TRIGGER no_renewal BEFORE UPDATE OF lease_until ON nodes
         BEGIN SELECT RAISE(ABORT, 'no renewal'); END",
    )
    .await;
    hub.until("the lease runs out", async || (!hub.hub.leases_are_current()).then_some(())).await;
    let (status, answer) = readiness(&hub).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &"UNAVAILABLE".into()));
    assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("leases")), "{answer}");
    let before = hub.receiver.received().len();
    hub.say(&bot, "second");
    hub.jump(SECOND * 30).await;
    assert_eq!(hub.receiver.received().len(), before);
    hub.sql("DROP TRIGGER no_renewal").await;
    hub.wait_received(before + 1).await;
    assert_eq!(readiness(&hub).await.0, 200);
}
