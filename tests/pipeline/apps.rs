//! Apps receive what people write to their bots, and reply at once or later.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use hub_core::{
    access::Actor,
    apps::{App, AppEvent, AppEventState, AppPatch, AppTool, Apps, Install, NewApp, NewInstallation},
    id::AppId,
    local_http::{Cut, LocalService},
    page::PageRequest,
    secret::Secret,
    testing::{TestBot, TestHub},
    traces::{StepKind, TraceStatus},
};
use serde_json::{Value, json};
use sha2::Sha256;

/// The server of an app: echoes challenges, checks signatures, answers as instructed.
#[derive(Debug, Default)]
struct Server {
    secret: Mutex<Option<Secret>>,
    events: Mutex<Vec<Value>>,
    /// Queued responses, as status and body; 200 with an empty object when the queue is empty.
    answers: Mutex<VecDeque<(u16, Value)>>,
}

#[async_trait]
impl LocalService for Server {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        if body["type"] == "url_verification" {
            let echo = json!({ "challenge": body["challenge"] });
            return Ok(http::Response::new(echo.to_string().into()));
        }
        let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
        let secret = self.secret.lock().unwrap().clone().unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).unwrap();
        mac.update(format!("{}:", header("x-timestamp")).as_bytes());
        mac.update(request.body());
        let expected = format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()));
        assert_eq!(header("x-signature"), expected);
        assert_eq!(header("x-installation-id"), body["installation_id"].as_str().unwrap());
        assert_eq!(header("x-trace-id"), body["trace_id"].as_str().unwrap());
        assert_eq!((&body["v"], &body["type"]), (&json!(1), &json!("event")));
        self.events.lock().unwrap().push(body);
        let (status, answer) = self.answers.lock().unwrap().pop_front().unwrap_or((200, json!({})));
        Ok(http::Response::builder().status(status).body(answer.to_string().into()).unwrap())
    }
}

impl Server {
    fn events(&self) -> Vec<Value> {
        self.events.lock().unwrap().clone()
    }

    fn then(&self, status: u16, answer: Value) {
        self.answers.lock().unwrap().push_back((status, answer));
    }
}

struct Scene {
    hub: TestHub,
    server: Arc<Server>,
    ada: Actor,
    bot: TestBot,
    app: App,
}

impl Scene {
    /// Ada's app on Ada's bot, which asks for these events and has the command `/weather`.
    async fn new(events: &[&str]) -> Self {
        let server = Arc::new(Server::default());
        let hub = TestHub::builder().receiver("app.example", &server).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let rest = AppPatch {
            webhook_url: Some("http://app.example/hub".to_owned()),
            events: words(events),
            scopes: words(&["message:read", "message:write"]),
            tools: Some(vec![AppTool {
                name: "weather".to_owned(),
                description: String::new(),
                command: Some("weather".to_owned()),
                parameters: None,
            }]),
            ..AppPatch::default()
        };
        let new = NewApp { name: "Weather".to_owned(), slug: None, rest };
        let created = hub.hub().apps().create(&ada, new, None).await.unwrap();
        assert!(created.app.webhook_verified);
        *server.secret.lock().unwrap() = Some(created.webhook_secret.0);
        let scene = Self { hub, server, ada, bot, app: created.app };
        scene.install(scene.app.id).await;
        scene
    }

    async fn install(&self, app_id: AppId) {
        let new = NewInstallation { app_id, scopes: None, handle: None, config: None };
        let installed = self.hub.hub().apps().install(&self.ada, self.bot.id, new, None).await.unwrap();
        assert!(matches!(installed, Install::Done(_)));
    }

    /// Waits until the app received this many events.
    async fn told(&self, count: usize) -> Vec<Value> {
        let what = format!("{count} events");
        let enough = async || Some(self.server.events()).filter(|events| events.len() >= count);
        self.hub.advance_until(&what, Duration::from_millis(200), enough).await
    }

    /// Waits until the newest event of the log looks like this.
    async fn logged(&self, state: AppEventState, attempts: u32) -> AppEvent {
        let step = Duration::from_millis(500);
        self.hub
            .advance_until("the log of the event", step, async || {
                let apps = self.hub.hub().apps();
                let page =
                    PageRequest::parse(&Apps::event_list(self.bot.id, self.app.id), None, None).unwrap();
                let page = apps.events(&self.ada, self.bot.id, self.app.id, &page).await.unwrap();
                let newest = page.items.into_iter().next();
                newest.filter(|event| event.state == state && event.attempts >= attempts)
            })
            .await
    }

    /// Waits until the person got so many messages.
    async fn got(&self, count: usize) -> Vec<hub_core::network::sim::Outbound> {
        let what = format!("{count} messages");
        self.hub
            .advance_until(&what, Duration::from_millis(200), async || {
                let sent = self.hub.sim().outbound(Some(&self.bot.wx_id), 0);
                (sent.len() >= count).then_some(sent)
            })
            .await
    }
}

#[tokio::test]
async fn an_app_receives_a_message_and_its_reply_reaches_the_person() {
    let scene = Scene::new(&["message"]).await;
    scene.server.then(200, json!({ "reply": "hello yourself" }));
    scene.hub.say(&scene.bot, "hello");
    let told = scene.told(1).await;
    let event = &told[0]["event"];
    assert_eq!(
        (&event["type"], &told[0]["bot"]["id"]),
        (&json!("message.text"), &json!(scene.bot.id.to_string()))
    );
    let data = &event["data"];
    assert_eq!((&data["content"], &data["msg_type"]), (&json!("hello"), &json!("text")));
    assert_eq!((&data["sender"]["id"], &data["group"]), (&json!(scene.bot.person), &Value::Null));
    assert_eq!(scene.got(1).await[0].text, "hello yourself");
    let logged = scene.logged(AppEventState::Delivered, 1).await;
    assert_eq!(
        (logged.id.to_string(), logged.response_status),
        (event["id"].as_str().unwrap().to_owned(), Some(200))
    );
    let trace = logged.trace_id.unwrap();
    assert_eq!(told[0]["trace_id"], trace.to_string());
    let trace = scene.hub.hub().traces().get(&scene.ada, scene.bot.id, trace).await.unwrap();
    let kinds: Vec<_> = trace.steps.iter().map(|step| step.kind.as_str()).collect();
    assert!(
        kinds.starts_with(&["inbox", "app"]) && trace.steps.iter().any(|step| step.kind == StepKind::App),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn commands_and_handles_come_before_subscriptions() {
    let scene = Scene::new(&[]).await;
    scene.hub.say(&scene.bot, "no one asked for this");
    scene.hub.say(&scene.bot, "/Weather  Berlin now ");
    scene.hub.say(&scene.bot, "@weather and tomorrow?");
    let told = scene.told(2).await;
    let of = |kind: &str| &told.iter().find(|told| told["event"]["type"] == kind).unwrap()["event"]["data"];
    let command = of("command");
    assert_eq!((&command["command"], &command["text"]), (&json!("weather"), &json!("Berlin now")));
    assert_eq!((&command["sender"]["role"], &command["args"]), (&json!("user"), &json!({})));
    assert_eq!(of("message.text")["content"], "and tomorrow?");
    assert_eq!(told.len(), 2);
}

#[tokio::test]
async fn a_failing_app_is_tried_again_with_the_same_event_and_its_picture_is_sent_once() {
    let scene = Scene::new(&["message.text"]).await;
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    scene.server.then(500, json!({ "reply": "not this" }));
    scene.server.then(200, json!({ "reply_type": "image", "reply_base64": png, "reply_name": "sky.png" }));
    scene.hub.say(&scene.bot, "show me");
    scene.told(1).await;
    let failed = scene.logged(AppEventState::Pending, 1).await;
    assert_eq!((failed.response_status, failed.error.as_deref()), (Some(500), Some("status 500")));
    let told = scene.told(2).await;
    assert_eq!(told[0]["event"], told[1]["event"]);
    let sent = scene.got(1).await;
    assert!(sent[0].media.is_some(), "{sent:?}");
    assert_eq!(scene.logged(AppEventState::Delivered, 2).await.attempts, 2);
}

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

#[tokio::test]
async fn an_event_of_a_picture_has_a_signed_link_to_it() {
    let scene = Scene::new(&["message.image"]).await;
    let (sim, wx_id) = (scene.hub.sim(), &scene.bot.wx_id);
    let picture = sim.store_file(wx_id, PICTURE).unwrap().image();
    sim.inject(json!({ "wx_id": wx_id, "items": [picture] })).unwrap();
    let told = scene.told(1).await;
    let item = &told[0]["event"]["data"]["items"][0];
    assert_eq!((&item["type"], &item["media"]["media_type"]), (&json!("image"), &json!("image")));
    assert_eq!(item["url"], item["media"]["url"], "older apps read it here");
    let url = item["url"].as_str().unwrap();
    let (path, query) = url.split_once('?').unwrap();
    let of = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
    };
    let (id, expires, signature) = (path.rsplit_once('/').unwrap().1, of("expires"), of("sig"));
    let media = scene.hub.hub().media();
    let opened = media.open_link(id, &expires, &signature);
    tokio::pin!(opened);
    let look = async || match futures_util::poll!(&mut opened) {
        Poll::Ready(file) => Some(file.unwrap()),
        Poll::Pending => None,
    };
    let file = scene.hub.advance_until("the file", Duration::from_millis(200), look).await;
    assert_eq!((&*file.content_type, file.size), ("image/png", PICTURE.len() as u64));
    let logged = scene.logged(AppEventState::Delivered, 1).await;
    assert!(!logged.event.contains("sig="), "the log holds no permission: {}", logged.event);
}

#[tokio::test]
async fn a_file_that_is_not_what_its_name_says_is_sent_as_a_file() {
    let scene = Scene::new(&["message.text"]).await;
    let text = data_encoding::BASE64.encode(b"just text");
    scene.server.then(200, json!({ "reply_base64": text, "reply_name": "note.png" }));
    scene.hub.say(&scene.bot, "the note?");
    let sent = scene.got(1).await;
    let media = sent[0].media.as_ref().unwrap();
    assert_eq!((media.kind, media.file_name.as_deref()), ("file", Some("note.png")));
}

#[tokio::test]
async fn a_reply_that_cannot_be_sent_to_a_group_is_an_error_in_the_trace() {
    let scene = Scene::new(&["message.text"]).await;
    scene.server.then(200, json!({ "reply": "hello all" }));
    let message = json!({ "wx_id": scene.bot.wx_id, "text": "hello", "group_id": "group_1" });
    scene.hub.sim().inject(message).unwrap();
    scene.told(1).await;
    let logged = scene.logged(AppEventState::Delivered, 1).await;
    assert!(logged.error.as_deref().is_some_and(|error| error.contains("groups")), "{logged:?}");
    let traces = scene.hub.hub().traces();
    let trace = traces.get(&scene.ada, scene.bot.id, logged.trace_id.unwrap()).await.unwrap();
    assert_eq!(trace.status, TraceStatus::Error);
    assert!(trace.summary.contains("does not accept messages to groups"), "{}", trace.summary);
    assert!(scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0).is_empty());
}

#[tokio::test]
async fn a_late_response_is_not_sent_and_a_bad_one_is_reported() {
    let scene = Scene::new(&["message.text"]).await;
    scene.server.then(200, json!({ "reply": "later", "reply_async": true }));
    scene.hub.say(&scene.bot, "one");
    scene.told(1).await;
    scene.logged(AppEventState::Delivered, 1).await;
    scene.server.then(200, json!({ "reply_url": "http://127.0.0.1/private.png" }));
    scene.hub.say(&scene.bot, "two");
    scene.told(2).await;
    let refused = scene.hub.advance_until("the refusal", Duration::from_millis(500), async || {
        let logged = scene.logged(AppEventState::Delivered, 1).await;
        logged.error
    });
    assert!(refused.await.contains("the reply was not sent"));
    assert!(scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0).is_empty());
}

#[tokio::test]
async fn an_app_is_notified_of_its_installation_and_removal() {
    let scene = Scene::new(&["app.installed", "app.uninstalled"]).await;
    let told = scene.told(1).await;
    assert_eq!(told[0]["event"]["type"], "app.installed");
    assert_eq!(told[0]["event"]["data"]["handle"], "weather");
    scene.hub.hub().apps().uninstall(&scene.ada, scene.bot.id, scene.app.id).await.unwrap();
    let told = scene.told(2).await;
    assert_eq!(told[1]["event"]["type"], "app.uninstalled");
    // And of nothing after that.
    scene.hub.say(&scene.bot, "@weather are you there?");
    scene.install(scene.app.id).await;
    assert_eq!(scene.told(3).await[2]["event"]["type"], "app.installed");
}
