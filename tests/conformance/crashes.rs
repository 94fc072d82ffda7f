//! Crashes, restarts, and a second process.

use std::time::Duration;

use hub_core::{
    error::ErrorCode,
    network::sim::{Action, DeliveryMode, Endpoint, Fault, SimConfig},
};
use sqlx::Connection;

use super::stage::{World, client_ids};

#[tokio::test]
async fn r6_what_was_committed_and_not_dispatched_is_dispatched_once_after_a_crash() {
    let mut world = World::new().await;
    // The first message stays at the receiver; the second is committed and waits behind it.
    world.receiver.hold();
    world.hear("in flight").await;
    world.hub.say(&world.bot, "not dispatched");
    world.until("it is committed", async || world.messages().await.len() == 2).await;
    world.hub.kill().await;
    world.receiver.release();
    assert_eq!(world.receiver.texts(), ["in flight"]);
    world.hub.restart().await;
    world.heard("not dispatched").await;
    world
        .until("all are done", async || {
            world.number("SELECT CAST(SUM(count) AS INTEGER) FROM successes").await == 2
        })
        .await;
    assert_eq!(world.receiver.texts(), ["in flight", "in flight", "not dispatched"]);
    let requests = world.receiver.requests();
    assert_eq!(requests[0].headers()["webhook-id"], requests[1].headers()["webhook-id"]);
}

/// A crash between the network's answer and the commit, and what is there afterwards.
async fn crash_before_commit(delivery: DeliveryMode) -> Vec<String> {
    let mut world = World::with(SimConfig { delivery, ..SimConfig::default() }, |hub| hub).await;
    world.hear("before").await;
    // The receiver knows before the hub's commit does.
    let done = "SELECT CAST(SUM(count) AS INTEGER) FROM successes";
    world.until("its outcome is stored", async || world.number(done).await == 1).await;
    world.polling().await;
    let answered = world.tap().answered("getupdates");
    // Nothing can be committed while someone else holds the file.
    let mut other = world.database().await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    world.hub.say(&world.bot, "on the way");
    world.tap().wait_answered("getupdates", answered + 1).await;
    world.hub.kill().await;
    held.rollback().await.unwrap();
    other.close().await.unwrap();
    world.hub.restart().await;
    world.hear("after").await;
    world.online().await;
    world.receiver.texts()
}

#[tokio::test]
async fn r7_a_crash_before_the_commit_brings_the_message_again_where_the_network_repeats() {
    assert_eq!(crash_before_commit(DeliveryMode::Cursor).await, ["before", "on the way", "after"]);
}

#[tokio::test]
async fn r7_a_crash_before_the_commit_loses_the_message_where_the_network_does_not_and_nothing_else() {
    assert_eq!(crash_before_commit(DeliveryMode::Consume).await, ["before", "after"]);
}

#[tokio::test]
async fn s19_a_full_outbox_survives_a_crash_in_its_order() {
    let mut world = World::greeted().await;
    // The first hangs on the wire when the process dies.
    world.fault(Fault::on(Endpoint::SendMessage, Action::Pass).after(Duration::from_secs(24 * 3600)));
    for n in 0..5 {
        world.send(&format!("{n}")).await;
    }
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    world.hub.kill().await;
    let queued = world.texts("SELECT client_id FROM outbox ORDER BY id").await;
    assert_eq!(world.texts("SELECT state FROM outbox ORDER BY id").await[..2], ["sending", "queued"]);
    world.stage.sim.clear_faults(None);
    world.hub.restart().await;
    let shown = world.sent(5).await;
    let texts: Vec<_> = shown.iter().map(|sent| sent.text.as_str()).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4"]);
    let ids = client_ids(world.tap());
    assert_eq!(ids[1..], queued);
    assert_eq!(ids[0], queued[0], "what was on the wire is tried once more under its id");
    world
        .advance_until("all are settled", Duration::from_millis(100), async || {
            world.number("SELECT COUNT(*) FROM outbox WHERE state = 'sent'").await == 5
        })
        .await;
    assert_eq!(world.number("SELECT window_sends FROM contacts").await, 6, "every try counts");
}

#[tokio::test]
async fn r15_a_second_process_does_not_poll_and_takes_over_when_the_first_is_dead() {
    let mut world = World::new().await;
    let second = || world.hub.another().seed(2).try_start();
    let polls = world.count("getupdates");
    let refused = second().await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(refused.message().contains("another process"));
    world.hear("the first still works").await;
    world.until("one poll more", async || world.count("getupdates") == polls + 1).await;
    let second = world.hub.another().seed(2);
    world.hub.kill().await;
    let _second = second.start().await;
    world.hear("the second works").await;
    assert_eq!(world.stage.sim.violations(None), []);
}
