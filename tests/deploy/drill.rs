//! The restore drill: what Litestream copied with the sample's configuration, from under a hub that was being written
//! to, is restored and served.

use serde_json::{Value, json};

use super::{read, succeed};
use crate::{
    clients::installed,
    s3::{BUCKET, Moto},
    support::{
        http::{Caller, until},
        hub_process::{HubProcess, NetworkProcess},
        process::Process,
    },
};

const KEY: &str = "8d0c3f6f1f1d3a3c5d0a7f64b1a2c3d4e5f60718293a4b5c6d7e8f9001122334";
/// Enough that the write-ahead log goes round while it is copied.
const MESSAGES: usize = 3_000;

/// Texts of the messages of a bot that match the filter, newest first: the first page that has any.
async fn contents(caller: &Caller, bot: &str, filter: &str) -> Vec<String> {
    let mut cursor = String::new();
    loop {
        let page = caller.get(&format!("/api/bots/{bot}/messages?limit=200&{filter}{cursor}")).await;
        let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
        let found: Vec<String> = page["items"].as_array().unwrap().iter().map(text).collect();
        match page["next_cursor"].as_str() {
            Some(next) if found.is_empty() => cursor = format!("&cursor={next}"),
            _ => return found,
        }
    }
}

async fn say_many(network: &NetworkProcess, wx_id: &str) {
    for batch in 0..MESSAGES / 100 {
        let text = |n: usize| json!({ "wx_id": wx_id, "text": format!("message {}", batch * 100 + n) });
        let messages: Vec<Value> = (0..100).map(text).collect();
        network.control.control("/_sim/messages", Some(json!({ "messages": messages }))).await;
    }
}

#[tokio::test]
async fn a_database_that_was_copied_while_it_was_written_is_restored_and_served() {
    let (Some(litestream), Some(moto)) = (installed::litestream(), Moto::start(0)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let network = NetworkProcess::start().await;
    let settings = [("HUB_SECRET_KEY", KEY)];
    let hub = HubProcess::start(&folder.path().join("lost"), &network, &settings).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let (bot, wx_id) = network.bind(&ada).await;

    // The sample itself: only where the database lies differs.
    let (database, config) = (path("lost/hub.db"), path("litestream.yml"));
    let sample = read("docker/litestream.yml");
    assert!(sample.contains("path: /var/lib/hub/hub.db\n"));
    std::fs::write(&config, sample.replace("/var/lib/hub/hub.db", &database)).unwrap();
    let bucket = [
        ("LITESTREAM_BUCKET", BUCKET),
        ("LITESTREAM_REGION", "us-east-1"),
        ("LITESTREAM_ENDPOINT", moto.url.as_str().trim_end_matches('/')),
        ("LITESTREAM_ACCESS_KEY_ID", "somebody"),
        ("LITESTREAM_SECRET_ACCESS_KEY", "a secret"),
    ];
    let program = std::path::PathBuf::from(litestream.get_program());
    let copying = Process::start(&program, &["replicate", "-config", &config], &bucket);
    // From here on it copies from under a hub that writes.
    let begun = async || (!moto.objects().await.is_empty()).then_some(());
    until("the first copy", begun).await;
    say_many(&network, &wx_id).await;
    let last = format!("message {}", MESSAGES - 1);
    until("the last message", async || contents(&ada, &bot, "").await.contains(&last).then_some(())).await;

    // The hub dies. Litestream, asked to end, copies what it had not yet; the machine and its disk are then lost.
    hub.process.kill().await;
    let (ended, log) = copying.terminate().await;
    assert!(ended.success() && !log.contains("level=ERROR"), "{log}");
    std::fs::remove_dir_all(folder.path().join("lost")).unwrap();

    std::fs::create_dir(folder.path().join("found")).unwrap();
    let mut restore = std::process::Command::new(program);
    restore.args([
        "restore",
        "-config",
        &config,
        "-integrity-check",
        "full",
        "-o",
        &path("found/hub.db"),
        &database,
    ]);
    succeed(restore.env_clear().envs(bucket));

    let hub = HubProcess::start(&folder.path().join("found"), &network, &settings).await;
    let ada = ada.at(&hub.url);
    assert_eq!(contents(&ada, &bot, "").await[0], last, "her session is there, and what people wrote");
    assert_eq!(contents(&ada, &bot, "q=message%201234").await, ["message 1234"]);
    // The bot's login is there too, and the key opens it: it goes on where it was.
    network.say(&wx_id, "after the loss").await;
    until("the next message", async || {
        contents(&ada, &bot, "").await.first().is_some_and(|text| text == "after the loss").then_some(())
    })
    .await;
    let sent = ada.post(&format!("/api/bots/{bot}/send"), json!({ "content": "we are back" })).await;
    assert!(sent["message_id"].is_string(), "{sent}");
    let path = format!("/_sim/outbound?wx_id={wx_id}&wait_ms=5000");
    let arrived = network.control.control(&path, None).await;
    assert_eq!(arrived["items"][0]["text"], "we are back", "{arrived}");
    hub.process.terminate().await;
}
