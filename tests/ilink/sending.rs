//! Sending cases.

use hub_core::network::{
    Network, SendOutcome, TextFormat,
    sim::{Action, Endpoint, Fault, IdForm},
};
use serde_json::{Map, json};

use super::stage::{Stage, reply_to, within};

fn on_send(action: Action) -> Fault {
    Fault::on(Endpoint::SendMessage, action)
}

fn without(remove: &[&str]) -> Fault {
    let remove = remove.iter().map(ToString::to_string).collect();
    on_send(Action::Patch { set: Map::new(), remove, remove_headers: vec![] })
}

#[tokio::test]
async fn s1_a_reply_has_the_published_shape() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let outcome = bot.connection.send(&reply_to(&message, "hub-1", "hi there")).await;
    let shown = stage.sim.outbound(None, 0).remove(0);
    assert_eq!(Some(outcome), shown.message_id.map(|network_id| SendOutcome::Sent { network_id }));
    assert!(shown.shown && shown.note.is_none());
    let token = message.context_token.as_ref().unwrap().expose();
    assert_eq!(
        stage.tap.bodies("sendmessage")[0]["msg"],
        json!({
            "from_user_id": "", "to_user_id": bot.account.owner_user_id, "client_id": "hub-1",
            "message_type": 2, "message_state": 2, "context_token": token,
            "item_list": [{ "type": 1, "text_item": { "text": "hi there" } }],
        })
    );
    assert_eq!(stage.sim.violations(None), []);
}

#[tokio::test]
async fn s2_nothing_is_sent_without_a_permission() {
    let stage = Stage::quick().await;
    let (bot, mut message) = stage.bind_and_greet().await;
    message.context_token = None;
    let outcome = bot.connection.send(&reply_to(&message, "hub-1", "hi")).await;
    assert!(matches!(outcome, SendOutcome::WindowClosed(_)));
    assert!(stage.tap.requests("sendmessage").is_empty());
}

#[tokio::test]
async fn s4_a_used_up_window_is_refused() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    for n in 0..10 {
        let outcome = bot.connection.send(&reply_to(&message, &format!("hub-{n}"), "hi")).await;
        assert!(matches!(outcome, SendOutcome::Sent { .. }), "{n}: {outcome:?}");
    }
    let eleventh = bot.connection.send(&reply_to(&message, "hub-11", "hi")).await;
    assert!(matches!(eleventh, SendOutcome::Throttled { .. }), "{eleventh:?}");
}

#[tokio::test]
async fn s5_a_rate_limit_is_refused_for_a_time() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let reply = reply_to(&message, "hub-1", "hi");
    stage.sim.add_fault(on_send(Action::RateLimit { penalty_ms: 3_600_000 })).unwrap();
    assert!(matches!(bot.connection.send(&reply).await, SendOutcome::Throttled { .. }));
    stage.sim.clear_faults(None);
    let headers = [("retry-after".to_owned(), "7".to_owned())].into();
    stage
        .sim
        .add_fault(on_send(Action::Status { status: 429, body: String::new(), headers, effect: false }))
        .unwrap();
    let SendOutcome::Throttled { retry_after, .. } = bot.connection.send(&reply).await else {
        panic!("429 is throttling");
    };
    assert_eq!(retry_after.map(|pause| pause.as_secs()), Some(7));
}

#[tokio::test]
async fn s6_a_refused_message_does_not_stop_the_next() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let mut wrong = reply_to(&message, "hub-1", "hi");
    wrong.to_user_id = wrong.to_user_id.to_lowercase();
    assert!(matches!(bot.connection.send(&wrong).await, SendOutcome::Rejected(_)));
    let outcome = bot.connection.send(&reply_to(&message, "hub-2", "hi")).await;
    assert!(matches!(outcome, SendOutcome::Sent { .. }));
}

#[tokio::test]
async fn s8_a_refused_connection_means_not_sent() {
    let mut stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let reply = reply_to(&message, "hub-1", "hi");
    stage.close_port().await;
    for _ in 0..2 {
        let outcome = within(bot.connection.send(&reply)).await;
        assert!(matches!(outcome, SendOutcome::NotSent(_)), "{outcome:?}");
    }
    stage.open_port().await;
    assert!(matches!(within(bot.connection.send(&reply)).await, SendOutcome::Sent { .. }));
    let shown = stage.sim.outbound(None, 0);
    assert_eq!((shown.len(), shown[0].repeats), (1, 0));
}

#[tokio::test]
async fn s9_a_lost_answer_is_unknown_and_a_repeat_is_not_shown_twice() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let reply = reply_to(&message, "hub-1", "hi");
    for action in [
        Action::Cut { effect: true },
        Action::Html { status: 502, effect: true },
        Action::Html { status: 200, effect: true },
        Action::Truncate,
    ] {
        stage.sim.add_fault(on_send(action.clone())).unwrap();
        let outcome = within(bot.connection.send(&reply)).await;
        assert!(matches!(outcome, SendOutcome::Unknown(_)), "{action:?}: {outcome:?}");
    }
    let outcome = bot.connection.send(&reply).await;
    let shown = stage.sim.outbound(None, 0);
    assert_eq!((shown.len(), shown[0].repeats), (1, 4));
    assert_eq!(Some(outcome), shown[0].message_id.clone().map(|network_id| SendOutcome::Sent { network_id }));
}

#[tokio::test]
async fn s11_an_answer_without_an_id_is_unconfirmed() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let shadow = on_send(Action::Shadow { message_id: false });
    for (n, fault) in [
        without(&["ret", "message_id"]),
        on_send(Action::Empty { effect: true }),
        without(&["message_id"]),
        shadow,
    ]
    .into_iter()
    .enumerate()
    {
        stage.sim.add_fault(fault).unwrap();
        let outcome = bot.connection.send(&reply_to(&message, &format!("hub-{n}"), "hi")).await;
        assert_eq!(outcome, SendOutcome::AcceptedUnconfirmed, "{n}");
    }
}

#[tokio::test]
async fn s12_both_forms_of_an_id_are_the_same_id() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    for (n, form) in [IdForm::String, IdForm::Number].into_iter().enumerate() {
        stage.sim.add_fault(on_send(Action::Ids { form })).unwrap();
        let outcome = bot.connection.send(&reply_to(&message, &format!("hub-{n}"), "hi")).await;
        let shown = stage.sim.outbound(None, 0).pop().unwrap();
        assert_eq!(Some(outcome), shown.message_id.map(|network_id| SendOutcome::Sent { network_id }));
    }
}

#[tokio::test]
async fn s13_the_parts_of_a_long_text_are_sent_in_order_and_consecutively() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let text: String = "春夏秋冬".chars().cycle().take(4_500).collect();
    let parts = stage.network.split_text(&text, TextFormat::Plain);
    assert_eq!(parts.len(), 3);
    for (n, part) in parts.iter().enumerate() {
        let outcome = bot.connection.send(&reply_to(&message, &format!("hub-{n}"), part)).await;
        assert!(matches!(outcome, SendOutcome::Sent { .. }));
    }
    let shown = stage.sim.outbound(None, 0);
    assert_eq!(shown.iter().map(|sent| sent.text.as_str()).collect::<String>(), text);
}

#[tokio::test]
async fn s17_user_ids_are_sent_byte_for_byte() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let person = "o9cq80aB_-Zz09@im.wechat";
    stage.sim.say(&bot.account.wx_id, Some(person), "hello").unwrap();
    let message = bot.receive("").await.messages.remove(0);
    assert_eq!(message.from_user_id, person);
    assert!(matches!(bot.connection.send(&reply_to(&message, "c", "hi")).await, SendOutcome::Sent { .. }));
    assert_eq!(stage.sim.outbound(None, 0)[0].to_user_id, person);
}

#[tokio::test]
async fn s18_markdown_is_filtered_and_plain_text_is_not() {
    let stage = Stage::quick().await;
    let (bot, message) = stage.bind_and_greet().await;
    let text = "##### 标题\n![a](http://x) [l](http://y) *中文* *it* **b**";
    let formats = [TextFormat::Markdown, TextFormat::Plain];
    for (n, format) in formats.into_iter().enumerate() {
        let part = stage.network.split_text(text, format).remove(0);
        bot.connection.send(&reply_to(&message, &format!("hub-{n}"), &part)).await;
    }
    let shown: Vec<_> = stage.sim.outbound(None, 0).into_iter().map(|sent| sent.text).collect();
    assert_eq!(shown, ["标题\n [l](http://y) 中文 *it* **b**", text]);
}
