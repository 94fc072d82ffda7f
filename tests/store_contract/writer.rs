//! The committer: guarantees of `Store::write` for any command.

use std::{sync::atomic::Ordering, time::Duration};

use hub_core::{
    Error, ErrorCode,
    store::{Store, fault},
    time::{Clock, ManualClock, Timestamp},
};

use crate::support::database::{Db, START};

contract!("mod": {
    a_failed_command_undoes_itself_and_no_neighbour => [write],
    a_panic_fails_only_its_command => [write],
    a_dropped_caller_still_commits => [write],
    waiting_writers_share_a_commit => [write],
    a_broken_constraint_is_a_conflict => [write],
    a_reader_cannot_write_and_sees_only_what_is_committed => [read],
    queued_writes_are_stored_before_the_store_closes => [close, open, open_existing],
    a_newer_schema_is_refused => [open, open_existing],
    a_schema_is_not_migrated_while_a_node_works => [open],
    the_database_answers_and_its_clock_is_known => [ping, sync_clock],
    nodes_of_one_database_hear_each_other => [notify, notices],
    large_numbers_survive => [write, read],
    a_lost_transaction_is_followed_by_the_next_whatever_the_clock_shows => [write],
});

pub const NOTICES: super::Covered = ("notices", &[&["next"]]);

/// A command that notes a key for an hour.
async fn note(db: &Db, key: String) -> hub_core::Result<bool> {
    let until = START + Duration::from_secs(3600);
    commit!(db, |tx| tx.idempotency().claim("writer", &key, "", START, until).await)
}

async fn keys(db: &Db) -> Vec<String> {
    db.texts("SELECT key FROM idempotency ORDER BY key").await
}

async fn a_failed_command_undoes_itself_and_no_neighbour(db: &Db) {
    let until = START + Duration::from_secs(3600);
    let commands = (0..30).map(|n| {
        let key = format!("{n:02}");
        async move {
            commit!(db, |tx| {
                tx.idempotency().claim("writer", &key, "", START, until).await?;
                if n % 3 == 0 { Err(Error::conflict("on purpose")) } else { Ok(()) }
            })
        }
    });
    let answers = futures_util::future::join_all(commands).await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), n % 3 != 0, "{n}");
    }
    let expected: Vec<String> = (0..30).filter(|n| n % 3 != 0).map(|n| format!("{n:02}")).collect();
    assert_eq!(keys(db).await, expected);
}

async fn a_panic_fails_only_its_command(db: &Db) {
    let panicking = async {
        db.store
            .write(|tx| {
                Box::pin(async move {
                    let until = START + Duration::from_secs(3600);
                    tx.idempotency().claim("writer", "never", "", START, until).await?;
                    panic!("on purpose")
                })
            })
            .await as hub_core::Result<()>
    };
    let (panicked, noted) = futures_util::join!(panicking, note(db, "kept".into()));
    assert_eq!(panicked.unwrap_err().code(), ErrorCode::Internal);
    assert!(noted.unwrap());
    assert_eq!(keys(db).await, ["kept"]);
    assert!(note(db, "later".into()).await.unwrap(), "the committer lives on");
}

async fn a_dropped_caller_still_commits(db: &Db) {
    {
        let caller = note(db, "orphan".into());
        tokio::pin!(caller);
        // Once polled, the command is handed over; then the caller goes away.
        assert!(futures_util::poll!(&mut caller).is_pending());
    }
    note(db, "next".into()).await.unwrap();
    assert_eq!(keys(db).await, ["next", "orphan"]);
}

async fn waiting_writers_share_a_commit(db: &Db) {
    note(db, "warm".into()).await.unwrap();
    let stats = db.store.stats();
    let before = stats.commits.load(Ordering::Relaxed);
    let notes = (0..500).map(|n| note(db, format!("{n:03}")));
    assert!(futures_util::future::join_all(notes).await.iter().all(|noted| *noted.as_ref().unwrap()));
    let commits = stats.commits.load(Ordering::Relaxed) - before;
    assert!(commits < 100, "500 commands took {commits} commits");
    assert_eq!(db.count("idempotency").await, 501);
}

async fn a_broken_constraint_is_a_conflict(db: &Db) {
    let channel = super::scene::channel(db, db.ids.next(), "no such bot");
    let hash = hub_core::secret::TokenHash::of("key");
    let refused = commit!(db, |tx| tx.channels().insert(&channel, &hash).await).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    let ada = db.user("ada").await;
    let taken = commit!(db, |tx| {
        let hash = hub_core::secret::TokenHash::of("same");
        let purpose = hub_core::store::accounts::Purpose::Setup;
        tx.accounts().insert_one_time(purpose, &hash, "", START).await?;
        tx.accounts().insert_one_time(purpose, &hash, "", START).await
    });
    let taken = taken.unwrap_err();
    assert_eq!(taken.code(), ErrorCode::Conflict);
    assert!(!fault::is_fatal(&taken));
    assert_eq!(db.count("one_time").await, 0, "the first of both is undone too");
    assert!(db.store.read().await.unwrap().accounts().find_user(ada).await.unwrap().is_some());
}

async fn a_reader_cannot_write_and_sees_only_what_is_committed(db: &Db) {
    let mut read = db.store.read().await.unwrap();
    let until = START + Duration::from_secs(3600);
    assert!(read.idempotency().claim("reader", "key", "", START, until).await.is_err());
    drop(read);
    assert!(keys(db).await.is_empty());
    let store = db.store.clone();
    let seen = commit!(db, |tx| {
        tx.idempotency().claim("writer", "key", "", START, until).await?;
        let mut read = store.read().await?;
        read.idempotency().find("writer", "key", START).await
    });
    assert_eq!(seen.unwrap(), None);
    assert!(
        db.store.read().await.unwrap().idempotency().find("writer", "key", START).await.unwrap().is_some()
    );
}

async fn queued_writes_are_stored_before_the_store_closes(db: &Db) {
    let other = Store::open(&db.config, Clock::system()).await.unwrap();
    let until = START + Duration::from_secs(3600);
    let handed_over = other.clone();
    let write = handed_over.write(move |tx| {
        Box::pin(async move { tx.idempotency().claim("writer", "last", "", START, until).await })
    });
    let mut write = Box::pin(write);
    assert!(futures_util::poll!(&mut write).is_pending());
    drop(write);
    drop(handed_over);
    other.close().await;
    assert_eq!(keys(db).await, ["last"]);
    Store::open_existing(&db.config, Clock::system()).await.unwrap().close().await;
}

async fn a_newer_schema_is_refused(db: &Db) {
    db.sql("UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .await;
    for opened in [
        Store::open(&db.config, Clock::system()).await,
        Store::open_existing(&db.config, Clock::system()).await,
    ] {
        let refused = opened.expect_err("a schema from the future");
        assert_eq!(refused.code(), ErrorCode::Unavailable);
        assert!(refused.to_string().contains("9999"), "{refused}");
    }
}

async fn a_schema_is_not_migrated_while_a_node_works(db: &Db) {
    if !db.is_postgres() {
        // Who works on a file has claimed it.
        return;
    }
    let newest = "SELECT MAX(version) FROM _sqlx_migrations";
    let version = db.number(newest).await;
    db.sql(format!("INSERT INTO nodes (id, lease_until) VALUES ('another', {})", i64::MAX / 2)).await;
    Store::open(&db.config, Clock::system())
        .await
        .expect("nodes of one version share the database")
        .close()
        .await;
    db.sql(format!("DELETE FROM _sqlx_migrations WHERE version = {version}")).await;
    let refused = Store::open(&db.config, Clock::system()).await.expect_err("the other node would fail");
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(refused.message().contains("a node works on this database"), "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.starts_with("stop every node")), "{refused:?}");
    assert_eq!(db.number(newest).await, version - 1);
    // The lease of a node that was killed ends.
    db.sql("UPDATE nodes SET lease_until = 1").await;
    let tried = Store::open(&db.config, Clock::system()).await.expect_err("the migration is there already");
    assert!(!tried.message().contains("a node works on this database"), "{tried}");
}

async fn the_database_answers_and_its_clock_is_known(db: &Db) {
    db.store.ping().await.unwrap();
    db.store.sync_clock().await.unwrap();
    let (ours, theirs) = (Clock::system().now(), db.store.now());
    let apart = ours.since(theirs).max(theirs.since(ours));
    assert!(apart < Duration::from_secs(3600), "one machine, two clocks: {apart:?}");
    assert!(!db.store.failed().is_cancelled());
    assert_eq!(db.store.is_shared(), db.is_postgres());
}

async fn a_lost_transaction_is_followed_by_the_next_whatever_the_clock_shows(db: &Db) {
    let store = Store::open(&db.config, Clock::from(ManualClock::new(START))).await.unwrap();
    let write = async |sql: &'static str| {
        let run = store.write(move |tx| Box::pin(async move { tx.channels().execute(sql.to_owned()).await }));
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("the committer goes on")
    };
    // Ends the transaction under the committer's feet: nothing of this batch can be committed.
    assert!(write("ROLLBACK").await.is_err());
    write("UPDATE users SET display_name = 'x'").await.unwrap();
    store.close().await;
}

async fn large_numbers_survive(db: &Db) {
    for at in [Timestamp::MIN, Timestamp::MAX, Timestamp::from_millis(0)] {
        let key = at.to_string();
        commit!(db, |tx| tx.idempotency().claim("numbers", &key, "", Timestamp::MIN, at).await).unwrap();
    }
    let stored = db.texts("SELECT CAST(expires_at AS TEXT) FROM idempotency ORDER BY expires_at").await;
    let expected = [Timestamp::MIN.as_millis(), 0, Timestamp::MAX.as_millis()].map(|ms| ms.to_string());
    assert_eq!(stored, expected);
}

async fn nodes_of_one_database_hear_each_other(db: &Db) {
    if !db.is_postgres() {
        db.store.notify("no one hears it").await.unwrap();
        assert_eq!(db.store.notices().await.err().map(|error| error.code()), Some(ErrorCode::Internal));
        return;
    }
    let other = Store::open(&db.config, Clock::system()).await.unwrap();
    let mut notices = other.notices().await.unwrap();
    for text in ["first", "second 𝔘"] {
        db.store.notify(text).await.unwrap();
        let heard = Clock::system().timeout(Duration::from_secs(20), notices.next()).await;
        assert_eq!(heard.expect("it is heard").unwrap().as_deref(), Some(text));
    }
    drop(notices);
    other.close().await;
}
