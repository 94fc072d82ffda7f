//! Polling of the network: order, repeats, errors, logins.

use std::{collections::BTreeMap, time::Duration};

use hub_core::{
    ErrorCode,
    bots::{BindStatus, BotStatus, MessageFilter, NewBind},
    network::sim::{Action, DeliveryMode, Endpoint, Fault, QrAction, ViolationKind},
    page::PageRequest,
    time::Timestamp,
    traces::TraceStatus,
};

use crate::support::world::{TestBot, World};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Contents of the bot's messages, oldest first.
async fn contents(hub: &World, bot: &TestBot) -> Vec<String> {
    let (filter, page) = (MessageFilter::default(), PageRequest::parse("m", Some(200), None).unwrap());
    let mut read = hub.hub.context().store.read().await.unwrap();
    let mut rows = read.messages().page(bot.id, &filter, &page).await.unwrap().rows;
    rows.reverse();
    rows.into_iter().map(|row| row.content).collect()
}

async fn wait_contents(hub: &World, bot: &TestBot, count: usize) -> Vec<String> {
    hub.until(&format!("{count} messages"), async || {
        let contents = contents(hub, bot).await;
        (contents.len() >= count).then_some(contents)
    })
    .await
}

async fn wait_status(hub: &World, bot: &TestBot, status: BotStatus) -> Timestamp {
    hub.until(&format!("{status:?}"), async || {
        (hub.health(bot).await.bot.status == status).then_some(hub.now())
    })
    .await
}

async fn cursor(hub: &World, bot: &TestBot) -> String {
    hub.hub.context().store.read().await.unwrap().bots().login(bot.id).await.unwrap().unwrap().cursor
}

fn expired() -> Action {
    Action::Error { ret: None, errcode: Some(-14), errmsg: Some("session timeout".into()), effect: false }
}

#[tokio::test]
async fn r2_a_full_answer_is_taken_in_order_and_at_once() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let texts: Vec<String> = (0..50).map(|n| format!("{n:02}")).collect();
    let wx_id = &bot.account.wx_id;
    let batch = texts.iter().map(|text| serde_json::json!({ "wx_id": wx_id, "text": text })).collect();
    hub.sim.inject_all(batch).unwrap();
    assert_eq!(wait_contents(&hub, &bot, 50).await, texts);
}

#[tokio::test]
async fn r5_a_message_that_comes_again_is_one_message_also_after_a_restart() {
    let mut hub = World::builder().sim(|sim| sim.delivery = DeliveryMode::ReplayOnEmpty).start().await;
    let bot = hub.bot().await;
    let channel = hub.channel(&bot, World::webhook("/hook")).await;
    hub.sim.add_fault(Fault::new(Action::Repeat { after_ms: 500, new_id: false })).unwrap();
    hub.say(&bot, "once");
    hub.wait_received(1).await;
    hub.jump(SECOND * 2).await;
    hub.jump(SECOND * 60).await;
    hub.restart().await;
    // The cursor is lost: the network hands everything out again.
    let lost = "UPDATE bots SET cursor = ''";
    hub.stop().await;
    hub.restart().await;
    hub.hub
        .context()
        .store
        .write(move |tx| Box::pin(async move { tx.channels().execute(lost.to_owned()).await }))
        .await
        .unwrap();
    hub.restart().await;
    hub.say(&bot, "twice");
    hub.wait_received(2).await;
    assert_eq!(contents(&hub, &bot).await, ["once", "twice"]);
    assert_eq!(hub.receiver.received().len(), 2);
    hub.wait_trace(&bot, channel, |_| true).await;
}

#[tokio::test]
async fn r6_what_was_committed_and_not_dispatched_is_dispatched_once() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let channel = hub.channel(&bot, World::webhook("/hook")).await;
    hub.keep_ended().await;
    hub.say(&bot, "hello");
    hub.wait_trace(&bot, channel, |trace| trace.status == TraceStatus::Ok).await;
    // As a crash leaves it: stored, held by a node that is gone, never attempted.
    hub.reopen().await;
    let received = hub.wait_received(2).await;
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    hub.jump(HOUR).await;
    assert_eq!(hub.receiver.received().len(), 2);
}

#[tokio::test]
async fn r7_what_was_not_committed_comes_again() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.say(&bot, "first");
    wait_contents(&hub, &bot, 1).await;
    let before = cursor(&hub, &bot).await;
    let lost =
        Fault { only_with_messages: true, ..Fault::on(Endpoint::GetUpdates, Action::Cut { effect: true }) };
    hub.sim.add_fault(lost).unwrap();
    hub.say(&bot, "second");
    assert_eq!(wait_contents(&hub, &bot, 2).await, ["first", "second"]);
    assert_ne!(cursor(&hub, &bot).await, before);
}

#[tokio::test]
async fn r7_a_network_that_forgets_does_not_stop_the_hub() {
    let hub = World::builder().sim(|sim| sim.delivery = DeliveryMode::Consume).start().await;
    let bot = hub.bot().await;
    let lost =
        Fault { only_with_messages: true, ..Fault::on(Endpoint::GetUpdates, Action::Cut { effect: true }) };
    hub.sim.add_fault(lost).unwrap();
    hub.say(&bot, "lost");
    hub.jump(SECOND * 5).await;
    hub.say(&bot, "seen");
    hub.until("what came later", async || {
        contents(&hub, &bot).await.contains(&"seen".to_owned()).then_some(())
    })
    .await;
    assert_eq!(hub.health(&bot).await.bot.status, BotStatus::Online);
}

#[tokio::test]
async fn r9_errors_are_retried_with_growing_pauses_and_the_cursor_is_kept() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.say(&bot, "first");
    wait_contents(&hub, &bot, 1).await;
    let before = cursor(&hub, &bot).await;
    hub.sim
        .add_fault(Fault::on(Endpoint::GetUpdates, Action::Html { status: 502, effect: false }).times(3))
        .unwrap();
    hub.jump(SECOND * 36).await;
    let start = hub.now();
    hub.until("three errors", async || hub.sim.faults().is_empty().then_some(())).await;
    hub.say(&bot, "second");
    wait_contents(&hub, &bot, 2).await;
    let paused = hub.now().since(start);
    // 2 s, 2 s and 30 s, each a fifth shorter or longer.
    assert!(paused >= SECOND * 27, "{paused:?}");
    assert!(paused < SECOND * 90, "{paused:?}");
    assert_ne!(cursor(&hub, &bot).await, before);
    wait_status(&hub, &bot, BotStatus::Online).await;
}

#[tokio::test]
async fn r12_a_bot_that_gets_no_answer_is_degraded_and_recovers() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    wait_status(&hub, &bot, BotStatus::Online).await;
    let start = hub.now();
    hub.sim
        .add_fault(
            Fault::on(
                Endpoint::GetUpdates,
                Action::Status { status: 500, body: String::new(), headers: BTreeMap::new(), effect: false },
            )
            .always(),
        )
        .unwrap();
    let degraded = wait_status(&hub, &bot, BotStatus::Degraded).await.since(start);
    assert!(degraded >= SECOND * 170 && degraded < SECOND * 300, "{degraded:?}");
    hub.sim.clear_faults(None);
    wait_status(&hub, &bot, BotStatus::Online).await;
    assert_eq!(hub.health(&bot).await.bot.status_reason, None);
}

#[tokio::test]
async fn r16_a_recalled_message_is_stored_and_not_delivered() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.channel(&bot, World::webhook("/hook")).await;
    let wx_id = &bot.account.wx_id;
    hub.sim.inject(serde_json::json!({ "wx_id": wx_id, "text": "taken back", "delete_time_ms": 1 })).unwrap();
    hub.say(&bot, "kept");
    let received = hub.wait_received(1).await;
    assert_eq!(received[0].json()["content"], "kept");
    assert_eq!(wait_contents(&hub, &bot, 2).await.len(), 2);
    hub.jump(SECOND * 60).await;
    assert_eq!(hub.receiver.received().len(), 1);
}

#[tokio::test]
async fn r17_a_stop_during_a_held_poll_is_announced() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.until("it is announced", async || hub.sim.accounts()[0].started.then_some(())).await;
    let start = hub.now();
    hub.stop().await;
    assert!(hub.now().since(start) <= SECOND * 5, "{:?}", hub.now().since(start));
    let account = hub.sim.accounts().into_iter().find(|known| known.account == bot.account).unwrap();
    assert!(!account.started, "notifystop was sent");
    assert_eq!(account.pollers, 0);
}

#[tokio::test]
async fn a_login_that_lapsed_in_silence_is_degraded_until_the_network_answers() {
    for body in ["{}", r#"{"ret":0}"#, r#"{"msgs":[]}"#, r#"{"errcode":0,"get_updates_buf":""}"#] {
        let hub = World::start().await;
        let bot = hub.bot().await;
        wait_status(&hub, &bot, BotStatus::Online).await;
        let nothing = Action::Status {
            status: 200,
            body: body.to_owned(),
            headers: BTreeMap::default(),
            effect: false,
        };
        hub.sim.add_fault(Fault::on(Endpoint::GetUpdates, nothing).always()).unwrap();
        hub.jump(SECOND * 36).await;
        wait_status(&hub, &bot, BotStatus::Degraded).await;
        let reason = hub.health(&bot).await.bot.status_reason.unwrap();
        assert!(reason.contains("the login may have lapsed"), "{body}: {reason}");
        let hits = || hub.sim.faults().iter().map(|fault| fault.hits).sum::<u32>();
        let before = hits();
        hub.jump(SECOND * 20).await;
        assert!(hits() - before <= 12, "no busy loop: {} polls", hits() - before);
        hub.sim.clear_faults(None);
        hub.say(&bot, "back");
        assert_eq!(wait_contents(&hub, &bot, 1).await, ["back"]);
        wait_status(&hub, &bot, BotStatus::Online).await;
    }
}

#[tokio::test]
async fn e1_one_stray_refusal_is_forgotten() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.say(&bot, "first");
    wait_contents(&hub, &bot, 1).await;
    wait_status(&hub, &bot, BotStatus::Online).await;
    hub.sim.add_fault(Fault::on(Endpoint::GetUpdates, expired())).unwrap();
    hub.jump(SECOND * 36).await;
    hub.until("the refusal", async || hub.sim.faults().is_empty().then_some(())).await;
    let start = hub.now();
    hub.say(&bot, "second");
    assert_eq!(wait_contents(&hub, &bot, 2).await, ["first", "second"]);
    let back = wait_status(&hub, &bot, BotStatus::Online).await.since(start);
    assert!(back <= SECOND * 10, "{back:?}");
}

#[tokio::test]
async fn e2_a_dead_login_is_expired_and_tried_once_an_hour() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    wait_status(&hub, &bot, BotStatus::Online).await;
    hub.sim.expire(&bot.account.wx_id).unwrap();
    wait_status(&hub, &bot, BotStatus::Expired).await;
    let health = hub.health(&bot).await;
    assert!(!health.bot.can_send);
    assert!(health.bot.status_reason.unwrap().contains("bind"));
    assert_eq!(hub.hub.bots().reconnect(&hub.owner, bot.id).await.unwrap_err().code(), ErrorCode::Conflict);
    // The only calls are the hourly tries; each is one announcement or one poll, which the fault counts.
    let calls = |endpoint| Fault::on(endpoint, expired()).times(1000);
    hub.sim.add_faults(vec![calls(Endpoint::GetUpdates), calls(Endpoint::NotifyStart)]).unwrap();
    for _ in 0..6 {
        hub.jump(HOUR / 2).await;
    }
    let tries: u32 = hub.sim.faults().iter().map(|fault| fault.hits).sum();
    assert!((1..=4).contains(&tries), "{tries} calls in three hours");
    assert_eq!(hub.health(&bot).await.bot.status, BotStatus::Expired);
}

#[tokio::test]
async fn e3_l12_a_new_login_starts_over_and_keeps_the_bot() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    hub.channel(&bot, World::webhook("/hook")).await;
    hub.say(&bot, "before");
    hub.wait_received(1).await;
    hub.sim.expire(&bot.account.wx_id).unwrap();
    wait_status(&hub, &bot, BotStatus::Expired).await;
    let again = hub.bind(Some(&bot.account.owner_user_id)).await;
    assert_eq!(again.id, bot.id, "the bot and its channels are used again");
    assert_ne!(again.account.wx_id, bot.account.wx_id);
    let closed = hub.send(&again, "hello").await.unwrap_err();
    assert_eq!(closed.code(), ErrorCode::WindowClosed, "old permissions are worth nothing");
    hub.until("the new login polls", async || {
        hub.sim
            .accounts()
            .iter()
            .any(|known| known.account == again.account && known.pollers == 1)
            .then_some(())
    })
    .await;
    hub.say(&again, "after");
    let received = hub.wait_received(2).await;
    assert_eq!(received[1].json()["content"], "after");
    hub.send(&again, "hello").await.unwrap();
    assert_eq!(hub.wait_sent(&again, 1).await[0].text, "hello");
    let old = hub.sim.accounts().into_iter().find(|known| known.account == bot.account);
    assert!(old.is_none_or(|old| old.pollers == 0), "the old poller has ended");
}

#[tokio::test]
async fn e4_polling_begins_although_the_announcement_fails() {
    let hub = World::start().await;
    let failing =
        Action::Status { status: 500, body: String::new(), headers: BTreeMap::new(), effect: false };
    hub.sim.add_fault(Fault::on(Endpoint::NotifyStart, failing).times(2)).unwrap();
    let bot = hub.bot().await;
    hub.say(&bot, "hello");
    wait_contents(&hub, &bot, 1).await;
    hub.until("it is announced in the end", async || hub.sim.accounts()[0].started.then_some(())).await;
}

#[tokio::test]
async fn e5_nothing_breaks_the_networks_rules() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    for n in 0..20 {
        hub.say(&bot, &n.to_string());
        wait_contents(&hub, &bot, n + 1).await;
        hub.jump(SECOND * 40).await;
    }
    for n in 0..5 {
        hub.send(&bot, &n.to_string()).await.unwrap();
    }
    hub.wait_sent(&bot, 5).await;
    let broken: Vec<ViolationKind> = hub.sim.violations(None).into_iter().map(|one| one.kind).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test]
async fn l4_l5_a_code_is_replaced_twice_and_not_a_third_time() {
    let hub = World::start().await;
    let bots = hub.hub.bots();
    let bind = bots.start_bind(&hub.owner, NewBind::default()).await.unwrap();
    let mut codes = vec![bind.qr_text.expose().to_owned()];
    let step = async || bots.confirm_bind(&hub.owner, bind.bind_id, None, Duration::ZERO).await.unwrap();
    for _ in 0..2 {
        hub.sim.qr(codes.last().unwrap(), QrAction::Expire).unwrap();
        let new = hub
            .until("another code", async || {
                let step = step().await;
                assert_eq!(step.status, BindStatus::Waiting);
                step.qr_text.map(|text| text.expose().to_owned()).filter(|text| !codes.contains(text))
            })
            .await;
        codes.push(new);
    }
    hub.sim.qr(codes.last().unwrap(), QrAction::Expire).unwrap();
    hub.until("the end", async || (step().await.status == BindStatus::Expired).then_some(())).await;
    assert!(bots.list(&hub.owner, &PageRequest::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn l4_the_third_code_can_be_confirmed() {
    let hub = World::start().await;
    let bots = hub.hub.bots();
    let bind = bots.start_bind(&hub.owner, NewBind::default()).await.unwrap();
    let mut code = bind.qr_text.expose().to_owned();
    let step = async || bots.confirm_bind(&hub.owner, bind.bind_id, None, Duration::ZERO).await.unwrap();
    for _ in 0..2 {
        hub.sim.qr(&code, QrAction::Expire).unwrap();
        let old = code.clone();
        code = hub
            .until("another code", async || {
                step().await.qr_text.map(|text| text.expose().to_owned()).filter(|text| *text != old)
            })
            .await;
    }
    hub.sim.confirm(&code, None).unwrap();
    hub.until("it is bound", async || (step().await.status == BindStatus::Confirmed).then_some(())).await;
}

#[tokio::test]
async fn l7_a_blocked_code_is_replaced() {
    let hub = World::start().await;
    let bots = hub.hub.bots();
    let bind = bots.start_bind(&hub.owner, NewBind::default()).await.unwrap();
    let code = bind.qr_text.expose().to_owned();
    hub.sim.qr(&code, QrAction::Block).unwrap();
    let new = hub
        .until("another code", async || {
            let step = bots.confirm_bind(&hub.owner, bind.bind_id, None, Duration::ZERO).await.unwrap();
            step.qr_text.map(|text| text.expose().to_owned()).filter(|text| *text != code)
        })
        .await;
    hub.sim.confirm(&new, None).unwrap();
    hub.until("it is bound", async || {
        let step = bots.confirm_bind(&hub.owner, bind.bind_id, None, Duration::ZERO).await.unwrap();
        (step.status == BindStatus::Confirmed).then_some(())
    })
    .await;
}

#[tokio::test]
async fn l9_an_account_that_is_bound_already_is_used_again() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let bots = hub.hub.bots();
    let bind = bots.start_bind(&hub.owner, NewBind::default()).await.unwrap();
    hub.sim.qr(bind.qr_text.expose(), QrAction::AlreadyBound).unwrap();
    let step = hub
        .until("the answer", async || {
            let step = bots.confirm_bind(&hub.owner, bind.bind_id, None, Duration::ZERO).await.unwrap();
            (step.status == BindStatus::AlreadyBound).then_some(step)
        })
        .await;
    assert_eq!(step.bot.unwrap().id, bot.id);
    hub.say(&bot, "still here");
    assert_eq!(wait_contents(&hub, &bot, 1).await, ["still here"]);
}

#[tokio::test]
async fn an_idle_bot_is_online_as_soon_as_the_network_took_its_login() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let bound = hub.now();
    let online = wait_status(&hub, &bot, BotStatus::Online).await;
    // The simulator holds the first poll for 35 s.
    assert!(online.since(bound) < SECOND * 5, "{:?}", online.since(bound));
    hub.hub.bots().reconnect(&hub.owner, bot.id).await.unwrap();
    let asked = hub.now();
    let online = wait_status(&hub, &bot, BotStatus::Online).await;
    assert!(online.since(asked) < SECOND * 5, "{:?}", online.since(asked));
}

#[tokio::test]
async fn a_failure_is_reported_until_the_network_responds_again() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let broken = Action::Status { status: 502, body: String::new(), headers: BTreeMap::new(), effect: false };
    hub.sim.add_fault(Fault::on(Endpoint::GetUpdates, broken)).unwrap();
    // An answer just before: the next one is noted all the same.
    hub.say(&bot, "one");
    wait_contents(&hub, &bot, 1).await;
    let told = async || hub.health(&bot).await.last_error;
    hub.until("the failure", async || told().await).await;
    hub.say(&bot, "two");
    wait_contents(&hub, &bot, 2).await;
    assert_eq!(told().await, None);
}

#[tokio::test]
async fn a_node_that_slept_longer_than_its_lease_goes_on_as_it_was() {
    let hub = World::builder().config(|config| config.lease = SECOND * 30).start().await;
    let bot = hub.bot().await;
    hub.channel(&bot, World::webhook("/hook")).await;
    let fence = async || {
        let mut read = hub.hub.context().store.read().await.unwrap();
        let owner = read.bots().find(None, bot.id).await.unwrap().unwrap().lease_owner.unwrap();
        read.leases().held(owner.parse().unwrap()).await.unwrap()[0].fence
    };
    let before = fence().await;
    hub.jump(SECOND * 100).await;
    hub.say(&bot, "good morning");
    hub.wait_received(1).await;
    assert_eq!(fence().await, before, "no one took the lease meanwhile");
    assert_eq!(hub.health(&bot).await.bot.status, BotStatus::Online);
}
