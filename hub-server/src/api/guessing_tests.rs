//! Guessing of passwords and of reset links: the client that guesses is slowed down, and no other.

use std::{collections::BTreeMap, time::Duration};

use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, PASSWORD, Reply};

fn guess(username: &str) -> Value {
    json!({ "username": username, "password": "wrong password" })
}

fn right(username: &str) -> Value {
    json!({ "username": username, "password": PASSWORD })
}

/// An application behind a proxy that reports the client address.
async fn behind_a_proxy() -> App {
    App::with(|values| values.trusted_proxies = vec!["0.0.0.0/32".parse().unwrap()]).await
}

/// A client at an address.
fn at<'a>(app: &'a App, ip: &str) -> Caller<'a> {
    app.stranger().with("X-Forwarded-For", ip)
}

/// The `device` cookie that an answer sets, with its attributes.
fn device(reply: &Reply) -> (String, String) {
    let all = reply.response.headers().get_all("set-cookie");
    let mut found = all.iter().filter_map(|set| set.to_str().unwrap().split_once(';'));
    let (pair, rest) = found.find(|(pair, _)| pair.contains("device=")).expect("the browser is known now");
    (pair.to_owned(), rest.to_owned())
}

#[tokio::test]
async fn guessing_from_one_address_or_from_many_does_not_shut_out_who_is_in_or_known() {
    let app = behind_a_proxy().await;
    let alice = app.user("alice").await;
    let (phone, _) = device(&at(&app, "203.0.113.1").post("/api/auth/login", &right("alice")).await);

    // A thousand tries from one address, in a minute and a half: ten at once from the address, one more every six
    // seconds; of these five at once on the name, one more every twelve seconds.
    let mut counts = BTreeMap::new();
    for n in 0..1_000 {
        let reply = at(&app, "192.0.2.1").post("/api/auth/login", &guess("alice")).await;
        *counts.entry(reply.response.status().as_u16()).or_insert(0) += 1;
        if n % 10 == 9 {
            app.clock.advance(Duration::from_millis(900));
        }
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [401, 429]);
    assert!((11..=13).contains(&counts[&401]), "{counts:?}");

    // And from two hundred addresses, one try each.
    let mut passed = 0;
    for n in 0..200 {
        let reply = at(&app, &format!("198.51.100.{n}")).post("/api/auth/login", &guess("alice")).await;
        if reply.response.status() == 401 {
            passed += 1;
            continue;
        }
        reply.error(429, "RATE_LIMITED");
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=12).contains(&wait), "{wait}");
    }
    assert!(passed <= 1, "{passed}");

    // Who is in notices nothing, and neither does who comes back with a browser that is known.
    alice.get("/api/auth/me").await.data();
    let stranger = at(&app, "203.0.113.2");
    stranger.post("/api/auth/login", &right("alice")).await.error(429, "RATE_LIMITED");
    let known = stranger.clone().with("Cookie", &phone);
    let back = known.post("/api/auth/login", &right("alice")).await;
    assert_eq!(back.data()["username"], "alice");
    let _ = device(&back);
    // Attempts on another name, from another address, are not counted with hers.
    at(&app, "203.0.113.9").post("/api/auth/login", &guess("bob")).await.error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_recognised_browser_has_a_separate_limit_and_no_access() {
    let app = behind_a_proxy().await;
    let alice = app.user("alice").await;
    app.user("bob").await;
    let entered = at(&app, "203.0.113.1").post("/api/auth/login", &right("alice")).await;
    let (phone, guarded) = device(&entered);
    assert_eq!(guarded, " Path=/; Max-Age=15552000; HttpOnly; SameSite=Strict");
    let thief = |ip: &str| at(&app, ip).with("Cookie", &phone);
    // It is no credential.
    thief("198.51.100.1").get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    thief("198.51.100.1").post("/api/auth/login", &guess("alice")).await.error(401, "UNAUTHORIZED");
    // A client with a stolen cookie guesses as slowly as any other, from any address.
    for n in 2..6 {
        let reply = thief(&format!("198.51.100.{n}")).post("/api/auth/login", &guess("alice")).await;
        reply.error(401, "UNAUTHORIZED");
    }
    thief("198.51.100.7").post("/api/auth/login", &right("alice")).await.error(429, "RATE_LIMITED");
    // For another name it counts for nothing.
    for n in 8..13 {
        let reply = thief(&format!("198.51.100.{n}")).post("/api/auth/login", &guess("bob")).await;
        reply.error(401, "UNAUTHORIZED");
    }
    thief("198.51.100.14").post("/api/auth/login", &guess("bob")).await.error(429, "RATE_LIMITED");
    // No one has guessed at her name from the other address.
    at(&app, "203.0.113.2").post("/api/auth/login", &right("alice")).await.data();
    app.clock.advance(Duration::from_secs(12));
    thief("198.51.100.15").post("/api/auth/login", &right("alice")).await.data();

    // A changed password ends it, but for the browser that changed it.
    let change = json!({ "old_password": PASSWORD, "new_password": "another passphrase" });
    let changed = alice.send(Method::PUT, "/api/user/password", |request| request.body_json(&change)).await;
    let (laptop, _) = device(&changed);
    app.clock.advance(Duration::from_secs(3600));
    for n in 0..5 {
        let reply = at(&app, &format!("192.0.2.{n}")).post("/api/auth/login", &guess("alice")).await;
        reply.error(401, "UNAUTHORIZED");
    }
    thief("192.0.2.6").post("/api/auth/login", &guess("alice")).await.error(429, "RATE_LIMITED");
    let new = json!({ "username": "alice", "password": "another passphrase" });
    at(&app, "192.0.2.7").with("Cookie", &laptop).post("/api/auth/login", &new).await.data();
}

#[tokio::test]
async fn the_limit_comes_before_the_account_is_looked_up() {
    let app = behind_a_proxy().await;
    app.user("alice").await;
    let hashed = || app.hub.context().passwords.computed();
    let before = hashed();
    for n in 0..5 {
        let reply = at(&app, &format!("192.0.2.{n}")).post("/api/auth/login", &guess("alice")).await;
        reply.error(401, "UNAUTHORIZED");
        let reply = at(&app, &format!("192.0.2.{n}")).post("/api/auth/login", &guess("nobody")).await;
        reply.error(401, "UNAUTHORIZED");
    }
    assert_eq!(hashed() - before, 10, "the same work whether there is such a user or not");
    // From now on every lookup fails: the store is closed.
    app.hub.shutdown().await;
    for name in ["alice", "nobody"] {
        at(&app, "192.0.2.9").post("/api/auth/login", &guess(name)).await.error(429, "RATE_LIMITED");
        let begin = json!({ "username": name });
        let begun = at(&app, "192.0.2.9").post("/api/auth/passkey/login/begin", &begin).await;
        begun.error(429, "RATE_LIMITED");
    }
    assert_eq!(hashed() - before, 10, "and no hash is spent on it");
    let looked_up = at(&app, "192.0.2.9").post("/api/auth/login", &guess("carol")).await;
    assert!(looked_up.response.status().is_server_error(), "{}", looked_up.json);
}

#[tokio::test]
async fn guessing_at_links_is_slowed_down_by_address_and_costs_no_hash() {
    let app = behind_a_proxy().await;
    let before = app.hub.context().passwords.computed();
    let made_up = json!({ "token": format!("hubr_{}", "a".repeat(58)), "new_password": "a new passphrase" });
    for _ in 0..10 {
        at(&app, "192.0.2.1").post("/api/auth/password/reset", &made_up).await.error(401, "INVALID_TOKEN");
    }
    at(&app, "192.0.2.1").post("/api/auth/password/reset", &made_up).await.error(429, "RATE_LIMITED");
    assert_eq!(app.hub.context().passwords.computed(), before);
}

#[tokio::test]
async fn on_https_the_known_browser_is_bound_to_the_host() {
    let app = App::at("https://hub.example").await;
    let page = app.stranger().with("Origin", "https://hub.example");
    let (pair, rest) = device(&page.post("/api/auth/register", &right("alice")).await);
    assert!(pair.starts_with("__Host-device=usr_"), "{pair}");
    assert_eq!(rest, " Path=/; Max-Age=15552000; HttpOnly; Secure; SameSite=Strict");
    for _ in 0..5 {
        page.post("/api/auth/login", &guess("alice")).await.error(401, "UNAUTHORIZED");
    }
    let planted = page.clone().with("Cookie", pair.trim_start_matches("__Host-"));
    planted.post("/api/auth/login", &right("alice")).await.error(429, "RATE_LIMITED");
    page.with("Cookie", &pair).post("/api/auth/login", &right("alice")).await.data();
}
