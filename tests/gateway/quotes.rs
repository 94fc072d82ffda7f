//! Quotes, as programs of the gateway see them and make them, and the addresses of files.

use serde_json::{Value, json};

use super::stage::{Program, Stage, reply};
use crate::support::http::until;

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nthe rest of a picture";

/// A stage on which the person wrote a picture and a text, with a program that received both.
struct Told {
    stage: Stage,
    program: Program,
    cursor: String,
    /// Of the picture and of the text, as the program got them.
    messages: Vec<Value>,
    /// The ids of the network.
    ids: Vec<Value>,
}

impl Told {
    async fn start() -> Self {
        let stage = Stage::start().await;
        let program = stage.log_in().await;
        stage.network.say(&stage.wx_id, "hello").await;
        let hello = program.poll("").await;
        let part = reqwest::multipart::Part::bytes(PICTURE).file_name("picture.png");
        let form = reqwest::multipart::Form::new().part("file", part);
        stage.ada.upload(&format!("/api/bots/{}/send", stage.bot), form).await;
        let picture = stage.outbound(1).await[0]["raw"]["item_list"][0].clone();
        let cursor = hello["get_updates_buf"].as_str().unwrap().to_owned();
        let mut told = Self { stage, program, cursor, messages: Vec::new(), ids: Vec::new() };
        for item in [picture, json!({ "type": 1, "text_item": { "text": "abcabcXYZabc" } })] {
            told.ids.push(told.inject(item).await);
            let message = told.next().await;
            told.messages.push(message);
        }
        told
    }

    async fn inject(&self, item: Value) -> Value {
        let message = json!({ "messages": [{ "wx_id": self.stage.wx_id, "items": [item] }] });
        self.stage.network.control.control("/_sim/messages", Some(message)).await["message_ids"][0].clone()
    }

    async fn next(&mut self) -> Value {
        let answer = self.program.poll(&self.cursor).await;
        answer["get_updates_buf"].as_str().unwrap().clone_into(&mut self.cursor);
        answer["msgs"][0].clone()
    }

    /// Sends a message with this `ref_msg`; returns the one that the program gets.
    async fn quoted(&mut self, reference: &Value) -> Value {
        self.inject(json!({ "type": 1, "text_item": { "text": "this one?" }, "ref_msg": reference })).await;
        self.next().await["item_list"][0]["ref_msg"].clone()
    }

    async fn is_readable(&self, media: &Value) {
        let url = media["full_url"].as_str().unwrap();
        let param = media["encrypt_query_param"].as_str().unwrap();
        let whole = format!("{}/c2c/download?encrypted_query_param={param}", self.stage.hub.url);
        assert_eq!(url, whole);
        let sealed = self.stage.ada.bytes(url.strip_prefix(&self.stage.hub.url).unwrap()).await;
        assert_eq!(sealed.len(), PICTURE.len() / 16 * 16 + 16);
    }
}

#[tokio::test]
async fn programs_see_what_is_quoted_as_on_the_network() {
    let mut told = Told::start().await;
    let (picture, text) = (told.ids[0].clone(), told.ids[1].clone());
    told.is_readable(&told.messages[0]["item_list"][0]["image_item"]["media"]).await;

    // A picture, by its id in either place.
    for reference in [
        json!({ "svr_id": picture, "title": "[picture]" }),
        json!({ "title": "[picture]", "message_item": { "type": 0, "msg_id": picture } }),
        json!({ "title": "[picture]", "message_item": { "type": 2, "msg_id": picture, "image_item": {} } }),
    ] {
        let seen = told.quoted(&reference).await;
        assert_eq!((&seen["title"], &seen["svr_id"]), (&json!("[picture]"), &picture), "{seen}");
        assert_eq!(seen["message_item"]["type"], 2, "{seen}");
        told.is_readable(&seen["message_item"]["image_item"]["media"]).await;
    }

    // A part of a text, by id and with the text.
    let partial = json!({ "start": "abc", "end": "abc", "startindex": 1, "endindex": 2,
        "quotemd5": "c43a5009e108d27985d51161f0579a7a" });
    for reference in [
        json!({ "svr_id": text, "partial_text": partial }),
        json!({ "message_item": { "type": 1, "text_item": { "text": "abcabcXYZabc" } }, "partial_text": partial }),
    ] {
        let seen = told.quoted(&reference).await;
        assert_eq!(seen["partial_text"], partial, "{seen}");
        assert_eq!(seen["message_item"]["text_item"]["text"], "abcabcXYZabc", "{seen}");
    }
    let list = told.stage.ada.get(&format!("/api/bots/{}/messages?limit=2", told.stage.bot)).await;
    for message in list["items"].as_array().unwrap() {
        assert_eq!(message["quoted"]["text"], "abcXYZabc", "{message}");
    }

    // What the hub does not have: kind and name, as far as the quote says them.
    for (item, seen) in [
        (
            json!({ "type": 4, "file_item": { "file_name": "a.pdf" } }),
            json!({ "type": 4, "file_item": { "file_name": "a.pdf" } }),
        ),
        (json!({ "type": 2, "image_item": { "aeskey": "x" } }), json!({ "type": 2, "image_item": {} })),
        (
            json!({ "type": 3, "voice_item": { "text": "hm" } }),
            json!({ "type": 3, "voice_item": { "text": "hm" } }),
        ),
        (json!({ "type": 8, "is_completed": true }), json!({})),
    ] {
        let reference = told.quoted(&json!({ "message_item": item })).await;
        assert_eq!(reference, json!({ "message_item": seen }));
    }
    for broken in [json!("x"), json!(7), json!([])] {
        assert_eq!(told.quoted(&broken).await, Value::Null, "{broken}");
    }
}

#[tokio::test]
async fn a_quote_of_a_program_is_kept() {
    let told = Told::start().await;
    let text = &told.messages[1];
    let send = async |client_id: &str, reference: Value| {
        let mut body = reply(text, client_id, client_id);
        body["msg"]["item_list"][0]["ref_msg"] = reference;
        let (_, answer) = told.program.call("sendmessage", body).await;
        assert_eq!(answer["ret"], 0, "{answer}");
        answer["message_id"].clone()
    };
    let first = send("of the person's", json!({ "svr_id": text["message_id"] })).await;
    send("of its own", json!({ "message_item": { "msg_id": first } })).await;
    send("of nothing", json!({ "svr_id": "12345" })).await;
    send("no reference", json!("x")).await;
    let list = until("four messages", async || {
        let path = format!("/api/bots/{}/messages?direction=outbound&limit=4", told.stage.bot);
        let list = told.stage.ada.get(&path).await["items"].as_array().unwrap().clone();
        (list.iter().all(|message| message["status"] == "sent")).then_some(list)
    })
    .await;
    let quoted = |content: &str| {
        let message = list.iter().find(|message| message["content"] == content);
        message.unwrap_or_else(|| panic!("{list:?}"))["quoted"].clone()
    };
    assert_eq!(quoted("of the person's")["text"], "abcabcXYZabc");
    assert_eq!(quoted("of its own")["text"], "of the person's");
    assert_eq!((quoted("of nothing"), quoted("no reference")), (Value::Null, Value::Null));
    // The network gets what it documents, and no quote.
    let shown = told.stage.outbound(5).await;
    assert!(shown.iter().all(|one| one["raw"]["item_list"][0].get("ref_msg").is_none()), "{shown:?}");
}
