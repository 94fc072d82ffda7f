//! One stranger at the default limits, who asks for everything that needs no credential, with another made-up one each
//! time. The stranger's address pays for it, and no one else notices.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use hub_core::time::Clock;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::{
    gateway::stage::{Program, Stage},
    support::http::Caller,
};

/// Address of the stranger.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 77, 1, 1);
/// Requests of the stranger at the same time.
const AT_ONCE: usize = 16;
/// Connections from one address that the hub serves.
const MAX_CONNECTIONS: usize = 200;

#[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
fn from(address: Ipv4Addr) -> Client {
    Client::builder()
        .no_proxy()
        .local_address(IpAddr::V4(address))
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// Makes `count` requests, each with a made-up token; returns how many were not refused, as `passed` sees it.
async fn flood(
    count: usize,
    request: impl Fn() -> RequestBuilder,
    passed: impl Fn(u16, &Value) -> bool,
) -> usize {
    let calls = stream::iter(0..count).map(|n| {
        let token = format!("huba_{n:043}");
        let request = request().header("AuthorizationType", "ilink_bot_token").bearer_auth(token);
        async {
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            passed(status, &response.json().await.unwrap_or(Value::Null))
        }
    });
    calls.buffer_unordered(AT_ONCE).filter(|passed| std::future::ready(*passed)).count().await
}

/// Requests that a limit of `per_minute` allows in this time.
fn allowed(per_minute: u64, time: Duration) -> usize {
    usize::try_from(per_minute + per_minute * (time.as_secs() + 1) / 60 + 1).unwrap()
}

#[tokio::test]
async fn one_stranger_at_the_default_limits_disturbs_no_one() {
    let (stage, clock) = (Stage::start().await, Clock::system());
    let url = stage.hub.url.replace("localhost", "127.0.0.1");
    let program = stage.log_in().await;
    let key = stage.ada.post("/api/user/api-keys", json!({ "name": "robot" })).await;
    let key = key["key"].as_str().unwrap().to_owned();
    // A neighbour of the stranger, behind the same address, whose key the hub has seen.
    let stranger = from(STRANGER);
    let neighbour = async || {
        let bots = stranger.get(format!("{url}/api/bots")).bearer_auth(&key).send().await.unwrap();
        bots.status().as_u16()
    };
    assert_eq!(neighbour().await, 200);

    let begun = clock.instant();
    let logins = flood(
        100,
        || stranger.post(format!("{url}/ilink/bot/get_bot_qrcode?bot_type=3")),
        |_, answer| answer["ret"] == 0,
    );
    let logins = logins.await;
    let guesses = flood(
        100,
        || stranger.post(format!("{url}/ilink/bot/getupdates")).json(&json!({ "get_updates_buf": "" })),
        |_, answer| answer["errcode"] == -14,
    );
    let guesses = guesses.await;
    let requests =
        flood(1_300, || stranger.get(format!("{url}/api/auth/oauth/providers")), |status, _| status != 429);
    let requests = requests.await;
    let took = clock.instant().since(begun);
    assert!((1..=allowed(10, took)).contains(&logins), "{logins} codes in {took:?}");
    assert!((1..=allowed(20, took)).contains(&guesses), "{guesses} guesses in {took:?}");
    assert!((1..=allowed(600, took)).contains(&requests), "{requests} requests in {took:?}");
    let mut connections = Vec::new();
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
    for _ in 0..=MAX_CONNECTIONS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((STRANGER, 0).into()).unwrap();
        connections.extend(socket.connect(address).await);
    }

    let honest = Caller::stranger(&stage.hub.url);
    let mut person = honest.clone();
    person.sign_in("/api/auth/login", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let (status, ..) = honest.call(Method::GET, "/login", None).await;
    assert!(status.is_success(), "{status}");
    honest.post("/api/auth/qr/generate", json!({})).await;
    let robot = honest.clone().with_bearer(&key);
    assert!(robot.get("/api/bots").await["items"].is_array());
    // A program that is logged in, and one that logs in.
    stage.network.say(&stage.wx_id, "is anyone there?").await;
    let other = Program::log_in(&stage.hub.url, &person, &stage.channel).await;
    let received = program.poll("").await;
    assert_eq!(received["msgs"].as_array().map(Vec::len), Some(1), "{received}");
    assert_ne!(other.client, program.client);
    drop(connections);
    assert_eq!(neighbour().await, 200, "a key that the hub has seen has a bucket of its own");
}
