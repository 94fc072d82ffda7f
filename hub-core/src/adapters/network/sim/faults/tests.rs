use bytes::Bytes;
use futures_util::poll;
use http::Response;
use serde_json::json;

use super::*;
use crate::{
    error::ErrorCode,
    local_http::Cut,
    network::sim::{
        DeliveryMode, SimConfig,
        testing::{Bot, Rig, message, read, text_item, texts},
    },
};

fn rig() -> Rig {
    Rig::new(SimConfig::default())
}

async fn send(rig: &Rig, bot: &Bot, client_id: &str, token: &str) -> Result<Response<Bytes>, Cut> {
    let body = message(bot.owner(), client_id, token, &text_item("x"));
    rig.raw("sendmessage", &bot.token, body).await
}

#[tokio::test]
async fn a_cut_comes_before_or_after_the_effect() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    for (effect, delivered) in [(false, 0), (true, 1)] {
        rig.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Cut { effect })).unwrap();
        assert_eq!(send(&rig, &bot, "c", &token).await.unwrap_err(), Cut);
        assert_eq!(rig.sim.outbound(None, 0).len(), delivered);
    }
    // One hit each: the repeat is answered, and delivered once in all.
    assert_eq!(read(&send(&rig, &bot, "c", &token).await.unwrap())["ret"], 0);
    assert_eq!(rig.sim.outbound(None, 0).len(), 1);
    assert_eq!(rig.sim.faults(), []);
}

#[tokio::test]
async fn answers_are_spoiled_in_every_way() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    let headers = BTreeMap::from([("retry-after".to_owned(), "7".to_owned())]);
    let error = |ret, errcode| Action::Error { ret, errcode, errmsg: Some("no".into()), effect: false };
    for (action, status, body) in [
        (Action::Status { status: 429, body: "slow".into(), headers, effect: false }, 429, "slow".to_owned()),
        (Action::Empty { effect: false }, 200, String::new()),
        (error(Some(-1), None), 200, r#"{"errmsg":"no","ret":-1}"#.into()),
        (error(None, Some(-14)), 200, r#"{"errcode":-14,"errmsg":"no"}"#.into()),
    ] {
        rig.sim.add_fault(Fault::on(Endpoint::SendMessage, action.clone())).unwrap();
        let response = send(&rig, &bot, "c", &token).await.unwrap();
        assert_eq!((response.status().as_u16(), response.body()), (status, &Bytes::from(body)), "{action:?}");
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!(retry, (status == 429).then_some("7"));
    }
    assert_eq!(rig.sim.outbound(None, 0), []);
    rig.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Html { status: 502, effect: true })).unwrap();
    let response = send(&rig, &bot, "html", &token).await.unwrap();
    assert_eq!(response.status(), 502);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    rig.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Truncate)).unwrap();
    let response = send(&rig, &bot, "truncated", &token).await.unwrap();
    assert!(!response.body().is_empty());
    assert!(serde_json::from_slice::<Value>(response.body()).is_err());
    assert_eq!(rig.sim.outbound(None, 0).len(), 2);
}

#[tokio::test]
async fn a_patch_takes_fields_and_headers_out_and_puts_others_in() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    let patch = |set: Value, remove: &[&str]| Action::Patch {
        set: set.as_object().unwrap().clone(),
        remove: remove.iter().map(|&name| name.to_owned()).collect(),
        remove_headers: vec!["content-type".into()],
    };
    rig.sim.add_fault(Fault::on(Endpoint::SendMessage, patch(json!({}), &["message_id"]))).unwrap();
    let response = send(&rig, &bot, "c", &token).await.unwrap();
    assert_eq!(read(&response), json!({"ret": 0}));
    assert!(response.headers().is_empty());
    assert_eq!(rig.sim.outbound(None, 0).len(), 1);
    let set = json!({"get_updates_buf": "", "longpolling_timeout_ms": 600_000});
    rig.sim.add_fault(Fault::on(Endpoint::GetUpdates, patch(set, &["sync_buf"]))).unwrap();
    let answer = rig.poll(&bot, "").await;
    assert_eq!(
        (&answer["get_updates_buf"], &answer["longpolling_timeout_ms"]),
        (&json!(""), &json!(600_000))
    );
    assert!(answer.get("sync_buf").is_none());
    assert!(answer["msgs"][0]["message_id"].as_u64().unwrap() > 1 << 53, "ids survive the edit");
}

#[tokio::test]
async fn a_match_narrows_by_bot_person_place_and_number() {
    let rig = rig();
    let ((bot, token), (other, foreign)) = (rig.greeted().await, rig.greeted().await);
    let error = Action::Error { ret: Some(-9), errcode: None, errmsg: None, effect: false };
    let fault = Fault::on(Endpoint::SendMessage, error.clone());
    rig.sim.add_fault(fault.clone().for_bot(bot.wx_id()).skipping(1).times(2)).unwrap();
    assert_eq!(rig.send(&other, "o", &foreign, "x").await["ret"], 0);
    let mut seen = Vec::new();
    for n in 0..4 {
        seen.push(rig.send(&bot, &n.to_string(), &token, "x").await["ret"].as_i64().unwrap());
    }
    assert_eq!(seen, [0, -9, -9, 0]);
    let id = rig.sim.add_fault(fault.for_user(other.owner()).always()).unwrap();
    for _ in 0..3 {
        assert_eq!(rig.send(&other, "p", &foreign, "x").await["ret"], -9);
    }
    assert_eq!(rig.send(&bot, "q", &token, "x").await["ret"], 0);
    assert_eq!(rig.sim.faults()[0].hits, 3);
    rig.sim.clear_faults(Some(id + 1));
    assert_eq!(rig.sim.faults().len(), 1);
    rig.sim.clear_faults(None);
    assert_eq!(rig.send(&other, "p", &foreign, "x").await["ret"], 0);
}

#[tokio::test]
async fn a_delay_goes_by_the_clock() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    let status = Action::Status { status: 524, body: String::new(), headers: BTreeMap::new(), effect: false };
    for (action, expected) in [(Action::Pass, 200), (status, 524)] {
        let fault = Fault::on(Endpoint::SendMessage, action).after(Duration::from_secs(16));
        rig.sim.add_fault(fault).unwrap();
        let mut slow = Box::pin(send(&rig, &bot, "c", &token));
        assert!(poll!(&mut slow).is_pending());
        rig.advance(16);
        assert_eq!(slow.await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn a_held_poll_meets_a_late_fault_and_idle_answers_are_spared() {
    let rig = Rig::new(SimConfig { delivery: DeliveryMode::Consume, ..SimConfig::default() });
    let bot = rig.login(None).await;
    let mut held = Box::pin(rig.raw("getupdates", &bot.token, json!({})));
    assert!(poll!(&mut held).is_pending());
    let cut = Fault::on(Endpoint::GetUpdates, Action::Cut { effect: true });
    rig.sim.add_fault(Fault { only_with_messages: true, ..cut }).unwrap();
    rig.advance(35);
    assert_eq!(held.await.unwrap().status(), 200);
    rig.sim.say(bot.wx_id(), None, "lost").unwrap();
    assert_eq!(rig.raw("getupdates", &bot.token, json!({})).await.unwrap_err(), Cut);
    rig.sim.say(bot.wx_id(), None, "next").unwrap();
    assert_eq!(texts(&rig.poll(&bot, "").await), ["next"]);
}

#[tokio::test]
async fn faults_reorder_and_enlarge_batches_and_freeze_cursors() {
    let rig = rig();
    let bot = rig.login(None).await;
    for text in ["a", "b"] {
        rig.sim.say(bot.wx_id(), None, text).unwrap();
    }
    rig.sim.add_fault(Fault::new(Action::Reorder)).unwrap();
    assert_eq!(texts(&rig.poll(&bot, "").await), ["b", "a"]);
    rig.sim.add_fault(Fault::new(Action::Unknown)).unwrap();
    let wide = rig.poll(&bot, "").await;
    assert_eq!(texts(&wide), ["a", "b"]);
    assert_eq!(wide["msgs"][0]["item_list"][1]["type"], 99);
    rig.sim.add_fault(Fault::new(Action::FreezeCursor)).unwrap();
    assert_eq!(rig.poll(&bot, "").await["get_updates_buf"], "");
    rig.sim.add_fault(Fault::on(Endpoint::GetUpdates, Action::Ids { form: IdForm::String })).unwrap();
    let strings = rig.poll(&bot, "").await;
    assert_eq!(strings["msgs"][0]["message_id"], wide["msgs"][0]["message_id"].to_string());
}

#[tokio::test]
async fn ids_of_sends_come_as_numbers() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    rig.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Ids { form: IdForm::Number })).unwrap();
    assert!(rig.send(&bot, "c", &token, "x").await["message_id"].as_u64().unwrap() > 1 << 53);
}

#[tokio::test]
async fn messages_come_again_after_a_while_under_the_same_or_a_new_id() {
    for new_id in [false, true] {
        let rig = rig();
        let bot = rig.login(None).await;
        rig.sim.say(bot.wx_id(), None, "again").unwrap();
        rig.sim.add_fault(Fault::new(Action::Repeat { after_ms: 6_000, new_id })).unwrap();
        let first = rig.poll(&bot, "").await;
        let cursor = first["get_updates_buf"].as_str().unwrap();
        let mut second = Box::pin(rig.poll(&bot, cursor));
        assert!(poll!(&mut second).is_pending());
        rig.advance(5);
        assert!(poll!(&mut second).is_pending());
        rig.advance(1);
        let second = second.await;
        assert_eq!(texts(&second), ["again"]);
        assert_eq!(first["msgs"][0]["message_id"] != second["msgs"][0]["message_id"], new_id);
    }
}

#[tokio::test]
async fn the_token_expires_in_the_middle_of_a_held_poll() {
    let rig = rig();
    let bot = rig.login(None).await;
    rig.sim.add_fault(Fault::new(Action::Expire { after_ms: 10_000 })).unwrap();
    let mut held = Box::pin(rig.poll(&bot, ""));
    assert!(poll!(&mut held).is_pending());
    rig.advance(9);
    assert!(poll!(&mut held).is_pending());
    rig.advance(1);
    assert_eq!(held.await["errcode"], -14);
}

#[tokio::test]
async fn every_try_during_a_rate_limit_doubles_the_penalty() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    rig.sim.add_fault(Fault::new(Action::RateLimit { penalty_ms: 10_000 })).unwrap();
    let limited = json!({"ret": -2, "errmsg": "rate limited"});
    assert_eq!(rig.send(&bot, "c", &token, "x").await, limited);
    rig.advance(9);
    assert_eq!(rig.send(&bot, "c", &token, "x").await, limited);
    rig.advance(19);
    assert_eq!(rig.send(&bot, "c", &token, "x").await, limited);
    rig.advance(40);
    assert_eq!(rig.send(&bot, "c", &token, "x").await["ret"], 0);
    assert_eq!(rig.sim.faults(), []);
}

#[tokio::test]
async fn in_shadow_mode_everything_is_accepted_and_nothing_shown() {
    let rig = rig();
    let (bot, token) = rig.greeted().await;
    rig.sim.add_fault(Fault::new(Action::Shadow { message_id: false }).always()).unwrap();
    for _ in 0..2 {
        assert_eq!(rig.send(&bot, "c", &token, "x").await, json!({"ret": 0}));
    }
    let sent = rig.sim.outbound(None, 0);
    assert_eq!((sent[0].shown, sent[0].message_id.as_deref()), (false, None));
}

#[tokio::test]
async fn a_fault_that_means_nothing_is_refused() {
    let rig = rig();
    for wrong in [
        Fault::on(Endpoint::SendMessage, Action::Reorder),
        Fault::new(Action::Pass).times(0),
        Fault::new(Action::Pass).after(Duration::from_secs(90_000)),
        Fault::new(Action::Html { status: 99, effect: false }),
        Fault::new(Action::RateLimit { penalty_ms: 0 }),
    ] {
        assert_eq!(
            rig.sim.add_fault(wrong.clone()).unwrap_err().code(),
            ErrorCode::InvalidParams,
            "{wrong:?}"
        );
        let both = vec![Fault::new(Action::Pass), wrong];
        assert!(rig.sim.add_faults(both).is_err());
    }
    assert_eq!(rig.sim.faults(), [], "all or none");
    rig.sim.add_faults(vec![Fault::new(Action::Pass); 1_000]).unwrap();
    assert_eq!(rig.sim.add_fault(Fault::new(Action::Pass)).unwrap_err().code(), ErrorCode::Conflict);
}

#[test]
fn the_json_is_as_documented() {
    let fault: Fault = serde_json::from_value(json!({
        "endpoint": "getupdates", "wx_id": "b@im.bot", "user": "u@im.wechat", "skip": 2, "count": null,
        "delay_ms": 3, "action": {"type": "cut", "effect": true},
    }))
    .unwrap();
    let built = Fault::on(Endpoint::GetUpdates, Action::Cut { effect: true });
    let built = built.for_bot("b@im.bot").for_user("u@im.wechat").skipping(2).always();
    assert_eq!(fault, built.after(Duration::from_millis(3)));
    let short: Fault = serde_json::from_value(json!({"action": {"type": "reorder"}})).unwrap();
    assert_eq!((short.count, short.delay_ms, short.endpoint), (Some(1), 0, None));
    for wrong in [
        json!({"action": {"type": "cut"}, "cuont": 2}),
        json!({"action": {"type": "cut", "efect": true}}),
        json!({"action": {"type": "explode"}}),
        json!({"endpoint": "sendmessage"}),
    ] {
        assert!(serde_json::from_value::<Fault>(wrong.clone()).is_err(), "{wrong}");
    }
}
