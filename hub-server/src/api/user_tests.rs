use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, PASSWORD, Reply};

async fn key(caller: &Caller<'_>, body: &Value) -> (String, String) {
    let reply = caller.post("/api/user/api-keys", body).await;
    let data = reply.data();
    (data["id"].as_str().unwrap().to_owned(), data["key"].as_str().unwrap().to_owned())
}

async fn put(caller: &Caller<'_>, path: &str, body: &Value) -> Reply {
    caller.send(Method::PUT, path, |request| request.body_json(body)).await
}

async fn delete(caller: &Caller<'_>, path: &str) -> Reply {
    caller.send(Method::DELETE, path, |request| request).await
}

/// The same browser after an answer that set its cookie.
fn renewed<'a>(app: &'a App, reply: &Reply) -> Caller<'a> {
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    app.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800")
}

#[tokio::test]
async fn a_key_is_shown_once_and_opens_what_its_user_may() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let (id, secret) = key(&alice, &json!({ "name": "ci" })).await;
    assert!(secret.starts_with("hubu_"));
    for (name, value) in [("Authorization", format!("Bearer {secret}")), ("X-API-Key", secret.clone())] {
        let program = app.stranger().with(name, &value);
        assert_eq!(program.get("/api/auth/me").await.data()["username"], "alice");
        // Not a browser: no origin is asked for.
        put(&program, "/api/user/profile", &json!({ "display_name": "Al" })).await.data();
    }
    let list = alice.get("/api/user/api-keys").await;
    let shown = &list.data()["items"][0];
    assert_eq!((shown["id"].as_str(), shown["name"].as_str()), (Some(&*id), Some("ci")));
    assert_eq!(shown["prefix"], format!("hubu_…{}", &secret[secret.len() - 4..]));
    assert!(!list.json.to_string().contains(&secret));
    assert!(shown["last_used_at"].is_string());
    // Never in the query: only channel keys travel there.
    app.stranger().get(&format!("/api/auth/me?api_key={secret}")).await.error(401, "UNAUTHORIZED");
    let channel = app.stranger().with("X-API-Key", &secret);
    let own = channel.get("/api/auth/sessions").await;
    assert!(own.data()["items"].as_array().unwrap().iter().all(|session| session["current"] == false));
    key(&alice, &json!({ "name": "another" })).await;
    let current = async |caller: &Caller<'_>| -> Vec<bool> {
        let listed = caller.get("/api/user/api-keys").await;
        listed.data()["items"].as_array().unwrap().iter().map(|key| key["current"] == true).collect()
    };
    assert_eq!((current(&alice).await, current(&channel).await), (vec![false, false], vec![false, true]));
}

#[tokio::test]
async fn an_api_key_cannot_create_keys_or_change_the_password() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let (id, secret) = key(&alice, &json!({ "name": "ci" })).await;
    let program = app.stranger().with("X-API-Key", &secret);
    program.post("/api/user/api-keys", &json!({ "name": "more" })).await.error(403, "FORBIDDEN");
    let change = json!({ "old_password": PASSWORD, "new_password": "another passphrase" });
    put(&program, "/api/user/password", &change).await.error(403, "FORBIDDEN");
    assert_eq!(alice.get("/api/user/api-keys").await.data()["items"].as_array().unwrap().len(), 1);
    delete(&program, &format!("/api/user/api-keys/{id}")).await.data();
    program.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn a_key_ends_by_time_by_its_user_and_with_a_flipped_character() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let bob = app.user("bob").await;
    let (id, secret) = key(&alice, &json!({ "name": "short", "expires_in_days": 1 })).await;
    let program = app.stranger().with("X-API-Key", &secret);
    program.get("/api/auth/me").await.data();
    let last = if secret.ends_with('a') { "b" } else { "a" };
    let flipped = format!("{}{last}", &secret[..secret.len() - 1]);
    app.stranger().with("X-API-Key", &flipped).get("/api/auth/me").await.error(401, "INVALID_TOKEN");
    delete(&bob, &format!("/api/user/api-keys/{id}")).await.error(404, "NOT_FOUND");
    app.clock.advance(std::time::Duration::from_secs(24 * 60 * 60));
    program.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
    let (id, secret) = key(&alice, &json!({ "name": "long" })).await;
    let program = app.stranger().with("X-API-Key", &secret);
    delete(&alice, &format!("/api/user/api-keys/{id}")).await.data();
    program.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
    delete(&alice, &format!("/api/user/api-keys/{id}")).await.error(404, "NOT_FOUND");
    // With a valid cookie it is still an invalid key.
    alice.with("X-API-Key", &secret).get("/api/auth/me").await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn bad_keys_are_refused_by_field_and_repeated_calls_give_the_first_answer() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    for (body, field) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x".repeat(65) }), "name"),
        (json!({ "name": "a\u{202e}b" }), "name"),
        (json!({ "name": "x", "expires_in_days": 0 }), "expires_in_days"),
        (json!({ "name": "x", "expires_in_days": 3651 }), "expires_in_days"),
        (json!({ "name": "x", "expires_in_days": -1 }), "expires_in_days"),
        (json!({ "name": "x", "user_id": "usr_1" }), "user_id"),
    ] {
        let reply = alice.post("/api/user/api-keys", &body).await;
        assert!(reply.error(400, "INVALID_PARAMS").to_string().contains(field), "{body}: {}", reply.json);
    }
    let repeated = alice.clone().with("Idempotency-Key", "one");
    let first = key(&repeated, &json!({ "name": "ci" })).await;
    assert_eq!(key(&repeated, &json!({ "name": "ci" })).await, first);
    repeated.post("/api/user/api-keys", &json!({ "name": "other" })).await.error(409, "CONFLICT");
    for n in 1..50 {
        key(&alice.clone().with("Idempotency-Key", &n.to_string()), &json!({ "name": "x" })).await;
    }
    alice.post("/api/user/api-keys", &json!({ "name": "x" })).await.error(409, "CONFLICT");
}

#[tokio::test]
async fn the_profile_is_changed_by_field() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let reply =
        put(&alice, "/api/user/profile", &json!({ "display_name": "Ada", "email": "a@example.com" })).await;
    assert_eq!(
        (&reply.data()["display_name"], &reply.data()["email"]),
        (&json!("Ada"), &json!("a@example.com"))
    );
    let reply = put(&alice, "/api/user/profile", &json!({ "email": "" })).await;
    assert_eq!((&reply.data()["display_name"], &reply.data()["email"]), (&json!("Ada"), &json!("")));
    assert_eq!(alice.get("/api/user/profile").await.data(), reply.data());
    for field in ["role", "status", "id", "username", "password"] {
        let reply = put(&alice, "/api/user/profile", &json!({ field: "admin" })).await;
        assert!(reply.error(400, "INVALID_PARAMS").to_string().contains(field), "mass assignment of {field}");
    }
    let both = put(&alice, "/api/user/profile", &json!({ "display_name": " ", "email": "x" })).await;
    assert_eq!(both.error(400, "INVALID_PARAMS")["details"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_other_sessions() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let elsewhere =
        app.stranger().post("/api/auth/login", &json!({ "username": "alice", "password": PASSWORD })).await;
    let elsewhere = renewed(&app, &elsewhere);
    let (_, secret) = key(&alice, &json!({ "name": "ci" })).await;
    let change = |old: &str, new: &str| json!({ "old_password": old, "new_password": new });
    for (body, field) in [
        (json!({ "new_password": "another passphrase" }), "old_password"),
        (change("wrong", "another passphrase"), "old_password"),
        (change(PASSWORD, "short"), "new_password"),
        (change(PASSWORD, "password123"), "new_password"),
    ] {
        let reply = put(&alice, "/api/user/password", &body).await;
        assert_eq!(reply.error(400, "INVALID_PARAMS")["details"][0]["field"], field, "{}", reply.json);
        assert_eq!(reply.header("set-cookie"), None);
    }
    elsewhere.get("/api/auth/me").await.data();
    let reply = put(&alice, "/api/user/password", &change(PASSWORD, "another passphrase")).await;
    reply.data();
    let now = renewed(&app, &reply);
    now.get("/api/auth/me").await.data();
    alice.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    elsewhere.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    app.stranger().with("X-API-Key", &secret).get("/api/auth/me").await.data();
    let sessions = now.get("/api/auth/sessions").await;
    let sessions = sessions.data()["items"].as_array().unwrap().clone();
    assert_eq!((sessions.len(), &sessions[0]["current"]), (1, &json!(true)));
    let login = json!({ "username": "alice", "password": PASSWORD });
    app.stranger().post("/api/auth/login", &login).await.error(401, "UNAUTHORIZED");
    let login = json!({ "username": "alice", "password": "another passphrase" });
    app.stranger().post("/api/auth/login", &login).await.data();
    put(&now, "/api/user/password", &change("wrong", "x")).await.error(429, "RATE_LIMITED");
}

#[tokio::test]
async fn guessing_keys_is_slowed_down_and_right_ones_go_on() {
    let app = App::new().await;
    let alice = app.user("alice").await;
    let (_, secret) = key(&alice, &json!({ "name": "ci" })).await;
    for n in 0..20 {
        let guess = app.stranger().with("X-API-Key", &format!("hubu_{n}"));
        guess.get("/api/auth/me").await.error(401, "INVALID_TOKEN");
    }
    let reply = app.stranger().with("Authorization", "Bearer hubc_x").get("/api/bots").await;
    reply.error(429, "RATE_LIMITED");
    assert!((1..=3).contains(&reply.header("retry-after").unwrap().parse::<u32>().unwrap()));
    app.stranger().with("X-API-Key", &secret).get("/api/auth/me").await.data();
    app.stranger().get("/api/auth/me").await.error(401, "UNAUTHORIZED");
}
