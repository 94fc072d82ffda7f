//! One story from outside, against the shipped programs: from the first user to a crash in the middle of work
//! and back, on each database.

use std::path::Path;

use hub_core::{secret::Secret, store::StoreConfig};
use serde_json::{Value, json};

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    port::ReceiverPort,
    postgres,
    receiver::Reply,
};

const SECRET: &str = "a-webhook-secret-of-the-story";

/// A server on a folder and, maybe, a database.
async fn serve(
    folder: &Path,
    database: Option<&Secret>,
    network: &NetworkProcess,
    port: &ReceiverPort,
) -> HubProcess {
    let allow = port.address.to_string();
    let mut settings = vec![("HUB_EGRESS_ALLOW", allow.as_str()), ("HUB_LOG", "info")];
    settings.extend(database.map(|url| ("HUB_DATABASE_URL", url.expose())));
    HubProcess::start(folder, network, &settings).await
}

#[tokio::test]
async fn the_story_on_sqlite() {
    tell(None).await;
}

#[tokio::test]
async fn the_story_on_postgres() {
    let Some(server) = postgres::server() else { return };
    let config = server.create_database().await;
    let StoreConfig::Postgres(url) = &config else { panic!("a PostgreSQL server makes such databases") };
    tell(Some(url)).await;
    server.drop_database(&config).await;
}

async fn tell(database: Option<&Secret>) {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let sim = &network.control;
    let mut port = ReceiverPort::open().await;
    let server = serve(folder.path(), database, &network, &port).await;
    let stranger = Caller::stranger(&server.url);

    let ada = first_user(&stranger).await;
    let (bot, wx_id) = bind(&ada, sim).await;
    until("the bot is online", async || {
        (ada.get(&format!("/api/bots/{bot}")).await["status"] == "online").then_some(())
    })
    .await;
    let channel = make_channel(&ada, &bot, &port).await;
    message_and_reply(&ada, sim, &port, &bot, &wx_id).await;
    replay(&ada, &port, &bot).await;
    own_send(&ada, sim, &bot, &wx_id).await;
    stranger.refused(&format!("/api/bots/{bot}/send"), json!({ "content": "x" }), 401, "UNAUTHORIZED").await;

    // The receiver is down and work is pending when the process is killed.
    let before = port.contents().len();
    port.close().await;
    let texts: Vec<String> = (0..20).map(|n| format!("order {n:02}")).collect();
    say(sim, &wx_id, &texts).await;
    until("all are taken in", async || {
        let listed = ada.get(&format!("/api/bots/{bot}/messages?limit=200&q=order%20")).await;
        let taken = items(&listed).iter().filter(|one| one["direction"] == "inbound").count();
        (taken > texts.len()).then_some(())
    })
    .await;
    server.process.kill().await;
    // What is said while no one listens is fetched later.
    say(sim, &wx_id, &["order while down".to_owned()]).await;

    let server = serve(folder.path(), database, &network, &port).await;
    let ada = ada.at(&server.url);
    assert_eq!(ada.get("/api/auth/me").await["username"], "ada", "the session outlives the process");
    port.reopen().await;
    let received = until("the pending messages", async || {
        let contents = port.contents();
        contents.iter().any(|text| text == "order while down").then(|| port.receiver.received())
    })
    .await;
    let (mut ids, mut contents) = (Vec::new(), Vec::new());
    for one in &received[before..] {
        assert!(one.is_signed_with(SECRET));
        ids.push(one.header("webhook-id").to_owned());
        contents.push(one.json()["content"].as_str().unwrap().to_owned());
    }
    let expected: Vec<String> = texts.into_iter().chain(["order while down".to_owned()]).collect();
    assert_eq!(contents, expected, "all of them, each once, in their order");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), expected.len(), "one id per message");
    // The receiver knows before the hub's commit does.
    let stats = until("the last outcome is stored", async || {
        let shown = ada.get(&format!("/api/bots/{bot}/channels/{channel}")).await;
        (shown["stats"]["pending"] == 0).then(|| shown["stats"].clone())
    })
    .await;
    assert_eq!(stats["failed"], 0, "{stats}");

    let (ended, log) = server.process.terminate().await;
    assert!(ended.success(), "{ended}:\n{log}");
    for secret in [SECRET, "correct horse battery staple"] {
        assert!(!log.contains(secret), "a secret is in the log");
    }
    let (ended, log) = network.process.terminate().await;
    assert!(ended.success(), "{ended}:\n{log}");
}

fn items(listed: &Value) -> &Vec<Value> {
    listed["items"].as_array().unwrap()
}

/// The owner of the bot writes.
async fn say(sim: &Caller, wx_id: &str, texts: &[String]) {
    let messages: Vec<Value> = texts.iter().map(|text| json!({ "wx_id": wx_id, "text": text })).collect();
    sim.control("/_sim/messages", Some(json!({ "messages": messages }))).await;
}

/// The first user is admin; a second one is not, and sees nothing of the first.
async fn first_user(stranger: &Caller) -> Caller {
    let credentials = json!({ "username": "ada", "password": "correct horse battery staple" });
    let mut ada = stranger.clone();
    assert_eq!(ada.sign_in("/api/auth/register", credentials.clone()).await["role"], "admin");
    let mut ada = stranger.clone();
    let me = ada.sign_in("/api/auth/login", credentials).await;
    assert_eq!(me["username"], "ada");
    let wrong = json!({ "username": "ada", "password": "correct horse battery stapl3" });
    stranger.refused("/api/auth/login", wrong, 401, "UNAUTHORIZED").await;
    let mut bob = stranger.clone();
    let second = json!({ "username": "bob", "password": "another long password" });
    assert_eq!(bob.sign_in("/api/auth/register", second).await["role"], "member");
    assert!(items(&bob.get("/api/bots").await).is_empty());
    ada
}

/// A code is shown, scanned and confirmed.
async fn bind(ada: &Caller, sim: &Caller) -> (String, String) {
    let bind = ada.post("/api/bots/bind/start", json!({ "network": "sim", "name": "desk" })).await;
    assert!(bind["qr_svg"].as_str().unwrap().contains("<svg"));
    let code = json!({ "qr_text": bind["qr_text"] });
    sim.control("/_sim/scan", Some(code.clone())).await;
    let account = sim.control("/_sim/confirm", Some(code)).await;
    let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
    let bot = until("the login", async || {
        let step = ada.post("/api/bots/bind/confirm", ask.clone()).await;
        (step["status"] == "confirmed").then(|| step["bot"]["id"].as_str().unwrap().to_owned())
    })
    .await;
    (bot, account["wx_id"].as_str().unwrap().to_owned())
}

async fn make_channel(ada: &Caller, bot: &str, port: &ReceiverPort) -> String {
    let channel = json!({
        "name": "orders",
        "filter": { "keywords": ["order"] },
        "webhook": {
            "enabled": true,
            "url": format!("http://{}/hook", port.address),
            "auth": { "method": "hmac", "secret": SECRET },
            "auto_reply": true,
            // Enough retries to outlive the time without a receiver.
            "retry": { "schedule_s": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] },
        },
    });
    let made = ada.post(&format!("/api/bots/{bot}/channels"), channel).await;
    assert!(made["api_key"].as_str().unwrap().starts_with("hubc_"));
    assert!(!made.to_string().contains(SECRET), "a secret is not shown again");
    made["id"].as_str().unwrap().to_owned()
}

/// A message that the filter takes is delivered, signed, and answered; one that it does not take is not.
async fn message_and_reply(ada: &Caller, sim: &Caller, port: &ReceiverPort, bot: &str, wx_id: &str) {
    port.receiver.then("/hook", [Reply::json(&json!({ "reply": "42 is on its way" }))]);
    say(sim, wx_id, &["how is the weather?".to_owned(), "order 42".to_owned()]).await;
    let request = until("the webhook", async || port.receiver.received().first().cloned()).await;
    assert!(request.is_signed_with(SECRET) && request.is_standard_signed_with(SECRET));
    let body = request.json();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook"));
    assert_eq!(
        (&body["type"], &body["content"], &body["msg_type"]),
        (&json!("message"), &json!("order 42"), &json!(1))
    );
    assert_eq!(body["bot_id"], bot);
    assert_eq!(ada.get(&format!("/api/bots/{bot}")).await["status"], "online");
    let sent = sim.control(&format!("/_sim/outbound?wx_id={wx_id}&wait_ms=20000"), None).await;
    assert_eq!(sent["items"][0]["text"], "42 is on its way");
    let trace = until("the trace", async || {
        let listed = ada.get(&format!("/api/bots/{bot}/traces?status=ok")).await;
        let id = items(&listed).first()?["trace_id"].as_str()?.to_owned();
        let trace = ada.get(&format!("/api/bots/{bot}/traces/{id}")).await;
        let steps = trace["steps"].as_array()?.clone();
        steps.iter().any(|step| step["kind"] == "outbox" && step["status"] == "ok").then_some(trace)
    })
    .await;
    let steps = trace["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["received", "filter", "request", "response"], "{trace}");
    assert!(
        steps.iter().all(|step| step["started_at"].is_string() && step["duration_ms"].is_u64()),
        "{trace}"
    );
    assert!(!trace.to_string().contains(SECRET));
    let skipped = ada.get(&format!("/api/bots/{bot}/traces?status=skipped")).await;
    assert_eq!(items(&skipped).len(), 1);
    assert_eq!(port.contents(), ["order 42"], "the weather is no one's business");
}

async fn replay(ada: &Caller, port: &ReceiverPort, bot: &str) {
    let listed = ada.get(&format!("/api/bots/{bot}/traces?status=ok")).await;
    let first = &items(&listed)[0];
    assert_eq!(first["preview"], "order 42");
    assert!(first["channel_name"].is_string() && first["user_id"].is_string(), "{first}");
    assert!(
        first.get("steps").is_none() && first.get("message").is_none(),
        "nothing was to be added: {first}"
    );
    let whole = ada.get(&format!("/api/bots/{bot}/traces?status=ok&expand=steps,message")).await;
    let expanded = &items(&whole)[0];
    assert_eq!(expanded["message"]["content"], "order 42");
    assert_eq!(expanded["message"]["id"], first["message_id"]);
    assert!(expanded["steps"].as_array().is_some_and(|steps| steps.len() >= 4), "{expanded}");
    let id = first["trace_id"].as_str().unwrap().to_owned();
    let replayed = ada.post(&format!("/api/bots/{bot}/traces/{id}/replay"), json!({})).await;
    assert_ne!(replayed["trace_id"], id.as_str());
    until("the replay", async || (port.contents() == ["order 42", "order 42"]).then_some(())).await;
}

async fn own_send(ada: &Caller, sim: &Caller, bot: &str, wx_id: &str) {
    let accepted = ada.post(&format!("/api/bots/{bot}/send"), json!({ "content": "order shipped 📦" })).await;
    assert_eq!(accepted["status"], "queued");
    until("the send", async || {
        let sent = sim.control(&format!("/_sim/outbound?wx_id={wx_id}"), None).await;
        items(&sent).iter().any(|one| one["text"] == "order shipped 📦").then_some(())
    })
    .await;
}
