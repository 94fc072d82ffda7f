//! A simulator on a manual clock, and a client as simple as can be, for the tests of this module.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::{Account, SimConfig, Simulator};
use crate::{
    local_http::{Cut, LocalService},
    random::Random,
    time::{ManualClock, Timestamp},
};

pub(super) struct Rig {
    pub sim: Simulator,
    pub clock: ManualClock,
    random: Random,
}

/// A bot that is logged in.
pub(super) struct Bot {
    pub account: Account,
    pub token: String,
}

impl Bot {
    pub(super) fn wx_id(&self) -> &str {
        &self.account.wx_id
    }

    pub(super) fn owner(&self) -> &str {
        &self.account.owner_user_id
    }
}

impl Rig {
    pub(super) fn new(config: SimConfig) -> Self {
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let sim = Simulator::new(config, clock.clone().into(), Random::seeded(1));
        Self { sim, clock, random: Random::seeded(2) }
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A request with the headers of the protocol.
    pub(super) fn request(&self, method: &str, path: &str, token: &str, body: Bytes) -> Request<Bytes> {
        let uin = u32::from_le_bytes(self.random.bytes()).to_string();
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "sim.test:9801")
            .header("authorizationtype", "ilink_bot_token")
            .header("authorization", format!("Bearer {token}"))
            .header("x-wechat-uin", BASE64.encode(uin.as_bytes()))
            .header("ilink-app-id", "bot")
            .header("ilink-app-clientversion", "132105")
            .body(body)
            .unwrap()
    }

    pub(super) async fn http(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        self.sim.call(request).await
    }

    pub(super) async fn raw(&self, path: &str, token: &str, mut body: Value) -> Result<Response<Bytes>, Cut> {
        body["base_info"] = json!({"channel_version": "1.0.0", "bot_agent": "Test/1.0.0"});
        self.http(self.request("POST", &format!("/ilink/bot/{path}"), token, body.to_string().into())).await
    }

    /// One API call, answered with JSON.
    pub(super) async fn call(&self, path: &str, bot: &Bot, body: Value) -> Value {
        read(&self.raw(path, &bot.token, body).await.unwrap())
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        read(&self.http(self.request("GET", path, "", Bytes::new())).await.unwrap())
    }

    pub(super) async fn get_status(&self, path: &str) -> u16 {
        self.http(self.request("GET", path, "", Bytes::new())).await.unwrap().status().as_u16()
    }

    /// A control call: status and answer.
    pub(super) async fn control(&self, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let response = self.http(request.body(body).unwrap()).await.unwrap();
        (response.status(), read(&response))
    }

    pub(super) async fn new_qr(&self, tokens: &[&str]) -> (String, String) {
        let body = json!({"local_token_list": tokens}).to_string();
        let path = "/ilink/bot/get_bot_qrcode?bot_type=3";
        let answer = read(&self.http(self.request("POST", path, "", body.into())).await.unwrap());
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (text("qrcode"), text("qrcode_img_content"))
    }

    pub(super) async fn status(&self, qrcode: &str) -> Value {
        self.get(&format!("/ilink/bot/get_qrcode_status?qrcode={qrcode}")).await
    }

    pub(super) async fn login(&self, user_id: Option<&str>) -> Bot {
        let (qrcode, text) = self.new_qr(&[]).await;
        let account = self.sim.confirm(&text, user_id).unwrap();
        let token = self.status(&qrcode).await["bot_token"].as_str().unwrap().to_owned();
        Bot { account, token }
    }

    pub(super) async fn poll(&self, bot: &Bot, cursor: &str) -> Value {
        self.call("getupdates", bot, json!({"get_updates_buf": cursor})).await
    }

    /// The owner writes, and the bot fetches the permission to answer.
    pub(super) async fn greeted(&self) -> (Bot, String) {
        let bot = self.login(None).await;
        let token = self.receive(&bot).await;
        (bot, token)
    }

    /// A context token of the owner.
    pub(super) async fn receive(&self, bot: &Bot) -> String {
        self.sim.say(bot.wx_id(), None, "hello").unwrap();
        let answer = self.poll(bot, "").await;
        answer["msgs"].as_array().unwrap().last().unwrap()["context_token"].as_str().unwrap().to_owned()
    }

    /// Sends a text to the owner.
    pub(super) async fn send(&self, bot: &Bot, client_id: &str, token: &str, text: &str) -> Value {
        self.call("sendmessage", bot, message(bot.owner(), client_id, token, &text_item(text))).await
    }
}

pub(super) fn text_item(text: &str) -> Value {
    json!({"type": 1, "text_item": {"text": text}})
}

/// The body of `sendmessage`.
pub(super) fn message(to: &str, client_id: &str, token: &str, item: &Value) -> Value {
    json!({"msg": {
        "from_user_id": "", "to_user_id": to, "client_id": client_id, "message_type": 2, "message_state": 2,
        "context_token": token, "item_list": [item],
    }})
}

pub(super) fn read(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap_or_else(|_| panic!("not JSON: {response:?}"))
}

/// The texts of the messages in an answer of `getupdates`.
pub(super) fn texts<'a>(answer: &'a Value) -> Vec<&'a str> {
    let text = |message: &'a Value| message["item_list"][0]["text_item"]["text"].as_str().unwrap();
    answer["msgs"].as_array().unwrap().iter().map(text).collect()
}
