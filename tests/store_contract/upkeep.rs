//! Looking after a database next to the hub that works on it.

use std::time::Duration;

use hub_core::{ErrorCode, error::Advice, store::Upkeep, time::Clock};

use super::scene::{batch, message, stage};
use crate::support::database::{Db, START};

contract!("upkeep": {
    a_database_tells_its_schema_size_and_counts => [open, schema, size, counts, close],
    a_database_knows_when_it_was_created => [created_at],
    a_whole_database_has_no_findings_before_and_after_its_room_is_given_back => [integrity, broken_references, vacuum],
    a_file_is_copied_and_a_server_is_not => [copy_into],
    entries_of_another_format_are_named => [unreadable_entries, expect_readable_log],
    nodes_that_use_the_database_are_listed => [has_leases, bots, webhooks, plugins_in_use],
    files_are_found_by_page_and_by_id => [ready_files, known_files],
    the_commit_log_is_flushed_without_a_store => [flush],
    old_ended_rows_are_counted => [count_before],
    notes_are_kept_once_they_are_committed => [note, noted, begin, commit],
});

async fn open(db: &Db) -> Upkeep {
    Upkeep::open(&db.config).await.unwrap()
}

fn of(counts: &[(&'static str, i64)], name: &str) -> i64 {
    counts.iter().find(|(found, _)| *found == name).unwrap().1
}

async fn a_database_tells_its_schema_size_and_counts(db: &Db) {
    stage(db).await;
    let mut upkeep = open(db).await;
    let schema = upkeep.schema().await.unwrap();
    assert!(schema.version > 0 && schema.version == schema.newest && schema.pending.is_empty(), "{schema:?}");
    assert!(!schema.is_newer());
    assert!(upkeep.size().await.unwrap() > 10_000);
    let counts = upkeep.counts().await.unwrap();
    assert_eq!((of(&counts, "users"), of(&counts, "bots"), of(&counts, "messages")), (1, 1, 0));
    upkeep.close().await.unwrap();
}

async fn a_database_knows_when_it_was_created(db: &Db) {
    let now = Clock::system().now();
    let created = open(db).await.created_at().await.unwrap().unwrap();
    // In whole seconds, by the clock of the database.
    let hour = Duration::from_secs(3600);
    assert!(now - hour < created && created < now + hour, "{created:?}, at {now:?}");
}

async fn a_whole_database_has_no_findings_before_and_after_its_room_is_given_back(db: &Db) {
    stage(db).await;
    let mut upkeep = open(db).await;
    for _ in 0..2 {
        assert_eq!(upkeep.integrity().await.unwrap(), Vec::<String>::new());
        assert_eq!(upkeep.broken_references().await.unwrap(), Vec::<String>::new());
        upkeep.vacuum().await.unwrap();
    }
}

async fn a_file_is_copied_and_a_server_is_not(db: &Db) {
    stage(db).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let copied = open(db).await.copy_into(&copy).await;
    if db.is_postgres() {
        assert_eq!(copied.unwrap_err().code(), ErrorCode::Conflict);
        return;
    }
    copied.unwrap();
    let mut upkeep = Upkeep::open(&hub_core::store::StoreConfig::Sqlite(copy)).await.unwrap();
    assert_eq!(of(&upkeep.counts().await.unwrap(), "bots"), 1);
}

async fn entries_of_another_format_are_named(db: &Db) {
    let mut upkeep = open(db).await;
    upkeep.expect_readable_log().await.unwrap();
    if db.is_postgres() {
        assert!(upkeep.unreadable_entries().await.unwrap().is_empty());
        return;
    }
    // The current format, another one, an empty entry, and one that is cut off.
    db.sql("INSERT INTO commit_log (id, entry) VALUES (1, x'02'), (2, x'ff'), (3, x''), (4, x'020001')")
        .await;
    let found = upkeep.unreadable_entries().await.unwrap();
    let messages: Vec<&str> = found.iter().map(hub_core::Error::message).collect();
    assert_eq!(
        messages,
        [
            "an entry of the commit log has format 255, and this program reads 1 and 2 (entry 2)",
            "an entry of the commit log is corrupt (entry 3)",
            "an entry of the commit log is corrupt (entry 4)",
        ]
    );
    assert!(found.iter().all(|error| error.advice() == [Advice::RestoreBackup]));
    let refused = upkeep.expect_readable_log().await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
    assert!(refused.message().ends_with("(entry 2); 2 more cannot be read"), "{refused}");
    db.sql("DELETE FROM commit_log").await;
}

async fn nodes_that_use_the_database_are_listed(db: &Db) {
    let mut upkeep = open(db).await;
    assert!(!upkeep.has_leases().await.unwrap());
    let stage = stage(db).await;
    // A lease of the test's clock is long over for a server, which looks at its own.
    let far = i64::MAX / 2;
    db.sql(format!("INSERT INTO nodes (id, lease_until) VALUES ('node', {far})")).await;
    db.sql("UPDATE bots SET lease_owner = 'node'").await;
    assert_eq!(upkeep.has_leases().await.unwrap(), db.is_postgres());
    let bots = upkeep.bots().await.unwrap();
    assert_eq!(bots.iter().map(|bot| bot.0.clone()).collect::<Vec<_>>(), [stage.bot.to_string()]);
    let webhooks = upkeep.webhooks().await.unwrap();
    assert_eq!(webhooks.len(), 1);
    assert!(webhooks[0].1.starts_with('{'), "{webhooks:?}");
    db.sql("UPDATE channels SET enabled = (1 = 0)").await;
    assert!(upkeep.webhooks().await.unwrap().is_empty());
    assert!(upkeep.plugins_in_use().await.unwrap().is_empty());
}

async fn files_are_found_by_page_and_by_id(db: &Db) {
    let mut upkeep = open(db).await;
    assert!(upkeep.ready_files("", 10).await.unwrap().is_empty());
    let unknown = ["med_1".to_owned(), "med_2".to_owned()];
    assert!(upkeep.known_files(&unknown).await.unwrap().is_empty());
}

async fn old_ended_rows_are_counted(db: &Db) {
    let stage = stage(db).await;
    let hello = message(db, stage.bot, "ann", "1", "hello");
    db.store.accept(batch(&stage.lease, Some("1"), vec![hello])).await.unwrap();
    assert_eq!(db.count("messages").await, 1);
    let mut upkeep = open(db).await;
    let counts = upkeep.count_before(START - Duration::from_secs(3600)).await.unwrap();
    assert!(counts.iter().all(|(_, count)| *count == 0), "{counts:?}");
    let counts = upkeep.count_before(START + Duration::from_secs(3600)).await.unwrap();
    assert_eq!((of(&counts, "messages"), of(&counts, "app_calls")), (1, 0), "{counts:?}");
}

async fn the_commit_log_is_flushed_without_a_store(db: &Db) {
    let stage = stage(db).await;
    let hello = message(db, stage.bot, "ann", "1", "hello");
    db.store.accept(batch(&stage.lease, Some("1"), vec![hello])).await.unwrap();
    open(db).await.flush(&db.config).await.unwrap();
    assert_eq!(db.count_unflushed("commit_log").await, 0);
    assert_eq!(db.count_unflushed("messages").await, 1);
}

async fn notes_are_kept_once_they_are_committed(db: &Db) {
    let mut upkeep = open(db).await;
    assert_eq!(upkeep.noted("colour").await.unwrap(), None);
    upkeep.begin().await.unwrap();
    upkeep.note("colour", "green").await.unwrap();
    upkeep.note("colour", "blue").await.unwrap();
    assert_eq!(open(db).await.noted("colour").await.unwrap(), None);
    upkeep.commit().await.unwrap();
    assert_eq!(open(db).await.noted("colour").await.unwrap(), Some("blue".to_owned()));
}
