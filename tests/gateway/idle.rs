//! Programs that wait: a thousand of them at once, and one that stays away for too long.

use std::time::Duration;

use futures_util::future::join_all;
use hub_core::{tasks::Tasks, time::Clock};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::stage::{Program, Stage, texts};
use crate::support::http::until;

/// Programs of one channel, at most.
const PER_CHANNEL: usize = 20;
const CHANNELS: usize = 50;
/// Maximum memory of a waiting poll in KiB, with its connection. A debug build needs more than a release.
const KIB_PER_POLL: u64 = 150;

/// Resident memory of a process in KiB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_thousand_programs_wait_and_each_gets_the_message() {
    let stage = Stage::with(&[
        ("HUB_RATE_DEFAULT", "1000000"),
        ("HUB_RATE_AUTH_PER_IP", "1000000"),
        ("HUB_MAX_CONNECTIONS", "4096"),
        ("HUB_MAX_CONNECTIONS_PER_ADDRESS", "4096"),
    ])
    .await;
    let mut programs: Vec<Program> = Vec::new();
    let sink = json!({ "enabled": true, "max_clients": PER_CHANNEL });
    let path = format!("{}/ilink", stage.channel_path());
    let (status, answer, _) = stage.ada.call(Method::PUT, &path, Some(sink.clone())).await;
    assert!(status.is_success(), "{answer}");
    let mut channels = vec![stage.channel.clone()];
    while channels.len() < CHANNELS {
        let new = json!({ "name": format!("group {}", channels.len()), "ilink": sink });
        channels.push(stage.add_channel(new).await);
    }
    for channel in channels {
        let logins = (0..PER_CHANNEL).map(|_| Program::log_in(&stage.hub.url, &stage.ada, &channel));
        programs.extend(join_all(logins).await);
    }
    let before = memory(stage.hub.process.id());
    let tasks = Tasks::new();
    let polls: Vec<_> = programs
        .iter()
        .map(|program| {
            let program = program.clone();
            tasks.spawn("poll", async move { program.poll("").await })
        })
        .collect();
    until("every program waits", async || {
        (open_connections(stage.hub.process.id()) >= programs.len()).then_some(())
    })
    .await;
    Clock::system().sleep(Duration::from_secs(2)).await;
    let each = memory(stage.hub.process.id()).saturating_sub(before) / programs.len() as u64;
    let told = format!("a waiting poll of the gateway takes {each} KiB\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
    assert!(each < KIB_PER_POLL, "{told}");
    stage.network.say(&stage.wx_id, "hello, all").await;
    for poll in polls {
        let answer = poll.await.unwrap().unwrap();
        assert_eq!(texts(&answer), ["hello, all"]);
    }
}

/// Sockets of a process.
fn open_connections(process: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let target = |file: std::fs::DirEntry| std::fs::read_link(file.path()).ok();
    files
        .filter_map(|file| target(file.ok()?))
        .filter(|to| to.to_string_lossy().starts_with("socket:"))
        .count()
}

#[tokio::test]
async fn a_program_that_stays_away_for_longer_than_the_idle_limit_is_logged_out() {
    let stage = Stage::start().await;
    let (program, other) = (stage.log_in().await, stage.log_in().await);
    let path = format!("{}/ilink", stage.channel_path());
    let limit = json!({ "idle_days": 7 });
    let (status, answer, _) = stage.ada.call(Method::PUT, &path, Some(limit)).await;
    assert!(status.is_success(), "{answer}");
    // Eight days ago; the other program six.
    let file = SqliteConnectOptions::new().filename(stage.folder.path().join("hub.db"));
    let mut database = SqliteConnection::connect_with(&file).await.unwrap();
    for (client, days) in [(&program.client, 8), (&other.client, 6)] {
        sqlx::query("UPDATE ilink_clients SET last_used_at = last_used_at - $2 * 86400000 WHERE id = $1")
            .bind(client)
            .bind(days)
            .execute(&mut database)
            .await
            .unwrap();
    }
    database.close().await.unwrap();
    let refused = program.poll("").await;
    assert_eq!(refused, json!({ "errcode": -14, "errmsg": "session timeout" }));
    stage.network.say(&stage.wx_id, "still here?").await;
    assert_eq!(texts(&other.poll("").await), ["still here?"]);
}
