//! Leases of one node over many bots, and how they pass to another node.

use std::time::Duration;

use hub_core::{
    bots::BotStatus,
    channels::NewChannel,
    id::BotId,
    store::StoreConfig,
    testing::{TestHub, until},
    time::Clock,
    traces::TraceStatus,
};

use crate::support::{postgres, world::World};

/// More than a node takes in two rounds.
const BOTS: u128 = 1_100;

/// A node that finds more bots than it takes in one round takes the next ones at once: the clock does not move here.
#[tokio::test]
async fn a_start_takes_every_bot_without_waiting_between_rounds() {
    let hub = World::builder().open().await;
    let bots: Vec<String> = (1..=BOTS).map(|n| format!("('{}', {n})", BotId::from_u128(n))).collect();
    hub.sql(format!(
        "WITH new (id, n) AS (VALUES {})
        INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
            credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
        SELECT new.id, users.id, 'Shop', 'none', 'online', 0, 'wx' || n, 'ann' || n, '', 0, '', 0, 0, 0
        FROM users CROSS JOIN new",
        bots.join(", ")
    ))
    .await;
    hub.hub.start().await.unwrap();
    until("every bot has a holder", async || {
        let mut read = hub.hub.context().store.read().await.unwrap();
        (!read.leases().any_free(hub.now()).await.unwrap()).then_some(())
    })
    .await;
}

/// Two nodes on one database and one clock, and a bot that the first node holds.
struct Nodes {
    server: &'static postgres::Server,
    store: StoreConfig,
    first: TestHub,
    second: TestHub,
    bot: BotId,
    holder: Option<String>,
}

impl Nodes {
    /// `None` when the machine has no PostgreSQL.
    async fn start() -> Option<Self> {
        let server = postgres::server()?;
        let store = server.create_database().await;
        let first = TestHub::builder().store(store.clone()).start().await;
        let ada = first.register("ada").await;
        let bot = first.bind(&ada).await.id;
        // The second node starts later: it does not take the bot first.
        let holder = until("the first node holds the bot", async || holder(&first, bot).await).await;
        let second = first.another().seed(2).start().await;
        Some(Self { server, store, first, second, bot, holder: Some(holder) })
    }

    /// The second node takes the bot over. The clock moves again and again, since what passes before the node reads
    /// the clock for the first time does not count.
    async fn end_with_a_takeover(mut self, after: Duration) {
        until("the second node holds the bot", async || {
            self.second.clock().advance(after);
            holder(&self.second, self.bot).await.filter(|holder| Some(holder) != self.holder.as_ref())
        })
        .await;
        stop(&mut self.second).await;
        self.server.drop_database(&self.store).await;
    }
}

async fn holder(node: &TestHub, bot: BotId) -> Option<String> {
    let mut read = node.hub().context().store.read().await.unwrap();
    read.bots().find(None, bot).await.unwrap().unwrap().lease_owner
}

/// Stops a node; what collects hints for other nodes ends with the clock.
async fn stop(node: &mut TestHub) {
    let clock = node.clock().clone();
    let stopped = node.shutdown();
    tokio::pin!(stopped);
    while futures_util::poll!(&mut stopped).is_pending() {
        Clock::system().sleep(Duration::from_millis(10)).await;
        clock.advance(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn a_graceful_stop_hands_its_bots_over_at_once() {
    let Some(mut nodes) = Nodes::start().await else { return };
    stop(&mut nodes.first).await;
    nodes.end_with_a_takeover(Duration::ZERO).await;
}

#[tokio::test]
async fn a_killed_nodes_bots_are_taken_over_within_fifteen_seconds() {
    let Some(mut nodes) = Nodes::start().await else { return };
    nodes.first.kill().await;
    assert_eq!(holder(&nodes.second, nodes.bot).await, nodes.holder, "the lease has not expired yet");
    nodes.end_with_a_takeover(Duration::from_secs(15)).await;
}

/// Apps and people are not notified of a node that died while another one worked on before the network noticed.
#[tokio::test]
async fn a_bot_stays_online_when_its_node_dies_and_another_one_takes_it() {
    let mut hub = TestHub::start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let channel = hub.channel(&ada, bot.id, NewChannel::named("orders")).await;
    let before = hub.bot_status(&ada, bot.id, BotStatus::Online).await.since;
    hub.clock().advance(Duration::from_secs(1));
    hub.kill().await;
    hub.restart().await;
    hub.say(&bot, "hello");
    hub.trace(&ada, bot.id, channel, TraceStatus::Ok).await;
    assert_eq!(hub.bot_status(&ada, bot.id, BotStatus::Online).await.since, before);

    hub.clock().advance(Duration::from_secs(1));
    hub.restart().await;
    hub.until("the bot is online again", async || {
        let health = hub.hub().bots().status(&ada, bot.id).await.unwrap();
        (health.bot.status == BotStatus::Online && health.since > before).then_some(())
    })
    .await;
}
