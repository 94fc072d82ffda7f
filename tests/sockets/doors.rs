//! Acceptance of channel clients, and the reasons for which the hub disconnects them.

use std::time::Duration;

use hub_core::{
    accounts::{ClientInfo, NewUser},
    bots::NewBind,
    channels::{NewChannel, sinks::WebSocketSettings},
};
use serde_json::json;

use super::{
    client::open,
    stage::{CONNECT, ORIGIN, Stage},
};
use crate::support::http::Caller;

#[tokio::test]
async fn only_a_right_key_opens_and_the_refusal_comes_before_the_switch() {
    let stage = Stage::new().await;
    let connect = async |target: &str, lines: &[&str]| open(stage.address, target, lines).await;
    let (header, bearer) =
        (format!("X-API-Key: {}", stage.key), format!("Authorization: Bearer {}", stage.key));
    for lines in [[header.as_str()], [bearer.as_str()]] {
        assert!(connect(CONNECT, &lines).await.is_ok());
    }
    for query in ["api_key", "key"] {
        assert!(connect(&format!("{CONNECT}?{query}={}", stage.key), &[]).await.is_ok());
    }
    let channels = stage.world.hub.channels();
    let old = stage.key.clone();
    channels.regenerate_key(&stage.world.owner, stage.bot.id, stage.channel, None, None).await.unwrap();
    let eve = NewUser {
        username: "eve".into(),
        password: "another long one".into(),
        display_name: None,
        email: None,
    };
    let eve = stage.world.hub.accounts().register(eve, None, &ClientInfo::default()).await.unwrap();
    let session = eve.token.expose();
    for (lines, code) in [
        (vec![], "UNAUTHORIZED"),
        (vec![format!("Cookie: session={session}")], "UNAUTHORIZED"),
        (vec![format!("X-API-Key: {old}")], "INVALID_TOKEN"),
        (vec![format!("X-API-Key: {session}")], "INVALID_TOKEN"),
        (vec!["X-API-Key: hubc_made_up".to_owned()], "INVALID_TOKEN"),
        (vec!["Authorization: Basic aGk6aGk=".to_owned()], "UNAUTHORIZED"),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let refused = connect(CONNECT, &lines).await.err().expect("no socket");
        assert_eq!((refused.status, &refused.json["error"]["code"]), (401, &json!(code)), "{lines:?}");
        assert_eq!(refused.json["success"], false);
        assert!(refused.json["error"]["request_id"].is_string());
    }
    stage.stop().await;
}

#[tokio::test]
async fn browsers_connect_from_the_hubs_own_pages_and_those_the_channel_allows() {
    let stage = Stage::new().await;
    let key = format!("X-API-Key: {}", stage.key);
    let from = async |origin: &str| open(stage.address, CONNECT, &[&key, &format!("Origin: {origin}")]).await;
    let evil = [
        "https://evil.example",
        "null",
        "http://localhost:9801",
        "https://localhost:9800",
        "http://localhost:9800.evil.example",
        "http://localhost",
        "http://LOCALHOST:9800/",
        "file://",
        "",
    ];
    assert!(from(ORIGIN).await.is_ok());
    for origin in evil {
        let refused = from(origin).await.err().unwrap_or_else(|| panic!("{origin:?} got in"));
        assert_eq!(
            (refused.status, &refused.json["error"]["code"]),
            (403, &json!("FORBIDDEN")),
            "{origin:?}"
        );
    }
    let channels = stage.world.hub.channels();
    let allow = async |origins: &[&str]| {
        let allowed_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let settings = WebSocketSettings { allowed_origins, ..WebSocketSettings::default() };
        channels.set_websocket(&stage.world.owner, stage.bot.id, stage.channel, &settings).await
    };
    allow(&["https://app.example"]).await.unwrap();
    assert!(from("https://app.example").await.is_ok());
    assert!(from("https://app.example:8443").await.is_err());
    assert!(from(evil[0]).await.is_err());
    allow(&["*"]).await.unwrap();
    assert!(from(evil[0]).await.is_ok());
    let refused = allow(&["https://app.example/", "app.example", "https://a b"]).await.unwrap_err();
    let fields: Vec<_> = refused.details().iter().map(|detail| detail.field.to_string()).collect();
    assert_eq!(fields, ["allowed_origins.0", "allowed_origins.1", "allowed_origins.2"]);
    stage.stop().await;
}

#[tokio::test]
async fn too_many_clients_and_bad_places_are_refused() {
    let stage = Stage::with(NewChannel::named("few"), |config| config.max_sockets_per_channel = 2).await;
    let first = stage.connect("").await;
    let _second = stage.connect("").await;
    let refused = stage.try_connect("").await.err().expect("no third");
    assert_eq!((refused.status, &refused.json["error"]["code"]), (429, &json!("RATE_LIMITED")));
    drop(first);
    stage.wait_sockets(1).await;
    assert!(stage.try_connect("").await.is_ok());
    stage.wait_sockets(1).await;
    for query in ["since=-1", "since=x", "since=1.5", "last_seq=-2", "since=99999999999999999999"] {
        let refused = stage.try_connect(query).await.err().unwrap_or_else(|| panic!("{query} got in"));
        assert_eq!(
            (refused.status, &refused.json["error"]["code"]),
            (400, &json!("INVALID_PARAMS")),
            "{query}"
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_key_that_ends_ends_its_sockets_and_its_polls() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    let caller = Caller::stranger(&format!("http://{}", stage.address));
    let poll = caller.call(reqwest::Method::GET, "/api/v1/channels/messages", None);
    assert_eq!(poll.await.0.as_u16(), 401);
    let path = format!("/api/v1/channels/messages?timeout=60&key={}", stage.key);
    let waits = async {
        let (status, answer, _) = caller.call(reqwest::Method::GET, &path, None).await;
        assert_eq!(
            (status.as_u16(), answer["error"]["code"].as_str()),
            (401, Some("INVALID_TOKEN")),
            "{answer}"
        );
    };
    let ends = async {
        let listeners = &stage.world.hub.context().node.channel_listeners;
        stage.world.until("the poll waits", async || (listeners.count().1 == 1).then_some(())).await;
        let channels = stage.world.hub.channels();
        channels.regenerate_key(&stage.world.owner, stage.bot.id, stage.channel, None, None).await.unwrap();
        assert_eq!(client.closed().await.0, 4401);
    };
    futures_util::join!(waits, ends);
    stage.wait_sockets(0).await;
    stage.stop().await;
}

#[tokio::test]
async fn the_owner_sees_a_client_and_closes_its_connection() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    let channels = stage.world.hub.channels();
    let (owner, bot, channel) = (&stage.world.owner, stage.bot.id, stage.channel);
    let found = channels.clients(owner, bot, channel).await.unwrap().clients;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].address.unwrap().is_loopback(), "{found:?}");
    channels.close_client(owner, bot, channel, found[0].id).await.unwrap();
    assert_eq!(client.closed().await.0, 4410);
    stage.wait_sockets(0).await;
    assert!(channels.clients(owner, bot, channel).await.unwrap().clients.is_empty());
    let (again, _) = stage.connect("").await;
    drop(again);
    stage.stop().await;
}

#[tokio::test]
async fn a_drain_says_where_to_go_on() {
    let stage = Stage::new().await;
    stage.say("one");
    let (mut client, _) = stage.connect("since=0").await;
    client.message().await;
    stage.settings.draining.cancel();
    let (code, reason) = client.closed().await;
    assert_eq!((code, reason.rsplit_once("since=").map(|(_, since)| since)), (1001, Some("1")), "{reason}");
    drop(client);
    stage.settings.sockets.stop();
    assert!(stage.settings.sockets.wait(&hub_core::time::Clock::system(), Duration::from_secs(5)).await);
    stage.stop().await;
}

#[tokio::test]
async fn a_channels_client_renews_the_login_of_its_own_bot_only() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let bots = stage.world.hub.bots();
    for (person, ends) in
        [(Some(stage.bot.account.owner_user_id.as_str()), "already_bound"), (None, "refused")]
    {
        let bind = bots.start_bind(&client, NewBind::default()).await.unwrap();
        stage.world.sim.scan(bind.qr_text.expose()).unwrap();
        stage.world.sim.confirm(bind.qr_text.expose(), person).unwrap();
        let step = stage
            .world
            .until("the login ends", async || {
                let step = bots.confirm_bind(&client, bind.bind_id, None, Duration::ZERO).await.unwrap();
                step.status.is_final().then_some(step)
            })
            .await;
        assert_eq!(step.status.as_str(), ends);
    }
    stage.stop().await;
}
