//! Acknowledged means on disk. Every sync of the file is made to take a fifth of a second more; whatever is
//! acknowledged in less was not synced.

use std::time::Duration;

use hub_core::{store::StoreConfig, time::Clock};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::stage::Stage;
use crate::support::{http::until, postgres, strace::Tampering};

/// Delay of each sync in milliseconds, and the same for strace in microseconds.
const DELAY: i64 = 200;
const FAULTS: [&str; 2] = ["trace=fsync,fdatasync", "inject=fsync,fdatasync:delay_exit=200000"];
/// Sends and messages that are looked at.
const COUNT: usize = 12;

#[tokio::test]
async fn nothing_is_acknowledged_before_it_is_synced_on_sqlite() {
    let (stage, server) = Stage::open("slow sync on SQLite", None).await;
    greet(&stage).await;
    if let Some(slow) = Tampering::attach(&[server.process.id()], &FAULTS).await {
        acknowledge_slowly(&stage).await;
        assert_synced(&slow.detach().await);
    }
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}

#[tokio::test]
async fn nothing_is_acknowledged_before_it_is_synced_on_postgres() {
    // A server of its own: on a shared one another test's commit may sync ours.
    let Some(database) = postgres::Server::alone() else { return };
    let StoreConfig::Postgres(url) = database.create_database().await else {
        panic!("it makes such databases")
    };
    let (stage, server) = Stage::open("slow sync on PostgreSQL", Some(url.clone())).await;
    greet(&stage).await;
    // Any of the database's processes may be the one that syncs.
    let mut look = PgConnection::connect(url.expose()).await.unwrap();
    let all_but_this = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    let processes: Vec<i32> = sqlx::query_scalar(all_but_this).fetch_all(&mut look).await.unwrap();
    look.close().await.unwrap();
    let processes: Vec<u32> = processes.into_iter().filter_map(|id| id.try_into().ok()).collect();
    if let Some(slow) = Tampering::attach(&processes, &FAULTS).await {
        acknowledge_slowly(&stage).await;
        assert_synced(&slow.detach().await);
    }
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}

/// Everyone may be written to.
async fn greet(stage: &Stage) {
    for (number, bot) in stage.bots.iter().enumerate() {
        for person in 0..COUNT {
            stage.say(bot, &format!("person {person}"), &format!("hello {number} {person}-0"));
        }
    }
    until("the hub has heard everyone", async || (stage.upstream.pending() == 0).then_some(())).await;
}

/// Sends and messages, one after the other, each acknowledged only after a slow sync.
async fn acknowledge_slowly(stage: &Stage) {
    let (clock, bot) = (Clock::system(), &stage.bots[0]);
    let seen = stage.upstream.acks(0).len();
    for number in 0..COUNT {
        let (person, text) = (format!("person {number}"), format!("slow send {number}"));
        stage.expect_send(&person, &text);
        let asked = clock.now();
        let body = json!({ "to_user_id": person, "content": text });
        let path = format!("/api/bots/{}/send", bot.id);
        let (status, _, answer) = stage.caller.attempt(Method::POST, &path, &text, &body).await.unwrap();
        assert!(status.is_success(), "{status} {answer}");
        stage.books().outbound.acknowledged(&text);
        let took = clock.now().since(asked);
        assert!(
            took >= Duration::from_millis(DELAY.unsigned_abs()),
            "{text} was acknowledged after {took:?}"
        );
        stage.say(bot, &person, &format!("slow word 0 {number}-1"));
    }
    until("the words are acknowledged", async || (stage.upstream.pending() == 0).then_some(())).await;
    let acks = stage.upstream.acks(seen);
    assert!(!acks.is_empty());
    for ack in acks {
        let took = ack.at.as_millis() - ack.answered_at.as_millis();
        assert!(took >= DELAY, "{:?} were acknowledged after {took} ms", ack.texts);
    }
}

/// The syncs really were slow: otherwise all of this shows nothing.
fn assert_synced(log: &str) {
    let slow = log.lines().filter(|line| line.contains("(DELAYED)")).count();
    assert!(slow >= COUNT, "{slow} slow syncs:\n{log}");
}
