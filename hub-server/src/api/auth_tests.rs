//! Signing in over HTTP: shapes, cookies, origins, limits. The rules themselves are tested in hub-core.

use poem::http::Method;
use serde_json::{Value, json};

use hub_core::testing::Authenticator;

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
        "created_at": "2026-09-21T14:13:20.000Z", "fresh_until": "2026-09-21T14:28:20.000Z",
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
    for (body, expected) in [
        (json!({"username": "b", "password": "x", "emial": "x"}), vec!["username", "password", "emial"]),
        (json!({"username": "a b", "password": 1}), vec!["username", "password"]),
    ] {
        let reply = app.stranger().post("/api/auth/register", &body).await;
        let details = reply.error(400, "INVALID_PARAMS")["details"].as_array().unwrap();
        let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
        assert_eq!(fields, expected);
    }
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
async fn another_site_cannot_sign_a_user_in_or_out() {
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

/// Without trusted proxies, or with the header that is not configured, no client gets a new bucket.
#[tokio::test]
async fn a_made_up_address_is_not_counted_as_one() {
    let app = App::new().await;
    let forged = async |header: &str, n: u8| {
        let value =
            if header == "Forwarded" { format!("for=198.51.100.{n}") } else { format!("198.51.100.{n}") };
        let body = json!({"username": format!("nobody-{n}"), "password": "wrong password"});
        app.stranger().with(header, &value).post("/api/auth/login", &body).await.response.status().as_u16()
    };
    let mut statuses = Vec::new();
    for n in 0..30 {
        statuses.push(forged(["X-Forwarded-For", "Forwarded", "X-Real-IP"][usize::from(n % 3)], n).await);
    }
    assert!(statuses[..10].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[10..].iter().all(|status| *status == 429), "{statuses:?}");
}

/// What is not offered is refused, and nothing of it is applied.
#[tokio::test]
async fn a_body_cannot_set_fields_that_it_does_not_have() {
    let app = App::new().await;
    app.user("admin-1").await;
    let bob = app.user("bob").await;
    let before = bob.get("/api/auth/me").await.data().clone();
    for (field, value) in [
        ("role", json!("admin")),
        ("status", json!("active")),
        ("id", json!("usr_01BX5ZZKBKACTAV9WEVGEMMVRZ")),
        ("username", json!("root")),
        ("created_at", json!("2020-01-01T00:00:00.000Z")),
        ("has_password", json!(false)),
    ] {
        let mut body = json!({ "display_name": "Bobby" });
        body[field] = value;
        let reply = bob.send(Method::PUT, "/api/user/profile", |request| request.body_json(&body)).await;
        let error = reply.error(400, "INVALID_PARAMS");
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    assert_eq!(*bob.get("/api/auth/me").await.data(), before);
}

/// With every sign-in method the cookie is protected, and its value is new.
#[tokio::test]
async fn every_way_in_sets_the_same_guarded_cookie() {
    const ORIGIN: &str = "https://hub.example";
    let app = App::at(ORIGIN).await;
    let page = app.stranger().with("Origin", ORIGIN);
    let with = |cookies: &str| page.clone().with("Cookie", cookies);
    let pair = |reply: &Reply| reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut ways = vec![("register", page.post("/api/auth/register", &body("ada")).await)];
    ways.push(("login", page.post("/api/auth/login", &body("ada")).await));
    let ada = with(&pair(&ways[1].1));
    let mut key = Authenticator::new(ORIGIN, 1);
    for (way, ask) in [("register", json!({ "username": "bob" })), ("login", json!({}))] {
        let begun = page.post(&format!("/api/auth/passkey/{way}/begin"), &ask).await;
        let flow = begun.header("set-cookie").unwrap();
        assert!(flow.starts_with("__Host-flow=") && flow.contains("; Secure;"), "{flow}");
        let options = &begun.data()["publicKey"];
        let mut answer = if way == "register" { key.create(options) } else { key.get(options) };
        answer["flow_id"] = begun.data()["flow_id"].clone();
        let finish = format!("/api/auth/passkey/{way}/finish");
        ways.push((way, with(&pair(&begun)).post(&finish, &answer).await));
    }
    let login = page.post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let confirm = json!({ "qr_id": login["qr_id"], "user_code": login["user_code"], "approve": true });
    ada.post("/api/auth/qr/confirm", &confirm).await.data();
    let (id, secret) = (login["qr_id"].as_str().unwrap(), login["poll_secret"].as_str().unwrap());
    let seen = page.get(&format!("/api/auth/qr/status?qr_id={id}&poll_secret={secret}")).await;
    let ticket = json!({ "qr_id": id, "poll_secret": secret, "exchange": seen.data()["exchange"] });
    ways.push(("qr", page.post("/api/auth/qr/exchange", &ticket).await));
    let change = json!({ "old_password": PASSWORD, "new_password": "another passphrase" });
    let changed = ada.send(Method::PUT, "/api/user/password", |request| request.body_json(&change)).await;
    ways.push(("password", changed));
    let mut values = std::collections::BTreeSet::new();
    for (way, reply) in &ways {
        reply.data();
        let set = reply.header("set-cookie").unwrap_or_else(|| panic!("{way} sets no cookie"));
        let (value, rest) = set.split_once(';').unwrap();
        assert!(value.starts_with("__Host-session=hubs_"), "{way}: {set}");
        assert_eq!(rest, " Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax", "{way}");
        values.insert(value.to_owned());
        // The browser is known from then on, by another value.
        let all: Vec<_> = reply.response.headers().get_all("set-cookie").iter().collect();
        let [_, device] = all[..] else { panic!("{way} sets {} cookies", all.len()) };
        let (value, rest) = device.to_str().unwrap().split_once(';').unwrap();
        assert!(value.starts_with("__Host-device=usr_"), "{way}: {value}");
        assert_eq!(rest, " Path=/; Max-Age=15552000; HttpOnly; Secure; SameSite=Strict", "{way}");
        values.insert(value.to_owned());
    }
    assert_eq!(values.len(), 2 * ways.len(), "a value came twice");
}
