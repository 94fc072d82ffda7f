//! A hub, a network, a bot with a channel whose iLink sink is on, and a program as simple as can be.

use hub_core::{
    random::Random,
    secret::{TokenKind, new_token},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

pub struct Stage {
    pub folder: tempfile::TempDir,
    pub network: NetworkProcess,
    pub hub: HubProcess,
    /// The owner of the bot.
    pub ada: Caller,
    pub bot: String,
    pub wx_id: String,
    pub channel: String,
}

impl Stage {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network = NetworkProcess::start().await;
        let hub = HubProcess::start(folder.path(), &network, &[]).await;
        let mut ada = Caller::stranger(&hub.url);
        ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
        let (bot, wx_id) = network.bind(&ada).await;
        let new = json!({ "name": "programs", "ilink": { "enabled": true } });
        let channel = ada.post(&format!("/api/bots/{bot}/channels"), new).await;
        let channel = channel["id"].as_str().unwrap().to_owned();
        Self { folder, network, hub, ada, bot, wx_id, channel }
    }

    pub fn channel_path(&self) -> String {
        format!("/api/bots/{}/channels/{}", self.bot, self.channel)
    }

    /// Opens the login of a QR code, as the page behind its link does, and returns the id.
    pub async fn open(&self, qr_text: &str) -> String {
        let login = qr_text.split_once("/ilink/login?login=").expect("the code is a link to the hub").1;
        self.ada.post("/api/ilink/logins/open", json!({ "login_id": login })).await;
        login.to_owned()
    }

    pub async fn confirm(&self, login: &str) -> Value {
        let body = json!({ "login_id": login, "channel_id": self.channel });
        self.ada.post("/api/ilink/logins/confirm", body).await
    }

    /// A login of a program.
    pub async fn log_in(&self) -> Program {
        let caller = Caller::stranger(&self.hub.url);
        let (_, qr, _) = caller.call(Method::GET, "/ilink/bot/get_bot_qrcode?bot_type=3", None).await;
        let login = self.open(qr["qrcode_img_content"].as_str().unwrap()).await;
        let client = self.confirm(&login).await;
        let path = format!("/ilink/bot/get_qrcode_status?qrcode={}", qr["qrcode"].as_str().unwrap());
        let (_, status, _) = caller.call(Method::GET, &path, None).await;
        assert_eq!(status["status"], "confirmed", "{status}");
        let token = status["bot_token"].as_str().unwrap().to_owned();
        Program { base: self.hub.url.clone(), token, client: client["id"].as_str().unwrap().to_owned() }
    }

    /// What the bot sent to people.
    pub async fn outbound(&self, count: usize) -> Vec<Value> {
        let path = format!("/_sim/outbound?wx_id={}&wait_ms=1000", self.wx_id);
        until("what the bot sends", async || {
            let list = self.network.control.control(&path, None).await;
            let items = list["items"].as_array().unwrap().clone();
            (items.len() >= count).then_some(items)
        })
        .await
    }

    pub async fn revoke(&self, client: &str) {
        let path = format!("{}/ilink/clients/{client}", self.channel_path());
        let (status, answer, _) = self.ada.call(Method::DELETE, &path, None).await;
        assert!(status.is_success(), "{answer}");
    }
}

/// A program that is logged in.
#[derive(Clone)]
pub struct Program {
    pub base: String,
    pub token: String,
    pub client: String,
}

impl Program {
    #[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
    pub async fn call(&self, name: &str, mut body: Value) -> (StatusCode, Value) {
        body["base_info"] = json!({});
        let request = reqwest::Client::new()
            .post(format!("{}/ilink/bot/{name}", self.base))
            .header("AuthorizationType", "ilink_bot_token")
            .header("X-WECHAT-UIN", "MA==")
            .bearer_auth(&self.token)
            .json(&body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }

    pub async fn poll(&self, cursor: &str) -> Value {
        self.call("getupdates", json!({ "get_updates_buf": cursor })).await.1
    }

    pub async fn send(&self, message: &Value, client_id: &str, text: &str) -> Value {
        self.call("sendmessage", reply(message, client_id, text)).await.1
    }
}

/// The body of a text reply to a message.
pub fn reply(message: &Value, client_id: &str, text: &str) -> Value {
    json!({ "msg": {
        "from_user_id": "", "to_user_id": message["from_user_id"], "client_id": client_id, "message_type": 2,
        "message_state": 2, "context_token": message["context_token"],
        "item_list": [{ "type": 1, "text_item": { "text": text } }],
    }})
}

/// The texts of a response of `getupdates`.
pub fn texts(answer: &Value) -> Vec<&str> {
    let messages = answer["msgs"].as_array().unwrap_or_else(|| panic!("{answer}"));
    messages.iter().map(|message| message["item_list"][0]["text_item"]["text"].as_str().unwrap()).collect()
}

/// A token of the right form that no program has.
pub fn forged_token() -> String {
    new_token(TokenKind::IlinkClient, &Random::seeded(9)).expose().to_owned()
}
