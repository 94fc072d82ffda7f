//! Programs of a hub behind reverse proxies: channel keys, WebSockets, the gateway, and its owner's session.

use std::net::TcpListener;

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::json;

use super::stage::{Program, Stage};
use crate::{
    sockets::client,
    support::{
        http::{Caller, until},
        reverse_proxy::{BASIC, Kind, ReverseProxy},
    },
};

async fn everything_works_behind(kind: Kind) {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (port, hub) = (free(), free());
    let url = format!("http://localhost:{port}/hub");
    let settings = [("HUB_PUBLIC_URL", url.as_str()), ("HUB_TRUSTED_PROXIES", "127.0.0.1")];
    let stage = Stage::at(&format!("127.0.0.1:{hub}"), &settings).await;
    let Some(_proxy) = ReverseProxy::start(kind, &url, hub).await else { return };
    let basic = format!("Basic {}", BASE64.encode(BASIC.as_bytes()));
    let stranger = Caller::stranger(&url);

    // The password of the proxy is required, and the hub ignores it.
    let (status, ..) = stranger.call(Method::GET, "/api/auth/me", None).await;
    assert_eq!(status, 401);
    let mut ada = stranger.clone().with_header("authorization", &basic);
    let me = ada.sign_in("/api/auth/login", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    assert_eq!(me["username"], "ada", "{me}");
    let (status, ..) = stranger.clone().call(Method::GET, "/api/auth/me", None).await;
    assert_eq!(status, 401);
    let channel = ada.post(&format!("/api/bots/{}/channels", stage.bot), json!({ "name": "keys" })).await;
    let key = channel["api_key"].as_str().unwrap();

    // A channel key in either header, next to the proxy's password or without it.
    let both = stranger.clone().with_header("authorization", &basic).with_header("x-api-key", key);
    let alone = stranger.clone().with_bearer(key);
    let header = format!("X-API-Key: {key}");
    let target = "/hub/api/v1/channels/connect";
    let address = ([127, 0, 0, 1], port).into();
    let lines = [format!("Authorization: {basic}"), header];
    let opened = client::open(address, target, &lines.each_ref().map(String::as_str)).await;
    let mut socket = opened.unwrap_or_else(|refused| panic!("{} {}", refused.status, refused.json));
    stage.network.say(&stage.wx_id, "through the proxy").await;
    for program in [&both, &alone] {
        until("the message of a channel", async || {
            let page = program.get("/api/v1/channels/messages?timeout=1").await;
            page["items"].as_array()?.iter().any(|one| one["content"] == "through the proxy").then_some(())
        })
        .await;
    }
    while !socket.next().await.expect("the WebSocket is open").to_string().contains("through the proxy") {}

    // A program of the gateway, whose login the owner confirms through the proxy.
    let program = Program::log_in(&url, &ada, &stage.channel).await;
    stage.network.say(&stage.wx_id, "to the program").await;
    until("the program's message", async || {
        let (status, updates) = program.call("getupdates", json!({ "get_updates_buf": "" })).await;
        assert!(status.is_success(), "{status} {updates}");
        updates.to_string().contains("to the program").then_some(())
    })
    .await;
}

#[tokio::test]
async fn everything_works_behind_nginx() {
    everything_works_behind(Kind::Nginx).await;
}

#[tokio::test]
async fn everything_works_behind_caddy() {
    everything_works_behind(Kind::Caddy).await;
}
