//! The commit log of a SQLite file that this process works on. That the tables end up the same is what the contract's
//! cases check on such a file, and `writers::any_commands_leave_the_same_rows` with random commands.

use std::{sync::Arc, time::Duration};

use hub_core::{
    error::ErrorCode,
    store::{
        Store,
        deliveries::{DeliveryState, Finished},
        due::{Reading, Stamp},
        inbox::{Accept, Accepted},
    },
    time::Clock,
};

use super::{
    deliveries::finished,
    scene::{accept_one, batch, message, scope, stage, step_reasons, taken},
};
use crate::support::database::Db;

/// An outcome whose times the store takes as they are.
fn current(db: &Db, outcome: Finished) -> Finished {
    let read = Reading { at: Clock::system().instant(), wall: db.store.now() };
    Finished { stamp: Stamp { read, followed: None }, ..outcome }
}

async fn other_process(db: &Db) -> Store {
    Store::open(&db.config, Clock::system()).await.unwrap()
}

#[tokio::test]
async fn the_log_is_flushed_before_a_read() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    accept_one(&db, &on, "ann", "1", on.lease.fence).await;
    assert_eq!(db.count_unflushed("commit_log").await, 1);
    for table in ["messages", "channel_log", "deliveries", "traces", "contacts"] {
        assert_eq!(db.count_unflushed(table).await, 0, "{table}");
    }
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.contacts().find(on.bot, "ann").await.unwrap().unwrap().message_count, 1);
    drop(read);
    assert_eq!(db.count_unflushed("commit_log").await, 0);
    assert_eq!(db.count_unflushed("deliveries").await, 1);
    db.remove().await;
}

#[tokio::test]
async fn what_is_read_at_once_goes_to_the_tables() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    for (key, is_read_at_once, logged) in [("1", true, 0), ("2", false, 1), ("3", true, 0)] {
        let (one, _) = taken(&db, message(&db, on.bot, "ann", key, key), on.channel, on.lease.fence);
        let accept = Accept { is_read_at_once, ..batch(&on.lease, None, vec![one]) };
        db.store.accept(accept).await.unwrap();
        assert_eq!(db.count_unflushed("commit_log").await, logged, "message {key}");
    }
    assert_eq!(db.count_unflushed("messages").await, 3);
    db.remove().await;
}

#[tokio::test]
async fn a_delivery_that_ends_before_the_flush_is_never_stored_as_open() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    db.sql(
        "CREATE TRIGGER none BEFORE INSERT ON deliveries WHEN NEW.lane <> 'bob'
         BEGIN SELECT RAISE(ABORT, 'stored'); END",
    )
    .await;
    let (_, delivery, trace) = accept_one(&db, &on, "ann", "1", on.lease.fence).await;
    let outcome = current(&db, finished(&on, delivery, trace, DeliveryState::Done));
    db.store.finish(Arc::new(outcome.clone())).await.unwrap();
    // As after a commit whose response was lost: the same outcome comes again.
    db.store.finish(Arc::new(outcome)).await.unwrap();
    // That of another node's delivery does not count, nor does one that is still to come.
    let (_, not_held, other) = accept_one(&db, &on, "bob", "2", 0).await;
    let outcome = Finished { fence: 7, ..finished(&on, not_held, other, DeliveryState::Done) };
    db.store.finish(Arc::new(current(&db, outcome))).await.unwrap();
    assert_eq!(db.count_unflushed("commit_log").await, 5);
    assert_eq!(step_reasons(&db, trace).await, ["received", "request"]);
    assert_eq!(step_reasons(&db, other).await, ["received"]);
    assert_eq!(db.count("deliveries").await, 1);
    assert_eq!(db.number("SELECT CAST(count AS BIGINT) FROM successes").await, 1);
    db.remove().await;
}

#[tokio::test]
async fn what_a_killed_process_committed_is_there_for_the_next_one() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    let (_, delivery, trace) = accept_one(&db, &on, "ann", "1", on.lease.fence).await;
    accept_one(&db, &on, "ann", "2", on.lease.fence).await;
    let outcome = finished(&on, delivery, trace, DeliveryState::Done);
    db.store.finish(Arc::new(current(&db, outcome))).await.unwrap();
    assert_eq!(db.count_unflushed("commit_log").await, 3);
    let next = other_process(&db).await;
    let found = next.read().await.unwrap().contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!(found.message_count, 2);
    assert_eq!(db.count_unflushed("commit_log").await, 0);
    assert_eq!(db.count_unflushed("deliveries").await, 1);
    // The first process goes on: it knows neither number nor message from its memory alone.
    let (repeat, _) = taken(&db, message(&db, on.bot, "ann", "2", "again"), on.channel, 0);
    let (new, _) = taken(&db, message(&db, on.bot, "ann", "3", "new"), on.channel, 0);
    let accepted = db.store.accept(batch(&on.lease, None, vec![repeat, new])).await.unwrap();
    assert_eq!(accepted, Accepted::Stored(vec![None, Some(vec![3])]));
    next.close().await;
    db.remove().await;
}

#[tokio::test]
async fn another_process_writes_after_what_is_committed() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    let other = other_process(&db).await;
    other.read().await.unwrap();
    let (_, delivery, trace) = accept_one(&db, &on, "ann", "1", on.lease.fence).await;
    assert_eq!(db.count_unflushed("commit_log").await, 1);
    let (owner, bot) = (on.owner, on.bot);
    let found = other.write(move |tx| {
        Box::pin(async move { tx.contacts().set_remark(scope(owner).owner(), bot, "ann", "Annie").await })
    });
    assert!(found.await.unwrap(), "who wrote is known");
    // The outcome of what is no longer in the log.
    let outcome = finished(&on, delivery, trace, DeliveryState::Done);
    db.store.finish(Arc::new(current(&db, outcome))).await.unwrap();
    assert_eq!(db.count("deliveries").await, 0);
    assert_eq!(db.number("SELECT CAST(count AS BIGINT) FROM successes").await, 1);
    other.close().await;
    db.remove().await;
}

#[tokio::test]
async fn the_log_is_flushed_after_a_second() {
    let db = Db::claimed().await;
    let on = stage(&db).await;
    accept_one(&db, &on, "ann", "1", on.lease.fence).await;
    let clock = Clock::system();
    let deadline = clock.instant() + Duration::from_secs(20);
    while db.count_unflushed("messages").await == 0 {
        assert!(clock.instant() < deadline, "nothing flushes the log");
        clock.sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(db.count_unflushed("commit_log").await, 0);
    db.remove().await;
}

#[tokio::test]
async fn the_log_is_bounded() {
    let db = Db::claimed().await;
    db.store.limit_log(1024);
    let on = stage(&db).await;
    for n in 0..60 {
        let messages = (0..20).map(|k| {
            let key = format!("{n}-{k}");
            taken(&db, message(&db, on.bot, &key, &key, "x"), on.channel, on.lease.fence).0
        });
        db.store.accept(batch(&on.lease, Some("c"), messages.collect())).await.unwrap();
        assert!(db.count_unflushed("commit_log").await < 52, "1024 rows");
    }
    assert!(db.count_unflushed("messages").await >= 200);
    assert_eq!(db.number("SELECT CAST(last_seq AS BIGINT) FROM channels").await, 1200);
    db.remove().await;
}

#[tokio::test]
async fn a_commit_that_fills_the_log_flushes_the_oldest_entries() {
    let db = Db::claimed().await;
    db.store.limit_log(12);
    let on = stage(&db).await;
    db.sql(
        "CREATE TRIGGER none BEFORE INSERT ON deliveries WHEN NEW.lane = 'ann'
         BEGIN SELECT RAISE(ABORT, 'stored'); END",
    )
    .await;
    let (_, ended, trace) = accept_one(&db, &on, "ann", "0", on.lease.fence).await;
    let mut open = Vec::new();
    for n in 1..11 {
        let (_, delivery, trace) = accept_one(&db, &on, "bob", &n.to_string(), on.lease.fence).await;
        open.push((delivery, trace));
    }
    assert_eq!(db.count_unflushed("commit_log").await, 11);
    assert_eq!(db.count_unflushed("messages").await, 0);
    let outcome =
        |delivery, trace| Arc::new(current(&db, finished(&on, delivery, trace, DeliveryState::Done)));
    db.store.finish(outcome(ended, trace)).await.unwrap();
    // What ended in an entry that stays is not stored as open.
    assert_eq!(db.count_unflushed("commit_log").await, 6);
    assert_eq!(db.count_unflushed("messages").await, 6);
    assert_eq!(db.count_unflushed("deliveries").await, 5);
    // A repeat of what is flushed, and one of what is in the log.
    for n in ["1", "10"] {
        let (repeat, _) = taken(&db, message(&db, on.bot, "bob", n, "again"), on.channel, 0);
        let accepted = db.store.accept(batch(&on.lease, None, vec![repeat])).await.unwrap();
        assert_eq!(accepted, Accepted::Stored(vec![None]));
    }
    for (delivery, trace) in open.into_iter().skip(2) {
        db.store.finish(outcome(delivery, trace)).await.unwrap();
    }
    // As after a crash: what has ended is in the file alone.
    assert!(db.count_unflushed("commit_log").await > 0);
    other_process(&db).await.read().await.unwrap();
    assert_eq!(step_reasons(&db, trace).await, ["received", "request"]);
    assert_eq!(db.count("deliveries").await, 2);
    assert_eq!(db.count("messages").await, 11);
    assert_eq!(db.number("SELECT CAST(count AS BIGINT) FROM successes").await, 9);
    db.remove().await;
}

#[tokio::test]
async fn a_log_that_only_another_version_can_read_is_not_migrated() {
    let db = Db::sqlite().await;
    db.sql("INSERT INTO commit_log (id, entry) VALUES (1, x'ff')").await;
    db.sql("DELETE FROM _sqlx_migrations WHERE version >= 28").await;
    let error = Store::open(&db.config, Clock::system()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable, "{error}");
    assert_eq!(
        error.message(),
        "an entry of the commit log has format 255, and this program reads 1 and 2 (entry 1)"
    );
    assert!(error.hint().is_some_and(|hint| hint.starts_with("start and stop the version")), "{error:?}");
    assert_eq!(db.number("SELECT MAX(version) FROM _sqlx_migrations").await, 27);
    db.sql("DELETE FROM commit_log").await;
    db.remove().await;
}
