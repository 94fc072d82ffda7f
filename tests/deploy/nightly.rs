//! The backup that a server makes each night (`backup_to`), by the shipped programs.

use std::path::Path;

use serde_json::json;

use super::{
    monitoring::page,
    restore::{contents, succeed},
};
use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_nightly_backup_is_restored_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).display().to_string();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(&path("lost"), &network, &[]).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let (bot, wx_id) = network.bind(&ada).await;
    network.say(&wx_id, "before the loss").await;
    until("the message", async || (contents(&ada, &bot).await.len() == 1).then_some(())).await;
    hub.process.terminate().await;

    std::fs::write(path("passphrase"), "open sesame\n").unwrap();
    let (to, passphrase) = (text("nights"), text("passphrase"));
    let settings = [("HUB_BACKUP_TO", to.as_str()), ("HUB_BACKUP_PASSPHRASE_FILE", passphrase.as_str())];
    let hub = HubProcess::start(&path("lost"), &network, &settings).await;
    let file =
        until("the first backup, and nothing else", async || match names(&path("nights")).as_slice() {
            [one] if one.ends_with(".tar.sealed") => Some(one.clone()),
            _ => None,
        })
        .await;
    assert!(file.starts_with("hub-nightly-"), "{file}");
    hub.process.kill().await;
    std::fs::remove_dir_all(path("lost")).unwrap();

    let file = path("nights").join(file).display().to_string();
    let restored = succeed(&path("found"), &["db", "restore", &file, "--passphrase-file", &passphrase]);
    assert_eq!(restored["restored"], true);
    let hub = HubProcess::start(&path("found"), &network, &[]).await;
    let ada = ada.at(&hub.url);
    assert_eq!(contents(&ada, &bot).await, ["before the loss"]);
    network.say(&wx_id, "after the loss").await;
    until("the next message", async || (contents(&ada, &bot).await.len() == 2).then_some(())).await;
    hub.process.terminate().await;
}

#[tokio::test]
async fn a_failed_backup_is_reported_and_the_server_continues() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let to = folder.path().join("in-the-way");
    std::fs::write(&to, "").unwrap();
    let settings = [("HUB_BACKUP_TO", to.to_str().unwrap()), ("HUB_METRICS_TOKEN", "0123456789abcdef")];
    let mut hub = HubProcess::start(&folder.path().join("hub"), &network, &settings).await;
    hub.process.wait_line("the nightly backup failed").await;
    let page = page(&hub, "0123456789abcdef").await;
    assert!(page.contains("hub_backups_total{outcome=\"failed\"} 1\n"), "{page}");
    hub.process.terminate().await;
}
