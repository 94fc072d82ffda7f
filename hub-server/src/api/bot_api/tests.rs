//! The bot API through the whole application: Ada's app on Ada's bot, whose person is Ann. Nothing is sent: the hub
//! only stores accepted messages.

use hub_core::time::Clock;
use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{
    Caller, Reply,
    app_on_bot::{BOT, Fixture, Scene, text},
};

impl Scene<'_> {
    async fn send(&self, body: Value) -> Reply {
        self.client().post("/bot/v1/messages/send", &body).await
    }

    async fn of_bot(&self, rest: &str) -> Reply {
        self.ada.get(&format!("/api/bots/{BOT}{rest}")).await
    }

    /// The log of calls once it has so many: notes are made behind the answers.
    pub(super) async fn calls(&self, count: usize) -> Vec<Value> {
        let mut log = Vec::new();
        for _ in 0..500 {
            let reply = self.of_bot(&format!("/apps/{}/api-logs", self.app_id)).await;
            log = reply.data()["items"].as_array().unwrap().clone();
            if log.len() >= count {
                break;
            }
            Clock::system().sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(log.len(), count, "{log:?}");
        log
    }
}

/// The error of a refusal on the bot API: the envelope, and `ok`.
#[track_caller]
fn refused<'r>(reply: &'r Reply, status: u16, code: &str) -> &'r Value {
    let error = reply.error(status, code);
    assert_eq!(reply.json["ok"], false, "{}", reply.json);
    error
}

const ALL: [&str; 6] =
    ["message:read", "message:write", "contact:read", "bot:read", "tools:write", "config:read"];

#[tokio::test]
async fn both_dialects_send_and_the_default_receiver_is_the_accounts_person() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let sent = scene.send(json!({ "to_user_id": "ann", "content": "one", "context_token": "x" })).await;
    assert_eq!((&sent.json["success"], &sent.json["ok"]), (&json!(true), &json!(true)), "{}", sent.json);
    assert!(text(&sent.json, "message_id").starts_with("msg_"));
    assert!(text(&sent.json, "client_id").starts_with("hub-"));
    let older =
        scene.client().post("/bot/v1/message/send", &json!({ "type": "text", "content": "two" })).await;
    assert_eq!(older.json["ok"], true, "{}", older.json);
    let empty = scene.send(json!({ "to": "", "content": "three", "unheard_of": 1 })).await;
    assert_eq!(empty.json["ok"], true, "{}", empty.json);
    let messages = scene.of_bot("/messages").await;
    let items = messages.data()["items"].as_array().unwrap();
    let said: Vec<_> = items.iter().map(|item| (text(item, "to_user_id"), text(item, "content"))).collect();
    assert_eq!(said, [("ann", "three"), ("ann", "two"), ("ann", "one")]);
    // The trace says who sent it.
    let trace = scene.of_bot(&format!("/traces/{}", text(&sent.json, "trace_id"))).await;
    assert_eq!(text(&trace.data()["steps"][0], "kind"), "app");
}

#[tokio::test]
async fn a_refused_send_reports_the_reason() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let closed = scene.send(json!({ "to": "eve", "content": "hi" })).await;
    refused(&closed, 409, "WINDOW_CLOSED");
    for (body, field) in [
        (json!({}), "content"),
        (json!({ "content": " " }), "content"),
        (json!({ "type": "image" }), "url"),
        (json!({ "base64": "%%%" }), "base64"),
        (json!({ "base64": "QUJD", "url": "https://x.example/a.png" }), "url"),
        (json!({ "type": "sticker", "content": "x" }), "type"),
        (json!({ "url": "http://127.0.0.1/a.png" }), "media.url"),
        (json!({ "url": "http://169.254.169.254/latest" }), "media.url"),
        (json!({ "content": 7 }), "content"),
    ] {
        let reply = scene.send(body.clone()).await;
        let error = refused(&reply, 400, "INVALID_PARAMS");
        assert_eq!(error["details"][0]["field"], field, "{body}: {error}");
    }
    fixture.sql("UPDATE bots SET status = 'expired'".to_owned()).await;
    refused(&scene.send(json!({ "content": "hi" })).await, 409, "CONFLICT");
    assert!(scene.of_bot("/messages").await.data()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_repeated_names_are_refused() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let lenient = scene.send(json!({ "content": 7, "unheard_of": 1 })).await;
    let details = refused(&lenient, 400, "INVALID_PARAMS")["details"].as_array().unwrap().clone();
    assert_eq!(details.len(), 1, "an ignored field is no problem: {details:?}");
    for (text, field) in
        [(r#"{"content":"a","content":"b"}"#, "content"), (r#"{"content":"a","own":{"x":1,"x":2}}"#, "own.x")]
    {
        let reply = scene
            .client()
            .send(Method::POST, "/bot/v1/messages/send", |request| {
                request.content_type("application/json").body(text)
            })
            .await;
        let error = refused(&reply, 400, "INVALID_PARAMS");
        assert_eq!(error["details"], json!([{ "field": field, "reason": "appears more than once" }]));
    }
    assert!(scene.of_bot("/messages").await.data()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_file_comes_as_base64() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for body in [
        json!({ "type": "image", "base64": format!("data:image/png;base64,{png}"), "filename": "sky.png" }),
        json!({ "type": "image", "content": format!("data:image/png;base64,{png}") }),
        json!({ "base64": png, "content": "look" }),
    ] {
        let sent = scene.send(body).await;
        assert_eq!(sent.json["ok"], true, "{}", sent.json);
    }
    let messages = scene.of_bot("/messages").await;
    let items = messages.data()["items"].as_array().unwrap();
    assert_eq!((&items[0]["content"], &items[2]["content"]), (&json!("look"), &json!("sky.png")));
    assert!(items.iter().all(|item| item["media"][0]["type"] == "image"), "{items:?}");
}

/// A part of a form: its name, with what follows it in the head, and its bytes.
fn field(head: &str, bytes: &[u8]) -> Vec<u8> {
    [format!("--XX\r\nContent-Disposition: form-data; name={head}\r\n\r\n").as_bytes(), bytes, b"\r\n"]
        .concat()
}

const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

fn image() -> Vec<u8> {
    field("\"file\"; filename=\"../a.png\"\r\nContent-Type: image/png", IMAGE)
}

async fn send_form(client: Caller<'_>, path: &str, fields: &[Vec<u8>]) -> Reply {
    let form = [fields.concat().as_slice(), b"--XX--\r\n"].concat();
    let send = client.send(Method::POST, path, |request| {
        request.header("Content-Type", "multipart/form-data; boundary=XX").body(form)
    });
    send.await
}

#[tokio::test]
async fn a_form_brings_a_file_and_its_caption() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let texts = [
        field("\"to\"", b""),
        field("\"type\"", b"image"),
        field("\"content\"", "schön".as_bytes()),
        field("\"context_token\"", b"s3cret"),
        field("\"url\"", b""),
        field("\"more\"", b"?"),
    ];
    let fields = [&texts[..], &[image()]].concat();
    for path in ["/bot/v1/messages/send", "/bot/v1/message/send"] {
        let first = send_form(scene.client().with("Idempotency-Key", path), path, &fields).await;
        assert_eq!(first.json["ok"], true, "{}", first.json);
        let again = send_form(scene.client().with("Idempotency-Key", path), path, &fields).await;
        assert_eq!(first.json, again.json, "the same key and the same file send once");
        let other = [&texts[..], &[field("\"file\"; filename=\"a.png\"", b"another")]].concat();
        refused(
            &send_form(scene.client().with("Idempotency-Key", path), path, &other).await,
            409,
            "CONFLICT",
        );
    }
    let renamed = [field("\"filename\"", b"sky.png"), image()];
    let sent = send_form(scene.client(), "/bot/v1/messages/send", &renamed).await;
    assert_eq!(sent.json["ok"], true, "{}", sent.json);
    let alone = send_form(scene.client(), "/bot/v1/messages/send", &[field("\"content\"", b"no file")]).await;
    assert_eq!(alone.json["ok"], true, "{}", alone.json);
    let messages = scene.of_bot("/messages").await;
    let items = messages.data()["items"].as_array().unwrap();
    let said: Vec<_> = items.iter().map(|item| text(item, "content")).collect();
    assert_eq!(said, ["no file", "sky.png", "schön", "schön"]);
    assert!(items[1..].iter().all(|item| item["media"][0]["type"] == "image"), "{items:?}");
    // The log says what came without holding it.
    let log = scene.calls(8).await;
    let sky = text(&log[1], "request_body");
    let uploaded: Value = serde_json::from_str(sky).unwrap_or_else(|_| panic!("{sky}"));
    assert_eq!(uploaded["file"], json!({ "name": "a.png", "type": "image/png", "bytes": IMAGE.len() }));
    assert_eq!(uploaded["filename"], "sky.png");
    let log = serde_json::to_string(&log).unwrap();
    assert!(log.contains("schön") && !log.contains("s3cret") && !log.contains("really a picture"), "{log}");
}

#[tokio::test]
async fn bad_forms_are_refused_with_what_is_wrong() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let long = vec![b'a'; 300 << 10];
    for (fields, status, code, expected) in [
        (vec![], 400, "INVALID_PARAMS", "content"),
        (vec![image(), image()], 400, "INVALID_PARAMS", "more than once"),
        (vec![field("\"to\"", b"a"), field("\"to\"", b"b")], 400, "INVALID_PARAMS", "more than once"),
        (vec![field("\"type\"", b"sticker"), image()], 400, "INVALID_PARAMS", "type"),
        (vec![field("\"type\"", b"image")], 400, "INVALID_PARAMS", "url"),
        (vec![field("\"file\"; filename=\"a.png\"", b"")], 400, "INVALID_PARAMS", "empty"),
        (vec![field("\"url\"", b"https://x.example/a.png"), image()], 400, "INVALID_PARAMS", "file"),
        (vec![field("\"base64\"", b"QUJD"), image()], 400, "INVALID_PARAMS", "file"),
        (vec![field("\"content\"", b"\xff\xfe")], 400, "INVALID_PARAMS", "UTF-8"),
        (vec![field("\"content\"", &long)], 413, "PAYLOAD_TOO_LARGE", "content"),
        (vec![field("\"file\"; filename=\"a\"", &vec![7; (50 << 20) + 1])], 413, "PAYLOAD_TOO_LARGE", ""),
    ] {
        let reply = send_form(scene.client(), "/bot/v1/messages/send", &fields).await;
        let error = refused(&reply, status, code);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    let stranger = fixture.app.stranger();
    refused(&send_form(stranger, "/bot/v1/messages/send", &[image()]).await, 401, "UNAUTHORIZED");
    assert!(scene.of_bot("/messages").await.data()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_send_belongs_to_the_trace_it_names_and_is_made_once_per_key() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let first = scene.send(json!({ "content": "one" })).await;
    let trace = text(&first.json, "trace_id").to_owned();
    let client = scene.client().with("X-Trace-Id", &trace);
    let second = client.post("/bot/v1/messages/send", &json!({ "content": "two" })).await;
    assert_eq!(text(&second.json, "trace_id"), trace);
    let in_body = scene.send(json!({ "content": "three", "trace_id": trace })).await;
    assert_eq!(text(&in_body.json, "trace_id"), trace);
    let shown = scene.of_bot(&format!("/traces/{trace}")).await;
    let steps: Vec<_> =
        shown.data()["steps"].as_array().unwrap().iter().map(|step| text(step, "name")).collect();
    assert_eq!(steps, ["received", "reply", "reply"]);
    // One that the bot does not have is no reason to refuse.
    for unknown in ["tr_01BX5ZZKBKACTAV9WEVGEMMVRZ", "my-own-id"] {
        let sent = scene.send(json!({ "content": "x", "trace_id": unknown })).await;
        assert_ne!(text(&sent.json, "trace_id"), unknown);
    }
    let once = scene.client().with("Idempotency-Key", "k");
    let path = "/bot/v1/messages/send";
    let first = once.post(path, &json!({ "content": "once" })).await;
    let again = once.post(path, &json!({ "content": "once" })).await;
    assert_eq!(first.json, again.json);
    refused(&once.post(path, &json!({ "content": "other" })).await, 409, "CONFLICT");
}

#[tokio::test]
async fn an_app_reads_its_bot_and_whom_it_talks_to() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    for path in ["/bot/v1/bot", "/bot/v1/info"] {
        let bot = scene.client().get(path).await.json;
        assert_eq!((text(&bot, "bot_id"), text(&bot, "name")), (&*BOT.to_string(), "Shop"));
        assert_eq!((text(&bot, "status"), text(&bot, "wx_id"), &bot["ok"]), ("online", "wx1", &json!(true)));
        assert!(text(&bot, "created_at").ends_with('Z'));
        assert_eq!((text(&bot["bot"], "provider"), text(&bot["bot"], "id")), ("sim", &*BOT.to_string()));
        assert_eq!(text(&bot["bot"], "status"), "connected", "published apps test this word");
    }
    for path in ["/bot/v1/contacts", "/bot/v1/contact"] {
        let found = scene.client().get(path).await.json;
        let ann = &found["contacts"][0];
        assert_eq!(
            (text(ann, "user_id"), text(ann, "user_name"), text(ann, "remark")),
            ("ann", "Ann", "vip")
        );
        assert_eq!((text(ann, "avatar_url"), &ann["msg_count"]), ("", &json!(3)));
        assert_eq!((&found["ok"], &found["next_cursor"]), (&json!(true), &Value::Null));
    }
}

#[tokio::test]
async fn a_call_without_its_scope_is_forbidden() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let put = async |path: &str| {
        let body = json!({ "tools": [{ "name": "t", "command": "/t" }] });
        scene.client().send(Method::PUT, path, |request| request.body_json(&body)).await
    };
    for path in ["/bot/v1/app/tools", "/bot/v1/installation/tools"] {
        assert_eq!(put(path).await.json, json!({ "ok": true, "tool_count": 1 }));
    }
    let of_app = scene.ada.get(&format!("/api/apps/{}", scene.app_id)).await;
    assert_eq!(text(&of_app.data()["tools"][0], "command"), "t");
    let path = format!("/api/bots/{BOT}/apps/{}", scene.app_id);
    let grant = async |scopes: Value| {
        let body = json!({ "scopes": scopes });
        scene.ada.send(Method::PUT, &path, |request| request.body_json(&body)).await.data();
    };
    grant(json!(["message:read"])).await;
    for reply in [
        scene.send(json!({ "content": "hi" })).await,
        scene.client().get("/bot/v1/contacts").await,
        scene.client().get("/bot/v1/bot").await,
        put("/bot/v1/app/tools").await,
        put("/bot/v1/installation/tools").await,
    ] {
        let error = refused(&reply, 403, "FORBIDDEN");
        assert!(text(error, "message").contains("scope"), "{error}");
    }
    grant(json!(["bot:read"])).await;
    assert_eq!(scene.client().get("/bot/v1/bot").await.json["ok"], true);
}

#[tokio::test]
async fn a_token_is_rejected_after_its_app_is_deleted_replaced_or_disabled() {
    let fixture = Fixture::new().await;
    let mut scene = fixture.scene(&ALL).await;
    let path = format!("/api/bots/{BOT}/apps/{}", scene.app_id);
    let asks = async |scene: &Scene<'_>| scene.client().get("/bot/v1/bot").await;
    let switch = async |scene: &Scene<'_>, on: bool| {
        let body = json!({ "enabled": on });
        scene.ada.send(Method::PUT, &path, |request| request.body_json(&body)).await.data();
    };
    switch(&scene, false).await;
    refused(&asks(&scene).await, 403, "FORBIDDEN");
    switch(&scene, true).await;
    assert_eq!(asks(&scene).await.json["ok"], true);
    let later = scene.ada.post(&format!("{path}/regenerate-token?grace_hours=1"), &json!({})).await;
    assert_eq!(asks(&scene).await.json["ok"], true, "within its grace");
    fixture.app.clock.advance(std::time::Duration::from_hours(1));
    refused(&asks(&scene).await, 401, "INVALID_TOKEN");
    scene.token = text(later.data(), "app_token").to_owned();
    assert_eq!(asks(&scene).await.json["ok"], true);
    scene.ada.send(Method::DELETE, &path, |request| request).await.data();
    refused(&asks(&scene).await, 401, "INVALID_TOKEN");
    let again =
        scene.ada.post(&format!("/api/bots/{BOT}/apps/install"), &json!({ "app_id": scene.app_id })).await;
    scene.token = text(again.data(), "app_token").to_owned();
    assert_eq!(asks(&scene).await.json["ok"], true);
    scene.ada.send(Method::DELETE, &format!("/api/apps/{}", scene.app_id), |request| request).await.data();
    refused(&asks(&scene).await, 401, "INVALID_TOKEN");
}

#[tokio::test]
async fn requests_of_an_app_are_in_the_log_of_the_bots_owner() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let eve = fixture.app.user("eve").await;
    let sent = scene.send(json!({ "content": "hi", "context_token": "s3cret" })).await;
    scene.send(json!({ "base64": "%%%" })).await;
    scene.client().post("/bot/v1/messages/send?x=1", &json!("no object")).await;
    scene.client().get("/bot/v1/bot").await;
    // A caller without a valid token has no log.
    fixture.app.stranger().with("Authorization", "Bearer huba_x").get("/bot/v1/bot").await;
    let path = format!("/api/bots/{BOT}/apps/{}/api-logs", scene.app_id);
    let log = scene.calls(4).await;
    let calls: Vec<_> = log
        .iter()
        .map(|call| format!("{} {} {}", text(call, "method"), text(call, "path"), call["status_code"]))
        .collect();
    assert_eq!(
        calls,
        [
            "GET /bot/v1/bot 200",
            "POST /bot/v1/messages/send 400",
            "POST /bot/v1/messages/send 400",
            "POST /bot/v1/messages/send 200"
        ]
    );
    assert_eq!(text(&log[3], "trace_id"), text(&sent.json, "trace_id"));
    assert!(text(&log[3], "response_body").contains(text(&sent.json, "message_id")));
    assert!(text(&log[2], "request_body").contains("(3 characters)"), "{}", log[2]);
    let all = serde_json::to_string(&log).unwrap();
    assert!(!all.contains("s3cret") && !all.contains(&scene.token));
    let page = scene.ada.get(&format!("{path}?limit=3")).await;
    let cursor = text(page.data(), "next_cursor");
    let rest = scene.ada.get(&format!("{path}?limit=3&cursor={cursor}")).await;
    assert_eq!(rest.data()["items"], json!([log[3]]));
    eve.get(&path).await.error(404, "NOT_FOUND");
}
