//! Apps through the whole application: Ada, who came first and so administrates, Bob who writes apps, and Eve; each
//! with a bot. The apps' own servers answer inside the process.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use bytes::Bytes;
use hub_core::{
    egress::EgressConfig,
    id::BotId,
    local_http::{Cut, LocalService},
};
use poem::http::{self, Method};
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

/// The server of an app, which echoes challenges while it is meant to.
#[derive(Debug, Default)]
struct AppServer {
    silent: AtomicBool,
    challenges: AtomicU32,
    /// The events of an installation.
    announced: Mutex<Option<Value>>,
}

#[async_trait::async_trait]
impl LocalService for AppServer {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        if request.uri().path() == "/installed" {
            *self.announced.lock().unwrap() = Some(body);
            return Ok(http::Response::new(r#"{"webhook_url":"http://app.example/hub"}"#.into()));
        }
        self.challenges.fetch_add(1, Ordering::SeqCst);
        assert_eq!((&body["v"], &body["type"]), (&json!(1), &json!("url_verification")));
        assert!(request.headers()["x-app-id"].to_str().unwrap().starts_with("app_"));
        let echo = if self.silent.load(Ordering::SeqCst) { json!("no") } else { body["challenge"].clone() };
        Ok(http::Response::new(Bytes::from(json!({ "challenge": echo }).to_string())))
    }
}

struct Fixture {
    app: App,
    server: Arc<AppServer>,
}

struct Person<'a> {
    is: Caller<'a>,
    bot: BotId,
}

impl Fixture {
    async fn new() -> Self {
        let server = Arc::new(AppServer::default());
        let service: Arc<dyn LocalService> = Arc::clone(&server) as _;
        let in_process = [("app.example".to_owned(), service)].into();
        let egress = EgressConfig { in_process, ..EgressConfig::default() };
        Self { app: App::with_hub(|builder| builder.egress(egress)).await, server }
    }

    async fn person(&self, name: &str, number: u128) -> Person<'_> {
        let is = self.app.user(name).await;
        let bot = BotId::from_u128(number);
        let insert = format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
            SELECT '{bot}', id, 'b', 'sim', 'online', 0, '', '', '', 0, '', 0, 0, 0 FROM users
            WHERE username = '{name}'"
        );
        let store = &self.app.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(insert).await })).await.unwrap();
        Person { is, bot }
    }

    async fn people(&self) -> (Person<'_>, Person<'_>, Person<'_>) {
        (self.person("ada", 1).await, self.person("bob", 2).await, self.person("eve", 3).await)
    }
}

impl Person<'_> {
    async fn create(&self, body: Value) -> Reply {
        self.is.post("/api/apps", &body).await
    }

    /// An app that asks for two scopes; its id.
    async fn app(&self, name: &str) -> String {
        let body = json!({ "name": name, "description": "Does things.", "webhook_url": "http://app.example/hub",
            "events": ["message"], "scopes": ["message:read", "message:write"] });
        text(self.create(body).await.data(), "id").to_owned()
    }

    async fn put(&self, path: &str, body: Value) -> Reply {
        self.is.send(Method::PUT, path, |request| request.body_json(&body)).await
    }

    async fn delete(&self, path: &str) -> Reply {
        self.is.send(Method::DELETE, path, |request| request).await
    }

    fn installed(&self, rest: &str) -> String {
        format!("/api/bots/{}/apps{rest}", self.bot)
    }

    async fn install(&self, body: Value) -> Reply {
        self.is.post(&self.installed("/install"), &body).await
    }

    /// The names of listed apps.
    async fn sees(&self, query: &str) -> Vec<String> {
        let list = self.is.get(&format!("/api/apps{query}")).await;
        let items = list.data()["items"].as_array().unwrap();
        items.iter().map(|item| text(item, "name").to_owned()).collect()
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn fields(error: &Value) -> Vec<&str> {
    error["details"].as_array().unwrap().iter().map(|detail| text(detail, "field")).collect()
}

#[tokio::test]
async fn an_app_is_made_with_secrets_shown_once_and_belongs_to_its_author() {
    let fixture = Fixture::new().await;
    let (ada, bob, eve) = fixture.people().await;
    let body = json!({ "name": "Weather Bot", "webhook_url": "http://app.example/hub",
        "redirect_uris": ["https://app.example/cb"], "events": ["command", "message.text", "command"],
        "scopes": ["message:write", "message:read"], "tools": [{ "name": "weather", "command": "/Weather",
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } } } }] });
    let reply = bob.is.clone().with("Idempotency-Key", "k").post("/api/apps", &body).await;
    let made = reply.data();
    assert_eq!((text(made, "slug"), text(made, "owner_name")), ("weather-bot", "bob"));
    assert_eq!(made["webhook_verified"], true);
    assert_eq!(made["scopes"], json!(["message:read", "message:write"]));
    assert_eq!(made["events"], json!(["command", "message.text"]));
    assert_eq!(text(&made["tools"][0], "command"), "weather");
    let (client, webhook) = (text(made, "client_secret").to_owned(), text(made, "webhook_secret").to_owned());
    let again = bob.is.clone().with("Idempotency-Key", "k").post("/api/apps", &body).await;
    assert_eq!((text(again.data(), "client_secret"), &again.data()["id"]), (&*client, &made["id"]));

    let path = format!("/api/apps/{}", text(made, "id"));
    let shown = bob.is.get(&path).await;
    assert_eq!(text(shown.data(), "webhook_url"), "http://app.example/hub");
    for reply in [shown, bob.is.get("/api/apps").await] {
        let all = String::from_utf8(reply.bytes).unwrap();
        assert!(!all.contains(&client) && !all.contains(&webhook) && !all.contains("_secret"), "{all}");
    }
    // Only its author and an administrator can see it.
    eve.is.get(&path).await.error(404, "NOT_FOUND");
    eve.put(&path, json!({ "name": "x" })).await.error(404, "NOT_FOUND");
    eve.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(text(ada.is.get(&path).await.data(), "name"), "Weather Bot");
    assert!(ada.sees("").await.is_empty() && eve.sees("").await.is_empty());
    assert_eq!(bob.sees("?view=own").await, ["Weather Bot"]);

    let changed = bob.put(&path, json!({ "name": "Sky", "webhook_url": "", "scopes": ["bot:read"] })).await;
    let changed = changed.data();
    assert_eq!((text(changed, "name"), &changed["scopes"]), ("Sky", &json!(["bot:read"])));
    assert!(changed.get("webhook_url").is_none() && changed["webhook_verified"] == false);
    assert_eq!(changed["events"], json!(["command", "message.text"]));
    // A short name is there once; one that was left to the hub gives way.
    bob.create(json!({ "name": "x", "slug": "weather-bot" })).await.error(409, "CONFLICT");
    let other = eve.create(json!({ "name": "Weather Bot" })).await;
    assert!(text(other.data(), "slug").starts_with("weather-bot-"));
    bob.delete(&path).await.data();
    bob.is.get(&path).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn bad_apps_are_refused_and_leave_nothing() {
    let fixture = Fixture::new().await;
    let (_, bob, _) = fixture.people().await;
    let bad = bob
        .create(json!({ "name": "", "slug": "A", "webhook_url": "http://127.0.0.1/", "scopes": ["all"],
            "events": ["x"], "redirect_uris": ["http://evil.example"],
            "tools": [{ "name": "t", "parameters": { "type": 3 } }] }))
        .await;
    let error = bad.error(400, "INVALID_PARAMS");
    let all = ["slug", "name", "redirect_uris[0]", "webhook_url", "events", "scopes", "tools[0].parameters"];
    assert_eq!(fields(error), all);
    assert!(bob.sees("").await.is_empty());
    let long = bob.create(json!({ "name": "x", "description": "x".repeat(5000) })).await;
    assert_eq!(fields(long.error(400, "INVALID_PARAMS")), ["description"]);
}

#[tokio::test]
async fn a_url_that_does_not_echo_gets_no_events_until_it_does() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    fixture.server.silent.store(true, Ordering::SeqCst);
    let made = bob.create(json!({ "name": "Weather", "webhook_url": "http://app.example/hub" })).await;
    assert_eq!(made.data()["webhook_verified"], false);
    let path = format!("/api/apps/{}/verify-url", text(made.data(), "id"));
    let refused = bob.is.post(&path, &json!({})).await;
    assert!(text(refused.error(502, "UPSTREAM_ERROR"), "message").contains("another text"));
    eve.is.post(&path, &json!({})).await.error(404, "NOT_FOUND");
    fixture.server.silent.store(false, Ordering::SeqCst);
    assert_eq!(bob.is.post(&path, &json!({})).await.data()["webhook_verified"], true);
    // What is tried again is another address alone.
    let before = fixture.server.challenges.load(Ordering::SeqCst);
    let path = path.trim_end_matches("/verify-url");
    let same = bob.put(path, json!({ "description": "x", "webhook_url": "http://app.example/hub" })).await;
    assert_eq!(same.data()["webhook_verified"], true);
    assert_eq!(fixture.server.challenges.load(Ordering::SeqCst), before);
    fixture.server.silent.store(true, Ordering::SeqCst);
    let other = bob.put(path, json!({ "webhook_url": "http://app.example/other" })).await;
    assert_eq!(other.data()["webhook_verified"], false);
}

#[tokio::test]
async fn an_administrator_decides_what_everybody_finds() {
    let fixture = Fixture::new().await;
    let (ada, bob, eve) = fixture.people().await;
    let bare = bob.create(json!({ "name": "Bare" })).await;
    let bare = format!("/api/apps/{}/listing", text(bare.data(), "id"));
    let lacks = bob.is.post(&bare, &json!({})).await;
    assert!(text(lacks.error(409, "CONFLICT"), "message").contains("a description"));
    let id = bob.app("Weather").await;
    let (listing, review) = (format!("/api/apps/{id}/listing"), format!("/api/admin/apps/{id}"));
    let approve = async |who: &Person<'_>| who.is.post(&format!("{review}/approve"), &json!({})).await;
    approve(&ada).await.error(409, "CONFLICT");
    assert_eq!(text(bob.is.post(&listing, &json!({})).await.data(), "listing"), "pending");
    bob.is.post(&listing, &json!({})).await.error(409, "CONFLICT");
    approve(&bob).await.error(403, "FORBIDDEN");
    bob.is.get("/api/admin/apps/pending").await.error(403, "FORBIDDEN");
    let waits = ada.is.get("/api/admin/apps/pending").await;
    assert_eq!(text(&waits.data()["items"][0], "id"), id);
    assert!(eve.sees("").await.is_empty());
    assert_eq!(text(approve(&ada).await.data(), "listing"), "listed");
    assert_eq!(
        (eve.sees("").await, eve.sees("?view=public").await),
        (vec!["Weather".to_owned()], vec!["Weather".to_owned()])
    );
    assert!(eve.sees("?view=own").await.is_empty());
    // It can be seen, and is still its author's.
    let path = format!("/api/apps/{id}");
    eve.put(&path, json!({ "name": "Mine" })).await.error(403, "FORBIDDEN");
    eve.delete(&path).await.error(403, "FORBIDDEN");
    // Words may change; abilities are looked at again.
    assert_eq!(text(bob.put(&path, json!({ "description": "More." })).await.data(), "listing"), "listed");
    let more = bob.put(&path, json!({ "scopes": ["message:read", "message:write", "contact:read"] })).await;
    assert_eq!(text(more.data(), "listing"), "pending");
    assert!(eve.sees("").await.is_empty());
    let blank = ada.is.post(&format!("{review}/reject"), &json!({ "reason": " " })).await;
    blank.error(400, "INVALID_PARAMS");
    let refused = ada.is.post(&format!("{review}/reject"), &json!({ "reason": "why contacts?" })).await;
    assert_eq!(text(refused.data(), "listing"), "rejected");
    assert_eq!(text(bob.is.get(&path).await.data(), "listing_reason"), "why contacts?");
    assert_eq!(text(bob.delete(&listing).await.data(), "listing"), "unlisted");
}

#[tokio::test]
async fn an_app_gets_on_a_bot_what_its_owner_grants() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let id = bob.app("Weather").await;
    // Others install what everybody finds.
    eve.install(json!({ "app_id": id })).await.error(404, "NOT_FOUND");
    let elsewhere = bob.is.post(&eve.installed("/install"), &json!({ "app_id": id })).await;
    elsewhere.error(404, "NOT_FOUND");
    let more = bob.install(json!({ "app_id": id, "scopes": ["message:read", "bot:read"] })).await;
    assert_eq!(fields(more.error(400, "INVALID_PARAMS")), ["scopes"]);
    let handle = bob.install(json!({ "app_id": id, "handle": "No!" })).await;
    assert_eq!(fields(handle.error(400, "INVALID_PARAMS")), ["handle"]);
    let made = bob.install(json!({ "app_id": id, "scopes": ["message:read"] })).await;
    let made = made.data();
    assert_eq!((text(made, "handle"), &made["scopes"]), ("weather", &json!(["message:read"])));
    let token = text(made, "app_token");
    assert!(token.starts_with("huba_") && token.ends_with(&text(made, "app_token_prefix")[8..]));
    bob.install(json!({ "app_id": id })).await.error(409, "CONFLICT");
    let other = bob.app("News").await;
    bob.install(json!({ "app_id": other, "handle": "weather" })).await.error(409, "CONFLICT");

    let list = bob.is.get(&bob.installed("")).await;
    assert_eq!(
        (&list.data()["items"][0]["id"], list.data()["items"].as_array().unwrap().len()),
        (&made["id"], 1)
    );
    assert!(!String::from_utf8(list.bytes).unwrap().contains(token));
    assert_eq!(bob.sees("?view=installed").await, ["Weather"]);
    let path = bob.installed(&format!("/{id}"));
    eve.put(&path, json!({ "enabled": false })).await.error(404, "NOT_FOUND");
    let changed =
        bob.put(&path, json!({ "scopes": ["message:write"], "handle": "sky", "enabled": false })).await;
    let changed = changed.data();
    assert_eq!((text(changed, "handle"), &changed["enabled"]), ("sky", &json!(false)));
    assert_eq!(changed["scopes"], json!(["message:write"]));
    bob.put(&path, json!({ "scopes": ["tools:write"] })).await.error(400, "INVALID_PARAMS");
    eve.delete(&path).await.error(404, "NOT_FOUND");
    bob.delete(&path).await.data();
    bob.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(bob.is.get(&bob.installed("")).await.data()["items"], json!([]));
}

#[tokio::test]
async fn an_app_that_begins_its_installation_itself_is_installed_there() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let setup = "https://weather.example/setup?lang=en";
    let made = bob.create(json!({ "name": "Weather", "setup_url": setup })).await;
    let id = text(made.data(), "id");
    let there = bob.install(json!({ "app_id": id })).await;
    let to = format!("http://localhost:9800/api/apps/{id}/oauth/setup?bot_id={}", bob.bot);
    assert_eq!(*there.data(), json!({ "needs_oauth": true, "oauth_redirect": to }));
    assert_eq!(bob.is.get(&bob.installed("")).await.data()["items"], json!([]));
    let path = to.trim_start_matches("http://localhost:9800");
    eve.is.get(path).await.error(404, "NOT_FOUND");
    let begins = bob.is.get(path).await;
    assert_eq!(begins.response.status(), 303);
    let url = url::Url::parse(begins.header("location").unwrap()).unwrap();
    let query: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
    assert!(url.as_str().starts_with(setup), "{url}");
    assert_eq!(
        (&*query["hub"], &*query["app_id"], &*query["bot_id"]),
        ("http://localhost:9800", id, &*bob.bot.to_string())
    );
    assert_eq!(query["return_url"], "http://localhost:9800/oauth/complete");
    assert!(query["state"].len() >= 20);
    assert!(fixture.app.text("/oauth/complete").await.contains("/oauth/complete.js"));
    assert!(fixture.app.text("/oauth/complete.js").await.contains("oauth_complete"));
}

#[tokio::test]
async fn an_app_receives_its_installation_and_may_set_its_url() {
    let fixture = Fixture::new().await;
    let (_, bob, _) = fixture.people().await;
    let made =
        bob.create(json!({ "name": "Weather", "redirect_uris": ["https://app.example/installed"] })).await;
    let (id, secret) = (text(made.data(), "id"), text(made.data(), "webhook_secret"));
    let installed = bob.install(json!({ "app_id": id })).await;
    let announced = fixture.server.announced.lock().unwrap().take().unwrap();
    let expected = json!({ "installation_id": installed.data()["id"], "app_token": installed.data()["app_token"],
        "webhook_secret": secret, "bot_id": bob.bot.to_string(), "handle": "weather",
        "hub_url": "http://localhost:9800" });
    assert_eq!(announced, expected);
    let app = bob.is.get(&format!("/api/apps/{id}")).await;
    assert_eq!(
        (text(app.data(), "webhook_url"), &app.data()["webhook_verified"]),
        ("http://app.example/hub", &json!(true))
    );
}

#[tokio::test]
async fn a_new_token_is_another_one_and_comes_once() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let id = bob.app("Weather").await;
    let made = bob.install(json!({ "app_id": id })).await;
    let path = bob.installed(&format!("/{id}/regenerate-token"));
    let fresh = bob.is.post(&path, &json!({})).await;
    assert_ne!(text(fresh.data(), "app_token"), text(made.data(), "app_token"));
    assert!(fresh.data().get("old_token_expires_at").is_none());
    let later = bob.is.post(&format!("{path}?grace_hours=1"), &json!({})).await;
    assert!(later.data()["old_token_expires_at"].is_string());
    for hours in ["0", "73"] {
        let refused = bob.is.post(&format!("{path}?grace_hours={hours}"), &json!({})).await;
        assert_eq!(fields(refused.error(400, "INVALID_PARAMS")), ["grace_hours"]);
    }
    eve.is.post(&path, &json!({})).await.error(404, "NOT_FOUND");
}
