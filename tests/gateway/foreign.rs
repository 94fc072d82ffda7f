//! The clients of other authors that prove the simulator, on a hub.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::stage::Stage;
use crate::clients::{
    foreign::{Foreign, SampleFiles},
    installed,
};

/// Media that a client exchanges after its first reply.
#[derive(Clone, Copy)]
enum Media {
    AskOnly,
    Both { caption: Option<&'static str>, reads_quotes: bool },
}

/// A client logs in to the hub, receives, replies, exchanges files, and is logged out.
async fn tell(command: Command, media: Media, notices_expiry: bool) {
    let stage = Stage::start().await;
    let samples = SampleFiles::create();
    let mut client = Foreign::start(command, &stage.hub.url, &samples);
    let qr = client.expect("qr").await;
    let login = stage.open(qr["text"].as_str().unwrap()).await;
    client.expect("scanned").await;
    let added = stage.confirm(&login).await;
    let logged_in = client.expect("logged_in").await;
    assert_eq!(logged_in["bot_id"], stage.wx_id);

    let text = "héllo, 你好 👋 \"quoted\"\nsecond line";
    stage.network.say(&stage.wx_id, text).await;
    let received = client.expect("received").await;
    assert_eq!((&received["text"], &received["user_id"]), (&json!(text), &logged_in["user_id"]));
    let id = received["message_id"].as_str().unwrap();
    assert!(id.parse::<u64>().unwrap() > 1 << 53, "the id of the network");
    client.expect("replied").await;
    let reply = &stage.outbound(1).await[0];
    assert_eq!((&reply["text"], &reply["shown"]), (&json!(format!("you said: {text}")), &json!(true)));
    assert_ne!(reply["context_token"], received["context_token"], "the program has a permission of the hub");

    match media {
        Media::AskOnly => {
            client.expect("upload_allowed").await;
        }
        Media::Both { caption, reads_quotes } => {
            client.expect("sent_media").await;
            let files = stage.outbound(3 + usize::from(caption.is_some())).await;
            let files: Vec<&Value> = files.iter().skip(1 + usize::from(caption.is_some())).collect();
            for (sent, original) in files.into_iter().zip([&samples.file, &samples.image]) {
                assert_eq!(sent["opened"], true, "{sent}");
                let item = &sent["raw"]["item_list"][0];
                let message = json!({ "messages": [{ "wx_id": stage.wx_id, "items": [item] }] });
                let ids = stage.network.control.control("/_sim/messages", Some(message)).await;
                let downloaded = client.expect("downloaded").await;
                assert_eq!(downloaded["kind"], sent["media"]["kind"]);
                let bytes = std::fs::read(downloaded["path"].as_str().unwrap()).unwrap();
                assert!(bytes == std::fs::read(original).unwrap(), "the same bytes come back");
                if reads_quotes {
                    quote(&stage, &mut client, &ids["message_ids"][0], original).await;
                }
            }
        }
    }
    stage.network.say(&stage.wx_id, "bye").await;
    assert_eq!(client.expect("received").await["text"], "bye");
    let typing = stage.network.control.control(&format!("/_sim/typing?wx_id={}", stage.wx_id), None).await;
    let on: Vec<&Value> = typing["items"].as_array().unwrap().iter().map(|sign| &sign["on"]).collect();
    assert_eq!(on, [true, false]);
    if notices_expiry {
        stage.revoke(added["id"].as_str().unwrap()).await;
        client.expect("expired").await;
    }
    client.expect("stopped").await;
    client.end().await;
}

/// The person quotes a file by the id of its message alone; the client reads it all the same.
async fn quote(stage: &Stage, client: &mut Foreign, id: &Value, original: &Path) {
    let item = json!({ "type": 1, "text_item": { "text": "this one?" }, "ref_msg": { "svr_id": id } });
    let message = json!({ "messages": [{ "wx_id": stage.wx_id, "items": [item] }] });
    stage.network.control.control("/_sim/messages", Some(message)).await;
    let quoted = client.expect("quoted").await;
    let bytes = std::fs::read(quoted["path"].as_str().unwrap()).unwrap();
    assert!(bytes == std::fs::read(original).unwrap(), "the quoted file");
    assert_eq!(client.expect("received").await["text"], "this one?");
}

#[tokio::test]
async fn openilink_works_on_a_hub() {
    let Some(command) = installed::openilink() else { return };
    tell(command, Media::AskOnly, true).await;
}

#[tokio::test]
async fn wechat_link_works_on_a_hub() {
    let Some(command) = installed::wechat_link() else { return };
    // It reads `ret` only, and -14 comes as `errcode`.
    tell(command, Media::Both { caption: None, reads_quotes: false }, false).await;
}

#[tokio::test]
async fn tencents_modules_work_on_a_hub() {
    let state = tempfile::tempdir().unwrap();
    let Some(command) = installed::tencent(state.path()) else { return };
    tell(command, Media::Both { caption: Some("a caption"), reads_quotes: false }, true).await;
}

#[tokio::test]
async fn weixin_agent_works_on_a_hub() {
    let Some(command) = installed::weixin_agent() else { return };
    tell(command, Media::Both { caption: None, reads_quotes: false }, true).await;
}

#[tokio::test]
async fn weilink_reads_files_and_quotes_by_their_full_url() {
    let Some(command) = installed::weilink() else { return };
    tell(command, Media::Both { caption: None, reads_quotes: true }, false).await;
}

#[tokio::test]
async fn weixin_ilink_reads_files_and_quotes_by_their_full_url() {
    let Some(command) = installed::weixin_ilink() else { return };
    tell(command, Media::Both { caption: None, reads_quotes: true }, false).await;
}
