//! Leases of one node over many bots, and how they pass to another node.

use std::time::Duration;

use hub_core::{
    id::BotId,
    testing::{TestHub, until},
    time::Stopwatch,
};

use crate::support::{postgres, world::World};

/// More than a node takes in two rounds.
const BOTS: u128 = 250;

/// A node that finds more bots than it takes in one round takes the next ones at once: the clock does not move here.
#[tokio::test]
async fn a_start_takes_every_bot_without_waiting_between_rounds() {
    let hub = World::builder().open().await;
    for n in 1..=BOTS {
        hub.sql(format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_until, lease_fence, created_at)
            SELECT '{}', id, 'Shop', 'none', 'online', 0, 'wx{n}', 'ann{n}', '', 0, '', 0, 0, 0, 0 FROM users",
            BotId::from_u128(n)
        ))
        .await;
    }
    hub.hub.start().await.unwrap();
    until("every bot has a holder", async || {
        let mut read = hub.hub.context().store.read().await.unwrap();
        let (now, until) = (hub.now(), hub.now() + hub.hub.context().config.lease);
        (!read.leases().any_free(now, until).await.unwrap()).then_some(())
    })
    .await;
}

/// What is said right after one node stopped is received by the other within a second.
#[tokio::test]
async fn a_graceful_stop_hands_its_bots_over_at_once() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let mut first = TestHub::builder().store(store.clone()).system_clock().start().await;
    let ada = first.register("ada").await;
    let bot = first.bind(&ada).await;
    let mut second = first.another().seed(2).start().await;
    let held_by = async |node: &TestHub| {
        let mut read = node.hub().context().store.read().await.unwrap();
        read.bots().find(None, bot.id).await.unwrap().unwrap().lease_owner
    };
    let before = until("the first node has the bot", async || held_by(&first).await).await;
    first.shutdown().await;
    let stopped = Stopwatch::start();
    until("the second node has the bot", async || held_by(&second).await.filter(|owner| *owner != before))
        .await;
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    second.shutdown().await;
    server.drop_database(&store).await;
}

/// A killed node's bots are taken over when its lease ends, without waiting for the next renewal.
#[tokio::test]
async fn a_killed_nodes_bots_are_taken_over_within_fifteen_seconds() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let mut first = TestHub::builder().store(store.clone()).system_clock().start().await;
    let ada = first.register("ada").await;
    let bot = first.bind(&ada).await;
    let mut second = first.another().seed(2).start().await;
    let fence = async |node: &TestHub| {
        let mut read = node.hub().context().store.read().await.unwrap();
        let bot = read.bots().find(None, bot.id).await.unwrap().unwrap();
        bot.lease_owner
    };
    let before = until("the first node has the bot", async || fence(&first).await).await;
    first.kill().await;
    let killed = Stopwatch::start();
    until("the second node has the bot", async || fence(&second).await.filter(|owner| *owner != before))
        .await;
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
    second.shutdown().await;
    server.drop_database(&store).await;
}
