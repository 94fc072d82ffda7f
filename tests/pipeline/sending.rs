//! From the hub to people: order, windows and doubtful outcomes.

use std::time::Duration;

use hub_core::{
    ErrorCode,
    bots::{BotStatus, Bots, Contact, MessageFilter},
    network::sim::{Action, Endpoint, Fault},
    page::PageRequest,
    traces::{Step, StepError, StepName, TraceStatus},
};

use crate::support::world::{TestBot, World};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A running hub with a bot whose person has written.
async fn scene() -> (World, TestBot) {
    let hub = World::start().await;
    let bot = hub.bot().await;
    greet(&hub, &bot).await;
    (hub, bot)
}

/// The bot's person writes, and the hub has it.
async fn greet(hub: &World, bot: &TestBot) {
    let before = messages(hub, bot).await.len();
    hub.say(bot, "hello");
    hub.until("the greeting", async || (messages(hub, bot).await.len() > before).then_some(())).await;
}

/// Content and status of the bot's messages, oldest first.
async fn messages(hub: &World, bot: &TestBot) -> Vec<(String, String)> {
    let (filter, page) = (MessageFilter::default(), PageRequest::parse("m", Some(200), None).unwrap());
    let mut read = hub.hub.context().store.read().await.unwrap();
    let mut rows = read.messages().page(bot.id, &filter, &page).await.unwrap().rows;
    rows.reverse();
    rows.into_iter().map(|row| (row.content, row.status.to_string())).collect()
}

async fn wait_status(hub: &World, bot: &TestBot, content: &str, status: &str) {
    hub.until(&format!("{content} is {status}"), async || {
        let messages = messages(hub, bot).await;
        messages.iter().any(|(text, word)| text == content && word == status).then_some(())
    })
    .await;
}

fn texts(hub: &World, bot: &TestBot) -> Vec<String> {
    hub.sent(bot).into_iter().map(|one| one.text).collect()
}

fn refused(ret: i64, message: &str) -> Action {
    Action::Error { ret: Some(ret), errcode: None, errmsg: Some(message.to_owned()), effect: false }
}

#[tokio::test]
async fn s2_without_a_message_from_the_person_nothing_goes_on_the_wire() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    assert_eq!(hub.send(&bot, "hi").await.unwrap_err().code(), ErrorCode::WindowClosed);
    hub.jump(SECOND * 10).await;
    assert!(hub.sent(&bot).is_empty());
    assert!(messages(&hub, &bot).await.is_empty(), "a refusal stores nothing");
}

#[tokio::test]
async fn s3_after_ten_sends_the_person_has_to_write_again() {
    let (hub, bot) = scene().await;
    for n in 0..10 {
        hub.send(&bot, &n.to_string()).await.unwrap();
    }
    assert_eq!(hub.wait_sent(&bot, 10).await.len(), 10);
    assert_eq!(hub.send(&bot, "eleventh").await.unwrap_err().code(), ErrorCode::WindowClosed);
    greet(&hub, &bot).await;
    hub.send(&bot, "eleventh").await.unwrap();
    let sent = hub.wait_sent(&bot, 11).await;
    assert_ne!(sent[10].context_token, sent[9].context_token, "with the new permission");
    assert_eq!(sent[10].text, "eleventh");
}

#[tokio::test]
async fn s4_a_window_the_network_closed_opens_with_the_next_message() {
    let (hub, bot) = scene().await;
    let prepare_failed = refused(-2, "prepare failed");
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, prepare_failed).skipping(2).times(5)).unwrap();
    for text in ["1", "2", "3", "4", "5"] {
        hub.send(&bot, text).await.unwrap();
    }
    hub.wait_sent(&bot, 2).await;
    wait_reason(&hub, &bot, "5", CLOSED).await;
    assert_eq!(texts(&hub, &bot), ["1", "2"], "no retry while it is closed");
    assert_eq!(hub.send(&bot, "late").await.unwrap_err().code(), ErrorCode::WindowClosed);
    greet(&hub, &bot).await;
    let third = async {
        while hub.sent(&bot).len() < 3 {
            hub.settle().await;
        }
    };
    tokio::time::timeout(SECOND * 20, third).await.expect("sent at once: the hub's clock does not move");
    hub.wait_sent(&bot, 5).await;
    assert_eq!(texts(&hub, &bot), ["1", "2", "3", "4", "5"], "in the order they were accepted");
}

#[tokio::test]
async fn s5_throttled_sends_wait_and_delay_no_other_person() {
    let (hub, bot) = scene().await;
    let other = "o9cq80_other@im.wechat";
    hub.say_as(&bot, other, "hi");
    hub.until("both have written", async || (messages(&hub, &bot).await.len() == 2).then_some(())).await;
    let too_fast = Fault::on(Endpoint::SendMessage, refused(-2, "rate limited"));
    hub.sim.add_fault(too_fast.times(2).for_user(bot.account.owner_user_id.clone())).unwrap();
    let start = hub.now();
    hub.send(&bot, "slow").await.unwrap();
    hub.send_to(&bot, Some(other), "quick").await.unwrap();
    let sent = hub.wait_sent(&bot, 2).await;
    assert_eq!(sent[0].text, "quick");
    assert!(sent[0].at.since(start) < SECOND * 10);
    assert_eq!(sent[1].text, "slow");
    assert!(
        sent[1].at.since(start) >= SECOND * 90,
        "30 s, then a growing pause: {:?}",
        sent[1].at.since(start)
    );
    assert_eq!(sent[1].repeats, 0);
}

/// Beginning of the reason of a message that waits because the network refused it for long.
const CLOSED: &str = "the network refuses sends until this person writes again: ";

/// Waits until the reason of a queued message begins so.
async fn wait_reason(hub: &World, bot: &TestBot, content: &str, begins: &str) {
    hub.until("the reason", async || {
        reason(hub, bot, content).await.is_some_and(|reason| reason.starts_with(begins)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_push_that_is_refused_in_any_wording_waits_for_the_person_and_never_fails() {
    let bare = |ret: Option<i64>, errcode: Option<i64>, errmsg: Option<&str>| Action::Error {
        ret,
        errcode,
        errmsg: errmsg.map(str::to_owned),
        effect: false,
    };
    let (hub, bot) = scene().await;
    let others = ["rate limited", "prepare failed"];
    let mut refusals: Vec<Action> = others.iter().map(|text| refused(-2, text)).collect();
    refusals.extend([bare(Some(-2), None, None), bare(None, Some(-2), Some("unknown error"))]);
    for (n, refusal) in refusals.into_iter().enumerate() {
        hub.sim.add_fault(Fault::on(Endpoint::SendMessage, refusal).times(5)).unwrap();
        let (push, next) = (format!("push {n}"), format!("next {n}"));
        hub.send(&bot, &push).await.unwrap();
        hub.send(&bot, &next).await.unwrap();
        wait_reason(&hub, &bot, &next, CLOSED).await;
        wait_reason(&hub, &bot, &push, CLOSED).await;
        wait_status(&hub, &bot, &push, "queued").await;
        greet(&hub, &bot).await;
        let sent = hub.wait_sent(&bot, 2 * n + 2).await;
        assert_eq!(sent[2 * n..].iter().map(|one| one.text.clone()).collect::<Vec<_>>(), [push, next]);
    }
}

#[tokio::test]
async fn a_message_of_the_person_ends_the_pause_of_a_refused_push() {
    for text in ["rate limited", "prepare failed", ""] {
        let (hub, bot) = scene().await;
        hub.sim.add_fault(Fault::on(Endpoint::SendMessage, refused(-2, text)).times(3)).unwrap();
        hub.send(&bot, "push").await.unwrap();
        // The third attempt is followed by a pause of two minutes.
        hub.until("three attempts", async || {
            let traces = hub.traces(&bot).await;
            let mut steps = traces.iter().flat_map(|trace| &trace.steps);
            let is_third = |step: &&Step| step.name == StepName::Reply && step.attempt == Some(3);
            steps.find(is_third).map(drop)
        })
        .await;
        // The least time between two messages has passed, the pause has not.
        hub.jump(SECOND * 5).await;
        hub.say(&bot, "are you there?");
        let sent = async {
            while hub.sent(&bot).is_empty() {
                hub.settle().await;
            }
        };
        tokio::time::timeout(SECOND * 20, sent).await.expect("sent at once: the hub's clock does not move");
        wait_status(&hub, &bot, "push", "sent").await;
        let sends = contact(&hub, &bot).await.sends_left;
        assert_eq!(sends, Some(9), "refused attempts use none of the ten sends");
    }
}

#[tokio::test]
async fn s6_a_message_that_will_never_be_taken_fails_alone() {
    let (hub, bot) = scene().await;
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, refused(-3, "invalid arguments"))).unwrap();
    hub.send(&bot, "bad").await.unwrap();
    hub.send(&bot, "good").await.unwrap();
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "good");
    wait_status(&hub, &bot, "bad", "failed").await;
    wait_status(&hub, &bot, "good", "sent").await;
}

#[tokio::test]
async fn s7_an_expired_permission_closes_the_window_and_keeps_the_login() {
    let (hub, bot) = scene().await;
    let expired = Action::Error {
        ret: None,
        errcode: Some(-14),
        errmsg: Some("session timeout".into()),
        effect: false,
    };
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, expired)).unwrap();
    hub.send(&bot, "later").await.unwrap();
    hub.until("the window is closed", async || {
        let answer = hub.send(&bot, "now").await;
        answer.is_err_and(|error| error.code() == ErrorCode::WindowClosed).then_some(())
    })
    .await;
    hub.jump(SECOND * 40).await;
    assert_eq!(hub.health(&bot).await.bot.status, BotStatus::Online, "the poll is fine");
    greet(&hub, &bot).await;
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "later");
}

#[tokio::test]
async fn s9_an_answer_that_was_cut_is_asked_for_again_under_the_same_id() {
    let (hub, bot) = scene().await;
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Cut { effect: true })).unwrap();
    hub.send(&bot, "once").await.unwrap();
    wait_status(&hub, &bot, "once", "sent").await;
    let sent = hub.sent(&bot);
    assert_eq!((sent.len(), sent[0].repeats), (1, 1), "one message, and one repeat under its id");
}

#[tokio::test]
async fn s10_a_second_doubtful_outcome_is_not_tried_again() {
    let (hub, bot) = scene().await;
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Cut { effect: false }).times(2)).unwrap();
    hub.send(&bot, "doubtful").await.unwrap();
    hub.send(&bot, "next").await.unwrap();
    wait_status(&hub, &bot, "doubtful", "unknown").await;
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "next");
    hub.jump(HOUR).await;
    assert_eq!(texts(&hub, &bot), ["next"]);
}

#[tokio::test]
async fn s13_a_long_text_goes_in_parts_and_each_counts() {
    let (hub, bot) = scene().await;
    let text = "汉字测试，".repeat(900);
    hub.send(&bot, &text).await.unwrap();
    let sent = hub.wait_sent(&bot, 3).await;
    assert_eq!(sent.len(), 3);
    assert_eq!(sent.iter().map(|one| one.text.as_str()).collect::<String>(), text);
    let ids: std::collections::BTreeSet<_> = sent.iter().map(|one| one.client_id.clone()).collect();
    assert_eq!(ids.len(), 3);
    wait_status(&hub, &bot, &text, "sent").await;
    let person = &bot.account.owner_user_id;
    let contact =
        hub.hub.context().store.read().await.unwrap().contacts().find(bot.id, person).await.unwrap();
    assert_eq!(contact.unwrap().window.sends, 3);
}

#[tokio::test]
async fn s15_sends_of_many_callers_are_kept_in_order_with_a_gap() {
    let (hub, bot) = scene().await;
    let sends = (0..8).map(|n| {
        let (hub, bot) = (&hub, &bot);
        async move { (hub.send(bot, &n.to_string()).await.unwrap().message_id, n.to_string()) }
    });
    let mut accepted: Vec<_> = futures_util::future::join_all(sends).await;
    accepted.sort();
    let sent = hub.wait_sent(&bot, 8).await;
    let expected: Vec<_> = accepted.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts(&hub, &bot), expected, "in the order they were accepted");
    for pair in sent.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= Duration::from_millis(300));
    }
}

#[tokio::test]
async fn s16_a_window_is_closed_half_an_hour_before_the_network_would() {
    let (hub, bot) = scene().await;
    hub.jump(HOUR * 23 + SECOND * 60 * 31).await;
    assert_eq!(hub.send(&bot, "late").await.unwrap_err().code(), ErrorCode::WindowClosed);
    assert!(!hub.health(&bot).await.bot.can_send);
}

#[tokio::test]
async fn s17_ids_keep_their_capitals_over_a_restart() {
    let (mut hub, bot) = scene().await;
    let person = "o9cq80-MixedCASE_x@im.wechat";
    hub.say_as(&bot, person, "hi");
    hub.until("it is stored", async || (messages(&hub, &bot).await.len() == 2).then_some(())).await;
    hub.restart().await;
    hub.send_to(&bot, Some(person), "hello").await.unwrap();
    assert_eq!(hub.wait_sent(&bot, 1).await[0].to_user_id, person);
}

#[tokio::test]
async fn s19_a_restart_keeps_order_ids_and_counters() {
    let (mut hub, bot) = scene().await;
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, refused(-2, "rate limited")).skipping(2)).unwrap();
    for n in 0..6 {
        hub.send(&bot, &n.to_string()).await.unwrap();
    }
    hub.wait_sent(&bot, 2).await;
    hub.restart().await;
    let sent = hub.wait_sent(&bot, 6).await;
    assert_eq!(texts(&hub, &bot), ["0", "1", "2", "3", "4", "5"]);
    assert!(sent.iter().all(|one| one.repeats == 0));
    let person = &bot.account.owner_user_id;
    hub.until("the last is counted", async || {
        let mut read = hub.hub.context().store.read().await.unwrap();
        let sends = read.contacts().find(bot.id, person).await.unwrap().unwrap().window.sends;
        (sends >= 6).then_some(())
    })
    .await;
    for n in 0..6 {
        wait_status(&hub, &bot, &n.to_string(), "sent").await;
    }
}

#[tokio::test]
async fn a_send_takes_its_time_in_the_trace() {
    let (hub, bot) = scene().await;
    let slow = Fault { delay_ms: 3_000, ..Fault::on(Endpoint::SendMessage, Action::Pass) };
    hub.sim.add_fault(slow).unwrap();
    let sent = hub.send(&bot, "slow").await.unwrap();
    let trace = hub
        .until("the end of the trace", async || {
            let trace = hub.trace(&bot, sent.trace_id).await;
            (trace.status == TraceStatus::Ok).then_some(trace)
        })
        .await;
    let step = trace.steps.iter().find(|step| step.name == StepName::Reply).unwrap();
    assert!((3_000..20_000).contains(&step.duration_ms), "{step:?}");
    let (filter, page) = (MessageFilter::default(), PageRequest::parse("m", Some(200), None).unwrap());
    let mut read = hub.hub.context().store.read().await.unwrap();
    let rows = read.messages().page(bot.id, &filter, &page).await.unwrap().rows;
    assert_eq!(rows[0].content, "slow");
    assert!(!rows[0].session_id.is_empty() && rows[0].session_id == rows[1].session_id, "one conversation");
}

/// Ten sends, a message of the person, two more: what the network takes within five minutes.
async fn twelve_sends(hub: &World, bot: &TestBot) {
    for n in 0..10 {
        hub.send(bot, &n.to_string()).await.unwrap();
    }
    hub.wait_sent(bot, 10).await;
    greet(hub, bot).await;
    for n in 10..12 {
        hub.send(bot, &n.to_string()).await.unwrap();
    }
    hub.wait_sent(bot, 12).await;
}

/// The contact of the bot's person.
async fn contact(hub: &World, bot: &TestBot) -> Contact {
    let page = PageRequest::parse(&Bots::contact_list(bot.id), Some(10), None).unwrap();
    hub.hub.bots().contacts(&hub.owner, bot.id, &page).await.unwrap().items.remove(0)
}

/// Status reason of the message with this content.
async fn reason(hub: &World, bot: &TestBot, content: &str) -> Option<String> {
    let (filter, page) = (MessageFilter::default(), PageRequest::parse("m", Some(200), None).unwrap());
    let mut read = hub.hub.context().store.read().await.unwrap();
    let rows = read.messages().page(bot.id, &filter, &page).await.unwrap().rows;
    rows.into_iter().find(|row| row.content == content).unwrap().status_reason
}

#[tokio::test]
async fn the_thirteenth_message_within_five_minutes_waits_also_after_a_restart_and_everything_says_why() {
    let mut hub = World::builder().config(|config| config.sends_per_five_minutes = 12).start().await;
    let bot = hub.bot().await;
    greet(&hub, &bot).await;
    let begun = hub.now();
    twelve_sends(&hub, &bot).await;
    hub.restart().await;
    for text in ["thirteenth", "fourteenth"] {
        hub.send(&bot, text).await.unwrap();
        hub.until("the reason", async || reason(&hub, &bot, text).await).await;
    }
    hub.jump(SECOND * 60).await;
    assert_eq!(hub.sent(&bot).len(), 12);
    let next = contact(&hub, &bot).await;
    assert_eq!(next.sends_left, Some(0));
    let next_send_at = next.next_send_at.unwrap();
    let span = next_send_at.since(begun);
    assert!(span >= SECOND * 300 && span < SECOND * 320, "{span:?}");
    let told = reason(&hub, &bot, "thirteenth").await.unwrap();
    assert!(told.contains(&next_send_at.to_string()) && told.contains("12 messages"), "{told}");
    let traces = hub.traces(&bot).await;
    let waits = traces
        .iter()
        .flat_map(|trace| &trace.steps)
        .find(|step| step.name == StepName::Reply && step.detail.next_attempt_at == Some(next_send_at));
    assert_eq!(waits.unwrap().detail.error, Some(StepError::new(told)));

    assert_eq!(hub.wait_sent(&bot, 14).await[12].text, "thirteenth");
    assert!(hub.now() >= next_send_at);
    wait_status(&hub, &bot, "fourteenth", "sent").await;
    assert_eq!(reason(&hub, &bot, "thirteenth").await, None, "it waits no longer");
}

#[tokio::test]
async fn the_limit_of_messages_within_five_minutes_is_a_setting() {
    for (limit, sent) in [(3, 3), (0, 5)] {
        let hub = World::builder().config(|config| config.sends_per_five_minutes = limit).start().await;
        let bot = hub.bot().await;
        greet(&hub, &bot).await;
        for n in 0..5 {
            hub.send(&bot, &n.to_string()).await.unwrap();
        }
        hub.wait_sent(&bot, sent).await;
        hub.jump(SECOND * 30).await;
        assert_eq!(hub.sent(&bot).len(), sent, "limit {limit}");
    }
}
