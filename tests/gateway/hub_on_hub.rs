//! A hub whose network is the gateway of another hub: the connector of this project as the client, with the cases of the
//! protocol that the network itself decides nothing about (`tests/conformance` has the others, against the simulator).

use hub_core::media::MediaState;
use reqwest::Method;
use serde_json::{Value, json};

use super::stage::{Stage, confirm, open};
use crate::support::{
    http::{Caller, until},
    hub_process::HubProcess,
};

/// The network, the hub with the gateway, and the hub that uses it.
struct Chain {
    near: Stage,
    folder: tempfile::TempDir,
    far: HubProcess,
    /// The owner of the bot at the far hub.
    bea: Caller,
    bot: String,
}

impl Chain {
    async fn start() -> Self {
        let near = Stage::start().await;
        let folder = tempfile::tempdir().unwrap();
        let far = Self::far(&near, folder.path()).await;
        let mut bea = Caller::stranger(&far.url);
        bea.sign_in("/api/auth/register", json!({ "username": "bea", "password": "tr0mbone solo" })).await;
        // L4: a code that is rejected has expired for the program, which shows another one.
        let bind = bea.post("/api/bots/bind/start", json!({ "network": "ilink" })).await;
        let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
        let rejected = open(&near.ada, bind["qr_text"].as_str().unwrap()).await;
        near.ada.post("/api/ilink/logins/reject", json!({ "login_id": rejected })).await;
        let code = until("another code", async || {
            let step = bea.post("/api/bots/bind/confirm", ask.clone()).await;
            let code = step["qr_text"].as_str()?.to_owned();
            (code != bind["qr_text"]).then_some(code)
        })
        .await;
        // L1, L2: the code of the near hub is shown, opened and confirmed.
        let login = open(&near.ada, &code).await;
        until("the code is scanned", async || {
            let step = bea.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "scanned").then_some(())
        })
        .await;
        confirm(&near.ada, &login, &near.channel).await;
        let bot = until("the login", async || {
            let step = bea.post("/api/bots/bind/confirm", ask.clone()).await;
            (step["status"] == "confirmed").then(|| step["bot"].clone())
        })
        .await;
        assert_eq!(bot["wx_id"], near.wx_id, "the account of the network");
        let bot = bot["id"].as_str().unwrap().to_owned();
        Self { near, folder, far, bea, bot }
    }

    async fn far(near: &Stage, folder: &std::path::Path) -> HubProcess {
        let cdn = format!("{}/c2c", near.hub.url);
        let settings = [
            ("HUB_NETWORK", "ilink"),
            ("HUB_ILINK_BASE_URL", near.hub.url.as_str()),
            ("HUB_ILINK_CDN_URL", &cdn),
            ("HUB_EGRESS_ALLOW", near.hub.url.trim_start_matches("http://")),
        ];
        HubProcess::start(folder, &near.network, &settings).await
    }

    /// Messages of the far hub's bot, oldest first, once there are so many of a direction.
    async fn messages(&self, direction: &str, count: usize) -> Vec<Value> {
        let path = format!("/api/bots/{}/messages?limit=200&direction={direction}", self.bot);
        let mut found = until(&format!("{count} messages {direction}"), async || {
            let items = self.bea.get(&path).await["items"].as_array().unwrap().clone();
            (items.len() >= count).then_some(items)
        })
        .await;
        found.reverse();
        found
    }

    async fn inject(&self, messages: Vec<Value>) {
        let messages: Vec<Value> = messages
            .into_iter()
            .map(|mut message| {
                message["wx_id"] = json!(self.near.wx_id);
                message
            })
            .collect();
        self.near.network.control.control("/_sim/messages", Some(json!({ "messages": messages }))).await;
    }

    async fn send(&self, body: Value) -> Value {
        self.bea.post(&format!("/api/bots/{}/send", self.bot), body).await
    }

    /// Waits until every message that the far hub sent has this status.
    async fn sent_are(&self, status: &str, count: usize) -> Vec<Value> {
        until(&format!("sent messages are {status}"), async || {
            let sent = self.messages("outbound", count).await;
            sent.iter().all(|message| message["status"] == status).then_some(sent)
        })
        .await
    }
}

fn contents(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

fn bytes(count: u32) -> Vec<u8> {
    (0..count).map(|n| (n * n / 7).to_le_bytes()[0]).collect()
}

#[tokio::test]
async fn messages_pass_two_hubs_once_and_in_order_in_both_directions() {
    let chain = Chain::start().await;
    // R1, R2: fifty at once, in order.
    let texts: Vec<String> = (0..50).map(|n| format!("word {n}")).collect();
    chain.inject(texts.iter().map(|text| json!({ "text": text })).collect()).await;
    assert_eq!(contents(&chain.messages("inbound", 50).await), texts);
    // S1, S13, S17: a long text in parts and in order, to the person exactly as written.
    let long = "一二三四五六七八九十".repeat(450);
    chain.send(json!({ "content": long })).await;
    chain.send(json!({ "content": "after it" })).await;
    let shown = chain.near.outbound(4).await;
    let joined: String = shown[..3].iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!((joined.as_str(), &shown[3]["text"]), (long.as_str(), &json!("after it")));
    let sent = chain.sent_are("sent", 2).await;
    let person = &chain.messages("inbound", 1).await[0]["from_user_id"];
    assert!(shown.iter().all(|one| one["to_user_id"] == *person && one["shown"] == true), "{shown:?}");
    assert_eq!(sent[0]["to_user_id"], *person);
    // Q3: a quote of something that no one knows has its id alone.
    let quoting = json!({ "type": 1, "text_item": { "text": "what?" },
        "ref_msg": { "svr_id": "7497484083968569736" } });
    chain.inject(vec![json!({ "items": [quoting] })]).await;
    let quoted = chain.messages("inbound", 51).await[50]["quoted"].clone();
    assert_eq!(
        (&quoted["network_id"], quoted.get("text")),
        (&json!("7497484083968569736"), None),
        "{quoted}"
    );
    // Q1, Q2: a quote of a message of the bot, by the id of the network, is one of the far hub's message.
    let quoting = json!({ "type": 1, "text_item": { "text": "which?" },
        "ref_msg": { "svr_id": shown[3]["message_id"] } });
    chain.inject(vec![json!({ "items": [quoting] })]).await;
    let quoted = chain.messages("inbound", 52).await[51]["quoted"].clone();
    assert_eq!(quoted["text"], "after it", "{quoted}");

    // R5, S19: either hub is killed, and nothing is lost or repeated.
    let Chain { near, folder, far, bea, bot } = chain;
    far.process.kill().await;
    let chain_near = near;
    chain_near.network.say(&chain_near.wx_id, "while it was down").await;
    let far = Chain::far(&chain_near, folder.path()).await;
    let bea = bea.at(&far.url);
    let mut chain = Chain { near: chain_near, folder, far, bea, bot };
    assert_eq!(contents(&chain.messages("inbound", 53).await[52..]), ["while it was down"]);
    let listen = chain.near.hub.url.trim_start_matches("http://").to_owned();
    let Stage { folder, network, hub, ada, bot, wx_id, channel } = chain.near;
    hub.process.kill().await;
    network.say(&wx_id, "while the other was down").await;
    let sending =
        chain.bea.post(&format!("/api/bots/{}/send", chain.bot), json!({ "content": "queued" })).await;
    assert_eq!(sending["status"], "queued");
    let hub = HubProcess::start_at(folder.path(), &network, &listen, &[]).await;
    chain.near = Stage { ada: ada.at(&hub.url), folder, network, hub, bot, wx_id, channel };
    assert_eq!(contents(&chain.messages("inbound", 54).await[53..]), ["while the other was down"]);
    let shown = chain.near.outbound(5).await;
    assert_eq!(shown.iter().filter(|one| one["text"] == "queued").count(), 1);
    let received = chain.messages("inbound", 54).await;
    assert_eq!(received.len(), 54, "nothing came twice");
}

#[tokio::test]
async fn files_and_typing_pass_two_hubs_and_a_revoked_login_is_noticed() {
    let chain = Chain::start().await;
    chain.inject(vec![json!({ "text": "hello" })]).await;
    chain.messages("inbound", 1).await;
    // U1, U5, U6: sizes around a block of the cipher, a picture, and a caption, which is a separate message.
    let mut files: Vec<(&str, Vec<u8>)> = [("16.pdf", 16), ("64k.pdf", 65_536), ("1001.pdf", 1_001)]
        .map(|(name, size)| (name, bytes(size)))
        .into();
    files.push(("picture.png", [b"\x89PNG\r\n\x1a\n".as_slice(), &bytes(100)].concat()));
    for (name, bytes) in &files {
        let part = reqwest::multipart::Part::bytes(bytes.clone()).file_name(*name);
        let caption = if name.ends_with("png") { "a caption" } else { "" };
        let form = reqwest::multipart::Form::new().text("content", caption).part("file", part);
        chain.bea.upload(&format!("/api/bots/{}/send", chain.bot), form).await;
    }
    let mut shown = chain.near.outbound(5).await;
    assert_eq!(shown.remove(3)["text"], "a caption");
    let kinds: Vec<&Value> = shown.iter().map(|one| &one["media"]["kind"]).collect();
    assert_eq!(kinds, ["file", "file", "file", "image"]);
    for (one, (name, bytes)) in shown.iter().zip(&files).take(3) {
        assert_eq!((&one["opened"], &one["media"]["file_name"]), (&json!(true), &json!(name)), "{one}");
        assert_eq!(one["raw"]["item_list"][0]["file_item"]["len"], bytes.len().to_string());
    }
    chain.sent_are("sent", 4).await;
    // M1, M2, M8: the same files come back, the picture also as a voice message, and have the same bytes at the far hub.
    let mut items: Vec<Value> = shown.iter().map(|one| one["raw"]["item_list"][0].clone()).collect();
    let media = &items[3]["image_item"]["media"];
    items.push(json!({ "type": 3, "voice_item": {
        "media": media, "encode_type": 6, "bits_per_sample": 16, "sample_rate": 24_000, "playtime": 1_200, "text": "what was said", "size": files[3].1.len() } }));
    files.push(files[3].clone());
    chain.inject(items.into_iter().map(|item| json!({ "items": [item] })).collect()).await;
    for (index, (name, bytes)) in files.iter().enumerate() {
        let file = until("the file is fetched", async || {
            let file = chain.messages("inbound", 6).await[1 + index]["media"][0].clone();
            (file["status"] == MediaState::Ready.as_str()).then_some(file)
        })
        .await;
        let link: url::Url = file["url"].as_str().unwrap().parse().unwrap();
        let stored = chain.bea.bytes(&link[url::Position::BeforePath..]).await;
        assert!(stored == *bytes, "{name} at the far hub: {file}");
    }
    let received = chain.messages("inbound", 6).await;
    let kinds: Vec<&Value> = received[1..].iter().map(|message| &message["items"][0]["type"]).collect();
    assert_eq!(kinds, ["file", "file", "file", "image", "voice"]);
    assert_eq!(received[5]["content"], "what was said");
    // T1: typing is shown on the phone.
    let channel =
        chain.bea.post(&format!("/api/bots/{}/channels", chain.bot), json!({ "name": "keys" })).await;
    let program = Caller::stranger(&chain.far.url).with_bearer(channel["api_key"].as_str().unwrap());
    for status in ["typing", "cancel"] {
        program.post("/api/v1/channels/typing", json!({ "status": status })).await;
    }
    let path = format!("/_sim/typing?wx_id={}", chain.near.wx_id);
    until("typing is shown", async || {
        let typing = chain.near.network.control.control(&path, None).await;
        let on: Vec<Value> = typing["items"].as_array()?.iter().map(|sign| sign["on"].clone()).collect();
        (on == [true, false]).then_some(())
    })
    .await;
    // E5: the near hub did nothing that the network does not accept.
    let path = format!("/_sim/violations?wx_id={}", chain.near.wx_id);
    let violations = chain.near.network.control.control(&path, None).await;
    assert_eq!(violations["items"], json!([]), "{violations}");
    // E2: a login that was revoked at the near hub has to be renewed at the far one.
    let clients = chain.near.ada.get(&format!("{}/ilink/clients", chain.near.channel_path())).await;
    chain.near.revoke(clients["clients"][0]["id"].as_str().unwrap()).await;
    until("the bot needs a new login", async || {
        let (_, bot, _) = chain.bea.call(Method::GET, &format!("/api/bots/{}", chain.bot), None).await;
        (bot["data"]["status"] == "expired").then_some(())
    })
    .await;
    drop(chain.folder);
}
