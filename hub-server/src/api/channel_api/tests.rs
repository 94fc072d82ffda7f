//! Sends that bring files, through the whole application.

use std::time::Duration;

use hub_core::{bots::NewBind, channels::NewChannel, network::sim::Simulator, time::Clock};
use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

const SEND: &str = "/api/v1/channels/send";
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

/// A channel of a bot with a received message.
struct Scene {
    app: App,
    sim: Simulator,
    wx_id: String,
    key: String,
}

impl Scene {
    async fn new() -> Self {
        let (app, sim) = App::with_simulator().await;
        let ann = app.user("ann").await;
        let session = ann.headers[0].1.split_once('=').unwrap().1.to_owned();
        let ann = app.hub.accounts().authenticate_session(&session).await.unwrap();
        let bind = app.hub.bots().start_bind(&ann, NewBind::default()).await.unwrap();
        let account = sim.confirm(bind.qr_text.expose(), None).unwrap();
        let step = app.hub.bots().confirm_bind(&ann, bind.bind_id, None, Duration::ZERO).await.unwrap();
        let bot = step.bot.unwrap().id;
        let made = app.hub.channels().create(&ann, bot, NewChannel::named("files"), None).await.unwrap();
        app.hub.start().await.unwrap();
        sim.say(&account.wx_id, None, "hello").unwrap();
        let key = made.api_key.expose().to_owned();
        let scene = Self { app, sim, wx_id: account.wx_id, key };
        scene
            .until("the greeting", async || {
                let log = scene.client().get("/api/v1/channels/messages?timeout=0").await;
                !log.data()["items"].as_array().unwrap().is_empty()
            })
            .await;
        scene
    }

    fn client(&self) -> Caller<'_> {
        self.app.stranger().with("X-API-Key", &self.key)
    }

    async fn until(&self, what: &str, mut poll: impl AsyncFnMut() -> bool) {
        for _ in 0..3_000 {
            if poll().await {
                return;
            }
            // More than the pause between two sends to one person.
            self.app.clock.advance(Duration::from_millis(500));
            Clock::system().sleep(Duration::from_millis(10)).await;
        }
        panic!("waited for in vain: {what}");
    }

    async fn post(&self, key: &str, body: Vec<u8>) -> Reply {
        let client = self.client().with("Idempotency-Key", key);
        let send = client.send(Method::POST, SEND, |request| {
            request.header("Content-Type", "multipart/form-data; boundary=XX").body(body)
        });
        send.await
    }
}

/// A part of a form: its name, with what follows it in the head, and its bytes.
fn field(head: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("--XX\r\nContent-Disposition: form-data; name={head}\r\n\r\n").as_bytes(), bytes, b"\r\n"]
        .concat()
}

fn form(fields: &[Vec<u8>]) -> Vec<u8> {
    [fields.concat().as_slice(), b"--XX--\r\n"].concat()
}

fn image() -> Vec<u8> {
    field("\"file\"; filename=\"../a.png\"\r\nContent-Type: image/png", IMAGE)
}

#[tokio::test]
async fn older_paths_take_the_key_in_the_query_and_return_bare_fields() {
    let scene = Scene::new().await;
    let caller = scene.app.stranger();
    let path = |name: &str| format!("/api/channel/{name}?key={}", scene.key);
    let status = caller.get(&path("status")).await;
    assert_eq!((&status.json["ok"], &status.json["channel_name"]), (&json!(true), &json!("files")));
    assert_eq!(status.json["channel_id"], status.data()["channel_id"]);
    let messages = caller.get(&path("messages")).await;
    assert_eq!(messages.json["messages"][0]["content"], "hello", "{}", messages.json);
    assert_eq!(messages.json["next_cursor"], messages.data()["next_cursor"]);
    let sent = caller.post(&path("send"), &json!({ "text": "hello yourself" })).await;
    assert_eq!(sent.json["ok"], true, "{}", sent.json);
    assert_eq!(sent.json["message_id"], sent.data()["message_id"]);
    caller.get("/api/channel/status?key=hubc_wrong").await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn a_form_brings_a_file_and_its_caption() {
    let scene = Scene::new().await;
    let fields = [
        field("\"recipient\"", b""),
        field("\"text\"", "schön".as_bytes()),
        field("\"more\"", b"?"),
        image(),
    ];
    let first = scene.post("k", form(&fields)).await;
    let id = first.data()["message_id"].clone();
    let again = scene.post("k", form(&fields)).await;
    assert_eq!(again.data()["message_id"], id, "the same key and the same file send once");
    let other = [field("\"text\"", b"x"), field("\"file\"; filename=\"a.txt\"", b"another")];
    scene.post("k", form(&other)).await.error(409, "CONFLICT");
    scene.until("both are shown", async || scene.sim.outbound(Some(&scene.wx_id), 0).len() == 2).await;
    let shown = scene.sim.outbound(Some(&scene.wx_id), 0);
    assert_eq!(shown[0].text, "schön");
    assert_eq!(scene.sim.opened(&shown[1]).unwrap(), IMAGE);
    assert_eq!(shown[1].media.as_ref().unwrap().kind, "image");
    scene.app.hub.shutdown().await;
}

#[tokio::test]
async fn bad_forms_are_refused_with_what_is_wrong() {
    let scene = Scene::new().await;
    let cut = form(&[image()]);
    for (body, status, code, expected) in [
        (form(&[]), 400, "INVALID_PARAMS", "content"),
        (form(&[image(), image()]), 400, "INVALID_PARAMS", "more than once"),
        (form(&[field("\"text\"", b"a"), field("\"text\"", b"b")]), 400, "INVALID_PARAMS", "more than once"),
        (form(&[field("\"text\"", b"\xff\xfe")]), 400, "INVALID_PARAMS", "UTF-8"),
        (form(&[field("\"text\"", b"a"), field("\"format\"", b"html")]), 400, "INVALID_PARAMS", "format"),
        (form(&[field("\"file\"; filename=\"a\"", b"")]), 400, "INVALID_PARAMS", "empty"),
        (cut[..cut.len() - 20].to_vec(), 400, "INVALID_PARAMS", "form"),
        (b"{\"text\":\"hi\"}".to_vec(), 400, "INVALID_PARAMS", "form"),
        (form(&[field("\"text\"", &vec![b'a'; 300 << 10])]), 413, "PAYLOAD_TOO_LARGE", "text"),
        (form(&[field("\"file\"; filename=\"a\"", &vec![7; (50 << 20) + 1])]), 413, "PAYLOAD_TOO_LARGE", ""),
    ] {
        let refused = scene.post("k", body).await;
        assert!(refused.error(status, code).to_string().contains(expected), "{expected}: {}", refused.json);
    }
    let stranger = scene.app.stranger();
    let nobody = stranger.send(Method::POST, SEND, |request| {
        request.header("Content-Type", "multipart/form-data; boundary=XX").body(form(&[image()]))
    });
    nobody.await.error(401, "UNAUTHORIZED");
    assert!(scene.sim.outbound(Some(&scene.wx_id), 0).is_empty());
    scene.app.hub.shutdown().await;
}

#[tokio::test]
async fn a_file_is_announced_uploaded_and_sent_once() {
    let scene = Scene::new().await;
    let url = |size: &str, kind: &str| {
        format!("/api/v1/channels/upload-url?filename=..%2Fa.png&content_type={kind}&size={size}")
    };
    let upload = scene.client().get(&url(&IMAGE.len().to_string(), "image/png")).await.data().clone();
    assert_eq!(
        (&upload["method"], &upload["headers"]),
        (&json!("PUT"), &json!({ "Content-Type": "image/png" }))
    );
    assert_eq!(upload["expires_at"], json!(scene.app.clock.now() + Duration::from_secs(15 * 60)));
    let path =
        upload["upload_url"].as_str().unwrap().strip_prefix("http://localhost:9800").unwrap().to_owned();
    let body = json!({ "text": "", "media": { "upload_id": upload["upload_id"] } });
    scene.client().post(SEND, &body).await.error(400, "INVALID_PARAMS");
    let put = async || {
        let stranger = scene.app.stranger();
        let put = stranger
            .send(Method::PUT, &path, |request| request.header("Content-Type", "image/png").body(IMAGE));
        put.await
    };
    assert_eq!(put().await.data()["upload_id"], upload["upload_id"]);
    put().await.error(401, "INVALID_TOKEN");
    let sent: Value = scene.client().post(SEND, &body).await.data().clone();
    assert!(sent["message_id"].is_string());
    scene.client().post(SEND, &body).await.error(400, "INVALID_PARAMS");
    scene.until("it is shown", async || scene.sim.outbound(Some(&scene.wx_id), 0).len() == 1).await;
    assert_eq!(scene.sim.opened(&scene.sim.outbound(Some(&scene.wx_id), 0)[0]).unwrap(), IMAGE);

    for (size, kind, status, code) in [
        ("0", "image/png", 400, "INVALID_PARAMS"),
        ("-1", "image/png", 400, "INVALID_PARAMS"),
        ("5", "image", 400, "INVALID_PARAMS"),
        ("52428801", "image/png", 413, "PAYLOAD_TOO_LARGE"),
    ] {
        scene.client().get(&url(size, kind)).await.error(status, code);
    }
    scene.client().get("/api/v1/channels/upload-url?size=5").await.error(400, "INVALID_PARAMS");
    scene.app.hub.shutdown().await;
}
