use std::time::Duration;

use futures_util::poll;

use super::*;
use crate::network::{
    server::MAX_TEXT,
    sim::{
        SimConfig,
        testing::{Rig, message, text_item},
    },
};

const PREPARE_FAILED: &str = "prepare failed";

#[tokio::test]
async fn a_reply_is_accepted_with_an_id_in_a_string_and_listed() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    let answer = rig.send(&bot, "c1", &token, "hi").await;
    assert_eq!(answer["ret"], 0);
    let id = answer["message_id"].as_str().unwrap();
    assert!(id.parse::<u64>().unwrap() > 1 << 53);
    let sent = rig.sim.outbound(None, 0);
    assert_eq!(sent.len(), 1);
    let first = &sent[0];
    assert_eq!((first.n, first.text.as_str(), first.client_id.as_str()), (1, "hi", "c1"));
    assert_eq!((first.wx_id.as_str(), first.to_user_id.as_str()), (bot.wx_id(), bot.owner()));
    assert_eq!((first.message_id.as_deref(), first.shown, first.opened), (Some(id), true, None));
    assert_eq!(first.raw["item_list"][0]["text_item"]["text"], "hi");
    assert_eq!(rig.sim.violations(None), []);
    assert!(!format!("{first:?}").contains(&token));
}

#[tokio::test]
async fn ten_sends_go_out_and_the_eleventh_waits_for_the_person() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    for n in 0..10 {
        assert_eq!(rig.send(&bot, &n.to_string(), &token, "x").await["ret"], 0, "{n}");
    }
    assert_eq!(rig.send(&bot, "10", &token, "x").await, json!({"ret": -2, "errmsg": PREPARE_FAILED}));
    rig.sim.say(bot.wx_id(), None, "again").unwrap();
    // The refused one was not remembered, and an older token of the person is good in the new window.
    assert_eq!(rig.send(&bot, "10", &token, "x").await["ret"], 0);
    assert_eq!(rig.sim.outbound(None, 0).len(), 11);
}

#[tokio::test]
async fn the_window_closes_after_24_hours() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    rig.advance(24 * 3600 - 1);
    assert_eq!(rig.send(&bot, "a", &token, "x").await["ret"], 0);
    rig.advance(1);
    assert_eq!(rig.send(&bot, "b", &token, "x").await["errmsg"], PREPARE_FAILED);
}

#[tokio::test]
async fn only_a_persons_own_message_opens_the_window() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    rig.sim.inject(json!({"wx_id": bot.wx_id(), "text": "x", "message_type": 2})).unwrap();
    let answer = rig.poll(&bot, "").await;
    let token = answer["msgs"][0]["context_token"].as_str().unwrap();
    assert_eq!(rig.send(&bot, "a", token, "x").await["errmsg"], PREPARE_FAILED);
}

#[tokio::test]
async fn a_token_is_good_for_its_bot_and_its_person_only() {
    let rig = Rig::new(SimConfig::default());
    let ((bot, token), (_, foreign)) = (rig.greeted().await, rig.greeted().await);
    let guest = "o9cq80Guest@im.wechat";
    rig.sim.say(bot.wx_id(), Some(guest), "hello").unwrap();
    let to_guest = message(guest, "a", &token, &text_item("x"));
    assert_eq!(rig.call("sendmessage", &bot, to_guest).await["errmsg"], PREPARE_FAILED);
    for wrong in [foreign.as_str(), "AARz", "x", ""] {
        assert_eq!(rig.send(&bot, "b", wrong, "x").await["errmsg"], PREPARE_FAILED, "{wrong}");
    }
    assert_eq!(rig.send(&bot, "c", &token, "x").await["ret"], 0);
}

#[tokio::test]
async fn a_malformed_request_is_refused_and_not_counted() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    let good = || message(bot.owner(), "c", &token, &text_item("x"));
    let with = |path: &str, value: Value| {
        let mut body = good();
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let text = |length: usize| with("/msg/item_list/0/text_item/text", "x".repeat(length).into());
    for (body, ret) in [
        (with("/msg/to_user_id", bot.owner().to_lowercase().into()), -3),
        (with("/msg/to_user_id", "".into()), -3),
        (with("/msg/message_type", 1.into()), -3),
        (with("/msg/item_list", json!([text_item("a"), text_item("b")])), -3),
        (with("/msg/item_list/0/type", 99.into()), -3),
        (json!({}), -3),
        (with("/msg/item_list", json!([])), -2),
        (text(0), -2),
        (text(MAX_TEXT + 1), -2),
    ] {
        assert_eq!(rig.call("sendmessage", &bot, body).await["ret"], ret);
    }
    assert_eq!(rig.sim.outbound(None, 0), []);
    for n in 0..10 {
        let mut body = text(MAX_TEXT);
        body["msg"]["client_id"] = n.to_string().into();
        assert_eq!(rig.call("sendmessage", &bot, body).await["ret"], 0);
    }
}

#[tokio::test]
async fn a_repeated_client_id_is_answered_alike_and_not_delivered() {
    let rig = Rig::new(SimConfig { window_sends: 2, ..SimConfig::default() });
    let (bot, token) = rig.greeted().await;
    let first = rig.send(&bot, "same", &token, "one").await;
    for _ in 0..3 {
        assert_eq!(rig.send(&bot, "same", &token, "one").await, first);
    }
    // The repeats took nothing from the window, and an answer is found again after it closed.
    assert_eq!(rig.send(&bot, "next", &token, "two").await["ret"], 0);
    assert_eq!(rig.send(&bot, "third", &token, "three").await["ret"], -2);
    assert_eq!(rig.send(&bot, "same", &token, "one").await, first);
    let sent = rig.sim.outbound(None, 0);
    assert_eq!(
        sent.iter().map(|o| (o.text.as_str(), o.repeats)).collect::<Vec<_>>(),
        [("one", 4), ("two", 0)]
    );
    // Per bot, and for a day.
    let (other, foreign) = rig.greeted().await;
    assert_ne!(rig.send(&other, "same", &foreign, "x").await["message_id"], first["message_id"]);
    rig.advance(24 * 3600);
    let token = rig.receive(&bot).await;
    assert_ne!(rig.send(&bot, "same", &token, "one").await["message_id"], first["message_id"]);
}

#[tokio::test]
async fn a_send_without_a_token_does_what_the_switch_says() {
    for (tokenless, body, delivered) in [
        (TokenlessSend::PrepareFailed, Some(-2), 0),
        (TokenlessSend::Silent, None, 0),
        (TokenlessSend::Invalid, Some(-3), 0),
        (TokenlessSend::Accept, Some(0), 1),
    ] {
        let rig = Rig::new(SimConfig { tokenless, ..SimConfig::default() });
        let (bot, _) = rig.greeted().await;
        let body_sent = message(bot.owner(), "c", "", &text_item("x"));
        let response = rig.raw("sendmessage", &bot.token, body_sent).await.unwrap();
        let answer: Option<Value> = serde_json::from_slice(response.body()).ok();
        assert_eq!(answer.map(|answer| answer["ret"].as_i64().unwrap()), body, "{tokenless:?}");
        assert_eq!(response.status(), 200);
        assert_eq!(rig.sim.outbound(None, 0).len(), delivered);
    }
}

#[tokio::test]
async fn voice_is_not_shown_and_an_unfinished_text_stays() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    let voice = message(bot.owner(), "v", &token, &json!({"type": 3, "voice_item": {"media": {}}}));
    assert!(rig.call("sendmessage", &bot, voice).await["message_id"].is_string());
    let mut unfinished = message(bot.owner(), "s", &token, &text_item("first"));
    unfinished["msg"]["message_state"] = 1.into();
    assert_eq!(rig.call("sendmessage", &bot, unfinished).await["ret"], 0);
    assert_eq!(rig.send(&bot, "s", &token, "first and second").await["ret"], 0);
    let sent = rig.sim.outbound(None, 0);
    assert_eq!((sent[0].shown, sent[0].note.as_deref()), (false, Some("not shown")));
    assert_eq!((sent[1].text.as_str(), sent[1].note.as_deref()), ("first", Some("message_state 1")));
    assert_eq!(sent.len(), 2);
}

#[tokio::test]
async fn waiting_ends_with_the_first_send_or_the_time() {
    let rig = Rig::new(SimConfig::default());
    let (bot, token) = rig.greeted().await;
    let mut wait = Box::pin(rig.sim.wait_outbound(Some(bot.wx_id()), 0, Duration::from_secs(5)));
    assert!(poll!(&mut wait).is_pending());
    rig.send(&bot, "a", &token, "x").await;
    assert_eq!(wait.await.len(), 1);
    let mut wait = Box::pin(rig.sim.wait_outbound(None, 1, Duration::from_secs(5)));
    assert!(poll!(&mut wait).is_pending());
    rig.advance(5);
    assert_eq!(wait.await, []);
}

#[tokio::test]
async fn the_list_forgets_its_oldest_and_keeps_its_numbers() {
    let mut config = SimConfig::default();
    config.caps.outbound = 2;
    let rig = Rig::new(config);
    let (bot, token) = rig.greeted().await;
    for n in 1..=4 {
        rig.send(&bot, &n.to_string(), &token, "x").await;
    }
    let numbers = |after| rig.sim.outbound(None, after).iter().map(|o| o.n).collect::<Vec<_>>();
    assert_eq!(numbers(0), [3, 4]);
    assert_eq!(numbers(3), [4]);
    assert_eq!(numbers(4), [0; 0]);
    assert_eq!(rig.sim.outbound(Some("other"), 0), []);
}
