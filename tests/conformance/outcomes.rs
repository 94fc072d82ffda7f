//! Outcomes of sends, and their consequences for later sends and for the account.

use std::time::Duration;

use hub_core::{
    bots::{BotStatus, NewSend},
    network::sim::{Action, Endpoint, Fault},
};

use super::stage::{SECOND, World, client_ids, refusal};

fn cut() -> Fault {
    Fault::on(Endpoint::SendMessage, Action::Cut { effect: true })
}

#[tokio::test]
async fn s5_a_throttled_person_waits_longer_each_time_and_alone() {
    let world = World::greeted().await;
    let other = "o9cq80Other@im.wechat";
    world.stage.sim.say(&world.bot.wx_id, Some(other), "me too").unwrap();
    world.heard("me too").await;
    let slow = refusal(Endpoint::SendMessage, -2, "rate limited").for_user(&world.bot.person);
    world.fault(slow.always());
    let first = world.send("too fast").await;
    let second = world.send("behind it").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    let new = NewSend { to_user_id: Some(other.into()), content: "hi".into(), ..NewSend::default() };
    world.hub.hub().bots().send(&world.ada, world.bot.id, new, None).await.unwrap();
    world.sent(1).await;
    // One other request went out: the sends of the throttled person are one less.
    for (try_, seconds) in [(2, 28), (3, 58), (4, 118), (5, 238)] {
        world.nothing_for(Duration::from_secs(seconds), || world.count("sendmessage") > try_).await;
        world.asked("sendmessage", try_ + 1, SECOND).await;
    }
    // Then the window counts as closed, and both wait for the person.
    world.nothing_for(Duration::from_secs(900), || world.count("sendmessage") > 6).await;
    for waiting in [&first, &second] {
        assert_eq!(world.status_of(waiting.message_id).await, "queued");
    }
    world.stage.sim.clear_faults(None);
    world.hear("go on").await;
    world.becomes(&first, "sent").await;
    world.becomes(&second, "sent").await;
    let ids = client_ids(world.tap());
    let tries: Vec<_> = ids.iter().filter(|id| **id == ids[0]).collect();
    assert_eq!(tries.len(), 6);
}

#[tokio::test]
async fn s6_a_refused_message_fails_and_the_next_goes_on() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -3, "invalid arguments"));
    let (bad, good) = (world.send("bad").await, world.send("good").await);
    world.becomes(&good, "sent").await;
    assert_eq!(world.status_of(bad.message_id).await, "failed");
    assert_eq!(world.count("sendmessage"), 2);
}

#[tokio::test]
async fn s7_an_expired_permission_is_not_an_expired_login() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -14, "session timeout"));
    let polls = world.count("getupdates");
    let sent = world.send("hi").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    world.until("a poll makes sure", async || world.count("getupdates") > polls).await;
    world.nothing_for(Duration::from_secs(40), || world.count("sendmessage") > 1).await;
    world.online().await;
    world.hear("still there").await;
    world.becomes(&sent, "sent").await;
    assert_eq!(world.count("get_bot_qrcode"), 1);
}

#[tokio::test]
async fn s7_an_expired_login_is_found_by_the_poll_that_follows() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -14, "session timeout").always());
    world.fault(refusal(Endpoint::GetUpdates, -14, "session timeout").always());
    world.send("hi").await;
    let bots = world.hub.hub().bots();
    world
        .advance_until("a new login is wanted", SECOND, async || {
            bots.get(&world.ada, world.bot.id).await.unwrap().status == BotStatus::Expired
        })
        .await;
    assert_eq!(world.count("sendmessage"), 1);
}

#[tokio::test]
async fn s8_what_never_went_out_is_sent_once_and_counted_once() {
    let mut world = World::greeted().await;
    world.stage.close_port().await;
    let sent = world.send("hi").await;
    world
        .advance_until("two tries", Duration::from_millis(500), async || {
            world.number("SELECT attempts FROM outbox").await >= 3
        })
        .await;
    world.stage.open_port().await;
    world.becomes(&sent, "sent").await;
    assert_eq!(world.shown().len(), 1);
    assert_eq!(client_ids(world.tap()).len(), 1);
    assert_eq!(world.number("SELECT window_sends FROM contacts").await, 1);
}

#[tokio::test]
async fn s9_a_lost_answer_is_asked_for_once_under_the_same_id() {
    let world = World::greeted().await;
    world.fault(cut());
    let sent = world.send("hi").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    world.nothing_for(Duration::from_secs(4), || world.count("sendmessage") > 1).await;
    world.becomes(&sent, "sent").await;
    let shown = world.shown();
    assert_eq!((shown.len(), shown[0].repeats), (1, 1));
}

#[tokio::test]
async fn s10_an_answer_lost_twice_is_unknown_and_not_tried_again() {
    let world = World::greeted().await;
    world.fault(cut().times(2));
    let (lost, next) = (world.send("lost").await, world.send("next").await);
    world.becomes(&lost, "unknown").await;
    world.becomes(&next, "sent").await;
    world.nothing_for(Duration::from_secs(60), || world.count("sendmessage") > 3).await;
    let ids = client_ids(world.tap());
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
}

#[tokio::test]
async fn s11_sends_without_ids_make_an_account_suspect_until_ids_come_again() {
    let world = World::greeted().await;
    let sent = world.send("seen").await;
    world.becomes(&sent, "sent").await;
    let empty = Fault::on(Endpoint::SendMessage, Action::Empty { effect: true });
    let no_id = Action::Patch {
        set: serde_json::Map::new(),
        remove: vec!["message_id".into()],
        remove_headers: vec![],
    };
    world.fault(empty);
    world.fault(Fault::new(Action::Shadow { message_id: false }).skipping(2));
    world.fault(Fault::on(Endpoint::SendMessage, no_id));
    for n in 1..=3 {
        let sent = world.send(&format!("unseen {n}")).await;
        world.becomes(&sent, "unconfirmed").await;
    }
    let health = world.hub.bot_status(&world.ada, world.bot.id, BotStatus::Degraded).await;
    assert!(health.bot.status_reason.unwrap().contains("accepts messages without ids"));
    // Polls go on as ever, and do not make it better.
    let polls = world.count("getupdates");
    world.asked("getupdates", polls + 2, SECOND).await;
    world.hub.bot_status(&world.ada, world.bot.id, BotStatus::Degraded).await;
    let sent = world.send("seen again").await;
    world.becomes(&sent, "sent").await;
    world.hear("yes").await;
    world.online().await;
}
