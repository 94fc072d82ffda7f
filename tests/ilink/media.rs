//! Files: cases M and U.

use bytes::Bytes;
use data_encoding::BASE64;
use hub_core::{
    network::{
        Connection, FetchedMedia, InboundMessage, MediaError, MediaFile, MessageKind, SendOutcome,
        ilink::IlinkConfig,
        sim::{Action, Endpoint, Fault, SimConfig, StoredFile, UploadUrls},
    },
    secret::Secret,
    time::Clock,
};
use serde_json::{Map, Value, json};

use super::stage::{Bot, Stage, reply_to, within};

const LIMIT: usize = 1 << 20;
/// The first bytes of a PNG, and something behind them.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really";
const KEY: &str = "00112233445566778899aabbccddeeff";

impl Bot {
    /// Injects an item, receives its message.
    async fn hears(&self, stage: &Stage, item: Value) -> InboundMessage {
        let id = stage.sim.inject(json!({ "wx_id": self.account.wx_id, "items": [item] })).unwrap();
        let found = |message: &InboundMessage| message.network_id.as_deref() == Some(&id);
        self.receive("").await.messages.into_iter().find(found).unwrap()
    }

    async fn fetch(&self, message: &InboundMessage) -> Result<FetchedMedia, MediaError> {
        within(self.connection.fetch_media(&message.media[0].reference, &[], LIMIT)).await
    }

    /// Injects an item and fetches its file.
    async fn gets(&self, stage: &Stage, item: Value) -> Result<Bytes, MediaError> {
        let message = self.hears(stage, item).await;
        self.fetch(&message).await.map(|fetched| fetched.bytes)
    }

    fn puts(&self, stage: &Stage, bytes: &[u8]) -> StoredFile {
        stage.sim.store_file(&self.account.wx_id, bytes).unwrap()
    }
}

/// The part of an item that belongs to its type.
fn part(item: &mut Value) -> &mut Value {
    let parts = item.as_object_mut().unwrap();
    parts.iter_mut().find(|(name, _)| name.ends_with("_item")).unwrap().1
}

fn unavailable(outcome: &Result<Bytes, MediaError>) -> bool {
    matches!(outcome, Err(MediaError::Unavailable(_)))
}

async fn stage(change: impl FnOnce(&mut SimConfig)) -> Stage {
    let mut config = SimConfig { strict_media: true, window_sends: 99, ..SimConfig::quick() };
    change(&mut config);
    Stage::start(config, IlinkConfig::default(), Clock::system()).await
}

#[tokio::test]
async fn m1_an_image_is_decrypted_with_a_key_from_any_field() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let file = bot.puts(&stage, IMAGE);
    let raw = data_encoding::HEXLOWER.decode(file.key.as_bytes()).unwrap();
    let forms = [BASE64.encode(&raw), BASE64.encode(file.key.as_bytes()), file.key.clone()];
    assert_eq!(bot.gets(&stage, file.image()).await.unwrap(), IMAGE, "both");
    for form in forms {
        let mut item = file.image();
        part(&mut item).as_object_mut().unwrap().remove("aeskey");
        part(&mut item)["media"]["aes_key"] = json!(form);
        assert_eq!(bot.gets(&stage, item).await.unwrap(), IMAGE, "{form}");
    }
    let mut alone = file.image();
    part(&mut alone)["media"].as_object_mut().unwrap().remove("aes_key");
    assert_eq!(bot.gets(&stage, alone).await.unwrap(), IMAGE, "aeskey alone");
    let mut differ = file.image();
    part(&mut differ)["media"]["aes_key"] = json!(BASE64.encode(KEY.as_bytes()));
    assert_eq!(bot.gets(&stage, differ).await.unwrap(), IMAGE, "aeskey wins");
}

#[tokio::test]
async fn m2_files_voices_and_videos_come_whole_with_their_names_and_sums() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let file = bot.puts(&stage, &bytes);
    for item in [file.file("offer v2.pdf"), file.video(), file.voice(2_380, "on my way")] {
        assert_eq!(bot.gets(&stage, item).await.unwrap(), bytes);
    }
    let message = bot.hears(&stage, file.file("offer v2.pdf")).await;
    let media = &message.media[0];
    assert_eq!((media.kind, media.file_name.as_str()), (MessageKind::File, "offer v2.pdf"));
    assert_eq!((media.md5.as_deref(), media.size), (Some(file.md5.as_str()), Some(400_000)));
    for field in ["md5", "video_md5"] {
        let mut item = if field == "md5" { file.file("a") } else { file.video() };
        part(&mut item)[field] = json!("0".repeat(32));
        assert!(unavailable(&bot.gets(&stage, item).await), "a wrong {field}");
    }
    let mut shorter = file.file("a");
    part(&mut shorter)["len"] = json!("399999");
    assert!(unavailable(&bot.gets(&stage, shorter).await), "a wrong length");
}

#[tokio::test]
async fn m3_every_form_of_the_reference_is_fetched() {
    for awkward_cdn_params in [false, true] {
        let stage = stage(|config| config.awkward_cdn_params = awkward_cdn_params).await;
        let bot = stage.bind().await;
        let file = bot.puts(&stage, IMAGE);
        assert_eq!(file.param.contains('+'), awkward_cdn_params);
        assert_eq!(bot.gets(&stage, file.image()).await.unwrap(), IMAGE, "by the parameter");
        let encoded: String = url::form_urlencoded::byte_serialize(file.param.as_bytes()).collect();
        let mut full = file.image();
        part(&mut full)["media"]["full_url"] =
            json!(format!("http://{}/c2c/download?encrypted_query_param={encoded}", stage.address));
        part(&mut full)["media"]["encrypt_query_param"] = json!("not to be used");
        assert_eq!(bot.gets(&stage, full).await.unwrap(), IMAGE, "by the full URL");
        let asked = stage.tap.requests("/c2c/download");
        let own = |name: &str| asked.iter().any(|request| request.headers().contains_key(name));
        assert!(!own("authorization") && !own("ilink-app-id"), "the CDN receives nothing of the login");
    }
}

#[tokio::test]
async fn m4_foreign_hosts_are_not_called() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let file = bot.puts(&stage, IMAGE);
    let mut elsewhere = file.image();
    // Another port of this machine is another host.
    part(&mut elsewhere)["media"]["full_url"] = json!("http://127.0.0.1:1/download");
    assert_eq!(bot.gets(&stage, elsewhere.clone()).await.unwrap(), IMAGE, "by the parameter instead");
    part(&mut elsewhere)["media"].as_object_mut().unwrap().remove("encrypt_query_param");
    assert!(unavailable(&bot.gets(&stage, elsewhere).await));
}

#[tokio::test]
async fn m5_a_wrong_key_is_detected_and_an_earlier_one_is_used() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let first = bot.puts(&stage, b"the same file");
    let opened = bot.fetch(&bot.hears(&stage, first.file("a.txt")).await).await.unwrap();
    // Sent again: the old blob, a new key.
    let mut again = first.file("a.txt");
    part(&mut again)["media"]["aes_key"] = json!(BASE64.encode(KEY.as_bytes()));
    let message = bot.hears(&stage, again).await;
    assert!(unavailable(&bot.fetch(&message).await.map(|fetched| fetched.bytes)));
    let reference = &message.media[0].reference;
    let earlier = [Secret::new("{}"), opened.reference];
    let recovered = within(bot.connection.fetch_media(reference, &earlier, LIMIT)).await.unwrap();
    assert_eq!(recovered.bytes, &b"the same file"[..]);
    // And what it was opened with opens it the next time.
    let third = within(bot.connection.fetch_media(reference, &[recovered.reference], LIMIT)).await.unwrap();
    assert_eq!(third.bytes, &b"the same file"[..]);
}

#[tokio::test]
async fn m6_the_response_of_the_cdn_decides_about_a_retry() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let item = bot.puts(&stage, IMAGE).image();
    let message = bot.hears(&stage, item).await;
    let status = |status| Action::Status { status, body: String::new(), headers: [].into(), effect: false };
    for (action, later) in [
        (status(404), false),
        (status(403), false),
        (status(302), false),
        (status(500), true),
        (status(429), true),
        (Action::Cut { effect: false }, true),
    ] {
        let shown = format!("{action:?}");
        // A download is repeated once if its kept connection is cut.
        let times = if matches!(action, Action::Cut { .. }) { 2 } else { 1 };
        for _ in 0..times {
            stage.sim.add_fault(Fault::on(Endpoint::CdnDownload, action.clone())).unwrap();
        }
        let outcome = bot.fetch(&message).await.map(|fetched| fetched.bytes);
        assert_eq!(matches!(outcome, Err(MediaError::Later(_))), later, "{shown}: {outcome:?}");
        assert_eq!(unavailable(&outcome), !later, "{shown}: {outcome:?}");
    }
    assert_eq!(bot.fetch(&message).await.unwrap().bytes, IMAGE);
    let large = bot.puts(&stage, &vec![7; 2 * LIMIT]);
    let told = bot.gets(&stage, large.file("large")).await;
    assert_eq!(told, Err(MediaError::TooLarge(LIMIT)));
    let mut lies = large.file("large");
    part(&mut lies)["len"] = json!("5");
    assert_eq!(bot.gets(&stage, lies).await, Err(MediaError::TooLarge(LIMIT)), "stopped at the limit");
}

#[tokio::test]
async fn m7_without_a_key_only_an_image_is_taken() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let plain = |body: &[u8]| Action::Status {
        status: 200,
        body: String::from_utf8(body.to_vec()).unwrap(),
        headers: [].into(),
        effect: false,
    };
    let mut image = bot.puts(&stage, IMAGE).image();
    part(&mut image).as_object_mut().unwrap().remove("aeskey");
    part(&mut image)["media"].as_object_mut().unwrap().remove("aes_key");
    let mut file = bot.puts(&stage, IMAGE).file("a.gif");
    part(&mut file)["media"].as_object_mut().unwrap().remove("aes_key");
    for (item, body, taken) in
        [(&image, &b"GIF89a..."[..], true), (&image, b"<html>", false), (&file, b"GIF89a...", false)]
    {
        stage.sim.add_fault(Fault::on(Endpoint::CdnDownload, plain(body))).unwrap();
        let outcome = bot.gets(&stage, item.clone()).await;
        assert_eq!(outcome.is_ok(), taken, "{item}: {outcome:?}");
    }
}

#[tokio::test]
async fn m8_a_voice_keeps_its_sound_its_length_and_its_transcript() {
    let stage = stage(|_| {}).await;
    let bot = stage.bind().await;
    let silk = b"\x02#!SILK_V3 and sound";
    let message = bot.hears(&stage, bot.puts(&stage, silk).voice(2_380, "on my way")).await;
    let item = &message.items[0];
    assert_eq!((item.kind, item.duration_ms), (MessageKind::Voice, Some(2_380)));
    assert_eq!((message.content.as_str(), item.text.as_deref()), ("on my way", Some("on my way")));
    let bytes = bot.fetch(&message).await.unwrap().bytes;
    assert_eq!((bytes.as_ref(), hub_core::file_type::of_bytes(&bytes)), (&silk[..], Some("audio/silk")));
}

fn file(kind: MessageKind, name: &str, bytes: &[u8]) -> MediaFile {
    MediaFile { kind, file_name: name.to_owned(), bytes: Bytes::copy_from_slice(bytes) }
}

/// Uploads and sends a file to who wrote a message.
async fn send(
    connection: &dyn Connection,
    to: &InboundMessage,
    client_id: &str,
    file: &MediaFile,
) -> SendOutcome {
    let media = within(connection.upload_media(&to.from_user_id, file)).await.unwrap();
    let mut outgoing = reply_to(to, client_id, "");
    outgoing.media = Some(media);
    within(connection.send(&outgoing)).await
}

#[tokio::test]
async fn u1_images_videos_and_files_arrive_and_can_be_opened() {
    let stage = stage(|_| {}).await;
    let (bot, message) = stage.bind_and_greet().await;
    for (n, kind, shown_as, media_type, name) in [
        (0, MessageKind::Image, "image", 1, "a.png"),
        (1, MessageKind::Video, "video", 2, "a.mp4"),
        (2, MessageKind::File, "file", 3, "offer v2.pdf"),
        (3, MessageKind::Voice, "file", 3, "a.mp3"),
    ] {
        let bytes = format!("the bytes of {name}").into_bytes();
        let outcome = send(&*bot.connection, &message, &format!("hub-{n}"), &file(kind, name, &bytes)).await;
        assert!(matches!(outcome, SendOutcome::Sent { .. }), "{name}: {outcome:?}");
        let shown = stage.sim.outbound(None, 0).pop().unwrap();
        assert_eq!(shown.media.as_ref().unwrap().kind, shown_as);
        assert_eq!((shown.opened, shown.note.as_deref()), (Some(true), None));
        assert_eq!(stage.sim.opened(&shown).unwrap(), bytes);
        let asked = stage.tap.bodies("getuploadurl").pop().unwrap();
        let sealed = bytes.len() / 16 * 16 + 16;
        assert_eq!((&asked["media_type"], &asked["rawsize"]), (&json!(media_type), &json!(bytes.len())));
        assert_eq!((&asked["filesize"], &asked["no_need_thumb"]), (&json!(sealed), &json!(true)));
        assert_eq!(asked["to_user_id"], message.from_user_id);
        let item = stage.tap.bodies("sendmessage").pop().unwrap()["msg"]["item_list"][0].clone();
        let reference = &shown.media.as_ref().unwrap().encrypt_query_param;
        let key = BASE64.encode(asked["aeskey"].as_str().unwrap().as_bytes());
        let media = json!({ "encrypt_query_param": reference, "aes_key": key, "encrypt_type": 1 });
        let expected = match shown_as {
            "image" => json!({ "type": 2, "image_item": { "media": media, "mid_size": sealed } }),
            "video" => json!({ "type": 5, "video_item": { "media": media, "video_size": sealed } }),
            _ => json!({ "type": 4, "file_item": {
                "media": media, "file_name": name, "len": bytes.len().to_string() } }),
        };
        assert_eq!(item, expected);
    }
    let asked = stage.tap.bodies("getuploadurl");
    for field in ["filekey", "aeskey"] {
        let mut values: Vec<_> = asked.iter().map(|body| body[field].to_string()).collect();
        values.sort();
        values.dedup();
        assert_eq!(values.len(), asked.len(), "{field} is new for each upload");
    }
    assert_eq!(stage.sim.violations(None), []);
}

#[tokio::test]
async fn u2_either_form_of_the_url_will_do_and_the_full_one_is_preferred() {
    for upload_urls in [UploadUrls::Full, UploadUrls::Param, UploadUrls::Both] {
        let stage = stage(|config| {
            config.upload_urls = upload_urls;
            config.awkward_cdn_params = true;
        })
        .await;
        let (bot, message) = stage.bind_and_greet().await;
        let outcome = send(&*bot.connection, &message, "hub-1", &file(MessageKind::Image, "", IMAGE)).await;
        assert!(matches!(outcome, SendOutcome::Sent { .. }), "{upload_urls:?}: {outcome:?}");
        let upload = stage.tap.requests("/c2c/upload").pop().unwrap();
        let host = upload.headers()["host"].to_str().unwrap().to_owned();
        // The CDN's own address is spelled in another way than the one in the full URL.
        assert_eq!(
            host.starts_with("localhost"),
            upload_urls == UploadUrls::Param,
            "{upload_urls:?}: {host}"
        );
        assert_eq!(upload.headers()["content-type"], "application/octet-stream");
        assert!(!upload.headers().contains_key("authorization"));
    }
}

#[tokio::test]
async fn u3_a_file_without_an_upload_place_fails_permanently() {
    let stage = stage(|_| {}).await;
    let (bot, message) = stage.bind_and_greet().await;
    let refuse = |ret| Action::Error { ret: Some(ret), errcode: None, errmsg: None, effect: false };
    let remove = ["upload_full_url", "upload_param"].map(str::to_owned).to_vec();
    let neither = Action::Patch { set: Map::new(), remove, remove_headers: vec![] };
    for action in [neither, refuse(-2), refuse(-1)] {
        stage.sim.add_fault(Fault::on(Endpoint::GetUploadUrl, action)).unwrap();
        let file = file(MessageKind::Image, "", IMAGE);
        let outcome = within(bot.connection.upload_media(&message.from_user_id, &file)).await;
        assert!(matches!(outcome, Err(MediaError::Unavailable(_))), "{outcome:?}");
    }
    assert!(stage.tap.requests("/c2c/upload").is_empty());
}

#[tokio::test]
async fn u4_a_failing_cdn_is_tried_three_times_and_a_refusal_once() {
    let stage = stage(|_| {}).await;
    let (bot, message) = stage.bind_and_greet().await;
    let upload = async || {
        let file = file(MessageKind::File, "a.txt", b"text");
        within(bot.connection.upload_media(&message.from_user_id, &file)).await
    };
    let status = |status| Action::Status { status, body: String::new(), headers: [].into(), effect: false };
    let no_header = Action::Patch {
        set: Map::new(),
        remove: vec![],
        remove_headers: vec!["x-encrypted-param".to_owned()],
    };
    let counts = || (stage.tap.requests("/c2c/upload").len(), stage.tap.requests("getuploadurl").len());
    let mut before = counts();
    for (faults, uploads, permits, ok) in [
        (vec![status(500), status(500)], 3, 2, true),
        (vec![no_header], 2, 1, true),
        (vec![status(403)], 1, 1, false),
        (vec![status(500), status(500), status(500)], 3, 2, false),
    ] {
        for fault in faults {
            stage.sim.add_fault(Fault::on(Endpoint::CdnUpload, fault)).unwrap();
        }
        let outcome = upload().await;
        assert_eq!(outcome.is_ok(), ok, "{outcome:?}");
        let now = counts();
        assert_eq!((now.0 - before.0, now.1 - before.1), (uploads, permits));
        before = now;
    }
}

#[tokio::test]
async fn u5_sizes_are_those_of_the_padding() {
    let stage = stage(|_| {}).await;
    let (bot, message) = stage.bind_and_greet().await;
    for (n, (size, sealed)) in [(0, 16), (16, 32), (16 << 20, (16 << 20) + 16)].into_iter().enumerate() {
        let bytes = vec![42; size];
        let media = file(MessageKind::File, "a.bin", &bytes);
        let outcome = send(&*bot.connection, &message, &format!("hub-{n}"), &media).await;
        assert!(matches!(outcome, SendOutcome::Sent { .. }), "{size}: {outcome:?}");
        assert_eq!(stage.tap.requests("/c2c/upload").pop().unwrap().body().len(), sealed);
        assert_eq!(stage.sim.opened(&stage.sim.outbound(None, 0).pop().unwrap()).unwrap(), bytes);
    }
}
