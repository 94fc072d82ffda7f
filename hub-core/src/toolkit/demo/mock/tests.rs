//! Tests of the test bed for apps: its calls, its resets, and a restart of the hub.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;

use super::*;
use crate::{
    demo::{DemoListener, DemoReceiver, connector, renew_logins},
    egress::EgressConfig,
    network::sim::SimConfig,
    random::Random,
    store::StoreConfig,
    time::Clock,
};

/// An app that returns challenges, and records its events.
#[derive(Default)]
struct Echo(std::sync::Mutex<Vec<(HeaderMap, Value)>>);

#[async_trait]
impl LocalService for Echo {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let data = &body["event"]["data"];
        let text = data["content"].as_str().or(data["text"].as_str()).unwrap_or_default();
        let answer = match body["type"].as_str() {
            Some("url_verification") => json!({ "challenge": body["challenge"] }),
            _ => json!({ "reply": format!("{}: {text}", body["event"]["type"].as_str().unwrap()) }),
        };
        self.0.lock().unwrap().push((request.headers().clone(), body));
        Ok(Response::new(Bytes::from(answer.to_string())))
    }
}

impl Echo {
    fn events(&self) -> Vec<Value> {
        let received = self.0.lock().unwrap();
        received
            .iter()
            .filter(|(_, body)| body["type"] == "event")
            .map(|(_, body)| body["event"].clone())
            .collect()
    }
}

struct World {
    hub: Hub,
    simulator: Simulator,
    mock: AppMock,
    app: Arc<Echo>,
}

async fn open(folder: &tempfile::TempDir, webhook_url: Option<&str>) -> World {
    let setup = MockSetup {
        webhook_url: webhook_url.map(str::to_owned),
        commands: vec!["/search".to_owned()],
        ..MockSetup::default()
    };
    open_with(folder, setup).await
}

async fn open_with(folder: &tempfile::TempDir, setup: MockSetup) -> World {
    let (clock, random) = (Clock::system(), Random::system());
    let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
    let app = Arc::new(Echo::default());
    let mut egress = EgressConfig::default();
    egress.in_process.insert("app.example".to_owned(), app.clone());
    let hub = Hub::builder()
        .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
        .secret_key([7; 32])
        .network(connector(&simulator, clock, random).unwrap())
        .egress(egress);
    let hub = hub.open().await.unwrap();
    renew_logins(&hub, &simulator).await.unwrap();
    hub.start().await.unwrap();
    let mock = AppMock::new(hub.clone(), simulator.clone(), setup);
    World { hub, simulator, mock, app }
}

impl World {
    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder().method(method).uri(format!("http://sim.local/mock/{path}"));
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let answer = self.mock.call(request.body(body).unwrap()).await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap())
    }

    async fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// The texts that people got, once there are so many.
    async fn got(&self, count: usize) -> Vec<String> {
        for _ in 0..1_000 {
            let messages = self.done("GET", "messages?wait_ms=20000", Value::Null).await;
            let got = messages["provider_messages"].as_array().unwrap();
            if got.len() >= count {
                let line = |one: &Value| {
                    format!("{} {}", one["to"].as_str().unwrap(), one["text"].as_str().unwrap())
                };
                return got.iter().map(line).collect();
            }
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        panic!("people got fewer than {count} messages");
    }
}

const URL: &str = "http://app.example/hook";

#[tokio::test]
async fn the_app_receives_messages_and_its_replies_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder, Some(URL)).await;
    let config = world.done("GET", "config", Value::Null).await;
    assert_eq!((&config["app_slug"], &config["handle"]), (&json!("test-app"), &json!("test-app")));
    assert_eq!((&config["webhook_url"], &config["webhook_verified"]), (&json!(URL), &json!(true)));
    assert_eq!(config["hub_url"], "http://localhost:9800");
    assert!(config["app_token"].as_str().unwrap().starts_with("huba_"));
    assert_eq!(config["inst_id"], config["installation_id"]);
    assert_eq!(config["scopes"].as_array().unwrap().len(), 6);
    for said in [
        json!({ "content": "hello" }),
        json!({ "sender": "user_alice", "content": "@test-app tomorrow?" }),
        json!({ "sender": "user_alice", "content": "/search hello world", "type": "text" }),
    ] {
        let answer = world.done("POST", "event", said).await;
        assert_eq!(answer["ok"], true);
        assert!(!answer["external_id"].as_str().unwrap().is_empty());
        world.got(world.app.events().len().max(1)).await;
    }
    let mut got = world.got(3).await;
    got.sort();
    assert_eq!(
        got,
        [
            "user_alice command: hello world",
            "user_alice message.text: tomorrow?",
            "user_test message.text: hello"
        ]
    );
    let messages = world.done("GET", "messages", Value::Null).await;
    let first = &messages["store_messages"][0];
    assert_eq!(first["items"], json!([{ "type": "text", "text": "message.text: hello" }]), "{messages}");
    assert_eq!(first["to"], "user_test");
    assert!(first["created_at"].as_i64().unwrap() > 1_700_000_000);
    // The people's first words came before the app.
    assert_eq!(world.app.events().len(), 3);
    world.hub.shutdown().await;
}

#[tokio::test]
async fn a_suite_that_chose_token_and_bot_finds_them_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (app_token, bot_id) = (Some("test-runner-token".to_owned()), Some("mock-bot".to_owned()));
    let world = open_with(&folder, MockSetup { app_token, bot_id, ..MockSetup::default() }).await;
    let config = world.done("GET", "config", Value::Null).await;
    assert_eq!((&config["app_token"], &config["bot_id"]), (&json!("test-runner-token"), &json!("mock-bot")));
    let hub_bot_id = config["hub_bot_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(world.hub.bots().get(&Actor::Operator, hub_bot_id).await.unwrap().name, "mock-bot");
    let token = world.mock.token().await.unwrap();
    assert!(world.hub.apps().authenticate_token(token.expose()).await.is_ok());
    world.hub.shutdown().await;
}

#[tokio::test]
async fn groups_and_files_come_as_their_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder, Some(URL)).await;
    for (at, kind) in ["image", "voice", "file", "video"].into_iter().enumerate() {
        let said = json!({ "type": kind, "filename": "plan.pdf", "group_id": "group_1" });
        world.done("POST", "event", said).await;
        for _ in 0..1_000 {
            if world.app.events().len() > at {
                break;
            }
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        let events = world.app.events();
        assert_eq!(events[at]["type"], format!("message.{kind}"));
        assert_eq!(events[at]["data"]["msg_type"], kind);
        assert_eq!(events[at]["data"]["group"], json!({ "id": "group_1" }));
    }
    world.hub.shutdown().await;
}

#[tokio::test]
async fn recorded_messages_are_deleted_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder, Some(URL)).await;
    world.done("POST", "event", json!({ "content": "one" })).await;
    world.got(1).await;
    for method in ["POST", "DELETE"] {
        assert_eq!(world.done(method, "reset", Value::Null).await, json!({ "ok": true }));
        let messages = world.done("GET", "messages", Value::Null).await;
        assert_eq!(messages, json!({ "store_messages": [], "provider_messages": [] }));
    }
    world.done("POST", "event", json!({ "content": "two" })).await;
    assert_eq!(world.got(1).await, ["user_test message.text: two"]);
    world.hub.shutdown().await;
}

#[tokio::test]
async fn the_app_is_changed_and_mistakes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder, None).await;
    let before = world.done("GET", "config", Value::Null).await;
    assert_eq!((&before["webhook_url"], &before["webhook_verified"]), (&Value::Null, &json!(false)));
    let change = json!({ "webhook_url": URL, "scopes": ["message:read"], "tools": [{ "name": "t", "command": "/t" }] });
    let after = world.done("PUT", "config", change).await;
    assert_eq!((&after["webhook_verified"], &after["scopes"]), (&json!(true), &json!(["message:read"])));
    assert_eq!((&after["tools"][0]["command"], &after["app_token"]), (&json!("t"), &before["app_token"]));
    for (method, path, body, status, expected) in [
        ("PUT", "config", json!({ "webhook": URL }), 400, "webhook"),
        ("PUT", "config", json!({ "webhook_url": "http://10.0.0.1/" }), 400, "webhook_url"),
        ("POST", "event", json!({}), 400, "content"),
        ("POST", "event", json!({ "content": "x", "type": "sticker" }), 400, "type"),
        ("POST", "event", json!({ "type": "file", "base64": "%" }), 400, "base64"),
        ("POST", "event", json!("x"), 400, "body"),
        ("GET", "messages?wait_ms=soon", Value::Null, 400, "wait_ms"),
        ("GET", "event", Value::Null, 404, "not found"),
        ("GET", "nothing", Value::Null, 404, "not found"),
    ] {
        let (got, answer) = world.call(method, path, body).await;
        assert_eq!((got, &answer["ok"]), (status, &json!(false)), "{method} {path}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{expected}: {answer}");
    }
    world.hub.shutdown().await;
}

#[tokio::test]
async fn a_restart_keeps_the_app_and_recreates_a_deleted_one() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(&folder, Some(URL)).await;
    let before = first.done("GET", "config", Value::Null).await;
    first.hub.shutdown().await;
    let second = open(&folder, Some(URL)).await;
    let after = second.done("GET", "config", Value::Null).await;
    for same in ["bot_id", "app_id", "inst_id", "webhook_secret", "webhook_verified"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert_ne!(before["app_token"], after["app_token"]);
    let apps = second.hub.apps();
    for token in [&before, &after] {
        let token = token["app_token"].as_str().unwrap();
        assert!(apps.authenticate_token(token).await.is_ok(), "the one from before is good for a while");
    }
    second.done("POST", "event", json!({ "content": "again" })).await;
    assert_eq!(second.got(1).await, ["user_test message.text: again"]);
    let id = after["app_id"].as_str().unwrap().parse().unwrap();
    apps.delete(&Actor::Operator, id).await.unwrap();
    let anew = second.done("GET", "config", Value::Null).await;
    assert_ne!(anew["app_id"], after["app_id"]);
    assert!(apps.authenticate_token(anew["app_token"].as_str().unwrap()).await.is_ok());
    second.hub.shutdown().await;
}

#[tokio::test]
async fn the_listener_has_the_calls_in_development_and_a_reset_of_the_network_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let world = open(&folder, Some(URL)).await;
    let listener = |mock: Option<AppMock>| DemoListener {
        simulator: world.simulator.clone(),
        receiver: DemoReceiver::new(Clock::system()),
        hub: Some(world.hub.clone()),
        mock,
    };
    let call = async |listener: &DemoListener, method: &str, path: &str| {
        let request = Request::builder().method(method).uri(format!("http://sim.local{path}"));
        listener.call(request.body(Bytes::new()).unwrap()).await.unwrap().status()
    };
    let (with, without) = (listener(Some(world.mock.clone())), listener(None));
    assert_eq!(call(&without, "GET", "/mock/config").await, StatusCode::NOT_FOUND);
    assert_eq!(call(&with, "GET", "/mock/config").await, StatusCode::OK);
    let of_a_page = Request::post("http://sim.local/mock/event").header("origin", "https://evil.example");
    let refused = with.call(of_a_page.body("{\"content\":\"of a page\"}".into()).unwrap()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    world.done("POST", "event", json!({ "content": "before" })).await;
    world.got(1).await;
    world.done("POST", "reset", Value::Null).await;
    assert_eq!(call(&with, "POST", "/_sim/reset").await, StatusCode::OK);
    world.done("POST", "event", json!({ "content": "after" })).await;
    assert_eq!(world.got(1).await, ["user_test message.text: after"]);
    world.hub.shutdown().await;
}
