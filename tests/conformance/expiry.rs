//! A login that the network no longer knows.

use std::time::Duration;

use hub_core::{
    bots::BotStatus,
    events::Event,
    network::sim::{Endpoint, Fault},
};

use super::stage::{SECOND, World, refusal};

const MINUTE: Duration = Duration::from_secs(60);

impl World {
    /// Moves the clock until the bot wants a new login.
    async fn expires(&self) {
        let bots = self.hub.hub().bots();
        self.advance_until("a new login is wanted", SECOND, async || {
            bots.get(&self.ada, self.bot.id).await.unwrap().status == BotStatus::Expired
        })
        .await;
    }
}

#[tokio::test]
async fn e1_a_stray_refusal_is_forgotten_within_ten_seconds() {
    let world = World::greeted().await;
    let cursor = world.cursor().await;
    let refused = refusal(Endpoint::GetUpdates, -14, "session timeout");
    world.fault(refused);
    world.hub.say(&world.bot, "ends the poll");
    world.heard("ends the poll").await;
    let begun = world.hub.clock().now();
    world.hub.bot_status(&world.ada, world.bot.id, BotStatus::Degraded).await;
    assert_ne!(world.cursor().await, cursor);
    let cursor = world.cursor().await;
    let pause = world.pause(4_000..=5_000).await;
    world.hub.clock().advance(pause);
    world.hear("and on it goes").await;
    world.online().await;
    assert!(world.hub.clock().now().since(begun) <= 10 * SECOND);
    let last = world.tap().bodies("getupdates");
    assert!(
        last.iter().rev().take(3).any(|body| body["get_updates_buf"] == cursor.as_str()),
        "the cursor is kept"
    );
    assert_eq!(world.count("get_bot_qrcode"), 1);
    assert_eq!(world.count("notifystart"), 2);
}

#[tokio::test]
async fn e2_an_expired_login_is_left_alone_but_for_one_try_an_hour() {
    let world = World::greeted().await;
    // Something waits to be sent, and would be due soon.
    world.fault(refusal(Endpoint::SendMessage, -2, "rate limited"));
    world.send("later").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    let mut events = world.hub.hub().events();
    world.stage.sim.expire(&world.bot.wx_id).unwrap();
    world.expires().await;
    let calls = || world.tap().all().len();
    let had = calls();
    world.nothing_for(5 * MINUTE, || calls() > had).await;
    let refused = world.hub.send(&world.ada, &world.bot, "no").await.unwrap_err();
    assert_eq!(refused.code(), hub_core::error::ErrorCode::Conflict);
    for hour in 1..=2 {
        let begun = world.hub.clock().now();
        world.asked("notifystart", 1 + 1 + hour, MINUTE).await;
        assert!(world.hub.clock().now().since(begun) > 50 * MINUTE);
    }
    let mut told = 0;
    while let Ok(event) = events.try_recv() {
        told += u32::from(matches!(event, Event::Bot { status: BotStatus::Expired, .. }));
    }
    assert_eq!(told, 1);
    assert_eq!(world.count("get_bot_qrcode"), 1, "no code without a person who asks for one");
}

#[tokio::test]
async fn e2_a_login_that_comes_back_goes_on_by_itself() {
    let world = World::greeted().await;
    let fault = refusal(Endpoint::GetUpdates, -14, "session timeout");
    world.fault(Fault { count: Some(2), ..fault });
    world.hub.say(&world.bot, "before");
    world.heard("before").await;
    world.expires().await;
    world.hub.say(&world.bot, "meanwhile");
    world
        .advance_until("it comes back", MINUTE, async || {
            world.receiver.texts().contains(&"meanwhile".to_owned())
        })
        .await;
    world.online().await;
}

#[tokio::test]
async fn e3_a_new_login_resets_the_cursor_and_the_queue_waits_for_the_person() {
    let mut world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -2, "rate limited"));
    let waiting = world.send("kept").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    world.stage.sim.expire(&world.bot.wx_id).unwrap();
    world.expires().await;
    let polls = world.count("getupdates");
    let bot = world.hub.bind_person(&world.ada, Some(&world.bot.person)).await;
    assert_eq!(bot.id, world.bot.id);
    world.until("a poll", async || world.count("getupdates") > polls).await;
    assert_eq!(world.tap().bodies("getupdates")[polls]["get_updates_buf"], "");
    assert_eq!(world.number("SELECT COUNT(*) FROM contacts WHERE context_token IS NOT NULL").await, 0);
    world.nothing_for(2 * MINUTE, || world.count("sendmessage") > 1).await;
    assert_eq!(world.status_of(waiting.message_id).await, "queued");
    world.bot = bot;
    world.hear("here I am").await;
    world.becomes(&waiting, "sent").await;
    assert_eq!(world.shown()[0].text, "kept");
}
