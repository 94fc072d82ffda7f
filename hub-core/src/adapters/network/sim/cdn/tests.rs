use http::Response;

use super::*;
use crate::network::sim::{
    SimConfig,
    testing::{Bot, Rig, message},
};

/// A key in two encodings, see `docs/ilink.md#keys`: base64 of the hex characters, and of the raw bytes.
const FORM_B: &str = "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=";
const FORM_A: &str = "ABEiM0RVZneImaq7zN3u/w==";
/// `iLink` under that key, see `docs/ilink.md#cipher`.
const CIPHERTEXT: [u8; 16] =
    [0xe9, 0xc3, 0x80, 0x60, 0x30, 0x42, 0x36, 0xca, 0x71, 0xab, 0x80, 0x83, 0x3c, 0x3e, 0x49, 0x9c];

fn upload_request(to: &str, media_type: u64) -> Value {
    json!({
        "filekey": "00112233445566778899aabbccddeeff", "media_type": media_type, "to_user_id": to,
        "rawsize": 5, "rawfilemd5": "cca24504019bf1f5b8247e6ed7483563", "filesize": 16,
        "aeskey": "00112233445566778899aabbccddeeff", "no_need_thumb": true,
    })
}

async fn post(rig: &Rig, url: &str, body: &[u8]) -> Response<Bytes> {
    rig.http(rig.request("POST", url, "", Bytes::copy_from_slice(body))).await.unwrap()
}

fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// Uploads the vector for the owner and answers its reference.
async fn upload(rig: &Rig, bot: &Bot, media_type: u64) -> String {
    let answer = rig.call("getuploadurl", bot, upload_request(bot.owner(), media_type)).await;
    let response = post(rig, answer["upload_full_url"].as_str().unwrap(), &CIPHERTEXT).await;
    header(&response, "x-encrypted-param").to_owned()
}

fn file(param: &str, key: &str, len: &str) -> Value {
    json!({"type": 4, "file_item": {"file_name": "a.txt", "len": len,
        "media": {"encrypt_query_param": param, "aes_key": key, "encrypt_type": 1}}})
}

fn encode(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[tokio::test]
async fn an_uploaded_file_can_be_downloaded_for_a_day() {
    for awkward in [false, true] {
        let rig = Rig::new(SimConfig { awkward_cdn_params: awkward, ..SimConfig::default() });
        let bot = rig.login(None).await;
        let answer = rig.call("getuploadurl", &bot, upload_request(bot.owner(), 3)).await;
        let full = answer["upload_full_url"].as_str().unwrap();
        assert!(full.starts_with("http://sim.test:9801/c2c/upload?"), "{full}");
        let param = encode(answer["upload_param"].as_str().unwrap());
        let short =
            format!("/c2c/upload?encrypted_query_param={param}&filekey=00112233445566778899aabbccddeeff");
        for url in [full, &short] {
            let response = post(&rig, url, &CIPHERTEXT).await;
            assert_eq!((response.status().as_u16(), response.body().len()), (200, 0));
            let reference = header(&response, "x-encrypted-param");
            assert_eq!(reference.contains(['+', '/', '=']), awkward);
            let url = format!("/c2c/download?encrypted_query_param={}", encode(reference));
            let download = || rig.http(rig.request("GET", &url, "", Bytes::new()));
            assert_eq!(download().await.unwrap().body().as_ref(), CIPHERTEXT);
            rig.advance(24 * 3600);
            assert_eq!(download().await.unwrap().status(), 404);
        }
        assert_eq!(rig.get_status("/c2c/download?encrypted_query_param=x").await, 404);
    }
}

#[tokio::test]
async fn an_upload_has_to_fit_its_permit() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    let answer = rig.call("getuploadurl", &bot, upload_request(bot.owner(), 3)).await;
    let url = answer["upload_full_url"].as_str().unwrap();
    let other_key = url.replace("filekey=0011", "filekey=1100");
    for (url, body) in [
        (url, &CIPHERTEXT[..15]),
        (other_key.as_str(), &CIPHERTEXT[..]),
        ("/c2c/upload?encrypted_query_param=x&filekey=y", &CIPHERTEXT[..]),
    ] {
        let response = post(&rig, url, body).await;
        assert_eq!(response.status(), 400);
        assert_ne!(header(&response, "x-error-message"), "");
    }
}

#[tokio::test]
async fn an_upload_url_is_refused_or_left_out_by_the_fields() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    let ask = |name: &'static str, value: Value| {
        let mut body = upload_request(bot.owner(), 1);
        if value.is_null() {
            body.as_object_mut().unwrap().remove(name);
        } else {
            body[name] = value;
        }
        rig.call("getuploadurl", &bot, body)
    };
    for (name, value) in [
        ("media_type", json!("1")),
        ("media_type", json!(5)),
        ("rawsize", json!("5")),
        ("filesize", json!(-1)),
        ("aeskey", json!(FORM_B)),
        ("rawfilemd5", json!("x")),
        ("no_need_thumb", json!("true")),
        ("no_need_thumb", json!(false)),
        ("to_user_id", Value::Null),
    ] {
        assert_eq!(ask(name, value.clone()).await["ret"], -2, "{name} {value}");
    }
    assert_eq!(ask("to_user_id", json!("o9cq80Nobody@im.wechat")).await["ret"], -1);
    for name in ["filekey", "no_need_thumb"] {
        assert_eq!(ask(name, Value::Null).await, json!({"ret": 0}), "{name}");
    }
    let mut null = upload_request(bot.owner(), 1);
    null["thumb_rawsize"] = Value::Null;
    assert!(rig.call("getuploadurl", &bot, null.clone()).await["upload_param"].is_string());
    null["filekey"] = Value::Null;
    assert_eq!(rig.call("getuploadurl", &bot, null).await, json!({"ret": 0}));
    let mut thumb = upload_request(bot.owner(), 1);
    thumb["no_need_thumb"] = json!(false);
    thumb["thumb_rawsize"] = json!(5);
    thumb["thumb_filesize"] = json!(16);
    thumb["thumb_rawfilemd5"] = json!("cca24504019bf1f5b8247e6ed7483563");
    assert!(rig.call("getuploadurl", &bot, thumb).await["thumb_upload_param"].is_string());
}

#[tokio::test]
async fn one_form_of_the_url_is_left_out_by_the_switch() {
    for (upload_urls, full, param) in [(UploadUrls::Full, true, false), (UploadUrls::Param, false, true)] {
        let rig = Rig::new(SimConfig { upload_urls, ..SimConfig::default() });
        let bot = rig.login(None).await;
        let answer = rig.call("getuploadurl", &bot, upload_request(bot.owner(), 1)).await;
        let has = |name: &str| answer[name].is_string();
        assert_eq!((has("upload_full_url"), has("upload_param")), (full, param));
    }
}

#[tokio::test]
async fn media_that_cannot_be_opened_is_accepted_and_marked_or_refused_when_strict() {
    for strict_media in [false, true] {
        let rig = Rig::new(SimConfig { strict_media, window_sends: 99, ..SimConfig::default() });
        let ((bot, token), (other, foreign)) = (rig.greeted().await, rig.greeted().await);
        let param = upload(&rig, &bot, 3).await;
        let image = upload(&rig, &bot, 1).await;
        let send = |bot: &Bot, token: &str, item: Value| {
            let body = message(bot.owner(), &format!("{item}"), token, &item);
            let (token, path) = (bot.token.clone(), "sendmessage");
            let rig = &rig;
            async move { crate::network::sim::testing::read(&rig.raw(path, &token, body).await.unwrap()) }
        };
        assert_eq!(send(&bot, &token, file(&param, FORM_B, "5")).await["ret"], 0);
        for item in [
            file("unknown", FORM_B, "5"),
            file(&image, FORM_B, "5"),
            file(&param, FORM_B, "6"),
            file(&param, FORM_A, "5"),
            file(&param, "", "5"),
            file(&param, "MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmU=", "5"),
        ] {
            let answer = send(&bot, &token, item.clone()).await;
            assert_eq!(answer["ret"], if strict_media { -2 } else { 0 }, "{item}");
        }
        let answer = send(&other, &foreign, file(&param, FORM_B, "5")).await;
        assert_eq!(answer["ret"], if strict_media { -2 } else { 0 });
        let sent = rig.sim.outbound(None, 0);
        let media = sent[0].media.as_ref().unwrap();
        assert_eq!((media.kind, media.file_name.as_deref()), ("file", Some("a.txt")));
        assert_eq!((sent[0].opened, sent[0].note.as_deref()), (Some(true), None));
        assert_eq!(rig.sim.opened(&sent[0]).as_deref(), Some(&b"iLink"[..]));
        assert!(sent[1..].iter().all(|item| item.opened == Some(false) && item.note.is_some()));
        assert_eq!(sent.len(), if strict_media { 1 } else { 8 });
        let raw_key = rig.sim.violations(Some(bot.wx_id()));
        assert_eq!(raw_key.iter().map(|v| v.kind).collect::<Vec<_>>(), [ViolationKind::RawMediaKey]);
    }
}

#[tokio::test]
async fn the_oldest_media_goes_at_the_cap() {
    let mut config = SimConfig::default();
    config.caps.media_bytes = 32;
    let rig = Rig::new(config);
    let bot = rig.login(None).await;
    let mut references = Vec::new();
    for _ in 0..3 {
        references.push(upload(&rig, &bot, 3).await);
    }
    let mut found = Vec::new();
    for reference in &references {
        found.push(rig.get_status(&format!("/c2c/download?encrypted_query_param={reference}")).await);
    }
    assert_eq!(found, [404, 200, 200]);
}
