//! PostgreSQL goes away under a running hub: its connections are ended again and again, the server stops and starts,
//! the database is read-only for a while. Nothing is lost and nothing repeated, and no request that its client gives
//! up leaves a transaction open.

use std::time::Duration;

use hub_core::{config::HubConfig, secret::Secret, store::StoreConfig, time::Clock};
use reqwest::Method;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{number, server::Server, stage::Stage};
use crate::support::{http::until, postgres};

/// Requests whose client does not wait for the answer.
const ABORTED: usize = 300;
/// Ends every connection of the hub, and counts them.
const END_CONNECTIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = 'message-hub'";

#[tokio::test]
async fn the_hub_outlives_its_database_connections() {
    let Some(database) = postgres::Server::alone() else { return };
    let StoreConfig::Postgres(url) = database.create_database().await else {
        panic!("it makes such databases")
    };
    let clock = Clock::system();
    let (mut stage, mut server) = Stage::open("PostgreSQL outages", Some(url.clone())).await;
    let at = server.ready().await;
    stage.moved(Some(at));
    stage.start();
    stage.is_under_way().await;
    for _ in 0..number("HUB_TEST_OUTAGES", 6) {
        clock.sleep(Duration::from_millis(300 + stage.random.below(700))).await;
        // After the last time it may just be about to connect again.
        until("the hub is connected", async || (one(&url, END_CONNECTIONS).await > 0).then_some(())).await;
    }
    recovers(&stage, &server).await;

    // The server is gone for longer than anyone waits for a connection.
    database.stop();
    refuses(&stage).await;
    database.start();
    recovers(&stage, &server).await;

    // As after a failover to a server that only reads.
    let name: String = value(&url, "SELECT current_database()::text").await;
    let switch = async |how: &str| {
        let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = {how}");
        let mut other = PgConnection::connect(&other_database(&url)).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut other).await.unwrap();
        other.close().await.unwrap();
        // What is connected keeps what it had.
        one(&url, END_CONNECTIONS).await;
    };
    switch("on").await;
    refuses(&stage).await;
    // A connection that was just ended may still serve to find that out.
    until("reads go on", async || {
        let (read, ..) = stage.caller.call(Method::GET, "/api/bots", None).await;
        read.is_success().then_some(())
    })
    .await;
    assert!(!stage.is_writable().await);
    switch("off").await;
    recovers(&stage, &server).await;

    let stage = stage.settle(0).await;
    give_up_requests(&stage).await;
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'message-hub' AND state LIKE 'idle in transaction%'";
    // One may be between two statements just now; none stays there.
    until("no transaction is left open", async || (one(&url, open).await == 0).then_some(())).await;
    clock.sleep(Duration::from_millis(500)).await;
    assert_eq!(one(&url, open).await, 0);
    stage.close(server).await;
}

#[tokio::test]
async fn a_stop_without_the_database_ends_and_loses_nothing() {
    let Some(database) = postgres::Server::alone() else { return };
    let StoreConfig::Postgres(url) = database.create_database().await else {
        panic!("it makes such databases")
    };
    let (mut stage, mut server) = Stage::open("SIGTERM without PostgreSQL", Some(url)).await;
    stage.moved(Some(server.ready().await));
    stage.start();
    stage.is_under_way().await;
    database.stop();
    refuses(&stage).await;
    let (clock, drain) = (Clock::system(), HubConfig::default().drain);
    let begun = clock.instant();
    server.process.signal("TERM");
    let (ended, log) = server.process.wait().await;
    let took = clock.instant().since(begun);
    assert!(took < drain + drain / 2, "{took:?}:\n{log}");
    assert!(ended.code().is_some(), "{ended}:\n{log}");
    stage.crashed();
    database.start();
    let mut server = Server::spawn(&stage.home);
    stage.moved(Some(server.ready().await));
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}

/// Waits until writes are refused with a time to come back, and the hub says that it is not ready.
async fn refuses(stage: &Stage) {
    until("writes are refused", async || {
        (!stage.is_writable().await && !stage.is_ready().await).then_some(())
    })
    .await;
}

/// Waits until the hub is ready and takes messages again.
async fn recovers(stage: &Stage, server: &Server) {
    let before = stage.upstream.acks(0).len();
    let mut seen = Vec::new();
    let clock = Clock::system();
    let back = clock.timeout(Duration::from_secs(30), async {
        loop {
            let now =
                (stage.is_ready().await, stage.is_writable().await, stage.upstream.acks(0).len() > before);
            if now == (true, true, true) {
                return;
            }
            seen.push(now);
            clock.sleep(Duration::from_millis(100)).await;
        }
    });
    let told = "not ready, writable and taking messages";
    assert!(back.await.is_some(), "{told}: {seen:?}\n{}", server.process.log());
}

/// Writes that are refused in their transaction, by clients that are gone before they know.
async fn give_up_requests(stage: &Stage) {
    let path = format!("/api/bots/{}/send", stage.bots[0].id);
    let random = &stage.random;
    for number in 0..ABORTED {
        let body = json!({ "to_user_id": format!("stranger {number}"), "content": "never sent" });
        let (caller, key) = (stage.caller.clone(), format!("given up {number}"));
        let timeout = Duration::from_micros(random.below(20_000));
        if let Ok(Ok((status, ..))) =
            tokio::time::timeout(timeout, caller.attempt(Method::POST, &path, &key, &body)).await
        {
            assert!(!status.is_success(), "a stranger cannot be written to");
        }
    }
}

async fn one(url: &Secret, sql: &'static str) -> i64 {
    value(url, sql).await
}

async fn value<T>(url: &Secret, sql: &'static str) -> T
where
    T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
{
    let mut connection = PgConnection::connect(url.expose()).await.unwrap();
    let value = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    value
}

/// URL of the `postgres` database on the same server: faults of the hub's database do not affect its connections.
fn other_database(url: &Secret) -> String {
    let (before, query) = url.expose().split_once('?').unwrap();
    let (server, _) = before.rsplit_once('/').unwrap();
    format!("{server}/postgres?{query}")
}
