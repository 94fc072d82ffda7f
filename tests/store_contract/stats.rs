use hub_core::{
    admin::{DeliveryCounts, MinuteCounts, UserCounts},
    bots::BotStatus,
    counters::Tallied,
    id::NodeId,
    time::Timestamp,
};

use super::scene;
use crate::support::database::{Db, START};

contract!("stats": {
    counts_are_added_up_by_minute_and_node => [add, minutes, total],
    old_minutes_are_folded_and_nothing_is_lost => [fold, total, minutes],
    parallel_folds_count_once => [fold, total],
    users_bots_and_channels_are_counted => [users, bots, channels],
    only_open_deliveries_are_counted => [open_deliveries],
    the_numbers_of_a_user_are_of_their_own_bots => [bots_of, oldest_open_of, minutes_of],
});

async fn the_numbers_of_a_user_are_of_their_own_bots(db: &Db) {
    let on = scene::stage(db).await;
    let bob = db.user("bob").await;
    scene::accept_one(db, &on, "ann", "1", 0).await;
    let (.., failed) = scene::accept_one(db, &on, "ann", "2", 0).await;
    let (.., done) = scene::accept_one(db, &on, "ann", "3", 0).await;
    let send = scene::outbound(db, on.bot, "ann", "out", &["sent"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    db.sql(format!("UPDATE traces SET status = 'error' WHERE id = '{failed}'")).await;
    db.sql(format!("UPDATE traces SET status = 'ok' WHERE id = '{done}'")).await;
    let minute = START.as_millis() / 60_000;
    let since = Timestamp::from_millis(minute * 60_000);
    let expected = MinuteCounts { messages_in: 3, messages_out: 1, delivered: 1, failed: 1 };
    let mut read = db.store.read().await.unwrap();
    let minutes = read.stats().minutes_of(on.owner, since, 100).await.unwrap();
    assert_eq!(minutes.into_iter().collect::<Vec<_>>(), [(minute, expected)]);
    let cut = read.stats().minutes_of(on.owner, since, 2).await.unwrap();
    assert_eq!(cut[&minute].messages_in + cut[&minute].messages_out, 2, "at most so many rows are read");
    let later = START + std::time::Duration::from_secs(60);
    assert!(read.stats().minutes_of(on.owner, later, 100).await.unwrap().is_empty());
    assert!(read.stats().minutes_of(bob, since, 100).await.unwrap().is_empty());
    assert_eq!(read.stats().bots_of(on.owner).await.unwrap(), [(BotStatus::Pending, 1)]);
    assert!(read.stats().bots_of(bob).await.unwrap().is_empty());
    assert_eq!(read.stats().oldest_open_of(on.owner).await.unwrap(), Some(START));
    assert_eq!(read.stats().oldest_open_of(bob).await.unwrap(), None);
}

fn counts(n: u64) -> Tallied {
    Tallied { messages_in: n, messages_out: 2 * n, delivered: 3 * n, failed: 4 * n, plugin_runs: 5 * n }
}

async fn add(db: &Db, minute: i64, node: NodeId, n: u64) {
    commit!(db, |tx| tx.stats().add(minute, node, &counts(n)).await).unwrap();
}

async fn total(db: &Db) -> Tallied {
    db.store.read().await.unwrap().stats().total().await.unwrap()
}

async fn minutes(db: &Db, first: i64) -> Vec<(i64, Tallied)> {
    db.store.read().await.unwrap().stats().minutes(first).await.unwrap()
}

async fn counts_are_added_up_by_minute_and_node(db: &Db) {
    assert_eq!(total(db).await, Tallied::default());
    let (one, two): (NodeId, NodeId) = (db.ids.next(), db.ids.next());
    for (minute, node, n) in [(10, one, 1), (10, one, 2), (10, two, 4), (12, one, 8)] {
        add(db, minute, node, n).await;
    }
    assert_eq!(total(db).await, counts(15));
    assert_eq!(minutes(db, 10).await, [(10, counts(7)), (12, counts(8))]);
    assert_eq!(minutes(db, 11).await, [(12, counts(8))]);
}

async fn fold(db: &Db, before: i64) {
    commit!(db, |tx| tx.stats().fold(before).await).unwrap();
}

async fn old_minutes_are_folded_and_nothing_is_lost(db: &Db) {
    let node: NodeId = db.ids.next();
    for minute in 1..=5 {
        add(db, minute, node, 1).await;
    }
    fold(db, 3).await;
    fold(db, 3).await;
    assert_eq!((total(db).await, minutes(db, 0).await.len()), (counts(5), 3));
    fold(db, 6).await;
    assert_eq!((total(db).await, minutes(db, 0).await), (counts(5), Vec::new()));
    assert_eq!(db.count("tallies").await, 1);
}

async fn parallel_folds_count_once(db: &Db) {
    let node: NodeId = db.ids.next();
    for minute in 1..=5 {
        add(db, minute, node, 1).await;
    }
    let other = hub_core::store::Store::open(&db.config, hub_core::time::Clock::system()).await.unwrap();
    let there = other.write(|tx| Box::pin(async move { tx.stats().fold(6).await }));
    let here = db.store.write(|tx| Box::pin(async move { tx.stats().fold(6).await }));
    let (here, there) = tokio::join!(here, there);
    here.unwrap();
    there.unwrap();
    assert_eq!(total(db).await, counts(5));
    other.close().await;
}

async fn users_bots_and_channels_are_counted(db: &Db) {
    let ada = db.user("ada").await;
    db.user("bob").await;
    db.user("~demo").await;
    db.sql("UPDATE users SET role = 'admin' WHERE username = 'ada'").await;
    db.sql("UPDATE users SET status = 'disabled' WHERE username = 'bob'").await;
    let bot = db.bot(ada).await;
    db.bot(ada).await;
    db.sql(format!("UPDATE bots SET status = 'online' WHERE id = '{bot}'")).await;
    scene::add_channel(db, bot, "one").await;
    let mut read = db.store.read().await.unwrap();
    let users = read.stats().users().await.unwrap();
    assert_eq!(users, UserCounts { total: 2, active: 1, disabled: 1, admins: 1 });
    let mut bots = read.stats().bots().await.unwrap();
    bots.sort_by_key(|(status, _)| status.as_str());
    assert_eq!(bots, [(BotStatus::Online, 1), (BotStatus::Pending, 1)]);
    assert_eq!(read.stats().channels().await.unwrap(), 1);
}

async fn only_open_deliveries_are_counted(db: &Db) {
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.stats().open_deliveries().await.unwrap(), (DeliveryCounts::default(), None));
    drop(read);
    let bot = db.bot(db.user("ada").await).await;
    let channel = scene::add_channel(db, bot, "one").await;
    for (n, state) in ["pending", "parked", "parked", "done", "dead", "skipped"].into_iter().enumerate() {
        let at = START.as_millis() + i64::try_from(n).unwrap();
        let message = format!("msg_{n}");
        db.sql(format!(
            "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
                group_id, kind, content, items, dedupe_key, status, sent_at, created_at)
             VALUES ('{message}', '{bot}', 'inbound', 'p', 'p', 'b', '', '', '', 'text', '', '[]', '{n}', 'x', 0, 0)"
        ))
        .await;
        db.sql(format!(
            "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at,
                claim, created_at)
             VALUES ('dlv_{n}', '{message}', '{bot}', '{channel}', 'tr_{n}', 'l', {n}, '{state}', 0, 0, 0, {at})"
        ))
        .await;
    }
    let mut read = db.store.read().await.unwrap();
    let found = read.stats().open_deliveries().await.unwrap();
    assert_eq!(found, (DeliveryCounts { pending: 1, parked: 2 }, Some(START)));
}
