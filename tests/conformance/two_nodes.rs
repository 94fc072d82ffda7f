//! Several hubs on one PostgreSQL database. Nodes go by the database's clock, which no one moves by hand: these
//! run on the machine's, with a short lease.

use std::{collections::BTreeMap, time::Duration};

use hub_core::{
    access::Actor,
    network::{
        ilink::IlinkConfig,
        sim::{Action, Endpoint, Fault, SimConfig, ViolationKind},
    },
    store::StoreConfig,
    testing::{Receiver, TestBot, TestHub, until},
    time::Clock,
};

use super::stage::{client_ids, hook};
use crate::{ilink::stage::Stage, support::postgres};

/// 12 s outside of tests. Renewed three times in it, so that a busy machine does not lose it.
const LEASE: Duration = Duration::from_secs(6);

struct Nodes {
    stage: Stage,
    first: TestHub,
    receiver: std::sync::Arc<Receiver>,
    ada: Actor,
    bot: TestBot,
    store: StoreConfig,
}

impl Nodes {
    /// The first node; `None` when the machine has no PostgreSQL.
    async fn start() -> Option<Self> {
        let store = postgres::server()?.migrated_database().await;
        let stage = Stage::start(SimConfig::quick(), IlinkConfig::default(), Clock::system()).await;
        let receiver = Receiver::new();
        let first = TestHub::builder()
            .store(store.clone())
            .clock(Clock::system())
            .simulator(stage.sim.clone())
            .network_url(format!("http://{}", stage.address).parse().unwrap())
            .receiver("receiver.test", &receiver)
            .config(|config| config.lease = LEASE)
            .start()
            .await;
        let ada = first.register("ada").await;
        let bot = first.bind(&ada).await;
        first.webhook_channel(&ada, bot.id, "all", hook()).await;
        let nodes = Self { stage, first, receiver, ada, bot, store };
        nodes.hears("hello").await;
        Some(nodes)
    }

    async fn hears(&self, text: &str) {
        self.stage.sim.say(&self.bot.wx_id, None, text).unwrap();
        let heard = async || self.receiver.texts().iter().any(|seen| seen == text).then_some(());
        until(&format!("the receiver gets {text}"), heard).await;
    }

    async fn poller(&self, node: &TestHub) -> Option<String> {
        node.hub().bots().status(&self.ada, self.bot.id).await.unwrap().poller_node
    }

    async fn remove(mut self) {
        self.first.kill().await;
        postgres::server().unwrap().drop_database(&self.store).await;
    }
}

#[tokio::test]
async fn r15_a_second_node_does_not_poll_and_takes_over_when_the_first_is_dead() {
    let Some(mut nodes) = Nodes::start().await else { return };
    let mut second = nodes.first.another().seed(2).start().await;
    let owner = nodes.poller(&second).await;
    assert!(owner.is_some());
    for n in 0..5 {
        nodes.hears(&format!("while both live {n}")).await;
    }
    assert_eq!(nodes.poller(&second).await, owner);
    let violations = || {
        let all = nodes.stage.sim.violations(None);
        all.into_iter().filter(|violation| violation.kind == ViolationKind::SecondPoller).count()
    };
    assert_eq!(violations(), 0);
    nodes.first.kill().await;
    until("the second has the bot", async || {
        nodes.poller(&second).await.is_some_and(|node| Some(node) != owner).then_some(())
    })
    .await;
    nodes.hears("after the first").await;
    assert_eq!(violations(), 0);
    second.shutdown().await;
    nodes.remove().await;
}

#[tokio::test]
async fn nodes_share_their_bots_evenly_and_deliver_each_message_once_meanwhile() {
    let Some(nodes) = Nodes::start().await else { return };
    let mut bots = vec![nodes.bot.clone()];
    for _ in 0..8 {
        let bot = nodes.first.bind(&nodes.ada).await;
        nodes.first.webhook_channel(&nodes.ada, bot.id, "all", hook()).await;
        bots.push(bot);
    }
    let mut others = Vec::new();
    for seed in [2, 3] {
        others.push(nodes.first.another().seed(seed).start().await);
    }
    let mut written = Vec::new();
    until("each node has three bots", async || {
        let mut counts = BTreeMap::<Option<String>, usize>::new();
        for bot in &bots {
            let text = format!("{} {}", bot.wx_id, written.len());
            nodes.stage.sim.say(&bot.wx_id, None, &text).unwrap();
            written.push(text);
            let status = nodes.first.hub().bots().status(&nodes.ada, bot.id).await.unwrap();
            *counts.entry(status.poller_node).or_default() += 1;
        }
        (counts.into_values().collect::<Vec<_>>() == [3, 3, 3]).then_some(())
    })
    .await;
    let texts = || nodes.receiver.texts().into_iter().filter(|text| text != "hello").collect::<Vec<_>>();
    until("all have arrived", async || (texts().len() >= written.len()).then_some(())).await;
    for bot in &bots {
        let of_bot = |texts: &[String]| -> Vec<String> {
            texts.iter().filter(|text| text.starts_with(&format!("{} ", bot.wx_id))).cloned().collect()
        };
        assert_eq!(of_bot(&texts()), of_bot(&written));
    }
    for mut node in others {
        node.shutdown().await;
    }
    nodes.remove().await;
}

#[tokio::test]
async fn s19_a_full_outbox_moves_to_the_second_node_in_its_order() {
    let Some(mut nodes) = Nodes::start().await else { return };
    let mut second = nodes.first.another().seed(2).start().await;
    let hang = Fault::on(Endpoint::SendMessage, Action::Pass).after(Duration::from_secs(24 * 3600));
    nodes.stage.sim.add_fault(hang).unwrap();
    for n in 0..5 {
        // Accepted by either node, sent by the one that has the bot.
        let node = if n % 2 == 0 { &nodes.first } else { &second };
        node.send(&nodes.ada, &nodes.bot, &format!("{n}")).await.unwrap();
    }
    let tap = &nodes.stage.tap;
    until("the first is on the wire", async || (!tap.requests("sendmessage").is_empty()).then_some(())).await;
    nodes.first.kill().await;
    let shown = second.sent(&nodes.bot, 5).await;
    let texts: Vec<_> = shown.iter().map(|sent| sent.text.as_str()).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4"]);
    let ids = client_ids(tap);
    assert_eq!(ids.len(), 6);
    assert_eq!(ids[0], ids[1], "what was on the wire is tried once more under its id");
    second.shutdown().await;
    nodes.remove().await;
}
