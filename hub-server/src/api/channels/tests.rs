//! The endpoints through the whole application, asked by a signed-in user.

use hub_core::{
    accounts::{ClientInfo, NewUser},
    id::BotId,
};
use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

const SECRET: &str = "a secret of the webhook";
const BOT: BotId = BotId::from_u128(7);

/// A signed-in user with a bot.
struct Fixture {
    app: App,
    cookie: String,
}

impl Fixture {
    async fn new() -> Self {
        let app = App::new().await;
        let cookie = sign_up(&app, "ada").await;
        let fixture = Self { app, cookie };
        let insert = format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
            SELECT '{BOT}', id, 'b', 'sim', 'online', 0, '', '', '', 0, '', 0, 0, 0 FROM users"
        );
        let store = &fixture.app.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(insert).await })).await.unwrap();
        fixture
    }

    fn ada(&self) -> Caller<'_> {
        caller(&self.app, &self.cookie)
    }

    async fn create(&self) -> Value {
        let body = json!({"name": "orders", "webhook": {"url": "https://example.com/hook",
            "auth": {"method": "hmac", "secret": SECRET}}});
        self.ada().post(&channels(""), &body).await.data().clone()
    }
}

async fn sign_up(app: &App, username: &str) -> String {
    let new = NewUser {
        username: username.into(),
        password: "correct horse battery".into(),
        display_name: None,
        email: None,
    };
    let signed_in = app.hub.accounts().register(new, None, &ClientInfo::default()).await.unwrap();
    format!("session={}", signed_in.token.expose())
}

fn caller<'a>(app: &'a App, cookie: &str) -> Caller<'a> {
    app.stranger().with("Cookie", cookie).with("Origin", "http://localhost:9800")
}

fn channels(rest: &str) -> String {
    format!("/api/bots/{BOT}/channels{rest}")
}

async fn put(caller: &Caller<'_>, path: &str, body: &Value) -> Reply {
    caller.send(Method::PUT, path, |request| request.body_json(body)).await
}

fn fields(error: &Value) -> Vec<&str> {
    error["details"].as_array().unwrap().iter().map(|detail| detail["field"].as_str().unwrap()).collect()
}

/// The ten operations on one channel: method, path, a body that is fine.
fn operations(channel: &str) -> Vec<(Method, String, Option<Value>)> {
    let of = |rest: &str| channels(&format!("/{channel}{rest}"));
    vec![
        (Method::GET, channels(""), None),
        (Method::POST, channels(""), Some(json!({"name": "x"}))),
        (Method::GET, of(""), None),
        (Method::PUT, of(""), Some(json!({"name": "renamed"}))),
        (Method::POST, of("/regenerate-key"), None),
        (Method::PUT, of("/websocket"), Some(json!({}))),
        (Method::PUT, of("/webhook"), Some(json!({"enabled": false}))),
        (Method::PUT, of("/ai"), Some(json!({}))),
        (Method::PUT, of("/filter"), Some(json!({}))),
        (Method::DELETE, of(""), None),
    ]
}

async fn ask(caller: &Caller<'_>, (method, path, body): (Method, String, Option<Value>)) -> Reply {
    caller
        .send(method, &path, |request| match &body {
            Some(body) => request.body_json(body),
            None => request,
        })
        .await
}

#[tokio::test]
async fn every_operation_wants_the_owner() {
    let fixture = Fixture::new().await;
    let eve = sign_up(&fixture.app, "eve").await;
    let created = fixture.create().await;
    let id = created["id"].as_str().unwrap();
    let key = created["api_key"].as_str().unwrap();
    for operation in operations(id) {
        let label = format!("{} {}", operation.0, operation.1);
        ask(&fixture.app.stranger(), operation.clone()).await.error(401, "UNAUTHORIZED");
        let client = fixture.app.stranger().with("X-API-Key", key);
        ask(&client, operation.clone()).await.error(401, "INVALID_TOKEN");
        ask(&caller(&fixture.app, &eve), operation.clone()).await.error(404, "NOT_FOUND");
        if let Some(mut unknown) = operation.2.clone() {
            unknown["nothing"] = json!(1);
            let reply = ask(&fixture.ada(), (operation.0.clone(), operation.1.clone(), Some(unknown))).await;
            let error = reply.error(400, "INVALID_PARAMS");
            assert!(error["message"].as_str().unwrap().contains("nothing"), "{label}: {error}");
        }
        ask(&fixture.ada(), operation).await.data();
    }
    for path in [format!("/api/bots/{id}/channels"), channels(&format!("/{BOT}")), channels("/ch_x")] {
        fixture.ada().get(&path).await.error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_channel_is_created_listed_changed_and_deleted() {
    let fixture = Fixture::new().await;
    let ada = fixture.ada();
    let created = fixture.create().await;
    let id = created["id"].as_str().unwrap();
    let path = channels(&format!("/{id}"));
    let key = created["api_key"].as_str().unwrap();
    assert!(key.starts_with("hubc_"));
    let shown = ada.get(&path).await.data().clone();
    let mut without_key = created.clone();
    without_key.as_object_mut().unwrap().remove("api_key");
    assert_eq!(shown, without_key);
    for (field, value) in [
        ("enabled", json!(true)),
        ("plugins", json!([])),
        ("websocket", json!({"enabled": true, "include_outbound": false, "allowed_origins": []})),
        ("filter", json!({"user_ids": [], "keywords": [], "message_types": [], "match": "all"})),
        ("stats", json!({"received": 0, "delivered": 0, "failed": 0, "pending": 0})),
        ("on_plugin_error", json!("retry")),
        ("lane_hold_s", json!(60)),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!(shown["webhook"]["auth"], json!({"method": "hmac", "has_secret": true}));
    assert_eq!(shown["webhook"]["retry"]["schedule_s"], json!([5, 30, 120, 600, 3600, 21600, 86400]));
    assert!(shown.get("handle").is_none(), "what is absent is left out");
    assert!(!shown.to_string().contains(SECRET) && !shown.to_string().contains(key));

    let changed = put(&ada, &path, &json!({"handle": "orders", "on_plugin_error": "drop"})).await;
    assert_eq!(changed.data()["handle"], "orders");
    let changed = put(&ada, &path, &json!({"handle": null, "lane_hold_s": 0})).await;
    assert!(changed.data().get("handle").is_none());
    assert_eq!(changed.data()["on_plugin_error"], "drop");

    let list = ada.get(&channels("?limit=1")).await;
    assert_eq!(list.data()["items"][0]["id"], id);
    assert_eq!(list.data()["next_cursor"], Value::Null);
    ada.get(&channels("?limit=0")).await.error(400, "INVALID_PARAMS");
    ada.get(&channels("?cursor=x")).await.error(400, "INVALID_PARAMS");

    let reply = ada.send(Method::DELETE, &path, |request| request).await;
    assert_eq!(*reply.data(), json!({}));
    ada.get(&path).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn secrets_are_kept_when_left_out_and_cleared_by_null() {
    let fixture = Fixture::new().await;
    let ada = fixture.ada();
    let created = fixture.create().await;
    let part = |rest: &str| channels(&format!("/{}{rest}", created["id"].as_str().unwrap()));
    let url = "https://example.com/other";
    let kept = put(&ada, &part("/webhook"), &json!({"url": url, "auth": {"method": "bearer"}})).await;
    // Kept, but a bearer token has no spaces.
    assert_eq!(fields(kept.error(400, "INVALID_PARAMS")), ["auth.secret"]);
    let kept = put(&ada, &part("/webhook"), &json!({"url": url, "auth": {"method": "hmac"}})).await;
    assert_eq!(
        (&kept.data()["webhook"]["url"], &kept.data()["webhook"]["auth"]["has_secret"]),
        (&json!(url), &json!(true))
    );
    let rotated = json!({"url": url, "auth": {"method": "header", "secret": "another"}});
    let rotated = put(&ada, &part("/webhook"), &rotated).await;
    assert_eq!(
        rotated.data()["webhook"]["auth"],
        json!({"method": "header", "header_name": "X-Custom-Auth", "has_secret": true,
            "old_secret_expires_at": "2026-09-22T14:13:20.000Z"})
    );
    let cleared = put(&ada, &part("/webhook"), &json!({"url": url, "auth": {"secret": null}})).await;
    assert_eq!(cleared.data()["webhook"]["auth"], json!({"method": "none", "has_secret": false}));

    let ai =
        json!({"source": "custom", "base_url": "https://ai.example/v1", "model": "m", "api_key": "sk-1"});
    let reply = put(&ada, &part("/ai"), &ai).await;
    assert_eq!(reply.data()["ai"]["has_api_key"], true);
    assert!(!reply.json.to_string().contains("sk-1"));
    let reply = put(&ada, &part("/ai"), &json!({"temperature": 0.5})).await;
    assert_eq!(
        (&reply.data()["ai"]["has_api_key"], &reply.data()["ai"]["temperature"]),
        (&json!(true), &json!(0.5))
    );
    let reply = put(&ada, &part("/ai"), &json!({"api_key": null})).await;
    assert_eq!(reply.data()["ai"]["has_api_key"], false);
}

#[tokio::test]
async fn broken_rules_are_named_as_the_caller_wrote_them() {
    let fixture = Fixture::new().await;
    let ada = fixture.ada();
    let created = fixture.create().await;
    let part = |rest: &str| channels(&format!("/{}{rest}", created["id"].as_str().unwrap()));
    let body = json!({"name": "", "handle": "A", "lane_hold_s": 9999, "filter": {"keywords": [" "]},
        "webhook": {"url": "http://10.0.0.1/"}, "ai": {"max_history": 0}});
    let reply = ada.post(&channels(""), &body).await;
    let mut named = fields(reply.error(400, "INVALID_PARAMS"));
    named.sort_unstable();
    assert_eq!(
        named,
        ["ai.max_history", "filter.keywords[0]", "handle", "lane_hold_s", "name", "webhook.url"]
    );
    let filter = json!({"message_types": ["sticker"], "expression": "content =="});
    let reply = put(&ada, &part("/filter"), &filter).await;
    assert_eq!(fields(reply.error(400, "INVALID_PARAMS")), ["message_types[0]", "expression"]);
    let reply = ada.post(&part("/regenerate-key?grace_hours=73"), &json!({})).await;
    assert_eq!(fields(reply.error(400, "INVALID_PARAMS")), ["grace_hours"]);
    let wrong_type = ada.post(&channels(""), &json!({"name": 1})).await;
    wrong_type.error(400, "INVALID_PARAMS");
    let secret = json!({"url": "https://example.com", "auth": {"method": "hmac", "secret": 123_456_789}});
    let reply = put(&ada, &part("/webhook"), &secret).await;
    assert!(!reply.error(400, "INVALID_PARAMS").to_string().contains("123456789"));
}

#[tokio::test]
async fn keys_are_replaced_and_creates_repeated() {
    let fixture = Fixture::new().await;
    let ada = fixture.ada();
    let created = fixture.create().await;
    let path = channels(&format!("/{}/regenerate-key", created["id"].as_str().unwrap()));
    let at_once = ada.send(Method::POST, &path, |request| request).await;
    assert!(at_once.data().get("old_key_expires_at").is_none());
    let graced = ada.send(Method::POST, &format!("{path}?grace_hours=1"), |request| request).await;
    assert_eq!(graced.data()["old_key_expires_at"], "2026-09-21T15:13:20.000Z");
    assert_ne!(graced.data()["api_key"], at_once.data()["api_key"]);

    let repeated = ada.clone().with("Idempotency-Key", "once");
    let first = repeated.post(&channels(""), &json!({"name": "a"})).await.data().clone();
    assert_eq!(*repeated.post(&channels(""), &json!({"name": "a"})).await.data(), first);
    repeated.post(&channels(""), &json!({"name": "b"})).await.error(409, "CONFLICT");
    assert_eq!(ada.get(&channels("")).await.data()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn null_in_a_filter_or_a_websocket_says_the_same_as_leaving_it_out() {
    let fixture = Fixture::new().await;
    let ada = fixture.ada();
    let id = fixture.create().await["id"].as_str().unwrap().to_owned();
    let path = |part: &str| channels(&format!("/{id}/{part}"));
    let filter = json!({"user_ids": null, "keywords": ["order"], "message_types": null, "match": null});
    let set = put(&ada, &path("filter"), &filter).await;
    let wanted = json!({"user_ids": [], "keywords": ["order"], "message_types": [], "match": "all"});
    assert_eq!(set.data()["filter"], wanted);
    let websocket = json!({"enabled": null, "include_outbound": null, "allowed_origins": null});
    let set = put(&ada, &path("websocket"), &websocket).await;
    let wanted = json!({"enabled": true, "include_outbound": false, "allowed_origins": []});
    assert_eq!(set.data()["websocket"], wanted);
}

#[tokio::test]
async fn a_filter_is_tested_without_a_change_of_the_channel() {
    let fixture = Fixture::new().await;
    let channel = fixture.create().await;
    let path = channels(&format!("/{}/filter/test", channel["id"].as_str().unwrap()));
    let tested =
        fixture.ada().post(&path, &json!({ "filter": { "keywords": ["order"] }, "last": 100 })).await;
    assert_eq!(*tested.data(), json!({ "passed": 0, "messages": [] }));
    for (body, field) in [
        (json!({ "filter": { "expression": "content +" } }), "filter.expression"),
        (json!({ "filter": {}, "last": 101 }), "last"),
        (json!({}), "filter"),
    ] {
        let refused = fixture.ada().post(&path, &body).await;
        assert_eq!(refused.error(400, "INVALID_PARAMS")["details"][0]["field"], field);
    }
    let stranger = sign_up(&fixture.app, "eve").await;
    caller(&fixture.app, &stranger).post(&path, &json!({ "filter": {} })).await.error(404, "NOT_FOUND");
}
