//! SIGKILL under load, again and again: nothing acknowledged is lost, nothing is made up or reordered, and each crash
//! repeats at most what was in flight.

use std::time::Duration;

use hub_core::{secret::Secret, store::StoreConfig, time::Clock};
use sqlx::{Connection, PgConnection};

use super::{load::Load, number, server::Server, stage::Stage};
use crate::support::postgres;

/// Shortest and longest life of a process, in milliseconds.
const LIFE: (u64, u64) = (200, 5_000);

#[tokio::test]
async fn nothing_is_lost_on_sqlite() {
    let test = "kill -9 on SQLite";
    kill_often(test, Stage::open(test, None).await, number("HUB_TEST_KILL_CYCLES", 14)).await;
}

/// The process is killed while it stores hundreds of messages at once.
#[tokio::test]
async fn nothing_is_lost_of_bursts_on_sqlite() {
    let test = "kill -9 during bursts on SQLite";
    let opened = Stage::open_for(test, None, Load::of_bursts()).await;
    kill_often(test, opened, number("HUB_TEST_KILL_CYCLES", 8)).await;
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

async fn kill_often(test: &str, (mut stage, mut server): (Stage, Server), cycles: u64) {
    let clock = Clock::system();
    let url = server.ready().await;
    stage.moved(Some(url));
    stage.start();
    let mut unready = 0;
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
        if let Some(url) = &stage.home.database {
            leases_run_out(url).await;
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
}

/// Expires the leases of all nodes, in place of a wait of half a minute.
async fn leases_run_out(url: &Secret) {
    let mut database = PgConnection::connect(url.expose()).await.unwrap();
    sqlx::query("UPDATE nodes SET lease_until = 0").execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}
