//! The sample of two nodes, with its Caddyfile and the settings that nodes have to share.

use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream},
    path::PathBuf,
};

use hub_core::store::StoreConfig;
use reqwest::Method;
use serde_json::json;

use super::{read, read_yaml};
use crate::{
    clients::installed,
    support::{
        http::{Caller, until},
        hub_process::{HubProcess, NetworkProcess},
        postgres,
        process::Process,
    },
};

const KEY: &str = "8d0c3f6f1f1d3a3c5d0a7f64b1a2c3d4e5f60718293a4b5c6d7e8f9001122334";

/// An address that no one listens on.
fn free() -> String {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    format!("http://localhost:{}", address.port())
}

/// Caddy before these hubs, as long as it is kept.
fn caddy(hubs: &[&HubProcess; 2], url: &str, home: &str) -> Option<Process> {
    let program = PathBuf::from(installed::caddy()?.get_program());
    let sample = read("two-nodes/Caddyfile");
    let nodes = "hub-1:9800 hub-2:9800";
    assert!(sample.contains(nodes));
    let address = |hub: &HubProcess| hub.url.trim_start_matches("http://").to_owned();
    let file = format!("{home}/Caddyfile");
    let there = sample.replace(nodes, &format!("{} {}", address(hubs[0]), address(hubs[1])));
    // Its own interface would be shared with other tests.
    std::fs::write(&file, there.replacen("{\n", "{\n\tadmin off\n", 1)).unwrap();
    let arguments = ["run", "--adapter", "caddyfile", "--config", &file];
    Some(Process::start(&program, &arguments, &[("HOME", home), ("HUB_PUBLIC_URL", url)]))
}

#[tokio::test]
async fn two_hubs_behind_caddy_are_one_also_when_one_of_them_stops() {
    let Some(server) = postgres::server() else { return };
    let StoreConfig::Postgres(database) = server.create_database().await else { unreachable!() };
    let (folder, network) = (tempfile::tempdir().unwrap(), NetworkProcess::start().await);
    let media = format!("file://{}/media", folder.path().display());
    let sample = read_yaml("two-nodes/compose.yaml");
    let node = async |name: &'static str| {
        let settings = [
            ("HUB_NODE_NAME", name),
            ("HUB_DATABASE_URL", database.expose()),
            ("HUB_SECRET_KEY", KEY),
            ("HUB_MEDIA_URL", media.as_str()),
            ("HUB_TRUSTED_PROXIES", "127.0.0.1,::1"),
        ];
        // No other than those of the sample, but for the address: this one is the hubs' own.
        let environment = sample["services"][name]["environment"].as_mapping().unwrap();
        let given =
            environment.keys().map(|key| key.as_str().unwrap()).filter(|key| *key != "HUB_PUBLIC_URL");
        let tried: BTreeSet<&str> = settings.iter().map(|(name, _)| *name).collect();
        assert_eq!(given.collect::<BTreeSet<_>>(), tried);
        HubProcess::start(&folder.path().join(name), &network, &settings).await
    };
    let (first, second) = (node("hub-1").await, node("hub-2").await);
    let url = free();
    let home = folder.path().display().to_string();
    let Some(_caddy) = caddy(&[&first, &second], &url, &home) else { return };
    let mut ada = Caller::stranger(&url);
    until("Caddy", async || TcpStream::connect(url.trim_start_matches("http://")).ok()).await;
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    // Each of its steps goes to either node.
    let (bot, wx_id) = network.bind(&ada).await;
    for hub in [&first, &second] {
        assert_eq!(ada.at(&hub.url).get("/api/auth/me").await["username"], "ada", "one session for both");
    }
    let channel = ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "desk" })).await;
    let desk = Caller::stranger(&url).with_bearer(channel["api_key"].as_str().unwrap());
    network.say(&wx_id, "to the node that works for the bot").await;
    let read = async |text: &str| {
        until(text, async || {
            let page = desk.get("/api/v1/channels/messages?timeout=1").await;
            page["items"].as_array().unwrap().iter().any(|one| one["content"] == text).then_some(())
        })
        .await;
    };
    read("to the node that works for the bot").await;

    // Clients do not notice that a node stops.
    let asking = async {
        for n in 0..200 {
            let (status, body, _) = ada.call(Method::GET, "/api/bots", None).await;
            assert!(status.is_success(), "request {n}: {status} {body}");
        }
    };
    let ((stopped, log), ()) = tokio::join!(first.process.terminate(), asking);
    assert!(stopped.success(), "{log}");
    network.say(&wx_id, "to the one that is left").await;
    read("to the one that is left").await;
    second.process.terminate().await;
}
