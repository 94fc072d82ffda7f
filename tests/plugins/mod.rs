//! A plugin in the published form through the shipped server: submitted by its author, reviewed, installed by
//! someone else, and run around real deliveries until it is withdrawn.

mod command_line;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    port::ReceiverPort,
    receiver::Reply,
};

const SCRIPT: &str = include_str!("command_bridge.js");
const SECRET: &str = "a-webhook-secret-of-the-bridge";

struct Scene {
    network: NetworkProcess,
    port: ReceiverPort,
    /// The administrator, whose bot it is.
    ada: Caller,
    /// The author.
    bob: Caller,
    bot: String,
    wx_id: String,
    channel: String,
    server: HubProcess,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (network, port) = (NetworkProcess::start().await, ReceiverPort::open().await);
        let allow = port.address.to_string();
        let server =
            HubProcess::start(folder.path(), &network, &[("HUB_EGRESS_ALLOW", allow.as_str())]).await;
        let person = async |name: &str| {
            let mut caller = Caller::stranger(&server.url);
            let body = json!({ "username": name, "password": "correct horse battery staple" });
            caller.sign_in("/api/auth/register", body).await;
            caller
        };
        let (ada, bob) = (person("ada").await, person("bob").await);
        let (bot, wx_id) = network.bind(&ada).await;
        let channel = json!({
            "name": "commands",
            "webhook": {
                "url": format!("http://{}/hook", port.address),
                "auth": { "method": "hmac", "secret": SECRET },
            },
        });
        let made = ada.post(&format!("/api/bots/{bot}/channels"), channel).await;
        let channel = made["id"].as_str().unwrap().to_owned();
        Self { network, port, ada, bob, bot, wx_id, channel, server, _folder: folder }
    }

    fn plugins(&self) -> String {
        format!("/api/bots/{}/channels/{}/plugins", self.bot, self.channel)
    }

    /// Waits until the person got so many messages in all.
    async fn got(&self, count: usize) -> Vec<Value> {
        until("what the person reads", async || {
            let path = format!("/_sim/outbound?wx_id={}&wait_ms=1000", self.wx_id);
            let sent = self.network.control.control(&path, None).await;
            let items = sent["items"].as_array().unwrap().clone();
            (items.len() >= count).then_some(items)
        })
        .await
    }

    /// Writes, waits for the answer in the chat, which is one message, and gives it.
    async fn ask(&self, text: &str) -> Value {
        let path = format!("/_sim/outbound?wx_id={}", self.wx_id);
        let before = self.network.control.control(&path, None).await["items"].as_array().unwrap().len();
        self.network.say(&self.wx_id, text).await;
        self.got(before + 1).await.remove(before)
    }
}

#[tokio::test]
async fn a_published_plugin_is_reviewed_installed_and_does_what_its_author_means() {
    let scene = Scene::open().await;
    let version = submit_and_review(&scene).await;
    deliver(&scene).await;
    withdraw(&scene, &version).await;
}

/// Gives the id of the approved version.
async fn submit_and_review(scene: &Scene) -> String {
    let Scene { ada, bob, .. } = scene;
    let submitted = bob.post("/api/plugins", json!({ "script": SCRIPT })).await;
    assert_eq!(
        (&submitted["name"], &submitted["version"], &submitted["status"], &submitted["timeout_ms"]),
        (&json!("command-bridge"), &json!("1.3.0"), &json!("pending"), &json!(2000)),
        "the block is read, and its seconds are seconds"
    );
    let id = submitted["id"].as_str().unwrap();
    let install = json!({ "plugin_id": id });
    ada.refused(&format!("{}/install", scene.plugins()), install.clone(), 404, "NOT_FOUND").await;
    let pending = ada.get("/api/admin/plugins/pending").await["items"][0].clone();
    assert_eq!(pending["permissions"]["grants"], json!(["reply", "skip"]));
    assert!(pending["diff"].as_str().unwrap().contains("+var COMMAND"), "{pending}");
    let approve = format!("/api/admin/plugins/{id}/approve");
    ada.refused(&approve, json!({ "content_hash": "0".repeat(64) }), 409, "CONFLICT").await;
    bob.refused(&approve, json!({}), 403, "FORBIDDEN").await;
    ada.post(&approve, json!({ "content_hash": pending["content_hash"] })).await;
    let installed = ada.post(&format!("{}/install", scene.plugins()), install).await;
    assert_eq!((&installed["version"], &installed["enabled"]), (&json!("1.3.0"), &json!(true)));
    // Another version waits, and changes nothing for who has the first one.
    let newer = SCRIPT.replace("1.3.0", "1.4.0").replace("COMMAND.exec", "null && COMMAND.exec");
    let put = bob.call(Method::PUT, &format!("/api/plugins/{id}"), Some(json!({ "script": newer }))).await;
    assert_eq!((put.0.as_u16(), &put.1["data"]["status"]), (200, &json!("pending")), "{}", put.1);
    let installed = ada.get(&scene.plugins()).await["items"][0].clone();
    assert_eq!(installed["content_hash"], submitted["content_hash"]);
    submitted["version_id"].as_str().unwrap().to_owned()
}

async fn deliver(scene: &Scene) {
    let receiver = &scene.port.receiver;
    // Without a command the plugin answers itself, and nothing is posted.
    let told = scene.ask("hello").await;
    assert!(told["text"].as_str().unwrap().starts_with("Commands begin with a slash, "), "{told}");
    assert!(receiver.received().is_empty());
    let answers = [
        Reply::json(&json!({ "text": "42 is on its way" })),
        Reply::json(&json!({ "image": "data:image/png;base64,iVBORw0KGgo=" })),
        Reply::json(&json!({ "file": "YSxiCg==", "name": "orders.csv" })),
        Reply::text("application/pdf", "%PDF-1.7 and so on"),
    ];
    receiver.then("/hook", answers);
    assert_eq!(scene.ask("/order 42").await["text"], "42 is on its way");
    let request = receiver.received().remove(0);
    assert_eq!(request.header("x-command"), "order");
    let body = json!({ "command": "order", "rest": "42", "channel": scene.channel });
    assert_eq!(request.json(), body);
    assert!(request.is_signed_with(SECRET), "it is signed after the plugin changed it");
    for (text, kind, name) in [
        ("/picture", "image", None),
        ("/list", "file", Some("orders.csv")),
        ("/invoice", "file", Some("file.pdf")),
    ] {
        let sent = scene.ask(text).await;
        assert_eq!((&sent["media"]["kind"], &sent["opened"]), (&json!(kind), &json!(true)), "{sent}");
        if let Some(name) = name {
            assert_eq!(sent["media"]["file_name"], name, "{sent}");
        }
    }
    let traces = scene.ada.get(&format!("/api/bots/{}/traces?status=ok", scene.bot)).await;
    let newest = traces["items"][0]["trace_id"].as_str().unwrap();
    let trace = scene.ada.get(&format!("/api/bots/{}/traces/{newest}", scene.bot)).await;
    let steps = trace["steps"].as_array().unwrap();
    let of_plugin = |name: &str| steps.iter().find(|step| step["name"] == name).unwrap()["detail"].clone();
    let before = of_plugin("plugin.on_request");
    assert_eq!((&before["plugin"], &before["version"]), (&json!("command-bridge"), &json!("1.3.0")));
    assert_eq!(before["changes"]["headers"], json!(["+ x-command: invoice"]));
    assert!(of_plugin("plugin.on_response")["duration_us"].as_u64().unwrap() > 0);
    assert!(!trace.to_string().contains(SECRET));
}

/// A withdrawn version no longer runs, and the audit log records both actions.
async fn withdraw(scene: &Scene, version: &str) {
    let path = format!("/api/admin/plugins/{version}/reject");
    let withdrawn = scene.ada.post(&path, json!({ "reason": "found to be wrong" })).await;
    assert!(withdrawn["approved_version"].is_null(), "{withdrawn}");
    let before = scene.port.receiver.received().len();
    scene.network.say(&scene.wx_id, "no command at all").await;
    let request =
        until("the plain message", async || scene.port.receiver.received().get(before).cloned()).await;
    assert_eq!(request.json()["content"], "no command at all");
    assert_eq!(request.header("x-command"), "");
    let log = scene.ada.get("/api/admin/audit?limit=200").await;
    let acts: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| matches!(entry["action"].as_str(), Some("plugin.approved" | "plugin.withdrawn")))
        .collect();
    let words: Vec<_> = acts.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(words, ["plugin.withdrawn", "plugin.approved"]);
    assert_eq!(
        (&acts[0]["actor_name"], &acts[0]["target_name"], &acts[0]["detail"]["reason"]),
        (&json!("ada"), &json!("command-bridge"), &json!("found to be wrong"))
    );
    assert_eq!(
        (&acts[0]["detail"]["version_id"], &acts[1]["detail"]["version"]),
        (&json!(version), &json!("1.3.0"))
    );
}
