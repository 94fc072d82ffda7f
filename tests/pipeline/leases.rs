//! Leases of one node over many bots, and how they pass to another node.

use std::{pin::pin, time::Duration};

use hub_core::{
    bots::BotStatus,
    channels::{NewChannel, sinks::WebhookUpdate},
    id::BotId,
    store::StoreConfig,
    testing::{Receiver, TestHub, until},
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
        SELECT new.id, users.id, 'Shop', 'sim', 'online', 0, 'wx' || n, 'ann' || n, '', 0, '', 0, 0, 0
        FROM users CROSS JOIN new",
        bots.join(", ")
    ))
    .await;
    hub.hub.start().await.unwrap();
    until("every bot has a holder", async || {
        let mut read = hub.hub.context().store.read().await.unwrap();
        (!read.leases().any_free(&["sim".to_owned()], hub.now()).await.unwrap()).then_some(())
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
        stop_node(&mut self.second).await;
        self.server.drop_database(&self.store).await;
    }
}

async fn holder(node: &TestHub, bot: BotId) -> Option<String> {
    let mut read = node.hub().context().store.read().await.unwrap();
    read.bots().find(None, bot).await.unwrap().unwrap().lease_owner
}

/// Stops a node; what collects hints for other nodes ends with the clock.
async fn stop_node(node: &mut TestHub) {
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
    stop_node(&mut nodes.first).await;
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

/// Bots whose work has ended do not wait for one with a receiver that does not respond, neither when they are handed over
/// nor when their node stops; and a stop takes the drain time once.
#[tokio::test]
async fn a_stop_releases_each_bot_as_soon_as_its_own_work_has_ended() {
    let Some(server) = postgres::server() else { return };
    let (store, receiver) = (server.create_database().await, Receiver::new());
    let first = TestHub::builder().store(store.clone()).receiver("receiver.test", &receiver).start().await;
    let ada = first.register("ada").await;
    let (slow, quick) = (first.bind(&ada).await, first.bind(&ada).await);
    let others = [first.bind(&ada).await.id, first.bind(&ada).await.id];
    let webhook = WebhookUpdate { url: "http://receiver.test/hook".to_owned(), ..WebhookUpdate::default() };
    first.webhook_channel(&ada, slow.id, "slow", webhook).await;
    let own = until("the first node holds the bot", async || holder(&first, slow.id).await).await;
    let mut second = first.another().seed(2).start().await;
    for bot in others {
        first
            .advance_until("the second node has its share", Duration::from_secs(1), async || {
                holder(&second, bot).await.filter(|holder| *holder != own)
            })
            .await;
    }
    receiver.hold();
    first.say(&slow, "question");
    first.until("it is on its way", async || (!receiver.requests().is_empty()).then_some(())).await;
    let (clock, drain) = (first.clock().clone(), first.hub().context().config.drain);
    let mut stop = pin!(first.hub().shutdown());
    until("the second node holds the bot without work", async || {
        assert!(futures_util::poll!(stop.as_mut()).is_pending());
        holder(&second, quick.id).await.filter(|holder| *holder != own)
    })
    .await;
    assert_eq!(holder(&second, slow.id).await, Some(own.clone()), "its work has not ended");
    clock.advance(drain);
    until("the first node has stopped", async || futures_util::poll!(stop.as_mut()).is_ready().then_some(()))
        .await;
    until("the second node holds all bots", async || {
        holder(&second, slow.id).await.filter(|holder| *holder != own)
    })
    .await;
    stop_node(&mut second).await;
    server.drop_database(&store).await;
}

/// A bot of a network that no node has is left alone, and says so.
#[tokio::test]
async fn a_bot_whose_network_no_node_has_says_so() {
    let hub = World::builder().open().await;
    let bot = BotId::from_u128(7);
    hub.sql(format!(
        "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials,
            credentials_rev, cursor, config_rev, lease_fence, created_at)
        SELECT '{bot}', users.id, 'Shop', 'pigeons', 'online', 0, 'wx', 'ann', '', 0, '', 0, 0, 0 FROM users"
    ))
    .await;
    hub.hub.start().await.unwrap();
    let record = hub
        .until("its status shows it", async || {
            let mut read = hub.hub.context().store.read().await.unwrap();
            let found = read.bots().find(None, bot).await.unwrap().unwrap();
            (found.status == BotStatus::Error).then_some(found)
        })
        .await;
    assert_eq!(record.status_reason.as_deref(), Some("no node of this hub has the network pigeons"));
    assert_eq!(record.lease_owner, None, "no node has taken it");
}

/// The clock of the machine is months behind the clock of the database here.
#[tokio::test]
async fn requests_are_signed_by_the_clock_that_all_nodes_share() {
    let Some(server) = postgres::server() else { return };
    let (store, receiver) = (server.create_database().await, Receiver::new());
    let mut node = TestHub::builder().store(store.clone()).receiver("receiver.test", &receiver).start().await;
    let ada = node.register("ada").await;
    let bot = node.bind(&ada).await;
    let webhook = WebhookUpdate { url: "http://receiver.test/hook".to_owned(), ..WebhookUpdate::default() };
    let channel = node.webhook_channel(&ada, bot.id, "signed", webhook).await;
    node.say(&bot, "question");
    let request = node.until("it arrives", async || receiver.requests().pop()).await;
    let signed_at = request.headers()["webhook-timestamp"].to_str().unwrap().parse::<i64>().unwrap();
    let now = node.hub().context().store.now().as_seconds();
    assert!(now - node.clock().now().as_seconds() > 86_400, "the clocks differ");
    assert!((now - signed_at).abs() < 3_600, "{signed_at} is not about {now}");
    let trace = node.trace(&ada, bot.id, channel, TraceStatus::Ok).await;
    assert!(trace.duration_ms < 3_600_000, "{} ms", trace.duration_ms);
    for step in &trace.steps {
        assert!((now - step.started_at.as_seconds()).abs() < 3_600, "{step:?}");
    }
    stop_node(&mut node).await;
    server.drop_database(&store).await;
}
