//! SIGKILL under load, again and again: nothing acknowledged is lost, nothing is made up or reordered, and each crash
//! repeats at most what was in flight.

use std::{path::Path, time::Duration};

use hub_core::{secret::Secret, store::StoreConfig, time::Clock};
use sqlx::{Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{load::Load, number, server::Server, stage::Stage};
use crate::support::postgres;

/// Shortest and longest life of a process, in milliseconds.
const LIFE: (u64, u64) = (200, 5_000);

#[tokio::test]
async fn nothing_is_lost_on_sqlite() {
    let test = "kill -9 on SQLite";
    kill_often(test, Stage::open(test, None).await, number("HUB_TEST_KILL_CYCLES", 14)).await;
}

/// The process is killed while messages are only in the log. A release build with `HUB_TEST_RATE=2000` fills it.
#[tokio::test]
async fn nothing_is_lost_of_the_commit_log() {
    let test = "kill -9 with messages in the commit log";
    let opened = Stage::open_for(test, None, Load::of_bursts()).await;
    let logs = kill_often(test, opened, number("HUB_TEST_KILL_CYCLES", 8)).await;
    let report = format!("{test}: bytes in the log after each kill: {logs:?}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), report.as_bytes());
    assert!(logs.iter().any(|bytes| *bytes > 0), "{report}");
}

#[tokio::test]
async fn nothing_is_lost_on_postgres() {
    let Some(server) = postgres::server() else { return };
    let StoreConfig::Postgres(url) = server.create_database().await else {
        panic!("it makes such databases")
    };
    let test = "kill -9 on PostgreSQL";
    let opened = Stage::open(test, Some(url.clone())).await;
    kill_often(test, opened, number("HUB_TEST_KILL_CYCLES", 6)).await;
    server.drop_database(&StoreConfig::Postgres(url)).await;
}

/// Returns how many bytes the commit log of a SQLite file had after each kill.
async fn kill_often(test: &str, (mut stage, mut server): (Stage, Server), cycles: u64) -> Vec<i64> {
    let clock = Clock::system();
    let url = server.ready().await;
    stage.moved(Some(url));
    stage.start();
    let (mut unready, mut logs) = (0, Vec::new());
    for _ in 0..cycles {
        let life = Duration::from_millis(LIFE.0 + stage.random.below(LIFE.1 - LIFE.0));
        let dies_at = clock.instant() + life;
        // It may die before it is ready, too.
        match clock.timeout(life, server.ready()).await {
            Some(url) => stage.moved(Some(url)),
            None => unready += 1,
        }
        clock.sleep_until(dies_at).await;
        server.process.kill().await;
        stage.crashed();
        match &stage.home.database {
            Some(url) => leases_run_out(url).await,
            None => logs.push(log_of(&stage.home.folder.join("hub.db")).await),
        }
        server = Server::spawn(&stage.home);
    }
    let url = server.ready().await;
    stage.moved(Some(url));
    let report = format!("{test}: {cycles} kills, {unready} of them before it was ready\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), report.as_bytes());
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
    logs
}

/// The size of a file's commit log in bytes. Nothing of the file is changed, as a start after the kill is to find it.
async fn log_of(file: &Path) -> i64 {
    let file = SqliteConnectOptions::new().filename(file).read_only(true);
    let mut file = SqliteConnection::connect_with(&file).await.unwrap();
    let bytes = sqlx::query_scalar("SELECT COALESCE(SUM(LENGTH(entry)), 0) FROM commit_log");
    let bytes = bytes.fetch_one(&mut file).await.unwrap();
    file.close().await.unwrap();
    bytes
}

/// Expires the leases of all nodes, in place of a wait of half a minute.
async fn leases_run_out(url: &Secret) {
    let mut database = PgConnection::connect(url.expose()).await.unwrap();
    sqlx::query("UPDATE nodes SET lease_until = 0").execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}
