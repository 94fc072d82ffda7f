//! Receiving cases.

use std::{sync::atomic::Ordering, time::Duration};

use hub_core::{
    channels::{Filter, NewChannel},
    network::sim::{Action, Endpoint, Fault, SimConfig},
    traces::{TraceQuery, TraceStatus},
};
use serde_json::json;

use super::stage::{SECOND, World, hook};

#[tokio::test]
async fn r2_a_full_answer_is_one_commit_in_its_order() {
    let world = World::new().await;
    let (channels, filter) = (world.hub.hub().channels(), Filter::default());
    // The channel only keeps a log: nothing but the batch is written.
    channels.delete(&world.ada, world.bot.id, world.channel).await.unwrap();
    world.hub.channel(&world.ada, world.bot.id, NewChannel { filter, ..NewChannel::named("log") }).await;
    world.hub.say(&world.bot, "warm");
    world.until("the hub is at rest", async || world.messages().await.len() == 1).await;
    let before = world.cursor().await;
    let commits = || world.hub.hub().context().store.stats().commits.load(Ordering::Relaxed);
    let had = commits();
    let texts: Vec<String> = (0..50).map(|n| format!("message {n}")).collect();
    let all = texts.iter().map(|text| json!({ "wx_id": world.bot.wx_id, "text": text })).collect();
    world.stage.sim.inject_all(all).unwrap();
    world.until("all are there", async || world.messages().await.len() == 51).await;
    assert_eq!(commits() - had, 1);
    let stored: Vec<_> = world.messages().await.into_iter().skip(1).map(|message| message.content).collect();
    assert_eq!(stored, texts);
    assert_eq!(world.texts("SELECT content FROM messages ORDER BY id").await[1..], texts);
    assert_ne!(world.cursor().await, before);
}

#[tokio::test]
async fn r5_what_comes_again_is_one_event_also_after_a_restart() {
    let mut world = World::new().await;
    world.fault(Fault::new(Action::FreezeCursor));
    world.hear("once").await;
    world.fault(Fault::new(Action::Repeat { after_ms: 60_000, new_id: false }));
    world.hear("and once").await;
    world.hub.restart().await;
    world.polling().await;
    world.hub.clock().advance(Duration::from_secs(60));
    world.until("the repeat came", async || world.number("SELECT COUNT(*) FROM messages").await == 2).await;
    world.hear("after it").await;
    assert_eq!(world.receiver.texts(), ["once", "and once", "after it"]);
    assert_eq!(world.number("SELECT COUNT(*) FROM messages").await, 3);
}

#[tokio::test]
async fn r10_a_broken_answer_moves_no_cursor_and_loses_nothing() {
    let world = World::greeted().await;
    let cursor = world.cursor().await;
    let bad_gateway = Action::Status { status: 502, body: String::new(), headers: [].into(), effect: true };
    for (n, action) in
        [Action::Html { status: 200, effect: true }, Action::Truncate, bad_gateway].into_iter().enumerate()
    {
        let fault = Fault::on(Endpoint::GetUpdates, action);
        world.fault(Fault { only_with_messages: true, ..fault });
        let text = format!("through trouble {n}");
        world.polling().await;
        let polls = world.count("getupdates");
        let cursor = if n == 0 { cursor.clone() } else { world.cursor().await };
        world.hub.say(&world.bot, &text);
        let pause = world.pause(1_600..=2_400).await;
        assert_eq!(world.cursor().await, cursor);
        assert!(!world.receiver.texts().contains(&text));
        world.hub.clock().advance(pause);
        world.heard(&text).await;
        assert_eq!(world.tap().bodies("getupdates")[polls]["get_updates_buf"], cursor.as_str(), "case {n}");
    }
}

#[tokio::test]
async fn r13_odd_messages_are_kept_and_the_others_arrive() {
    let world = World::new().await;
    let wx_id = world.bot.wx_id.as_str();
    let odd = [
        json!({ "wx_id": wx_id, "text": "mine", "message_type": 2 }),
        json!({ "wx_id": wx_id, "text": "not done", "message_state": 1 }),
        json!({ "wx_id": wx_id, "item_list": [{ "type": 99, "something_item": { "x": 1 } }] }),
        json!({ "wx_id": wx_id, "item_list": [{ "type": 1 }] }),
        json!({ "wx_id": wx_id, "item_list": [] }),
        json!({ "wx_id": wx_id, "item_list": "no list" }),
        json!({ "wx_id": wx_id, "text": "fine" }),
    ];
    world.stage.sim.inject_all(odd.to_vec()).unwrap();
    world.heard("fine").await;
    let statuses: Vec<_> =
        world.messages().await.into_iter().map(|message| message.status.as_str()).collect();
    assert_eq!(
        statuses,
        ["ignored", "unfinished", "received", "received", "received", "quarantined", "received"]
    );
    let bodies = world.receiver.bodies();
    assert_eq!(bodies.len(), 4, "{bodies:#?}");
    let query = TraceQuery { status: Some(TraceStatus::Error), ..TraceQuery::default() };
    let told = world.hub.traces(&world.ada, world.bot.id, &query).await;
    assert_eq!(told.len(), 1, "what could not be read is visible");
}

#[tokio::test]
async fn r16_a_recall_is_an_event_and_no_text() {
    let world = World::new().await;
    let id = world.hub.say(&world.bot, "a slip");
    world.heard("a slip").await;
    let id: u64 = id.parse().unwrap();
    let recall = json!({ "wx_id": world.bot.wx_id, "text": "a slip", "message_id": id, "delete_time_ms": 1 });
    world.stage.sim.inject(recall).unwrap();
    world.hear("next").await;
    let statuses: Vec<_> =
        world.messages().await.into_iter().map(|message| message.status.as_str()).collect();
    assert_eq!(statuses, ["received", "recalled", "received"]);
    assert_eq!(world.receiver.texts(), ["a slip", "next"]);
}

#[tokio::test]
async fn r17_a_stop_during_a_held_poll_takes_no_longer_than_five_seconds() {
    // The grace as it is outside of tests.
    let grace = hub_core::config::HubConfig::default().poll_grace;
    let world = World::with(SimConfig::default(), |hub| hub.config(|config| config.poll_grace = grace)).await;
    let World { stage, mut hub, .. } = world;
    let clock = hub.clock().clone();
    let begun = clock.now();
    let stopped = tokio::join!(hub.shutdown(), async {
        // The poll may end by itself for a while; it does not, and is cut.
        hub_core::testing::until("the grace begins", async || {
            clock.waits().iter().any(|at| *at == begun + grace).then_some(())
        })
        .await;
        assert!(stage.tap.requests("notifystop").is_empty());
        clock.advance(grace);
    });
    let ((), ()) = stopped;
    assert_eq!(stage.tap.requests("notifystop").len(), 1);
    assert!(clock.now().since(begun) <= 5 * SECOND);
    let account = stage.sim.accounts().remove(0);
    assert_eq!((account.started, account.pollers), (false, 0));
}

#[tokio::test]
async fn r18_a_sender_who_is_not_allowed_is_kept_and_seen_and_not_passed_on() {
    let world = World::new().await;
    let filter = Filter { user_ids: vec![world.bot.person.clone()], ..Filter::default() };
    let channels = world.hub.hub().channels();
    channels.set_filter(&world.ada, world.bot.id, world.channel, &filter).await.unwrap();
    world.stage.sim.say(&world.bot.wx_id, Some("o9cq80Stranger@im.wechat"), "let me in").unwrap();
    world.hear("it is me").await;
    let skipped = world.hub.trace(&world.ada, world.bot.id, world.channel, TraceStatus::Skipped).await;
    assert!(skipped.summary.contains("sender"), "{}", skipped.summary);
    let messages = world.messages().await;
    assert_eq!(messages[0].content, "let me in");
    assert_eq!(skipped.message_id, messages[0].id);
    assert_eq!(world.receiver.texts(), ["it is me"]);
}

#[tokio::test]
async fn of_messages_out_of_order_the_last_to_arrive_gives_the_permission() {
    let world = World::new().await;
    world.fault(Fault::new(Action::Reorder));
    let now = world.hub.clock().now().as_millis();
    let at = |text: &str, back: i64| json!({ "wx_id": world.bot.wx_id, "text": text, "create_time_ms": now - back });
    world.stage.sim.inject_all(vec![at("older", 60_000), at("newer", 0)]).unwrap();
    world.heard("older").await;
    world.heard("newer").await;
    world.stage.sim.inject(at("oldest", 120_000)).unwrap();
    world.heard("oldest").await;
    assert_eq!(world.number("SELECT window_opened_at FROM contacts").await, now - 120_000);
    world.send("an answer").await;
    let bodies = world.receiver.bodies();
    let last = bodies.iter().find(|body| body["content"] == "oldest").unwrap();
    assert_eq!(world.sent(1).await[0].context_token, last["contextToken"].as_str().unwrap());
}

#[tokio::test]
async fn every_channel_of_a_bot_receives_a_message_once() {
    let world = World::new().await;
    world.hub.webhook_channel(&world.ada, world.bot.id, "second", hook()).await;
    world.hub.say(&world.bot, "hear me");
    world.until("both", async || world.receiver.texts().len() == 2).await;
    world
        .until("both are done", async || {
            world
                .hub
                .traces(&world.ada, world.bot.id, &TraceQuery::default())
                .await
                .iter()
                .all(|t| t.status == TraceStatus::Ok)
        })
        .await;
    assert_eq!(world.receiver.texts(), ["hear me", "hear me"]);
}
