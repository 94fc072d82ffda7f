use std::time::Duration;

use futures_util::future::join_all;
use hub_core::{
    id::{BotId, NodeId},
    store::leases::{Lease, NodeEntry, Share},
};

use super::{
    media::arrives,
    scene::{accept_one, entry, just_before, outbound, stage},
};
use crate::support::database::{Db, START};

contract!("leases": {
    every_bot_goes_to_one_of_many_nodes => [acquire, held],
    a_lease_runs_out_and_the_fence_grows => [acquire, held, renew],
    a_renewed_lease_is_not_taken => [acquire, renew],
    a_node_that_is_over_and_has_no_bot_is_forgotten => [acquire, renew],
    a_bot_shows_its_nodes_name_or_id => [acquire],
    released_leases_are_free_at_once => [release, void_all],
    a_released_lease_is_free_unless_it_was_lost => [give_up],
    bots_are_handed_over_to_a_living_node => [shares, hand_over],
    a_node_has_only_bots_of_its_networks => [acquire, any_free, shares, hand_over],
    a_bot_that_was_handed_over_shows_its_new_node => [hand_over],
    a_bot_whose_network_no_living_node_has_is_found => [unserved],
    only_the_holder_gets_the_work => [work, is_current],
    the_holder_learns_which_work_there_is => [work],
    bots_with_unclaimed_work_are_found => [with_work],
    the_database_answers => [ping, database_now],
    a_bot_is_held_while_a_lease_is_valid => [any_held],
    a_bot_without_a_valid_lease_is_noticed => [any_free],
});

const LEASE: Duration = Duration::from_secs(30);

async fn acquire(db: &Db, node: NodeId, after: Duration, limit: u32) -> Vec<(BotId, i64)> {
    let now = START + after;
    let leases = commit!(db, |tx| tx.leases().acquire(&entry(node), now, now + LEASE, limit).await).unwrap();
    leases.into_iter().map(|lease| (lease.bot_id, lease.fence)).collect()
}

async fn a_bot_without_a_valid_lease_is_noticed(db: &Db) {
    let any_free = async |after: Duration| {
        let now = START + after;
        db.store.read().await.unwrap().leases().any_free(&entry(db.ids.next()).networks, now).await.unwrap()
    };
    assert!(!any_free(Duration::ZERO).await, "there is no bot");
    let owner = db.user("ada").await;
    db.bot(owner).await;
    assert!(any_free(Duration::ZERO).await);
    acquire(db, db.ids.next(), Duration::ZERO, 1).await;
    assert!(!any_free(Duration::ZERO).await);
    assert!(any_free(LEASE).await);
}

async fn every_bot_goes_to_one_of_many_nodes(db: &Db) {
    let owner = db.user("ada").await;
    let mut bots = Vec::new();
    for _ in 0..10 {
        bots.push(db.bot(owner).await);
    }
    // A second store is a second node with a connection of its own, which on PostgreSQL writes at the same time.
    let second = hub_core::store::Store::open(&db.config, hub_core::time::Clock::system()).await.unwrap();
    let nodes: Vec<NodeId> = (0..6).map(|_| db.ids.next()).collect();
    let taking = nodes.iter().enumerate().map(|(n, node)| {
        let (store, node) = (if n % 2 == 0 { &db.store } else { &second }, *node);
        store.write(move |tx| {
            Box::pin(async move { tx.leases().acquire(&entry(node), START, START + LEASE, 3).await })
        })
    });
    let mut taken = Vec::new();
    for leases in join_all(taking).await {
        let leases = leases.unwrap();
        assert!(leases.len() <= 3);
        assert!(leases.iter().all(|lease| lease.fence == 1));
        taken.extend(leases.into_iter().map(|lease| lease.bot_id));
    }
    let last: NodeId = db.ids.next();
    taken.extend(acquire(db, last, Duration::ZERO, 100).await.into_iter().map(|(bot, _)| bot));
    taken.sort();
    assert_eq!(taken, bots, "every bot once");
    let mut held = 0;
    for node in nodes.into_iter().chain([last]) {
        held += db.store.read().await.unwrap().leases().held(node).await.unwrap().len();
    }
    assert_eq!(held, bots.len());
    second.close().await;
}

async fn bots_are_handed_over_to_a_living_node(db: &Db) {
    let owner = db.user("ada").await;
    for _ in 0..3 {
        db.bot(owner).await;
    }
    let mut nodes: [NodeId; 2] = [db.ids.next(), db.ids.next()];
    nodes.sort();
    let shares =
        async |after: Duration| db.store.read().await.unwrap().leases().shares(START + after).await.unwrap();
    // A database of one node at a time has no shares.
    let expected = |counts: [i64; 2]| -> Vec<Share> {
        let counts = nodes.into_iter().zip(counts).map(|(node, bots)| share(node, "sim", bots)).collect();
        if db.store.is_shared() { counts } else { Vec::new() }
    };
    let taken = acquire(db, nodes[0], Duration::ZERO, 9).await;
    assert_eq!(shares(Duration::ZERO).await, [], "one node has all");
    acquire(db, nodes[1], Duration::ZERO, 0).await;
    assert_eq!(shares(Duration::ZERO).await, expected([3, 0]));
    assert_eq!(shares(LEASE).await, [], "no node is alive");
    let leases =
        |fence| taken[..2].iter().map(move |(bot, _)| Lease { bot_id: *bot, fence }).collect::<Vec<_>>();
    let hand_over = async |fence, after| {
        let (leases, to) = (leases(fence), nodes[1]);
        commit!(db, |tx| tx.leases().hand_over(&leases, to, START + after).await).unwrap();
    };
    hand_over(9, Duration::ZERO).await;
    assert_eq!(shares(Duration::ZERO).await, expected([3, 0]), "they are not held under this lease");
    hand_over(1, Duration::ZERO).await;
    hand_over(1, Duration::ZERO).await;
    assert_eq!(shares(Duration::ZERO).await, expected([1, 2]), "once");
    let mut held = db.store.read().await.unwrap().leases().held(nodes[1]).await.unwrap();
    held.sort_by_key(|lease| lease.bot_id);
    let mut moved = leases(2);
    moved.sort_by_key(|lease| lease.bot_id);
    assert_eq!(held, moved);
    hand_over(2, LEASE).await;
    assert_eq!(shares(Duration::ZERO).await, expected([1, 0]), "a dead node gets none");
    assert!(
        db.store.read().await.unwrap().leases().any_free(&entry(nodes[0]).networks, START).await.unwrap()
    );
}

fn share(node: NodeId, network: &str, bots: i64) -> Share {
    Share { node, network: network.to_owned(), bots }
}

/// A node with these networks.
fn with_networks(node: NodeId, networks: &[&str]) -> NodeEntry {
    NodeEntry { networks: networks.iter().map(ToString::to_string).collect(), ..entry(node) }
}

async fn a_node_has_only_bots_of_its_networks(db: &Db) {
    let owner = db.user("ada").await;
    let (sim, other) = (db.bot(owner).await, db.bot(owner).await);
    db.sql(format!("UPDATE bots SET network = 'other' WHERE id = '{other}'")).await;
    let mut nodes: [NodeId; 3] = [db.ids.next(), db.ids.next(), db.ids.next()];
    nodes.sort();
    let networks: [&[&str]; 3] = [&["other", "third"], &["sim", "other"], &[]];
    let entries: Vec<NodeEntry> =
        nodes.iter().zip(networks).map(|(id, all)| with_networks(*id, all)).collect();
    let any_free = async |node: &NodeEntry| {
        db.store.read().await.unwrap().leases().any_free(&node.networks, START).await.unwrap()
    };
    let acquire = async |node: &NodeEntry| {
        let node = node.clone();
        let taken = commit!(db, |tx| tx.leases().acquire(&node, START, START + LEASE, 9).await).unwrap();
        taken.into_iter().map(|lease| lease.bot_id).collect::<Vec<_>>()
    };
    assert!(any_free(&entries[0]).await && any_free(&entries[1]).await);
    assert!(!any_free(&entries[2]).await);
    assert_eq!(acquire(&entries[2]).await, [], "a node that stops has no networks");
    assert_eq!(acquire(&entries[0]).await, [other]);
    assert!(!any_free(&entries[0]).await, "the other bot is none of its networks");
    assert_eq!(acquire(&entries[1]).await, [sim]);
    let shares = db.store.read().await.unwrap().leases().shares(START).await.unwrap();
    let expected = [
        share(nodes[0], "other", 1),
        share(nodes[0], "third", 0),
        share(nodes[1], "other", 0),
        share(nodes[1], "sim", 1),
    ];
    assert_eq!(shares, if db.store.is_shared() { expected.to_vec() } else { Vec::new() });
    let (lease, to) = ([Lease { bot_id: sim, fence: 1 }], nodes[0]);
    commit!(db, |tx| tx.leases().hand_over(&lease, to, START).await).unwrap();
    assert!(any_free(&entries[1]).await, "the node does not have the network of the bot");
}

async fn a_bot_that_was_handed_over_shows_its_new_node(db: &Db) {
    let bot = db.bot(db.user("ada").await).await;
    let nodes: [NodeId; 2] = [db.ids.next(), db.ids.next()];
    for (node, name) in nodes.iter().zip(["attic", "cellar"]) {
        let named = NodeEntry { name: name.to_owned(), ..entry(*node) };
        commit!(db, |tx| tx.leases().acquire(&named, START, START + LEASE, 9).await).unwrap();
    }
    let shown = async || {
        let found = db.store.read().await.unwrap().bots().find(None, bot).await.unwrap().unwrap();
        found.poller_node(START).map(str::to_owned)
    };
    assert_eq!(shown().await.as_deref(), Some("attic"));
    let (lease, to) = ([Lease { bot_id: bot, fence: 1 }], nodes[1]);
    commit!(db, |tx| tx.leases().hand_over(&lease, to, START).await).unwrap();
    assert_eq!(shown().await.as_deref(), Some("cellar"));
}

async fn a_bot_whose_network_no_living_node_has_is_found(db: &Db) {
    let owner = db.user("ada").await;
    let bots = [db.bot(owner).await, db.bot(owner).await];
    let other = bots[1];
    db.sql(format!("UPDATE bots SET network = 'other' WHERE id = '{other}'")).await;
    let unserved = async |after: Duration| {
        db.store.read().await.unwrap().leases().unserved(START + after, 9).await.unwrap()
    };
    assert_eq!(unserved(Duration::ZERO).await.len(), 2, "there is no node");
    acquire(db, db.ids.next(), Duration::ZERO, 0).await;
    let found = unserved(Duration::ZERO).await;
    assert_eq!(found.iter().map(|bot| bot.lease.bot_id).collect::<Vec<_>>(), [other]);
    assert_eq!(found[0].network, "other");
    let reason = found[0].reason();
    db.sql(format!("UPDATE bots SET status = 'error', status_reason = '{reason}' WHERE id = '{other}'"))
        .await;
    assert_eq!(unserved(Duration::ZERO).await, [], "its status shows it");
    assert_eq!(unserved(LEASE).await.len(), 1, "the node is dead");
}

async fn a_lease_runs_out_and_the_fence_grows(db: &Db) {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    let (first, second): (NodeId, NodeId) = (db.ids.next(), db.ids.next());
    assert_eq!(acquire(db, first, Duration::ZERO, 9).await, [(bot, 1)]);
    assert_eq!(acquire(db, second, just_before(LEASE), 9).await, []);
    assert_eq!(acquire(db, second, LEASE, 9).await, [(bot, 2)]);
    assert!(db.store.read().await.unwrap().leases().held(first).await.unwrap().is_empty());
    let renewed = commit!(db, |tx| tx.leases().renew(&entry(first), START + LEASE * 9).await).unwrap();
    assert!(renewed.is_empty(), "what was lost is not renewed");
    assert_eq!(acquire(db, first, LEASE * 2, 9).await, [(bot, 3)]);
}

async fn a_renewed_lease_is_not_taken(db: &Db) {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    let (first, second): (NodeId, NodeId) = (db.ids.next(), db.ids.next());
    acquire(db, first, Duration::ZERO, 9).await;
    let renewed = commit!(db, |tx| tx.leases().renew(&entry(first), START + LEASE * 2).await).unwrap();
    assert_eq!(renewed.iter().map(|lease| (lease.bot_id, lease.fence)).collect::<Vec<_>>(), [(bot, 1)]);
    assert_eq!(acquire(db, second, LEASE, 9).await, []);
    // One that ran out while its node slept, and that no one took, goes on under its fence.
    let renewed = commit!(db, |tx| tx.leases().renew(&entry(first), START + LEASE * 9).await).unwrap();
    assert_eq!(renewed.iter().map(|lease| (lease.bot_id, lease.fence)).collect::<Vec<_>>(), [(bot, 1)]);
    assert_eq!(acquire(db, second, LEASE * 8, 9).await, []);
    assert_eq!(acquire(db, second, LEASE * 9, 9).await, [(bot, 2)]);
}

async fn a_node_that_is_over_and_has_no_bot_is_forgotten(db: &Db) {
    let bot = db.bot(db.user("ada").await).await;
    let (first, second): (NodeId, NodeId) = (db.ids.next(), db.ids.next());
    acquire(db, first, Duration::ZERO, 9).await;
    assert_eq!(acquire(db, second, LEASE, 0).await, [], "it may take none");
    assert_eq!(db.count("nodes").await, 2, "the first one still has a bot");
    assert_eq!(acquire(db, second, LEASE, 9).await, [(bot, 2)]);
    assert_eq!(db.count("nodes").await, 1);
    assert!(commit!(db, |tx| tx.leases().renew(&entry(first), START + LEASE * 2).await).unwrap().is_empty());
    assert_eq!(acquire(db, first, LEASE, 9).await, [], "the bot stays where it is");
}

async fn a_bot_shows_its_nodes_name_or_id(db: &Db) {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    let node: NodeId = db.ids.next();
    let shown = async |after| {
        let found = db.store.read().await.unwrap().bots().find(None, bot).await.unwrap().unwrap();
        found.poller_node(START + after).map(str::to_owned)
    };
    assert_eq!(shown(Duration::ZERO).await, None);
    acquire(db, node, Duration::ZERO, 9).await;
    assert_eq!(shown(Duration::ZERO).await, Some(node.to_string()));
    let until = START + LEASE * 2;
    let attic = NodeEntry { name: "attic".to_owned(), ..entry(node) };
    commit!(db, |tx| tx.leases().acquire(&attic, START + LEASE, until, 9).await).unwrap();
    assert_eq!(shown(LEASE).await.as_deref(), Some("attic"));
    assert_eq!(shown(LEASE * 2).await, None, "no one works for it");
}

async fn released_leases_are_free_at_once(db: &Db) {
    let owner = db.user("ada").await;
    let (one, two) = (db.bot(owner).await, db.bot(owner).await);
    let (first, second, third): (NodeId, NodeId, NodeId) = (db.ids.next(), db.ids.next(), db.ids.next());
    acquire(db, first, Duration::ZERO, 1).await;
    acquire(db, second, Duration::ZERO, 1).await;
    commit!(db, |tx| tx.leases().release(first).await).unwrap();
    let freed = acquire(db, third, Duration::ZERO, 9).await;
    assert_eq!(freed.len(), 1, "only the releasing node's");
    assert_eq!(freed[0].1, 2);
    commit!(db, |tx| tx.leases().void_all().await).unwrap();
    let mut all: Vec<BotId> =
        acquire(db, third, Duration::ZERO, 9).await.into_iter().map(|(bot, _)| bot).collect();
    all.sort();
    assert_eq!(all, [one, two]);
}

async fn a_released_lease_is_free_unless_it_was_lost(db: &Db) {
    let bot = db.bot(db.user("ada").await).await;
    let (first, second): (NodeId, NodeId) = (db.ids.next(), db.ids.next());
    assert_eq!(acquire(db, first, Duration::ZERO, 1).await, [(bot, 1)]);
    let lease = Lease { bot_id: bot, fence: 1 };
    let given_up = [lease.clone()];
    commit!(db, |tx| tx.leases().give_up(&given_up).await).unwrap();
    assert_eq!(acquire(db, second, Duration::ZERO, 1).await, [(bot, 2)], "free at once");
    commit!(db, |tx| tx.leases().give_up(&[lease]).await).unwrap();
    assert_eq!(acquire(db, first, Duration::ZERO, 1).await, [], "an old fence frees nothing");
}

async fn only_the_holder_gets_the_work(db: &Db) {
    let on = stage(db).await;
    let mut read = db.store.read().await.unwrap();
    let work = read.leases().work(&on.lease).await.unwrap().unwrap();
    assert_eq!(
        (work.network.as_str(), work.credentials.as_str(), work.cursor.as_str()),
        ("sim", "sealed", "")
    );
    let old = hub_core::store::leases::Lease { fence: on.lease.fence - 1, ..on.lease };
    assert!(read.leases().work(&old).await.unwrap().is_none());
    assert!(read.leases().is_current(&on.lease).await.unwrap());
    assert!(!read.leases().is_current(&old).await.unwrap());
}

async fn the_holder_learns_which_work_there_is(db: &Db) {
    let on = stage(db).await;
    let work = async || {
        let mut read = db.store.read().await.unwrap();
        let work = read.leases().work(&on.lease).await.unwrap().unwrap();
        (work.last_message_id, work.last_delivery_id, work.has_items, work.has_files)
    };
    assert_eq!(work().await, (None, None, false, false));
    let (message, delivery, _) = accept_one(db, &on, "ann", "hello", on.lease.fence).await;
    assert_eq!(work().await, (Some(message), Some(delivery), false, false));
    db.sql(format!("UPDATE deliveries SET state = 'done' WHERE id = '{delivery}'")).await;
    let send = outbound(db, on.bot, "ann", "send", &["hi"]);
    let message = send.message_id;
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    assert_eq!(work().await, (Some(message), None, true, false));
    db.sql("DELETE FROM outbox".to_owned()).await;
    let (message, _) = arrives(db, &on, "picture", &["md5"]).await;
    assert_eq!(work().await, (Some(message), None, false, true));
}

async fn bots_with_unclaimed_work_are_found(db: &Db) {
    let on = stage(db).await;
    let with_work = async |after: Duration| {
        db.store.read().await.unwrap().leases().with_work(on.node, START + after).await.unwrap()
    };
    assert_eq!(with_work(Duration::ZERO).await, (vec![], vec![]));
    let (_, held, _) = accept_one(db, &on, "ann", "held", on.lease.fence).await;
    assert_eq!(with_work(Duration::ZERO).await, (vec![], vec![]), "this node has it in memory");
    let (_, free, _) = accept_one(db, &on, "ann", "free", 0).await;
    assert_eq!(with_work(Duration::ZERO).await, (vec![on.bot], vec![]));
    let due = (START + LEASE).as_millis();
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {due} WHERE id = '{free}'")).await;
    db.sql(format!("UPDATE deliveries SET state = 'done' WHERE id = '{held}'")).await;
    assert_eq!(with_work(just_before(LEASE)).await.0, []);
    assert_eq!(with_work(LEASE).await.0, [on.bot]);
    let send = outbound(db, on.bot, "ann", "send", &["hi"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    assert_eq!(with_work(Duration::ZERO).await, (vec![], vec![on.bot]));
    let stranger: NodeId = db.ids.next();
    let theirs = db.store.read().await.unwrap().leases().with_work(stranger, START + LEASE).await.unwrap();
    assert_eq!(theirs, (vec![], vec![]));
}

async fn the_database_answers(db: &Db) {
    let mut read = db.store.read().await.unwrap();
    read.leases().ping().await.unwrap();
    assert_eq!(read.leases().database_now().await.unwrap().is_some(), db.is_postgres());
}

async fn a_bot_is_held_while_a_lease_is_valid(db: &Db) {
    let owner = db.user("ada").await;
    db.bot(owner).await;
    let node: NodeId = db.ids.next();
    let works = async |after: Duration| {
        db.store.read().await.unwrap().leases().any_held(START + after).await.unwrap()
    };
    assert!(!works(Duration::ZERO).await, "no one has taken it");
    acquire(db, node, Duration::ZERO, 9).await;
    assert!(works(Duration::ZERO).await && works(just_before(LEASE)).await);
    assert!(!works(LEASE).await, "it ran out");
    commit!(db, |tx| tx.leases().release(node).await).unwrap();
    assert!(!works(Duration::ZERO).await, "it was given back");
}
