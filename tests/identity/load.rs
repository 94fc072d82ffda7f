//! Many sign-ins at once do not overload the hub, although each hashes a password.

use std::fs;

use futures_util::future::join_all;
use hub_core::time::Clock;
use reqwest::Method;
use serde_json::json;

use crate::support::{
    http::Caller,
    hub_process::{HubProcess, NetworkProcess},
};

/// Maximum growth of memory in KiB: two hashes of 19 MiB, and five hundred connections.
const MORE_KIB: u64 = 100 * 1024;

/// Peak resident memory of a process in KiB.
fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn five_hundred_concurrent_sign_ins_do_not_block_other_requests() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let many = "100000";
    let settings = [
        ("HUB_RATE_AUTH_PER_IP", many),
        ("HUB_RATE_AUTH_PER_ACCOUNT", many),
        ("HUB_RATE_DEFAULT", many),
        ("HUB_MAX_CONNECTIONS_PER_ADDRESS", "1000"),
    ];
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "correct horse battery" }))
        .await;
    let before = peak_kib(hub.process.id());
    let stranger = Caller::stranger(&hub.url);
    let tries = (0..500).map(|n| {
        let body = json!({ "username": format!("user-{}", n % 7), "password": "wrong password" });
        stranger.call(Method::POST, "/api/auth/login", Some(body))
    });
    // Signed-in users are served meanwhile, and do not wait for the others.
    let clock = Clock::system();
    let meanwhile = async {
        ada.get("/api/auth/me").await;
        let (health, ..) = ada.call(Method::GET, "/healthz", None).await;
        assert!(health.is_success());
        clock.now()
    };
    let all = async { (join_all(tries).await, clock.now()) };
    let ((told, ended), served) = futures_util::join!(all, meanwhile);
    let count = |wanted: u16| told.iter().filter(|(status, ..)| status.as_u16() == wanted).count();
    // Two hashes and a queue of 64: the others are rejected with `Retry-After`.
    let (refused, turned_away) = (count(401), count(429));
    assert_eq!(refused + turned_away, 500);
    assert!(refused >= 64 && turned_away > 0, "{refused} {turned_away}");
    assert!(served < ended, "someone who is in waited for everyone's hash");
    let grown = peak_kib(hub.process.id()) - before;
    assert!(grown <= MORE_KIB, "{grown} KiB more");
}
