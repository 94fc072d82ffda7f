//! Requests that wait for another server end when their client disconnects: the other server sees the connection of the
//! hub close, long before the hub's own limit of the wait. Requests with effects outlive their clients.

use std::time::Duration;

use hub_core::time::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    gateway::stage::Stage,
    support::{
        fault_receiver::{Behaviour, FaultReceiver, Seen},
        http::{Caller, until},
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// Half of the shortest limit that would end one of the waits without the disconnect.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// Interval at which the other server is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

/// A server that reads requests and does not respond.
async fn unresponsive() -> FaultReceiver {
    let behaviour =
        Behaviour::new("unresponsive", "never responds", Seen::Status(200), |mut peer| async move {
            peer.read_request().await;
            peer.hold().await;
        });
    FaultReceiver::open(&behaviour).await
}

/// Sends a POST on a connection of its own, without reading the response.
async fn post(hub: &str, path: &str, credential: &str, body: &Value) -> TcpStream {
    let (host, body) = (hub.strip_prefix("http://").unwrap(), body.to_string());
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {credential}\r\n\
         authorizationtype: ilink_bot_token\r\nx-wechat-uin: MA==\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Polls until `look` is true; `false` after [`ENDS_WITHIN`].
async fn soon(look: impl Fn() -> bool) -> bool {
    let clock = Clock::system();
    let looks = async {
        while !look() {
            clock.sleep(INTERVAL).await;
        }
    };
    clock.timeout(ENDS_WITHIN, looks).await.is_some()
}

/// Disconnects a client whose request waits for a server, and expects the hub to disconnect from that server.
async fn disconnect(client: TcpStream, server: &FaultReceiver, what: &str) {
    let exchange = || server.exchanges().pop().filter(|exchange| !exchange.requests.is_empty());
    until(&format!("{what}: the request to the other server"), async || exchange()).await;
    assert!(exchange().unwrap().lasted.is_none(), "{what}: the hub waits");
    drop(client);
    assert!(
        soon(|| exchange().is_some_and(|exchange| exchange.lasted.is_some())).await,
        "{what}: it waits on"
    );
}

async fn put(ada: &Caller, path: &str, body: Value) {
    let (status, answer, _) = ada.call(Method::PUT, path, Some(body)).await;
    assert!(status.is_success(), "{path}: {answer}");
}

async fn key_of(ada: &Caller) -> String {
    ada.post("/api/user/api-keys", json!({ "name": "test" })).await["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_wait_for_the_next_step_of_a_bind_ends_with_its_client() {
    let code = r#"{"qrcode":"code","qrcode_img_content":"https://example.com/code"}"#;
    let network =
        Behaviour::new("network", "has a code, and no scan", Seen::Status(200), move |mut peer| async move {
            let Some(request) = peer.read_request().await else { return };
            if !request.head.contains("get_bot_qrcode") {
                return peer.hold().await;
            }
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", code.len());
            peer.send(format!("{head}{code}")).await;
        });
    let network = FaultReceiver::open(&network).await;
    let url = format!("http://{}", network.address);
    let (folder, unused) = (tempfile::tempdir().unwrap(), NetworkProcess::start().await);
    let hub = HubProcess::start(folder.path(), &unused, &[("HUB_SIM_URL", &url)]).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let key = key_of(&ada).await;
    let bind = ada.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
    let wait = json!({ "bind_id": bind["bind_id"], "wait_ms": 30_000 });
    let client = post(&hub.url, "/api/bots/bind/confirm", &key, &wait).await;
    let polls =
        || network.requests().iter().filter(|request| request.head.contains("get_qrcode_status")).count();
    until("the poll at the network", async || (polls() == 1).then_some(())).await;
    disconnect(client, &network, "bind/confirm").await;
    assert_eq!(polls(), 1, "the network is not polled again");
    // The log has the status that means a client that disconnected, not a failure of the hub.
    until("the line about the request", async || {
        let log = hub.process.log();
        log.lines().any(|line| line.contains("bind/confirm") && line.contains("499")).then_some(())
    })
    .await;
    // The login is not changed by it.
    let step = ada.get(&format!("/api/binds/{}", bind["bind_id"].as_str().unwrap())).await;
    assert_eq!(step["status"], "waiting", "{step}");
}

#[tokio::test]
async fn tests_of_models_and_webhooks_end_with_their_client() {
    let stage = Stage::with(&[("HUB_EGRESS_ALLOW", "127.0.0.0/8")]).await;
    let (url, key) = (&stage.hub.url, key_of(&stage.ada).await);
    let (channel, nothing) = (stage.channel_path(), json!({}));

    let model = unresponsive().await;
    let base_url = format!("http://{}/v1", model.address);
    put(&stage.ada, "/api/admin/ai-config", json!({ "base_url": base_url, "api_key": "sk-test" })).await;
    let client = post(url, "/api/admin/ai-config/test", &key, &nothing).await;
    disconnect(client, &model, "the test of the hub's model").await;

    let model = unresponsive().await;
    let base_url = format!("http://{}/v1", model.address);
    let sink = json!({ "source": "custom", "base_url": base_url, "api_key": "sk-test", "model": "m",
        "timeout_ms": 60_000 });
    put(&stage.ada, &format!("{channel}/ai"), sink).await;
    let client = post(url, &format!("{channel}/ai/test"), &key, &nothing).await;
    disconnect(client, &model, "the test of a channel's model").await;

    let receiver = unresponsive().await;
    let sink = json!({ "url": receiver.url(), "timeout_ms": 30_000 });
    put(&stage.ada, &format!("{channel}/webhook"), sink).await;
    let client = post(url, &format!("{channel}/webhook/test"), &key, &nothing).await;
    disconnect(client, &receiver, "the test of a webhook").await;
}

#[tokio::test]
async fn the_download_of_a_file_ends_with_the_client_that_sends_it() {
    let stage = Stage::with(&[("HUB_EGRESS_ALLOW", "127.0.0.0/8")]).await;
    let (url, key) = (&stage.hub.url, key_of(&stage.ada).await);
    let app = json!({ "name": "Files", "scopes": ["message:write"] });
    let app = stage.ada.post("/api/apps", app).await;
    let install = format!("/api/bots/{}/apps/install", stage.bot);
    let installed = stage.ada.post(&install, json!({ "app_id": app["id"] })).await;
    let token = installed["app_token"].as_str().unwrap();
    // The owner of the account may be written to.
    stage.network.say(&stage.wx_id, "hello").await;
    let list = format!("/api/bots/{}/messages", stage.bot);
    let messages = async || stage.ada.get(&list).await["items"].as_array().unwrap().clone();
    until("the message", async || messages().await.pop()).await;

    let files = unresponsive().await;
    let arguments = json!({ "type": "file", "url": files.url() });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "send_message", "arguments": arguments } });
    disconnect(post(url, "/mcp", token, &call).await, &files, "MCP").await;
    let files = unresponsive().await;
    let body = json!({ "type": "file", "url": files.url() });
    disconnect(post(url, "/bot/v1/messages/send", token, &body).await, &files, "the bot API").await;
    let files = unresponsive().await;
    let body = json!({ "media": { "url": files.url() } });
    let path = format!("/api/bots/{}/send", stage.bot);
    disconnect(post(url, &path, &key, &body).await, &files, "the API").await;

    // A message that needs no download is sent, although its client does not wait for the response.
    drop(post(url, &path, &key, &json!({ "content": "stored" })).await);
    until("the message of a client that disconnected", async || {
        messages().await.iter().any(|message| message["content"] == "stored").then_some(())
    })
    .await;
    assert_eq!(messages().await.len(), 2, "one was received and one sent");
}

#[tokio::test]
async fn a_poll_of_a_program_ends_with_its_client() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    let ended = || {
        let log = stage.hub.process.log();
        log.lines().filter(|line| line.contains(r#""route":"/ilink/bot/getupdates""#)).count()
    };
    let body = json!({ "get_updates_buf": "", "base_info": {} });
    // Only this one poll: a third one would end the oldest.
    let client = post(&stage.hub.url, "/ilink/bot/getupdates", &program.token, &body).await;
    Clock::system().sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(), 0, "the poll waits");
    drop(client);
    assert!(soon(|| ended() == 1).await, "the poll waits on");
}
