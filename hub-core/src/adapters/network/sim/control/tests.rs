use futures_util::poll;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    network::sim::{
        SimConfig,
        testing::{Rig, texts},
    },
    random::Random,
    tasks::Tasks,
    time::Clock,
};

fn rig() -> Rig {
    Rig::new(SimConfig::default())
}

async fn ok(rig: &Rig, method: &str, path: &str, body: Value) -> Value {
    let (status, answer) = rig.control(method, &format!("/_sim/{path}"), body).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

#[tokio::test]
async fn a_login_is_done_by_phone() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    assert_eq!(ok(&rig, "POST", "scan", json!({"qr_text": text})).await, json!({}));
    assert_eq!(rig.status(&qrcode).await["status"], "scaned");
    let code = json!({"qr_text": text, "action": "require_code", "code": "12"});
    assert_eq!(ok(&rig, "POST", "qr", code).await, json!({}));
    assert_eq!(rig.status(&format!("{qrcode}&verify_code=12")).await["status"], "scaned");
    let account = ok(&rig, "POST", "confirm", json!({"qr_text": text, "user_id": "o9cq80A@im.wechat"})).await;
    let confirmed = rig.status(&qrcode).await;
    assert_eq!(account, json!({"wx_id": confirmed["ilink_bot_id"], "owner_user_id": "o9cq80A@im.wechat"}));
    assert_eq!(ok(&rig, "GET", "accounts", Value::Null).await["items"][0]["wx_id"], account["wx_id"]);
    for action in ["expire", "block", "redirect", "already_bound"] {
        let (_, text) = rig.new_qr(&[]).await;
        ok(&rig, "POST", "qr", json!({"qr_text": text, "action": action})).await;
    }
}

#[tokio::test]
async fn messages_go_in_alone_and_in_bulk() {
    let rig = rig();
    let bot = rig.login(None).await;
    let one = json!({"wx_id": bot.wx_id(), "text": "one"});
    let answer = ok(&rig, "POST", "messages", one).await;
    assert_eq!(answer["message_ids"].as_array().unwrap().len(), 1);
    let bulk: Vec<_> = (2..5).map(|n| json!({"wx_id": bot.wx_id(), "text": n.to_string()})).collect();
    let answer = ok(&rig, "POST", "messages", json!({"messages": bulk})).await;
    let ids = answer["message_ids"].as_array().unwrap().clone();
    assert!(ids.len() == 3 && ids.iter().all(Value::is_string));
    let polled = rig.poll(&bot, "").await;
    assert_eq!(texts(&polled), ["one", "2", "3", "4"]);
    assert_eq!(polled["msgs"][3]["message_id"].to_string(), ids[2].as_str().unwrap());
    let people = ok(&rig, "GET", &format!("contacts?wx_id={}", bot.wx_id()), Value::Null).await;
    let owner = &people["items"][0];
    assert_eq!((&owner["owner"], people["items"].as_array().unwrap().len()), (&json!(true), 1));
    assert!(owner["last_message_at"].is_string() && owner["sends_left"].as_u64() > Some(0), "{owner}");
    let elsewhere = ok(&rig, "GET", "contacts?wx_id=0@im.bot", Value::Null).await;
    assert_eq!(elsewhere, json!({ "items": [] }));
    let half = json!({"messages": [{"wx_id": bot.wx_id(), "text": "x"}, {"wx_id": "none", "text": "x"}]});
    assert_eq!(rig.control("POST", "/_sim/messages", half).await.0, 404);
    assert_eq!(rig.sim.accounts()[0].pending, 4, "all or none");
}

#[tokio::test]
async fn sends_are_listed_page_by_page_and_waited_for() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    let mut wait = Box::pin(ok(&rig, "GET", "outbound?wait_ms=5000", Value::Null));
    assert!(poll!(&mut wait).is_pending());
    for n in 1..=3 {
        rig.send(&bot, &format!("c{n}"), &token, "x").await;
    }
    let first = wait.await["items"][0].clone();
    let expected = json!({"n": 1, "wx_id": bot.wx_id(), "to_user_id": bot.owner(), "text": "x",
        "client_id": "c1", "context_token": token, "media": null, "opened": null, "at": "2026-09-21T14:13:20.000Z"});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&first[name], value, "{name}");
    }
    let page = ok(&rig, "GET", &format!("outbound?wx_id={}&limit=2", bot.wx_id()), Value::Null).await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (2, &json!(2)));
    let page = ok(&rig, "GET", "outbound?after=2", Value::Null).await;
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (1, &json!(3)));
    let empty = ok(&rig, "GET", "outbound?after=3&wait_ms=0", Value::Null).await;
    assert_eq!(empty, json!({"items": [], "next": 3}));
    assert_eq!(rig.control("GET", "/_sim/outbound?after=x", Value::Null).await.0, 400);
}

#[tokio::test]
async fn faults_clock_expiry_and_reset_work_and_bad_input_changes_nothing() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    let fault = json!({"endpoint": "sendmessage", "count": null, "action": {"type": "error", "ret": -5}});
    assert_eq!(ok(&rig, "POST", "faults", fault.clone()).await, json!({"ids": [1]}));
    assert_eq!(rig.send(&bot, "c", &token, "x").await, json!({"ret": -5}));
    assert_eq!(ok(&rig, "GET", "faults", Value::Null).await["items"][0]["hits"], 1);
    ok(&rig, "POST", "faults", json!({"faults": [fault]})).await;
    assert_eq!(ok(&rig, "DELETE", "faults", Value::Null).await, json!({}));
    assert_eq!(rig.send(&bot, "c", &token, "x").await["ret"], 0);
    let before = rig.clock.now();
    ok(&rig, "POST", "clock", json!({"advance_ms": 1500})).await;
    assert_eq!(rig.clock.now().since(before), Duration::from_millis(1500));
    for (method, path, body, status) in [
        ("POST", "clock", json!({"advance_ms": -1}), 400),
        ("POST", "scan", json!({"qr_text": "x"}), 404),
        ("POST", "scan", json!({"qr_text": "x", "more": 1}), 400),
        ("POST", "scan", Value::Null, 400),
        ("POST", "messages", json!([]), 400),
        ("POST", "faults", json!({"action": {"type": "x"}}), 400),
        ("POST", "expire", json!({"wx_id": "none"}), 404),
        ("POST", "unknown", Value::Null, 404),
        ("GET", "unknown", Value::Null, 404),
        ("PUT", "faults", Value::Null, 404),
    ] {
        let (got, answer) = rig.control(method, &format!("/_sim/{path}"), body).await;
        assert_eq!(got, status, "{method} {path}: {answer}");
        assert!(answer["error"]["code"].is_string() && answer["error"]["message"].is_string());
    }
    assert_eq!(ok(&rig, "POST", "expire", json!({"wx_id": bot.wx_id()})).await, json!({}));
    assert_eq!(rig.poll(&bot, "").await["errcode"], -14);
    assert_eq!(ok(&rig, "GET", "violations", Value::Null).await, json!({"items": []}));
    assert_eq!(ok(&rig, "GET", "typing", Value::Null).await, json!({"items": []}));
    assert_eq!(ok(&rig, "POST", "reset", Value::Null).await, json!({}));
    assert_eq!(rig.sim.accounts(), []);
    assert_eq!(rig.sim.outbound(None, 0), []);
}

/// The world as the control API shows it.
async fn world(rig: &Rig) -> Vec<Value> {
    let mut world = Vec::new();
    for name in ["accounts", "outbound", "contacts", "faults", "typing", "violations"] {
        world.push(ok(rig, "GET", name, Value::Null).await);
    }
    world
}

/// A sender's name, the headers of its requests, and the status of the response.
type Sender<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

#[tokio::test]
async fn a_web_page_of_another_origin_reads_and_changes_nothing() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    rig.send(&bot, "c", &token, "x").await;
    let (_, qr_text) = rig.new_qr(&[]).await;
    let before = world(&rig).await;
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    let local = "localhost:9801";
    let senders: [Sender<'_>; 9] = [
        (
            "a script",
            &[("host", local), ("origin", "https://evil.example"), ("content-type", "text/plain")],
            403,
        ),
        ("a form", &[("host", local), ("origin", "https://evil.example"), ("content-type", form)], 403),
        ("a sandboxed frame", &[("host", local), ("origin", "null"), ("content-type", "text/plain")], 403),
        (
            "a page of another port",
            &[("host", local), ("origin", "http://localhost:3000"), ("content-type", json)],
            403,
        ),
        ("a picture", &[("host", local), ("sec-fetch-site", "cross-site"), ("content-type", json)], 403),
        (
            "a page of the same site",
            &[("host", local), ("sec-fetch-site", "same-site"), ("content-type", json)],
            403,
        ),
        ("a rebound name", &[("host", "evil.example:9801"), ("content-type", json)], 403),
        (
            "a page under a rebound name",
            &[("host", "evil.example"), ("origin", "http://evil.example"), ("content-type", json)],
            403,
        ),
        ("a body that is not JSON", &[("host", local), ("content-type", "text/plain")], 415),
    ];
    let calls = [
        ("POST", "scan", json!({"qr_text": qr_text})),
        ("POST", "confirm", json!({"qr_text": qr_text})),
        ("POST", "qr", json!({"qr_text": qr_text, "action": "expire"})),
        ("POST", "messages", json!({"wx_id": bot.wx_id(), "text": "of a page"})),
        ("POST", "faults", json!({"endpoint": "sendmessage", "action": {"type": "error", "ret": -5}})),
        ("POST", "clock", json!({"advance_ms": 1000})),
        ("POST", "expire", json!({"wx_id": bot.wx_id()})),
        ("POST", "reset", json!({})),
        ("DELETE", "faults", json!({})),
        ("GET", "outbound", json!({})),
    ];
    for (sender, headers, status) in senders {
        for (method, name, body) in &calls {
            let request = Request::builder().method(*method).uri(format!("/_sim/{name}"));
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let answer = rig.http(request.body(body.to_string().into()).unwrap()).await.unwrap();
            assert_eq!(answer.status().as_u16(), status, "{sender}: {method} {name}");
        }
    }
    assert_eq!(world(&rig).await, before);
}

#[tokio::test]
async fn the_system_clock_cannot_be_moved() {
    let sim = Simulator::new(SimConfig::quick(), Clock::system(), Random::seeded(1));
    assert_eq!(sim.advance(Duration::from_secs(1)).unwrap_err().code(), ErrorCode::Conflict);
}

/// Over TCP, on the system clock: the listener, the short hold and a message that wakes the poll.
#[tokio::test]
async fn a_poll_over_a_listener_is_woken_by_a_message() {
    let sim = Simulator::new(SimConfig::default(), Clock::system(), Random::seeded(1));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tasks = Tasks::new();
    tasks.spawn("simulator", sim.clone().serve(listener, tasks.clone()));
    let exchange = async |request: String| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let qr = exchange(get("/ilink/bot/get_bot_qrcode?bot_type=3")).await;
    let text = qr["qrcode_img_content"].as_str().unwrap();
    assert!(text.starts_with(&format!("http://{address}/")), "{text}");
    let account = sim.confirm(text, None).unwrap();
    let status = get(&format!("/ilink/bot/get_qrcode_status?qrcode={}", qr["qrcode"].as_str().unwrap()));
    let token = exchange(status).await["bot_token"].as_str().unwrap().to_owned();
    let body = r#"{"get_updates_buf":"","base_info":{}}"#;
    let poll = exchange(format!(
        "POST /ilink/bot/getupdates HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         authorizationtype: ilink_bot_token\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ));
    let (answer, ()) = tokio::join!(poll, async {
        while sim.accounts()[0].pollers == 0 {
            tokio::task::yield_now().await;
        }
        sim.say(&account.wx_id, None, "over TCP").unwrap();
    });
    assert_eq!(texts(&answer), ["over TCP"]);
    tasks.stop();
    assert!(tasks.wait(&Clock::system(), Duration::from_secs(10)).await);
}
