use futures_util::poll;
use serde_json::{Value, json};

use super::*;
use crate::{
    error::ErrorCode,
    network::sim::{
        SimConfig,
        testing::{Rig, texts},
    },
};

fn cursor(answer: &Value) -> &str {
    answer["get_updates_buf"].as_str().unwrap()
}

fn mode(delivery: DeliveryMode) -> SimConfig {
    SimConfig { delivery, ..SimConfig::default() }
}

#[tokio::test]
async fn an_idle_poll_is_held_for_the_hold_time_and_names_it() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    let mut poll = Box::pin(rig.poll(&bot, ""));
    assert!(poll!(&mut poll).is_pending());
    rig.advance(34);
    assert!(poll!(&mut poll).is_pending());
    rig.advance(1);
    let answer = poll.await;
    assert_eq!((&answer["ret"], &answer["msgs"]), (&json!(0), &json!([])));
    assert_eq!(answer["longpolling_timeout_ms"], 35_000);
    assert_ne!(cursor(&answer), "");
    assert_eq!(rig.sim.violations(None), []);
}

#[tokio::test]
async fn a_message_wakes_the_poll_and_has_the_shape_of_the_real_ones() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    let mut poll = Box::pin(rig.poll(&bot, ""));
    assert!(poll!(&mut poll).is_pending());
    let id = rig.sim.say(bot.wx_id(), Some("o9cq80Guest@im.wechat"), "你好").unwrap();
    let answer = poll.await;
    let message = &answer["msgs"][0];
    assert_eq!(message["message_id"].as_u64().unwrap().to_string(), id);
    assert!(message["message_id"].as_u64().unwrap() > 1 << 53);
    assert_eq!(message["from_user_id"], "o9cq80Guest@im.wechat");
    assert_eq!(message["to_user_id"], bot.wx_id());
    assert_eq!((&message["message_type"], &message["message_state"]), (&json!(1), &json!(2)));
    assert_eq!(message["create_time_ms"], rig.clock.now().as_millis());
    assert_eq!(message["item_list"][0]["text_item"], json!({"text": "你好"}));
    assert_eq!(message["item_list"][0]["msg_id"], id);
    assert!(message["context_token"].as_str().unwrap().starts_with("AARz"));
}

#[tokio::test]
async fn cursor_mode_sends_everything_again_until_the_cursor_moves() {
    let rig = Rig::new(mode(DeliveryMode::Cursor));
    let bot = rig.login(None).await;
    for n in 0..60 {
        rig.sim.say(bot.wx_id(), None, &n.to_string()).unwrap();
    }
    let first = rig.poll(&bot, "").await;
    let expected: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(texts(&first), expected);
    assert_eq!(rig.poll(&bot, "").await, first);
    let second = rig.poll(&bot, cursor(&first)).await;
    assert_eq!(texts(&second), (50..60).map(|n| n.to_string()).collect::<Vec<_>>());
    // An older cursor is served from what is retained; an empty one starts behind the acknowledged.
    let acknowledged = rig.poll(&bot, "").await;
    assert_eq!(texts(&acknowledged), texts(&second));
    let ids: Vec<_> = first["msgs"].as_array().unwrap().iter().map(|m| m["message_id"].as_u64()).collect();
    assert!(ids.is_sorted());
}

#[tokio::test]
async fn consume_mode_never_sends_a_message_twice() {
    let rig = Rig::new(mode(DeliveryMode::Consume));
    let bot = rig.login(None).await;
    rig.sim.say(bot.wx_id(), None, "one").unwrap();
    assert_eq!(texts(&rig.poll(&bot, "").await), ["one"]);
    for old in ["", ""] {
        let mut poll = Box::pin(rig.poll(&bot, old));
        assert!(poll!(&mut poll).is_pending());
    }
    rig.sim.say(bot.wx_id(), None, "two").unwrap();
    assert_eq!(texts(&rig.poll(&bot, "").await), ["two"]);
}

#[tokio::test]
async fn replay_mode_sends_the_last_messages_to_an_empty_cursor() {
    let config = SimConfig { replay: 2, ..mode(DeliveryMode::ReplayOnEmpty) };
    let rig = Rig::new(config);
    let bot = rig.login(None).await;
    for text in ["a", "b", "c"] {
        rig.sim.say(bot.wx_id(), None, text).unwrap();
    }
    let first = rig.poll(&bot, "").await;
    assert_eq!(texts(&first), ["a", "b", "c"]);
    let mut idle = Box::pin(rig.poll(&bot, cursor(&first)));
    assert!(poll!(&mut idle).is_pending());
    drop(idle);
    assert_eq!(texts(&rig.poll(&bot, "").await), ["b", "c"]);
}

#[tokio::test]
async fn a_cursor_that_was_not_handed_out_is_refused_and_recorded() {
    let rig = Rig::new(SimConfig::default());
    let (bot, other) = (rig.login(None).await, rig.login(None).await);
    rig.sim.say(other.wx_id(), None, "x").unwrap();
    let foreign = cursor(&rig.poll(&other, "").await).to_owned();
    for wrong in ["x", "AAAA", &foreign] {
        assert_eq!(rig.poll(&bot, wrong).await["ret"], -2, "{wrong}");
    }
    let kinds: Vec<_> = rig.sim.violations(Some(bot.wx_id())).iter().map(|v| v.kind).collect();
    assert_eq!(kinds, [ViolationKind::ChangedCursor; 3]);
}

#[tokio::test]
async fn two_pollers_share_the_stream_and_are_recorded() {
    for delivery in [DeliveryMode::Cursor, DeliveryMode::Consume] {
        let rig = Rig::new(mode(delivery));
        let bot = rig.login(None).await;
        let mut first = Box::pin(rig.poll(&bot, ""));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(rig.sim.accounts()[0].pollers, 1);
        let mut second = Box::pin(rig.poll(&bot, ""));
        assert!(poll!(&mut second).is_pending());
        assert_eq!(rig.sim.violations(None)[0].kind, ViolationKind::SecondPoller);
        rig.sim.say(bot.wx_id(), None, "one").unwrap();
        assert_eq!(texts(&first.await), ["one"]);
        assert!(poll!(&mut second).is_pending(), "{delivery:?}");
        rig.sim.say(bot.wx_id(), None, "two").unwrap();
        assert_eq!(texts(&second.await), ["two"]);
        assert_eq!(rig.sim.accounts()[0].pollers, 0);
    }
}

#[tokio::test]
async fn a_poll_whose_client_went_away_is_no_second_poller() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    for _ in 0..2 {
        let mut gone = Box::pin(rig.poll(&bot, ""));
        assert!(poll!(&mut gone).is_pending());
    }
    assert_eq!(rig.sim.violations(None), []);
}

#[tokio::test]
async fn expiry_rebinding_and_reset_end_a_held_poll_with_minus_14() {
    for act in [0, 1, 2] {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let mut poll = Box::pin(rig.poll(&bot, ""));
        assert!(poll!(&mut poll).is_pending());
        match act {
            0 => rig.sim.expire(bot.wx_id()).unwrap(),
            1 => assert_ne!(rig.login(Some(bot.owner())).await.wx_id(), bot.wx_id()),
            _ => rig.sim.reset(),
        }
        assert_eq!(poll.await, json!({"errcode": -14, "errmsg": "session timeout"}));
        assert_eq!(rig.poll(&bot, "").await["errcode"], -14);
    }
}

#[tokio::test]
async fn the_silent_switch_holds_messages_back_until_notifystart() {
    let rig = Rig::new(SimConfig { silent_until_notifystart: true, ..SimConfig::default() });
    let bot = rig.login(None).await;
    rig.sim.say(bot.wx_id(), None, "hello").unwrap();
    let mut poll = Box::pin(rig.poll(&bot, ""));
    assert!(poll!(&mut poll).is_pending());
    assert_eq!(rig.call("msg/notifystart", &bot, json!({})).await, json!({"ret": 0}));
    assert!(rig.sim.accounts()[0].started);
    assert_eq!(texts(&poll.await), ["hello"]);
    rig.call("msg/notifystop", &bot, json!({})).await;
    assert!(!rig.sim.accounts()[0].started);
}

#[tokio::test]
async fn a_full_inbox_refuses_a_message_and_room_comes_with_the_cursor() {
    let mut config = SimConfig::default();
    (config.caps.pending, config.caps.retained) = (2, 1);
    let rig = Rig::new(config);
    let bot = rig.login(None).await;
    let many = |n: usize| vec![json!({"wx_id": bot.wx_id(), "text": "x"}); n];
    assert_eq!(rig.sim.inject_all(many(3)).unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(rig.sim.accounts()[0].pending, 0, "all or none");
    rig.sim.inject_all(many(2)).unwrap();
    assert_eq!(rig.sim.say(bot.wx_id(), None, "x").unwrap_err().code(), ErrorCode::Conflict);
    let answer = rig.poll(&bot, "").await;
    let mut idle = Box::pin(rig.poll(&bot, cursor(&answer)));
    assert!(poll!(&mut idle).is_pending());
    rig.sim.say(bot.wx_id(), None, "room again").unwrap();
    assert_eq!(texts(&idle.await), ["room again"]);
}

#[tokio::test]
async fn raw_fields_replace_or_remove_what_the_simulator_writes() {
    let rig = Rig::new(SimConfig::default());
    let bot = rig.login(None).await;
    let item = json!({"type": 99, "something_item": {"x": 1}});
    let id = rig
        .sim
        .inject(json!({"wx_id": bot.wx_id(), "items": [item], "message_id": "7497484083968569736",
            "message_state": null, "message_type": 2, "group_id": "g", "extra": [1]}))
        .unwrap();
    assert_eq!(id, "7497484083968569736");
    rig.sim.inject(json!({"wx_id": bot.wx_id(), "item_list": null})).unwrap();
    let answer = rig.poll(&bot, "").await;
    let message = &answer["msgs"][0];
    assert_eq!(message["message_id"], "7497484083968569736");
    assert_eq!((&message["group_id"], &message["extra"]), (&json!("g"), &json!([1])));
    assert!(message.get("message_state").is_none() && message.get("wx_id").is_none());
    assert_eq!(message["item_list"][0]["something_item"], json!({"x": 1}));
    assert!(answer["msgs"][1].get("item_list").is_none());
    for wrong in [
        json!({"wx_id": bot.wx_id()}),
        json!({"wx_id": bot.wx_id(), "text": "a", "items": []}),
        json!({"wx_id": bot.wx_id(), "text": 1}),
        json!({"wx_id": bot.wx_id(), "text": "a", "from_user_id": ""}),
    ] {
        assert_eq!(rig.sim.inject(wrong).unwrap_err().code(), ErrorCode::InvalidParams);
    }
    assert_eq!(rig.sim.say("none@im.bot", None, "x").unwrap_err().code(), ErrorCode::NotFound);
}
