//! A hub, a network, a bot with a channel whose iLink sink is on, and a program as simple as can be.

use std::sync::LazyLock;

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
        Self::with(&[]).await
    }

    /// With settings of the hub, as environment variables.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::at("127.0.0.1:0", settings).await
    }

    /// With an address of the hub.
    pub async fn at(listen: &str, settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let network = NetworkProcess::start().await;
        let hub = HubProcess::start_at(folder.path(), &network, listen, settings).await;
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
        open(&self.ada, qr_text).await
    }

    pub async fn confirm(&self, login: &str) -> Value {
        confirm(&self.ada, login, &self.channel).await
    }

    /// A login of a program.
    pub async fn log_in(&self) -> Program {
        Program::log_in(&self.hub.url, &self.ada, &self.channel).await
    }

    /// Another channel: its id.
    pub async fn add_channel(&self, new: Value) -> String {
        let channel = self.ada.post(&format!("/api/bots/{}/channels", self.bot), new).await;
        channel["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the bot has sent `count` messages, and returns all.
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

/// Opens the login of a QR code as its user.
pub async fn open(user: &Caller, qr_text: &str) -> String {
    let login = qr_text.split_once("/ilink/login?login=").expect("the code is a link to the hub").1;
    user.post("/api/ilink/logins/open", json!({ "login_id": login })).await;
    login.to_owned()
}

/// Confirms a login for a channel.
pub async fn confirm(user: &Caller, login: &str, channel: &str) -> Value {
    user.post("/api/ilink/logins/confirm", json!({ "login_id": login, "channel_id": channel })).await
}

/// Client that all tests share. It keeps no idle connections, because each test has its own runtime.
#[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("settings that are right")
});

/// A program that is logged in.
#[derive(Debug, Clone)]
pub struct Program {
    pub base: String,
    pub token: String,
    pub client: String,
}

impl Program {
    /// Logs a program in to a channel of the user.
    pub async fn log_in(hub: &str, user: &Caller, channel: &str) -> Self {
        let caller = Caller::stranger(hub);
        let (_, qr, _) = caller.call(Method::GET, "/ilink/bot/get_bot_qrcode?bot_type=3", None).await;
        let login = open(user, qr["qrcode_img_content"].as_str().unwrap()).await;
        let client = confirm(user, &login, channel).await;
        let path = format!("/ilink/bot/get_qrcode_status?qrcode={}", qr["qrcode"].as_str().unwrap());
        let (_, status, _) = caller.call(Method::GET, &path, None).await;
        assert_eq!(status["status"], "confirmed", "{status}");
        let token = status["bot_token"].as_str().unwrap();
        let program = Self::with_token(hub, token);
        Self { client: client["id"].as_str().unwrap().to_owned(), ..program }
    }

    /// A program with this token, which may not be valid.
    pub fn with_token(hub: &str, token: &str) -> Self {
        Self { base: hub.to_owned(), token: token.to_owned(), client: String::new() }
    }

    /// The same program on the hub at another address.
    pub fn at(&self, hub: &str) -> Self {
        Self { base: hub.to_owned(), ..self.clone() }
    }

    /// Calls an endpoint of a hub that may be down.
    ///
    /// # Errors
    /// Fails if there was no complete response.
    pub async fn attempt(&self, name: &str, mut body: Value) -> reqwest::Result<(StatusCode, Value)> {
        body["base_info"] = json!({});
        let request = HTTP
            .post(format!("{}/ilink/bot/{name}", self.base))
            .header("AuthorizationType", "ilink_bot_token")
            .header("X-WECHAT-UIN", "MA==")
            .bearer_auth(&self.token)
            .json(&body);
        let answer = request.send().await?;
        let status = answer.status();
        Ok((status, serde_json::from_str(&answer.text().await?).unwrap_or(Value::Null)))
    }

    pub async fn call(&self, name: &str, body: Value) -> (StatusCode, Value) {
        self.attempt(name, body).await.unwrap()
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
