//! The endpoints through the whole application, with the connector on the simulated network.

use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply, bind, bind_step};

async fn put(caller: &Caller<'_>, path: &str, body: &Value) -> Reply {
    caller.send(Method::PUT, path, |request| request.body_json(body)).await
}

async fn delete(caller: &Caller<'_>, path: &str) -> Reply {
    caller.send(Method::DELETE, path, |request| request).await
}

#[tokio::test]
async fn a_scan_makes_a_bot_that_only_its_owner_sees() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let bot = bind(&ann, &simulator, None).await;
    let id = bot["id"].as_str().unwrap();
    assert_eq!(
        (&bot["name"], &bot["network"], &bot["can_send"]),
        (&json!("Shop"), &json!("sim"), &json!(false))
    );
    let path = format!("/api/bots/{id}");
    assert_eq!(ann.get(&path).await.data(), &bot);
    let list = ann.get("/api/bots").await;
    assert_eq!(list.data(), &json!({"items": [bot], "next_cursor": null}));
    let status = ann.get(&format!("{path}/status")).await;
    assert_eq!((&status.data()["bot_id"], &status.data()["status"]), (&bot["id"], &json!("pending")));
    let reconnected = ann.post(&format!("{path}/reconnect"), &json!({})).await;
    assert_eq!(reconnected.data()["status"], "connecting");

    for sub in ["", "/status", "/messages", "/contacts"] {
        bob.get(&format!("{path}{sub}")).await.error(404, "NOT_FOUND");
        app.stranger().get(&format!("{path}{sub}")).await.error(401, "UNAUTHORIZED");
    }
    for (sub, body) in [("/reconnect", json!({})), ("/send", json!({"content": "x"}))] {
        bob.post(&format!("{path}{sub}"), &body).await.error(404, "NOT_FOUND");
    }
    put(&bob, &format!("{path}/contacts/x"), &json!({"remark": ""})).await.error(404, "NOT_FOUND");
    delete(&bob, &path).await.error(404, "NOT_FOUND");
    assert_eq!(bob.get("/api/bots").await.data()["items"], json!([]));

    assert_eq!(delete(&ann, &path).await.data(), &json!({}));
    ann.get(&path).await.error(404, "NOT_FOUND");
    ann.get("/api/bots/ch_01K9ZC3V5T8QK4X7M2N6P0RSWA").await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_bind_belongs_to_its_starter_and_an_account_to_its_first_user() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let started = ann.send(Method::POST, "/api/bots/bind/start", |request| request).await;
    let bind_id = &started.data()["bind_id"];
    bob.post("/api/bots/bind/confirm", &json!({"bind_id": bind_id, "wait_ms": 0}))
        .await
        .error(404, "NOT_FOUND");
    for (body, field) in [
        (json!({"bind_id": bind_id, "wait_ms": 30_001}), "wait_ms"),
        (json!({"bind_id": bind_id, "verify_code": "12x"}), "verify_code"),
    ] {
        let refused = ann.post("/api/bots/bind/confirm", &body).await;
        assert_eq!(refused.error(400, "INVALID_PARAMS")["details"][0]["field"], field);
    }
    ann.post("/api/bots/bind/start", &json!({"nme": "x"})).await.error(400, "INVALID_PARAMS");

    let bot = bind(&ann, &simulator, None).await;
    let person = simulator.accounts()[0].account.owner_user_id.clone();
    let known = bind_step(&ann, &simulator, Some(&person)).await;
    assert_eq!((&known["status"], &known["bot"]["id"]), (&json!("already_bound"), &bot["id"]));
    simulator.expire(bot["wx_id"].as_str().unwrap()).unwrap();
    let again = bind(&ann, &simulator, Some(&person)).await;
    assert_eq!(again["id"], bot["id"], "the same account keeps its bot");
    assert_eq!(again["status"], "connecting");
    let started = bob.post("/api/bots/bind/start", &json!({})).await;
    let qr_text = started.data()["qr_text"].as_str().unwrap().to_owned();
    simulator.scan(&qr_text).unwrap();
    simulator.confirm(&qr_text, Some(&person)).unwrap();
    let ask = json!({"bind_id": started.data()["bind_id"], "wait_ms": 0});
    let step = bob.post("/api/bots/bind/confirm", &ask).await;
    assert_eq!(step.data()["status"], "refused");
    assert!(step.data()["reason"].is_string() && step.data()["bot"].is_null());
}

/// What waits ends with the session or the key that asked for it, and not with another one.
#[tokio::test]
async fn a_wait_ends_with_the_session_that_asked() {
    let (app, _simulator) = App::with_simulator().await;
    let (root, ann) = (app.user("root-1").await, app.user("ann").await);
    let key = ann.post("/api/user/api-keys", &json!({ "name": "ci" })).await;
    let (key_id, key) = (key.data()["id"].as_str().unwrap(), key.data()["key"].as_str().unwrap());
    let program = app.stranger().with("X-API-Key", key);
    let login = json!({ "username": "ann", "password": crate::testing::PASSWORD });
    let reply = app.stranger().post("/api/auth/login", &login).await;
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let screen = app.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800");
    let started = ann.post("/api/bots/bind/start", &json!({})).await;
    // The clock does not move: only a change ends the wait.
    let ask = json!({ "bind_id": started.data()["bind_id"], "wait_ms": 30_000 });
    let confirm = "/api/bots/bind/confirm";
    let ann_id = ann.get("/api/auth/me").await.data()["id"].as_str().unwrap().to_owned();
    let waits = async {
        let (by_session, by_key) = (screen.post(confirm, &ask), program.post(confirm, &ask));
        futures_util::join!(by_session, by_key)
    };
    let ends = async {
        // The key of another user, a new display name: no reason to end.
        root.post("/api/user/api-keys", &json!({ "name": "ci" })).await.data();
        let path = format!("/api/admin/users/{ann_id}");
        put(&root, &path, &json!({ "display_name": "Ann" })).await.data();
        screen.post("/api/auth/logout", &json!({})).await.data();
        delete(&ann, &format!("/api/user/api-keys/{key_id}")).await.data();
    };
    let ((by_session, by_key), ()) = futures_util::join!(waits, ends);
    by_session.error(401, "UNAUTHORIZED");
    by_key.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn a_bot_gets_another_name_from_its_owner_alone() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let bot = bind(&ann, &simulator, None).await;
    let path = format!("/api/bots/{}", bot["id"].as_str().unwrap());
    let renamed = put(&ann, &path, &json!({"name": " Store "})).await;
    assert_eq!(renamed.data()["name"], "Store");
    assert_eq!(ann.get(&path).await.data()["name"], "Store");
    for body in [json!({}), json!({"name": ""}), json!({"name": "x".repeat(65)}), json!({"name": "a\nb"})] {
        put(&ann, &path, &body).await.error(400, "INVALID_PARAMS");
    }
    put(&bob, &path, &json!({"name": "Mine"})).await.error(404, "NOT_FOUND");
    assert_eq!(ann.get(&path).await.data()["name"], "Store");
}

#[tokio::test]
async fn sends_are_refused_until_the_person_wrote() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = bind(&ann, &simulator, None).await;
    let path = format!("/api/bots/{}", bot["id"].as_str().unwrap());
    let send = format!("{path}/send");
    let refused = ann.post(&send, &json!({"content": "hi"})).await;
    refused.error(409, "WINDOW_CLOSED");
    let refused = ann.post(&send, &json!({"content": " ", "to_user_id": "a\nb"})).await;
    let details = &refused.error(400, "INVALID_PARAMS")["details"];
    assert_eq!((&details[0]["field"], &details[1]["field"]), (&json!("to_user_id"), &json!("content")));
    for body in [json!({"content": "x", "media": {}}), json!({}), json!({"content": 1})] {
        ann.post(&send, &body).await.error(400, "INVALID_PARAMS");
    }
    let keyed = ann.clone().with("Idempotency-Key", "bad key");
    keyed.post(&send, &json!({"content": "hi"})).await.error(400, "INVALID_PARAMS");
    for query in ["direction=up", "since=yesterday", "limit=0", "cursor=x"] {
        ann.get(&format!("{path}/messages?{query}")).await.error(400, "INVALID_PARAMS");
    }
    let messages = ann.get(&format!("{path}/messages?direction=outbound&q=hi&limit=1")).await;
    assert_eq!(messages.data(), &json!({"items": [], "next_cursor": null}));
    assert_eq!(ann.get(&format!("{path}/contacts")).await.data()["items"], json!([]));
}
