//! Receiving cases.

use std::{sync::atomic::Ordering, time::Duration};

use hub_core::{
    network::{
        MessageClass, MessageKind, NetworkError, Outgoing, SendOutcome,
        ilink::{IlinkConfig, Timeouts},
        sim::{Action, Endpoint, Fault, IdForm, SimConfig},
    },
    time::Clock,
};
use serde_json::{Value, json};

use super::stage::{Stage, connector, counting_port, within};

fn patch(set: &Value, remove: &[&str]) -> Fault {
    let set = set.as_object().unwrap().clone();
    let remove = remove.iter().map(ToString::to_string).collect();
    Fault::on(Endpoint::GetUpdates, Action::Patch { set, remove, remove_headers: vec![] })
}

#[tokio::test]
async fn r1_a_text_arrives_with_exact_ids_and_its_permission() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let id = stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    assert!(id.parse::<u64>().unwrap() > 1 << 53);
    let batch = bot.receive("").await;
    let [message] = &batch.messages[..] else { panic!("one message") };
    assert_eq!(message.network_id.as_deref(), Some(id.as_str()));
    assert_eq!(message.dedupe_key, format!("id:{id}"));
    assert_eq!(
        (&message.from_user_id, &message.to_user_id),
        (&bot.account.owner_user_id, &bot.account.wx_id)
    );
    assert_eq!(
        (message.class, message.kind, message.content.as_str()),
        (MessageClass::User, MessageKind::Text, "hello")
    );
    assert!(message.context_token.as_ref().is_some_and(|token| token.expose().starts_with("AARz")));
    assert!(batch.answered && batch.cursor.is_some());
    assert_eq!(stage.tap.bodies("getupdates")[0]["get_updates_buf"], "");
}

#[tokio::test]
async fn r2_a_full_answer_keeps_its_order() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let texts: Vec<String> = (0..50).map(|n| format!("message {n}")).collect();
    let messages = texts.iter().map(|text| json!({ "wx_id": bot.account.wx_id, "text": text }));
    stage.sim.inject_all(messages.collect()).unwrap();
    let batch = bot.receive("").await;
    assert_eq!(batch.messages.iter().map(|m| m.content.clone()).collect::<Vec<_>>(), texts);
}

#[tokio::test]
async fn r3_an_empty_hold_is_an_answer() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let first = bot.receive("").await;
    assert!(first.answered && first.messages.is_empty());
    let cursor = first.cursor.unwrap();
    stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    assert_eq!(bot.receive(&cursor).await.messages.len(), 1);
}

#[tokio::test]
async fn r4_an_answer_without_a_cursor_keeps_the_old_one() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    let mut keys = Vec::new();
    for fault in [patch(&json!({}), &["get_updates_buf"]), patch(&json!({ "get_updates_buf": "" }), &[])] {
        stage.sim.add_fault(fault).unwrap();
        let batch = bot.receive("").await;
        assert_eq!(batch.cursor, None);
        keys.extend(batch.messages.into_iter().map(|message| message.dedupe_key));
    }
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1], "the repeat is recognised");
}

/// A connector that gives up a poll quickly, unless an answer tells it to wait longer.
fn impatient() -> IlinkConfig {
    let timeouts = Timeouts {
        hold: Duration::from_millis(500),
        hold_margin: Duration::from_millis(200),
        short_poll: Duration::from_millis(200),
        ..Timeouts::default()
    };
    IlinkConfig { timeouts, ..IlinkConfig::default() }
}

/// A server that holds polls for so long.
fn holding(hold: Duration) -> SimConfig {
    SimConfig { hold, ..SimConfig::quick() }
}

#[tokio::test]
async fn r8_the_servers_hold_time_is_followed_or_the_old_one_kept() {
    let stage = Stage::start(holding(Duration::from_secs(2)), impatient(), Clock::system()).await;
    let bot = stage.bind().await;
    for (fault, follows) in [
        (patch(&json!({}), &["longpolling_timeout_ms"]), false),
        (patch(&json!({ "longpolling_timeout_ms": 0 }), &[]), false),
        (patch(&json!({ "longpolling_timeout_ms": 5000 }), &[]), true),
    ] {
        stage.sim.add_fault(fault).unwrap();
        stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
        let cursor = bot.receive("").await.cursor.unwrap();
        assert_eq!(bot.receive(&cursor).await.answered, follows);
        // A poll that this side gave up must be gone, or it would meet the next fault.
        within(async {
            while stage.sim.accounts()[0].pollers > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn r10_broken_answers_are_errors_and_move_nothing() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    for action in [
        Action::Html { status: 502, effect: false },
        Action::Html { status: 200, effect: false },
        Action::Truncate,
        Action::Empty { effect: false },
        Action::Cut { effect: false },
        Action::Cut { effect: true },
    ] {
        stage.sim.add_fault(Fault::on(Endpoint::GetUpdates, action.clone())).unwrap();
        let result = within(bot.connection.receive("")).await;
        assert!(matches!(result, Err(NetworkError::Unreachable(_))), "{action:?}: {result:?}");
    }
    assert_eq!(bot.receive("").await.messages.len(), 1);
}

#[tokio::test]
async fn r11_a_gateway_that_cuts_polls_makes_them_short() {
    let stage = Stage::start(
        holding(Duration::from_secs(600)),
        IlinkConfig {
            timeouts: Timeouts { short_poll: Duration::from_millis(50), ..Timeouts::default() },
            ..IlinkConfig::default()
        },
        Clock::system(),
    )
    .await;
    let bot = stage.bind().await;
    let gateway = Action::Html { status: 524, effect: false };
    stage.sim.add_fault(Fault::on(Endpoint::GetUpdates, gateway).times(3)).unwrap();
    for _ in 0..2 {
        assert!(!bot.receive("").await.answered);
    }
    assert!(matches!(within(bot.connection.receive("")).await, Err(NetworkError::Unreachable(_))));
    // Held for ten minutes; only a short poll ends before this test loses timeout.
    assert!(!bot.receive("").await.answered);
}

#[tokio::test]
async fn r12_a_silent_connection_is_replaced_and_heals() {
    let stage = Stage::quick().await;
    let (port, connections) = counting_port(stage.address).await;
    let bot = stage.bind_through(&connector(port, impatient(), Clock::system())).await;
    // Several calls at a time leave several idle connections behind.
    stage
        .sim
        .add_fault(Fault::on(Endpoint::NotifyStart, Action::Pass).after(Duration::from_millis(200)).times(6))
        .unwrap();
    within(futures_util::future::join_all((0..6).map(|_| bot.connection.start()))).await;
    stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    let hole = Fault::on(Endpoint::GetUpdates, Action::Pass).after(Duration::from_secs(3600)).times(3);
    stage.sim.add_fault(hole).unwrap();
    for _ in 0..3 {
        let silent = bot.receive("").await;
        assert!(!silent.answered && silent.messages.is_empty() && silent.cursor.is_none());
    }
    let before = connections.load(Ordering::Relaxed);
    assert_eq!(bot.receive("").await.messages.len(), 1);
    assert_eq!(connections.load(Ordering::Relaxed), before + 1, "no idle connection is trusted");
}

#[tokio::test]
async fn r13_odd_messages_do_not_break_a_batch() {
    use MessageClass::{Bot, Quarantined, Recalled, Unfinished, User};
    use MessageKind::{Other, Text};
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let odd = |mut fields: Value| {
        fields["wx_id"] = json!(bot.account.wx_id);
        fields
    };
    let messages = vec![
        odd(json!({ "text": "bot", "message_type": 2 })),
        odd(json!({ "text": "draft", "message_state": 1 })),
        odd(json!({ "items": [{ "type": 99, "something_item": { "x": 1 } }] })),
        odd(json!({ "items": [{ "type": 1 }] })),
        odd(json!({ "items": [] })),
        odd(json!({ "item_list": "not a list" })),
        odd(json!({ "text": "gone", "delete_time_ms": 5 })),
        odd(json!({ "text": "fine" })),
    ];
    stage.sim.inject_all(messages).unwrap();
    let batch = bot.receive("").await;
    let read: Vec<_> = batch.messages.iter().map(|m| (m.class, m.kind, m.content.as_str())).collect();
    assert_eq!(
        read,
        [
            (Bot, Text, "bot"),
            (Unfinished, Text, "draft"),
            (User, Other, ""),
            (User, Other, ""),
            (User, Other, ""),
            (Quarantined, Other, ""),
            (Recalled, Text, "gone"),
            (User, Text, "fine"),
        ]
    );
    stage.sim.add_fault(Fault::new(Action::Unknown)).unwrap();
    stage.sim.say(&bot.account.wx_id, None, "with more").unwrap();
    let message = bot.receive(&batch.cursor.unwrap()).await.messages.remove(0);
    assert_eq!((message.class, message.content.as_str()), (MessageClass::User, "with more"));
}

#[tokio::test]
async fn r14_every_form_of_identity_gives_a_key() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let id = stage.sim.say(&bot.account.wx_id, None, "hello").unwrap();
    for form in [IdForm::String, IdForm::Number] {
        stage.sim.add_fault(Fault::on(Endpoint::GetUpdates, Action::Ids { form })).unwrap();
        assert_eq!(bot.receive("").await.messages[0].dedupe_key, format!("id:{id}"), "{form:?}");
    }
    let cursor = bot.receive("").await.cursor.unwrap();
    let nameless = json!({
        "wx_id": bot.account.wx_id, "message_id": null, "client_id": null, "seq": null, "create_time_ms": 5,
        "item_list": [{ "type": 1, "text_item": { "text": "twice" } }],
    });
    let by_item = json!({
        "wx_id": bot.account.wx_id, "message_id": null,
        "item_list": [{ "type": 1, "msg_id": "77", "text_item": { "text": "by item" } }],
    });
    stage.sim.inject_all(vec![by_item, nameless.clone(), nameless]).unwrap();
    let batch = bot.receive(&cursor).await;
    let keys: Vec<_> = batch.messages.iter().map(|message| message.dedupe_key.as_str()).collect();
    assert_eq!(keys[0], "item:77");
    assert!(keys[1].starts_with("hash:") && keys[2].starts_with("hash:"));
    assert_ne!(keys[1], keys[2], "two messages");
    let again = bot.receive(&cursor).await;
    assert_eq!(again.messages.iter().map(|message| message.dedupe_key.as_str()).collect::<Vec<_>>(), keys);
}

#[tokio::test]
async fn r17_a_stop_is_announced() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    bot.connection.start().await.unwrap();
    assert!(stage.sim.accounts()[0].started);
    within(bot.connection.stop()).await;
    assert!(!stage.sim.accounts()[0].started);
}

#[tokio::test]
async fn e2_an_expired_token_ends_a_held_poll() {
    let stage =
        Stage::start(holding(Duration::from_secs(600)), IlinkConfig::default(), Clock::system()).await;
    let bot = stage.bind().await;
    stage.sim.add_fault(Fault::new(Action::Expire { after_ms: 50 })).unwrap();
    let result = within(bot.connection.receive("")).await;
    assert!(matches!(result, Err(NetworkError::LoginExpired(_))), "{result:?}");
    assert!(matches!(bot.connection.start().await, Err(NetworkError::LoginExpired(_))));
    let outgoing = Outgoing {
        to_user_id: bot.account.owner_user_id.clone(),
        context_token: "AARz".into(),
        client_id: "hub-1".into(),
        text: "hi".into(),
        media: None,
    };
    assert!(matches!(bot.connection.send(&outgoing).await, SendOutcome::LoginExpired(_)));
}
