//! Whole exchanges with a scripted server inside the process.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Method, Request, Response};
use serde_json::{Value, json};

use super::*;
use crate::{
    egress::EgressConfig,
    local_http::{Cut, LocalService},
    network::{LoginStep, Outgoing, SendOutcome},
    time::{ManualClock, Timestamp},
};

/// Action of the server on one request.
enum Act {
    Answer(u16, Value),
    Raw(&'static str),
    Cut,
    Hang,
}

/// Answers from a script, in order, and keeps the requests.
#[derive(Default)]
struct Script {
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Request<Bytes>>>,
}

#[async_trait]
impl LocalService for Script {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let act = self.acts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (status, body) = match act.expect("a request that the script does not know") {
            Act::Answer(status, body) => (status, body.to_string()),
            Act::Raw(body) => (200, body.to_owned()),
            Act::Cut => return Err(Cut),
            Act::Hang => std::future::pending().await,
        };
        Ok(Response::builder().status(status).body(body.into()).unwrap())
    }
}

impl Script {
    fn then(&self, act: Act) -> &Self {
        self.acts.lock().unwrap().push_back(act);
        self
    }

    fn ok(&self, body: Value) -> &Self {
        self.then(Act::Answer(200, body))
    }

    fn take(&self) -> Vec<Request<Bytes>> {
        assert!(self.acts.lock().unwrap().is_empty(), "the script was not played to its end");
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    fn paths(&self) -> Vec<String> {
        self.take().iter().map(|request| request.uri().path_and_query().unwrap().to_string()).collect()
    }
}

fn body(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap()
}

struct Stage {
    script: Arc<Script>,
    network: IlinkNetwork,
    clock: ManualClock,
}

fn stage() -> Stage {
    let quick = Duration::from_millis(20);
    let timeouts = Timeouts {
        hold: quick,
        hold_margin: Duration::ZERO,
        login_status: Duration::from_secs(5),
        send: quick,
        stop: quick,
        ..Timeouts::default()
    };
    stage_with(IlinkConfig { timeouts, ..IlinkConfig::default() })
}

fn stage_with(config: IlinkConfig) -> Stage {
    let script = Arc::new(Script::default());
    let service: Arc<dyn LocalService> = script.clone();
    let hosts = ["sim.internal", "other.internal"].map(|host| (host.to_owned(), service.clone()));
    let egress = Egress::new(EgressConfig { in_process: hosts.into(), ..EgressConfig::default() }).unwrap();
    let config = IlinkConfig {
        login_base_url: "http://sim.internal/prefix".parse().unwrap(),
        cdn_base_url: "http://other.internal/c2c".parse().unwrap(),
        ..config
    };
    let clock = ManualClock::new(Timestamp::from_millis(1_000));
    let network = IlinkNetwork::new("sim", config, &egress, clock.clone().into(), Random::seeded(1)).unwrap();
    Stage { script, network, clock }
}

impl Stage {
    fn connection(&self, base_url: &str) -> Arc<dyn Connection> {
        self.network.connect(&Credentials {
            token: "0123456789ab@im.bot:77".into(),
            account_id: "0123456789ab@im.bot".into(),
            owner_user_id: "Ann@im.wechat".into(),
            base_url: base_url.into(),
        })
    }

    async fn step(&self, state: &LoginState, code: Option<&str>) -> LoginProgress {
        self.network.login_step(state, code, Duration::from_millis(20)).await.unwrap()
    }
}

fn outgoing(text: &str) -> Outgoing {
    Outgoing {
        to_user_id: "o9cq80Ab_C-dE@im.wechat".into(),
        context_token: "AARz1".into(),
        client_id: "hub-1".into(),
        text: text.into(),
        media: None,
    }
}

#[tokio::test]
async fn authenticated_calls_carry_every_header_and_the_base_information() {
    let stage = stage_with(IlinkConfig {
        client_version: "2.4.9".into(),
        bot_agent: "OurHub/1.4.0 bad".into(),
        route_tag: Some("r7".into()),
        ..IlinkConfig::default()
    });
    stage.script.ok(json!({ "ret": 0 })).ok(json!({ "ret": 0 }));
    let connection = stage.connection("http://sim.internal/prefix/");
    connection.start().await.unwrap();
    connection.stop().await;
    let seen = stage.script.take();
    let paths: Vec<_> = seen.iter().map(|request| request.uri().path()).collect();
    assert_eq!(paths, ["/prefix/ilink/bot/msg/notifystart", "/prefix/ilink/bot/msg/notifystop"]);
    for request in &seen {
        assert_eq!(request.method(), Method::POST);
        for (name, value) in [
            ("content-type", "application/json"),
            ("authorizationtype", "ilink_bot_token"),
            ("authorization", "Bearer 0123456789ab@im.bot:77"),
            ("ilink-app-id", "bot"),
            ("ilink-app-clientversion", "132105"),
            ("skroutetag", "r7"),
        ] {
            assert_eq!(request.headers()[name], value);
        }
        let uin = BASE64.decode(request.headers()["x-wechat-uin"].as_bytes()).unwrap();
        assert!(String::from_utf8(uin).unwrap().parse::<u32>().is_ok());
        let info = json!({ "base_info": { "channel_version": "2.4.9", "bot_agent": "OurHub/1.4.0" } });
        assert_eq!(body(request), info);
    }
    assert_ne!(seen[0].headers()["x-wechat-uin"], seen[1].headers()["x-wechat-uin"]);
}

#[tokio::test]
async fn a_login_begins_without_authorization_and_shows_at_most_ten_tokens() {
    let stage = stage();
    stage.script.ok(json!({ "ret": 0, "qrcode": "q+/= 1", "qrcode_img_content": "https://l/q" }));
    let known: Vec<Secret> = (0..12).map(|n| Secret::new(format!("t{n}"))).collect();
    let prompt = stage.network.begin_login(&known).await.unwrap();
    assert_eq!((prompt.qr_text.expose(), prompt.lives), ("https://l/q", Duration::from_secs(120)));
    let begin = stage.script.take().remove(0);
    assert_eq!(begin.uri().path_and_query().unwrap(), "/prefix/ilink/bot/get_bot_qrcode?bot_type=3");
    assert_eq!(begin.method(), Method::POST);
    assert!(!begin.headers().contains_key("authorization") && !begin.headers().contains_key("skroutetag"));
    assert_eq!(begin.headers()["authorizationtype"], "ilink_bot_token");
    assert_eq!(
        body(&begin),
        json!({ "local_token_list": ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"] })
    );

    stage.script.ok(json!({ "status": "need_verifycode" })).ok(json!({ "status": "scaned" }));
    let prompted = stage.step(&prompt.state, None).await;
    let scanned = stage.step(&prompted.state, Some(" 0042 ")).await;
    assert_eq!(scanned.step, LoginStep::Scanned);
    let seen = stage.script.take();
    let names = |request: &Request<Bytes>| {
        let mut names: Vec<_> = request.headers().keys().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&seen[0]), ["host", "ilink-app-clientversion", "ilink-app-id"]);
    assert_eq!((seen[0].method(), seen[0].body().len()), (&Method::GET, 0));
    let query = seen.iter().map(|request| request.uri().query().unwrap()).collect::<Vec<_>>();
    assert_eq!(query, ["qrcode=q%2B%2F%3D+1", "qrcode=q%2B%2F%3D+1&verify_code=0042"]);
}

#[tokio::test]
async fn a_login_survives_errors_on_the_way_and_moves_with_a_redirect() {
    let stage = stage();
    stage.script.ok(json!({ "qrcode": "q1", "qrcode_img_content": "https://l/q" }));
    let mut state = stage.network.begin_login(&[]).await.unwrap().state;
    stage.script.then(Act::Hang).then(Act::Cut).then(Act::Answer(524, Value::Null));
    for _ in 0..3 {
        let progress = stage.step(&state, None).await;
        assert_eq!(progress.step, LoginStep::Waiting);
        state = progress.state;
    }
    stage
        .script
        .ok(json!({ "status": "scaned_but_redirect", "redirect_host": "other.internal" }))
        .ok(json!({ "status": "confirmed", "bot_token": "t", "ilink_bot_id": "b", "ilink_user_id": "u" }));
    state = stage.step(&state, None).await.state;
    assert!(matches!(stage.step(&state, None).await.step, LoginStep::Confirmed(_)));
    let hosts: Vec<_> = stage.script.take().iter().map(|request| request.headers()["host"].clone()).collect();
    assert_eq!(
        hosts[1..],
        ["sim.internal", "sim.internal", "sim.internal", "sim.internal", "other.internal"]
    );
}

#[tokio::test]
async fn a_wrong_pairing_code_is_found_before_it_is_sent() {
    let stage = stage();
    stage.script.ok(json!({ "qrcode": "q1", "qrcode_img_content": "https://l/q" }));
    let state = stage.network.begin_login(&[]).await.unwrap().state;
    let progress = stage.step(&state, Some("12a")).await;
    assert_eq!(progress.step, LoginStep::NeedCode { wrong: true });
    assert_eq!(stage.script.take().len(), 1);
    assert!(stage.network.login_step(&LoginState("{}".into()), None, Duration::ZERO).await.is_err());
}

#[tokio::test]
async fn polls_send_the_cursor_and_distinguish_messages_from_timeouts() {
    let stage = stage();
    let connection = stage.connection("");
    let message = json!({ "message_id": 5, "from_user_id": "u", "message_type": 1 });
    stage
        .script
        .ok(json!({ "ret": 0, "msgs": [message], "get_updates_buf": "c1" }))
        .then(Act::Hang)
        .then(Act::Answer(524, Value::Null))
        .then(Act::Raw("<html>"))
        .then(Act::Cut)
        .ok(json!({ "errcode": -14, "errmsg": "session timeout" }));
    let batch = connection.receive("").await.unwrap();
    assert_eq!((batch.messages.len(), batch.cursor.as_deref(), batch.answered), (1, Some("c1"), true));
    for _ in 0..2 {
        let silent = connection.receive("c1").await.unwrap();
        assert_eq!((silent.messages.len(), silent.cursor, silent.answered), (0, None, false));
    }
    for _ in 0..2 {
        assert!(matches!(connection.receive("c1").await, Err(NetworkError::Unreachable(_))));
    }
    assert!(matches!(connection.receive("c1").await, Err(NetworkError::LoginExpired(_))));
    let cursors: Vec<_> = stage.script.take().iter().map(|r| body(r)["get_updates_buf"].clone()).collect();
    assert_eq!(cursors, ["", "c1", "c1", "c1", "c1", "c1"]);
}

#[tokio::test]
async fn a_send_has_the_published_shape_and_nothing_more() {
    let stage = stage();
    let connection = stage.connection("");
    stage.script.ok(json!({ "ret": 0, "message_id": "99" })).then(Act::Cut).then(Act::Hang);
    let sent = connection.send(&outgoing("hello")).await;
    assert_eq!(sent, SendOutcome::Sent { network_id: "99".into() });
    for _ in 0..2 {
        assert!(matches!(connection.send(&outgoing("hello")).await, SendOutcome::Unknown(_)));
    }
    assert!(matches!(connection.send(&outgoing("")).await, SendOutcome::Rejected(_)));
    let seen = stage.script.take();
    assert_eq!(seen.len(), 3, "an empty text is not tried");
    let expected = json!({
        "msg": {
            "from_user_id": "", "to_user_id": "o9cq80Ab_C-dE@im.wechat", "client_id": "hub-1",
            "message_type": 2, "message_state": 2, "context_token": "AARz1",
            "item_list": [{ "type": 1, "text_item": { "text": "hello" } }],
        },
        "base_info": { "channel_version": env!("CARGO_PKG_VERSION"), "bot_agent": agent::DEFAULT },
    });
    assert_eq!(body(&seen[0]), expected);
}

#[tokio::test]
async fn typing_asks_once_for_a_ticket_and_again_when_it_is_old_or_refused() {
    let stage = stage();
    let connection = stage.connection("");
    let token = Secret::new("AARz1");
    let config = json!({ "ret": 0, "typing_ticket": "dGlja2V0" });
    stage.script.ok(config.clone()).ok(json!({ "ret": 0 })).ok(json!({ "ret": 0 }));
    connection.typing("Ann", Some(&token), true).await.unwrap();
    connection.typing("Ann", Some(&token), true).await.unwrap();
    let seen = stage.script.take();
    assert_eq!(body(&seen[0])["context_token"], "AARz1");
    let typing = json!({ "ilink_user_id": "Ann", "typing_ticket": "dGlja2V0", "status": 1 });
    for (name, value) in typing.as_object().unwrap() {
        assert_eq!(body(&seen[2])[name], *value);
    }
    // Older than ten minutes: a fresh one before the stop.
    stage.clock.advance(Duration::from_secs(660));
    stage.script.ok(config.clone()).ok(json!({ "ret": 0 }));
    connection.typing("Ann", Some(&token), false).await.unwrap();
    let seen = stage.script.take();
    assert_eq!(body(&seen[1])["status"], 2);
    // Refused: dropped.
    stage.script.ok(json!({ "ret": -2 })).ok(config).ok(json!({ "ret": 0 }));
    assert!(connection.typing("Ann", None, true).await.is_err());
    connection.typing("Ann", None, true).await.unwrap();
    assert_eq!(body(&stage.script.take()[1]).get("context_token"), None);
}

#[tokio::test]
async fn a_person_without_a_ticket_is_not_asked_about_again_at_once() {
    let stage = stage();
    let connection = stage.connection("");
    stage.script.ok(json!({ "ret": -4, "errmsg": "GetTypingTicket rpc failed" }));
    assert!(matches!(
        connection.typing("Ann", None, true).await,
        Err(NetworkError::Refused { code: -4, .. })
    ));
    assert_eq!(connection.typing("Ann", None, true).await, Ok(()));
    stage.script.ok(json!({ "ret": 0 }));
    assert_eq!(connection.typing("Bob", None, true).await, Ok(()), "no ticket, no typing");
    assert_eq!(stage.script.paths().len(), 2);
}

#[tokio::test]
async fn a_foreign_base_url_is_never_called() {
    let stage = stage();
    let connection = stage.connection("https://evil.example");
    assert!(matches!(connection.start().await, Err(NetworkError::Unreachable(_))));
    assert!(matches!(connection.receive("").await, Err(NetworkError::Unreachable(_))));
    assert!(matches!(connection.send(&outgoing("hi")).await, SendOutcome::NotSent(_)));
    assert!(stage.script.take().is_empty());
}

#[test]
fn texts_are_filtered_by_format_and_cut_by_the_configured_limit() {
    let stage = stage_with(IlinkConfig { text_limit: 1, ..IlinkConfig::default() });
    let split = |text: &str, format| stage.network.split_text(text, format);
    assert_eq!(split("##### *中文*", TextFormat::Markdown), ["中文"]);
    assert_eq!(split("##### *中文*", TextFormat::Plain), ["##### *中文*"]);
    assert_eq!(split("![only](http://x)", TextFormat::Markdown), ["![only](http://x)"]);
    assert_eq!(split(&"字".repeat(401), TextFormat::Plain).len(), 3, "the limit is at least 200");
    assert!(split(" \n", TextFormat::Plain).is_empty());
}

#[test]
fn secrets_do_not_show() {
    let stage = stage();
    let shown = format!("{:?} {:?}", stage.network, stage.connection("http://sim.internal"));
    assert!(!shown.contains("im.bot"), "{shown}");
    assert_eq!(stage.network.window_rules(), IlinkConfig::default().window);
}
