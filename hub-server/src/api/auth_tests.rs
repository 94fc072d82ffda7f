//! Signing in over HTTP: shapes, cookies, origins, limits. The rules themselves are tested in hub-core.

use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, PASSWORD, Reply};

fn body(username: &str) -> Value {
    json!({"username": username, "password": PASSWORD})
}

/// The value of the session cookie an answer sets.
fn cookie(reply: &Reply) -> &str {
    let set = reply.header("set-cookie").expect("a session cookie");
    set.strip_prefix("session=").unwrap().split(';').next().unwrap()
}

fn holder<'a>(app: &'a App, reply: &Reply) -> Caller<'a> {
    app.stranger().with("Cookie", &format!("session={}", cookie(reply)))
}

async fn delete(caller: &Caller<'_>, path: &str) -> Reply {
    caller.send(Method::DELETE, path, |request| request).await
}

#[tokio::test]
async fn registering_answers_with_the_user_and_a_cookie() {
    let app = App::new().await;
    let mut all = body("Alice");
    all["email"] = "alice@example.org".into();
    let reply = app.stranger().with("User-Agent", "probe/1").post("/api/auth/register", &all).await;
    let id = reply.data()["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("usr_"));
    let expected = json!({
        "id": id, "username": "alice", "display_name": "Alice", "email": "alice@example.org",
        "role": "admin", "status": "active", "has_password": true, "passkeys": 0, "oauth_accounts": [],
        "created_at": "2026-09-21T14:13:20.000Z",
    });
    assert_eq!(*reply.data(), expected);
    let set = reply.header("set-cookie").unwrap();
    assert!(set.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax"), "{set}");

    let alice = holder(&app, &reply);
    assert_eq!(*alice.get("/api/auth/me").await.data(), expected);
    let sessions = alice.get("/api/auth/sessions").await;
    let session = &sessions.data()["items"][0];
    assert_eq!(session["current"], true);
    assert_eq!(session["user_agent"], "probe/1");
    assert!(!cookie(&reply).contains(session["id"].as_str().unwrap()));
    assert_eq!(sessions.data()["next_cursor"], Value::Null);

    let taken = app.stranger().post("/api/auth/register", &body("ALICE")).await;
    taken.error(409, "CONFLICT");
    assert_eq!(taken.header("set-cookie"), None);
}

#[tokio::test]
async fn bad_bodies_are_refused_and_change_nothing() {
    let app = App::new().await;
    for (field, value) in [("role", json!("admin")), ("id", json!("usr_1")), ("status", json!("active"))] {
        let mut mass = body("eve");
        mass[field] = value;
        let reply = app.stranger().post("/api/auth/register", &mass).await;
        let error = reply.error(400, "INVALID_PARAMS");
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    let short = json!({"username": "e", "password": "short"});
    let reply = app.stranger().post("/api/auth/register", &short).await;
    let details = reply.error(400, "INVALID_PARAMS")["details"].as_array().unwrap();
    let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["username", "password"]);
    let number = json!({"username": "eve", "password": 12_345_678});
    let reply = app.stranger().post("/api/auth/register", &number).await;
    assert!(!reply.error(400, "INVALID_PARAMS").to_string().contains("12345678"));
    app.stranger().post("/api/auth/login", &body("eve")).await.error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn failed_logins_look_alike() {
    let app = App::new().await;
    app.user("alice").await;
    let tries = [
        json!({"username": "alice", "password": "wrong password"}),
        json!({"username": "alice", "password": ""}),
        json!({"username": "nobody", "password": PASSWORD}),
        json!({"username": "al\u{0}ice", "password": PASSWORD}),
    ];
    let mut answers = Vec::new();
    for body in &tries {
        let reply = app.stranger().with("X-Request-Id", "same").post("/api/auth/login", body).await;
        reply.error(401, "UNAUTHORIZED");
        assert_eq!(reply.header("set-cookie"), None);
        answers.push(reply.json);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
    app.stranger().post("/api/auth/login", &body("Alice")).await.data();
}

#[tokio::test]
async fn a_sign_in_ends_the_session_the_browser_had() {
    let app = App::new().await;
    let before = app.user("alice").await;
    let reply = before.post("/api/auth/login", &body("alice")).await;
    reply.data();
    before.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    let now = holder(&app, &reply);
    now.get("/api/auth/me").await.data();
    let planted = app.stranger().with("Cookie", "session=planted");
    let reply = planted.post("/api/auth/login", &body("alice")).await;
    assert_ne!(cookie(&reply), "planted");
    now.get("/api/auth/me").await.data();
}

#[tokio::test]
async fn another_site_signs_nobody_in_or_out() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    for (name, value) in [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")] {
        let evil = app.stranger().with(name, value);
        evil.post("/api/auth/login", &body("alice")).await.error(403, "FORBIDDEN");
        evil.post("/api/auth/register", &body("eve")).await.error(403, "FORBIDDEN");
    }
    let own = app.stranger().with("Origin", "http://localhost:9800").with("Sec-Fetch-Site", "same-origin");
    let reply = own.post("/api/auth/login", &body("alice")).await;
    let no_origin = holder(&app, &reply);
    no_origin.post("/api/auth/logout", &json!({})).await.error(403, "FORBIDDEN");
    no_origin.get("/api/auth/me").await.data();
    alice.get("/api/auth/me").await.data();
}

#[tokio::test]
async fn signing_out_ends_the_session_and_clears_the_cookie() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let reply = alice.send(Method::POST, "/api/auth/logout", |request| request).await;
    assert_eq!(*reply.data(), json!({}));
    assert!(reply.header("set-cookie").unwrap().starts_with("session=; Path=/; Max-Age=0;"));
    alice.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    app.stranger().get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    let key = alice.with("Authorization", "Bearer hubu_x");
    key.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn sessions_are_ended_by_their_own_user() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let other = app.stranger().post("/api/auth/login", &body("alice")).await;
    let other = holder(&app, &other);
    let bob = app.user("bob").await;

    let first = alice.get("/api/auth/sessions?limit=1").await;
    let other_id = first.data()["items"][0]["id"].as_str().unwrap();
    let cursor = first.data()["next_cursor"].as_str().unwrap();
    let second = alice.get(&format!("/api/auth/sessions?limit=1&cursor={cursor}")).await;
    let own = second.data()["items"][0].clone();
    assert_eq!(own["current"], true);
    assert_eq!(second.data()["next_cursor"], Value::Null);
    bob.get(&format!("/api/auth/sessions?cursor={cursor}")).await.error(400, "INVALID_PARAMS");

    let path = |id: &str| format!("/api/auth/sessions/{id}");
    let foreign = delete(&bob, &path(other_id)).await.error(404, "NOT_FOUND")["message"].clone();
    let garbage = delete(&bob, &path("bot_1")).await.error(404, "NOT_FOUND")["message"].clone();
    assert_eq!(foreign, garbage, "another's session is as absent as none");
    let reply = delete(&alice, &path(other_id)).await;
    reply.data();
    assert_eq!(reply.header("set-cookie"), None);
    other.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    let reply = delete(&alice, &path(own["id"].as_str().unwrap())).await;
    reply.data();
    assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
    alice.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    bob.get("/api/auth/me").await.data();
}

#[tokio::test]
async fn guessing_at_one_name_is_slowed_down() {
    let app = App::with(|values| values.rate_limits.auth_per_ip = 100.try_into().unwrap()).await;
    app.user("alice").await;
    let guess = json!({"username": "alice", "password": "wrong password"});
    for _ in 0..5 {
        app.stranger().post("/api/auth/login", &guess).await.error(401, "UNAUTHORIZED");
    }
    let reply = app.stranger().post("/api/auth/login", &guess).await;
    reply.error(429, "RATE_LIMITED");
    assert!(reply.header("retry-after").is_some());
    let unknown = json!({"username": "nobody", "password": "wrong password"});
    app.stranger().post("/api/auth/login", &unknown).await.error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_setup_token_in_the_body_counts() {
    let app = App::new().await;
    let token = app.hub.accounts().mint_setup_token().await.unwrap().unwrap();
    let mut with_token = body("alice");
    with_token["setup_token"] = "guess".into();
    app.stranger().post("/api/auth/register", &with_token).await.error(401, "INVALID_TOKEN");
    with_token["setup_token"] = token.expose().into();
    let reply = app.stranger().post("/api/auth/register", &with_token).await;
    assert_eq!(reply.data()["role"], "admin");
}

#[tokio::test]
async fn on_https_the_cookie_is_bound_to_the_host() {
    let app = App::with(|values| values.public_url = "https://hub.example".parse().unwrap()).await;
    let reply = app.stranger().post("/api/auth/register", &body("alice")).await;
    let set = reply.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-session=hubs_") && set.contains("; Secure;"), "{set}");
    let value = set.split(';').next().unwrap();
    app.stranger().with("Cookie", value).get("/api/auth/me").await.data();
    let plain = value.trim_start_matches("__Host-");
    app.stranger().with("Cookie", plain).get("/api/auth/me").await.error(401, "UNAUTHORIZED");
}
