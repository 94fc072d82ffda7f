//! From the network to the sinks.

use std::time::Duration;

use hub_core::{
    ErrorCode,
    bots::BotStatus,
    channels::{Filter, NewChannel, sinks::Change},
    delivery::ping::ping,
    id::ChannelId,
    traces::{ReplayTo, StepKind, StepName, Trace, TraceStatus},
};
use serde_json::json;

use crate::support::{
    receiver::{Received, Reply},
    world::{TestBot, WEBHOOK_SECRET, World},
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn contents(received: &[Received]) -> Vec<String> {
    received.iter().map(|one| one.json()["content"].as_str().unwrap().to_owned()).collect()
}

fn steps(trace: &Trace) -> Vec<StepName> {
    trace.steps.iter().map(|step| step.name).collect()
}

/// A running hub with a bot and a channel whose webhook goes to `/hook`.
async fn scene() -> (World, TestBot, ChannelId) {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let channel = hub.channel(&bot, World::webhook("/hook")).await;
    (hub, bot, channel)
}

#[tokio::test]
async fn failed_deliveries_are_tried_again_on_the_schedule_until_they_are_dead() {
    let (hub, bot, channel) = scene().await;
    hub.receiver.always("/hook", Reply::status(500));
    hub.say(&bot, "hello");
    hub.wait_received(1).await;
    let schedule = [5, 30, 120, 600, 3600, 21_600, 86_400].map(Duration::from_secs);
    for (made, wait) in (1..).zip(schedule) {
        // No attempt comes before four fifths of its wait, and one has come by six fifths.
        hub.settle().await;
        hub.jump(wait * 7 / 10).await;
        assert_eq!(hub.receiver.received().len(), made, "too early after attempt {made}");
        hub.jump(wait * 3 / 5).await;
        let received = hub.wait_received(made + 1).await;
        let waited = received[made].at.since(received[made - 1].at);
        assert!(waited >= wait * 4 / 5, "attempt {} came after {waited:?}", made + 1);
    }
    let trace = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Error).await;
    assert_eq!(trace.attempts, 8);
    hub.jump(HOUR * 24 * 2).await;
    let received = hub.receiver.received();
    assert_eq!(received.len(), 8, "the schedule is used up");
    let ids: Vec<_> = received.iter().map(|one| one.header("webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0] && !id.is_empty()), "{ids:?}");
    let attempts: Vec<_> = received.iter().map(|one| one.header("x-hub-attempt").to_owned()).collect();
    assert_eq!(attempts, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    let stats = hub.hub.channels().get(&hub.owner, bot.id, channel).await.unwrap().stats;
    assert_eq!((stats.received, stats.failed, stats.pending), (1, 1, 0));
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let (hub, bot, channel) = scene().await;
    hub.receiver.then("/hook", [Reply::status(429).header("retry-after", "40")]);
    hub.say(&bot, "hello");
    let first = hub.wait_received(1).await[0].at;
    let received = hub.wait_received(2).await;
    let waited = received[1].at.since(first);
    assert!(waited >= SECOND * 40, "{waited:?}");
    assert!(waited < SECOND * 60, "{waited:?}");
    hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok && trace.attempts == 2).await;
}

#[tokio::test]
async fn gone_ends_the_delivery_and_switches_the_webhook_off() {
    let (hub, bot, channel) = scene().await;
    hub.receiver.always("/hook", Reply::status(410));
    hub.say(&bot, "first");
    hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Error && trace.attempts == 1).await;
    let shown = hub.hub.channels().get(&hub.owner, bot.id, channel).await.unwrap();
    assert!(shown.webhook_disabled_reason.unwrap().contains("410"));
    assert!(!shown.webhook.settings.enabled);
    hub.say(&bot, "second");
    let second = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    assert_eq!(second.attempts, 0, "it is in the log and goes nowhere");
    assert_eq!(hub.receiver.received().len(), 1);
    hub.receiver.always("/hook", Reply::status(204));
    let mut again = World::webhook("/hook");
    again.auth.secret = Change::Keep;
    hub.hub.channels().set_webhook(&hub.owner, bot.id, channel, again).await.unwrap();
    hub.say(&bot, "third");
    assert_eq!(contents(&hub.wait_received(2).await)[1], "third");
}

#[tokio::test]
async fn a_failing_head_holds_its_conversation_for_a_while_and_is_then_parked() {
    let (hub, bot, channel) = scene().await;
    hub.receiver.then("/hook", [Reply::status(500)]);
    let start = hub.now();
    hub.say(&bot, "head");
    hub.wait_received(1).await;
    hub.say_as(&bot, "o9cq80_other@im.wechat", "elsewhere");
    hub.wait_received(2).await;
    hub.receiver.then("/hook", [Reply::status(500), Reply::status(500)]);
    hub.say(&bot, "second");
    hub.say(&bot, "third");
    let received = hub.until("the conversation goes on", async || {
        let received = hub.receiver.received();
        contents(&received).contains(&"third".to_owned()).then_some(received)
    });
    let received = received.await;
    let order: Vec<String> = contents(&received).into_iter().filter(|text| text != "elsewhere").collect();
    assert_eq!(order, ["head", "head", "head", "second", "third"], "the head alone until it is parked");
    let other = received.iter().find(|one| one.json()["content"] == "elsewhere").unwrap();
    assert!(other.at.since(start) < SECOND * 5, "another conversation is not held");
    let second = received.iter().find(|one| one.json()["content"] == "second").unwrap();
    assert!(second.at.since(received[0].at) <= SECOND * 62, "held for a minute at most");
    let traces = hub.traces(&bot).await;
    let head = traces.iter().find(|trace| trace.attempts == 3).unwrap();
    let parked: Vec<_> = head.steps.iter().filter(|step| step.detail.parked == Some(true)).collect();
    assert_eq!(parked.len(), 1, "the gap shows in the trace");
    let done = hub.wait_received(7).await;
    assert_eq!(contents(&done)[6], "head", "the parked one comes on its schedule");
    hub.wait_trace(&bot, channel, |trace| trace.attempts == 4 && trace.status == TraceStatus::Ok).await;
}

#[tokio::test]
async fn a_conversation_is_delivered_in_order_one_at_a_time() {
    let (hub, bot, _) = scene().await;
    hub.receiver.always("/hook", Reply::status(200).after(SECOND));
    let texts: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    for text in &texts {
        hub.say(&bot, text);
    }
    let received = hub.wait_received(12).await;
    assert_eq!(contents(&received), texts);
    for pair in received.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= SECOND, "one in flight");
    }
}

#[tokio::test]
async fn a_slow_channel_does_not_delay_another() {
    let (hub, bot, _) = scene().await;
    let mut quick = World::webhook("/quick");
    quick.timeout_ms = 30_000;
    hub.channel(&bot, quick).await;
    hub.receiver.always("/hook", Reply::status(200).after(HOUR));
    for n in 0..20 {
        hub.say_as(&bot, &format!("o9cq80_{n}@im.wechat"), "hello");
    }
    hub.until("the quick channel has them all", async || {
        (hub.receiver.received_at("/quick").len() == 20).then_some(())
    })
    .await;
    assert_eq!(hub.receiver.received_at("/hook").len(), 8, "a channel has eight requests in flight");
}

#[tokio::test]
async fn a_filtered_message_is_skipped_with_its_reason() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let filter = Filter { keywords: vec!["order".to_owned()], ..Filter::default() };
    let webhook = Some(World::webhook("/hook"));
    let channel = hub.channel_with(&bot, NewChannel { webhook, filter, ..NewChannel::named("orders") }).await;
    hub.say(&bot, "weather");
    hub.say(&bot, "ＯＲＤＥＲ 7");
    assert_eq!(contents(&hub.wait_received(1).await), ["ＯＲＤＥＲ 7"]);
    let skipped = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Skipped).await;
    assert_eq!(steps(&skipped), [StepName::Received, StepName::Filter]);
    assert!(!skipped.steps[1].detail.reason.as_ref().unwrap().is_empty());
    assert_eq!(skipped.attempts, 0);
    let ok = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    assert_eq!(steps(&ok), [StepName::Received, StepName::Filter, StepName::Request, StepName::Response]);
    let stats = hub.hub.channels().get(&hub.owner, bot.id, channel).await.unwrap().stats;
    assert_eq!((stats.received, stats.delivered), (1, 1));
}

#[tokio::test]
async fn signatures_hold_over_a_rotation_of_the_secret() {
    let (hub, bot, channel) = scene().await;
    hub.say(&bot, "first");
    let first = &hub.wait_received(1).await[0];
    assert!(first.is_signed_with(WEBHOOK_SECRET) && first.is_standard_signed_with(WEBHOOK_SECRET));
    assert!(!first.is_signed_with("another-secret-of-length"));
    let mut rotated = World::webhook("/hook");
    rotated.auth.secret = Change::Set("another-secret-of-length".into());
    hub.hub.channels().set_webhook(&hub.owner, bot.id, channel, rotated).await.unwrap();
    hub.say(&bot, "second");
    let second = &hub.wait_received(2).await[1];
    assert!(second.is_signed_with("another-secret-of-length"));
    assert!(second.is_standard_signed_with("another-secret-of-length"));
    assert!(second.is_standard_signed_with(WEBHOOK_SECRET), "the old one signs next to it for a day");
    hub.jump(HOUR * 24).await;
    hub.say(&bot, "third");
    let third = &hub.wait_received(3).await[2];
    assert!(third.is_standard_signed_with("another-secret-of-length"));
    assert!(!third.is_standard_signed_with(WEBHOOK_SECRET), "and no longer");
}

#[tokio::test]
async fn a_dead_delivery_can_be_replayed_also_to_another_url() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let mut webhook = World::webhook("/hook");
    webhook.retry.schedule_s = vec![1];
    let channel = hub.channel(&bot, webhook).await;
    hub.receiver.then("/hook", [Reply::status(500), Reply::status(500)]);
    hub.say(&bot, "hello");
    let dead = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Error).await;
    let replayed =
        hub.hub.traces().replay(&hub.owner, bot.id, dead.trace_id, ReplayTo::Webhook, None).await.unwrap();
    let received = hub.wait_received(3).await;
    assert_eq!(contents(&received)[2], "hello");
    let trace =
        hub.wait_trace(&bot, channel, |trace| trace.trace_id == replayed && trace.attempts == 1).await;
    assert_eq!((trace.status, trace.replay_of), (TraceStatus::Ok, Some(dead.trace_id)));
    let elsewhere = ReplayTo::Url("http://receiver.test/elsewhere");
    hub.hub.traces().replay(&hub.owner, bot.id, dead.trace_id, elsewhere, None).await.unwrap();
    let received = hub.wait_received(4).await;
    assert_eq!((received[3].path.as_str(), contents(&received)[3].as_str()), ("/elsewhere", "hello"));
    let private = hub
        .hub
        .traces()
        .replay(&hub.owner, bot.id, dead.trace_id, ReplayTo::Url("http://127.0.0.1/"), None)
        .await;
    assert_eq!(private.unwrap_err().code(), ErrorCode::InvalidParams);
    let still = hub.trace(&bot, dead.trace_id).await;
    assert_eq!((still.status, still.attempts), (TraceStatus::Error, 2), "what happened stays on record");
}

#[tokio::test]
async fn an_automatic_reply_is_sent_once_however_often_the_delivery_runs() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let mut webhook = World::webhook("/hook");
    webhook.auto_reply = true;
    let channel = hub.channel(&bot, webhook).await;
    hub.keep_ended().await;
    hub.receiver.always("/hook", Reply::json(&json!({ "reply": "42 is on its way" })));
    hub.say(&bot, "order 42");
    let sent = hub.wait_sent(&bot, 1).await;
    assert_eq!(
        (sent[0].text.as_str(), sent[0].to_user_id.as_str()),
        ("42 is on its way", bot.account.owner_user_id.as_str())
    );
    // The delivery is found again, as after a crash between its request and the commit of its outcome.
    hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    hub.reopen().await;
    let received = hub.wait_received(2).await;
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    hub.wait_trace(&bot, channel, |trace| trace.steps.iter().any(|step| step.kind == StepKind::Outbox)).await;
    hub.jump(HOUR).await;
    assert_eq!(hub.sent(&bot).len(), 1);
}

#[tokio::test]
async fn a_restart_delivers_what_was_pending_in_order_and_nothing_twice() {
    let (mut hub, bot, channel) = scene().await;
    hub.receiver.always("/hook", Reply::status(503));
    for text in ["one", "two", "three"] {
        hub.say(&bot, text);
    }
    hub.wait_trace(&bot, channel, |trace| trace.attempts == 1).await;
    hub.until("all are taken in", async || (hub.traces(&bot).await.len() == 3).then_some(())).await;
    let before = hub.receiver.received().len();
    hub.restart().await;
    hub.receiver.always("/hook", Reply::status(200));
    let received = hub.until("all three", async || {
        let received = hub.receiver.received();
        (contents(&received).last().map(String::as_str) == Some("three")).then_some(received)
    });
    let received = received.await;
    let after = contents(&received)[before..].to_vec();
    let mut firsts = after.clone();
    firsts.dedup();
    assert_eq!(firsts, ["one", "two", "three"]);
    hub.jump(HOUR * 24).await;
    assert_eq!(hub.receiver.received().len(), received.len(), "nothing comes twice");
}

#[tokio::test]
async fn traces_contain_no_secret() {
    let (hub, bot, channel) = scene().await;
    hub.say(&bot, "hello");
    let trace = hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    let told = format!("{trace:?}");
    let received = &hub.receiver.received()[0];
    let token = received.json()["contextToken"].as_str().unwrap().to_owned();
    assert!(token.starts_with("AARz"), "the receiver gets the permission to answer");
    for secret in
        [token.as_str(), received.header("x-signature"), received.header("webhook-signature"), WEBHOOK_SECRET]
    {
        assert!(!told.contains(secret), "{secret} is in {told}");
    }
}

#[tokio::test]
async fn another_users_bot_does_not_exist() {
    use hub_core::access::{Actor, Role, UserActor};
    let (hub, bot, channel) = scene().await;
    hub.say(&bot, "hello");
    let trace = hub.wait_trace(&bot, channel, |_| true).await.trace_id;
    let user_id = hub.hub.context().ids.next();
    let eve = Actor::User(UserActor::embedded(user_id, Role::Admin));
    let traces = hub.hub.traces();
    for refused in [
        traces.get(&eve, bot.id, trace).await.map(drop),
        traces.replay(&eve, bot.id, trace, ReplayTo::Webhook, None).await.map(drop),
        hub.hub.channels().get(&eve, bot.id, channel).await.map(drop),
        hub.hub.bots().get(&eve, bot.id).await.map(drop),
    ] {
        assert_eq!(refused.unwrap_err().code(), ErrorCode::NotFound);
    }
}

/// Changes the store behind the hub's back, as a bug would.
async fn break_store(hub: &World, sql: &'static str) {
    let run = async |sql: &'static str| {
        let store = &hub.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(sql.to_owned()).await })).await
    };
    run(sql).await.unwrap();
}

#[tokio::test]
async fn more_attempts_than_any_schedule_has_stop_a_lane_and_no_other() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let channel = hub.channel(&bot, World::webhook("/hook")).await;
    hub.keep_ended().await;
    hub.say(&bot, "first");
    hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    assert_eq!(hub.hub.violations(), 0);
    break_store(&hub, "UPDATE ended SET attempts = 21").await;
    hub.reopen().await;
    hub.until("the violation", async || (hub.hub.violations() == 1).then_some(())).await;
    hub.say_as(&bot, "bob@im.wechat", "second");
    let received = hub.wait_received(2).await;
    assert_eq!(received[1].json()["content"], "second");
    hub.jump(Duration::from_secs(3600)).await;
    assert_eq!(
        (hub.receiver.received().len(), hub.hub.violations()),
        (2, 1),
        "its lane is stopped, and reported once"
    );
}

#[tokio::test]
async fn a_log_that_goes_backwards_stops_its_bot_and_no_other() {
    let hub = World::start().await;
    let (bot, other) = (hub.bot().await, hub.bot().await);
    hub.channel(&bot, World::webhook("/hook")).await;
    hub.channel(&other, World::webhook("/other")).await;
    hub.say(&bot, "first");
    hub.wait_received(1).await;
    break_store(&hub, "DELETE FROM channel_log").await;
    break_store(&hub, "UPDATE channels SET last_seq = 0").await;
    hub.say(&bot, "second");
    hub.until("the bot's end", async || {
        (hub.health(&bot).await.bot.status == BotStatus::Error).then_some(())
    })
    .await;
    assert_eq!(hub.hub.violations(), 1);
    hub.say(&other, "third");
    let received = hub.wait_received(2).await;
    assert_eq!(received[1].json()["content"], "third");
    // The accepted message is kept, and delivered after the next start.
    let mut hub = hub;
    hub.restart().await;
    let received = hub.wait_received(3).await;
    assert_eq!(received[2].json()["content"], "second");
}

#[tokio::test]
async fn a_fence_that_does_not_grow_stops_its_bot() {
    let hub = World::builder().config(|config| config.lease = Duration::from_secs(30)).start().await;
    let bot = hub.bot().await;
    hub.channel(&bot, World::webhook("/hook")).await;
    break_store(&hub, "UPDATE bots SET lease_fence = lease_fence - 1").await;
    hub.until("the violation", async || (hub.hub.violations() == 1).then_some(())).await;
    hub.say(&bot, "unheard");
    hub.jump(Duration::from_secs(100)).await;
    assert_eq!((hub.receiver.received().len(), hub.hub.violations()), (0, 1));
}

#[tokio::test]
async fn a_ping_takes_the_way_of_a_message_and_is_stored_nowhere() {
    let (hub, bot, channel) = scene().await;
    let (owner, bot_id) = (&hub.owner, bot.id);
    hub.receiver.then("/hook", [Reply::json(&json!({ "reply": "pong" })), Reply::status(500)]);
    let trace = ping(hub.hub.context(), owner, bot_id, channel).await.unwrap();
    assert_eq!((trace.status, trace.summary.as_str()), (TraceStatus::Ok, "status 200"));
    assert_eq!(steps(&trace), [StepName::Request, StepName::Response, StepName::Reply]);
    assert_eq!(trace.steps[2].status, TraceStatus::Skipped, "a ping sends no reply");
    let received = hub.wait_received(1).await;
    assert_eq!(contents(&received), ["ping"]);
    let shown = trace.steps.iter().find_map(|step| step.detail.body.as_deref()).unwrap();
    assert!(shown.contains(r#""content":"ping""#), "{shown}");
    assert!(received[0].is_signed_with(WEBHOOK_SECRET));
    let refused = ping(hub.hub.context(), owner, bot_id, channel).await.unwrap();
    assert_eq!((refused.status, refused.summary.as_str()), (TraceStatus::Error, "status 500"));
    hub.jump(HOUR).await;
    assert_eq!(hub.receiver.received().len(), 2, "a ping is not tried again");
    assert!(hub.sent(&bot).is_empty() && hub.traces(&bot).await.is_empty());

    let silent = hub.channel_with(&bot, NewChannel::named("silent")).await;
    let error = ping(hub.hub.context(), owner, bot_id, silent).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidParams);
    let error = ping(hub.hub.context(), owner, bot_id, ChannelId::from_u128(7)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
}
