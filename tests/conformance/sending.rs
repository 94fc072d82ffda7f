//! Sending cases: the window, order, restarts.

use std::time::Duration;

use hub_core::{
    bots::NewSend,
    error::ErrorCode,
    network::sim::{Action, Endpoint, Fault},
};

use super::stage::{World, client_ids, refusal};

async fn refused(world: &World, text: &str) -> ErrorCode {
    world.hub.send(&world.ada, &world.bot, text).await.unwrap_err().code()
}

#[tokio::test]
async fn s2_nothing_is_sent_to_a_person_who_never_wrote() {
    let world = World::new().await;
    assert_eq!(refused(&world, "hi").await, ErrorCode::WindowClosed);
    assert_eq!(world.number("SELECT COUNT(*) FROM outbox").await, 0);
    assert_eq!(world.count("sendmessage"), 0);
}

#[tokio::test]
async fn s3_the_eleventh_waits_for_the_person() {
    let world = World::greeted().await;
    for n in 0..10 {
        world.send(&format!("{n}")).await;
    }
    let first = world.sent(10).await.remove(0).context_token;
    assert_eq!(refused(&world, "eleventh").await, ErrorCode::WindowClosed);
    assert_eq!(world.count("sendmessage"), 10);
    world.hear("go on").await;
    world.send("eleventh").await;
    let eleventh = world.sent(11).await.pop().unwrap();
    assert_eq!(eleventh.text, "eleventh");
    assert_ne!(eleventh.context_token, first, "the newest permission");
}

#[tokio::test]
async fn s4_a_closed_window_holds_everything_until_the_person_writes() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -2, "prepare failed").skipping(2).times(5));
    for n in 1..=4 {
        world.send(&format!("{n}")).await;
    }
    world.asked("sendmessage", 3, Duration::from_millis(400)).await;
    // Refused once, and four more times within eight minutes.
    world.asked("sendmessage", 7, Duration::from_secs(30)).await;
    world.nothing_for(Duration::from_secs(900), || world.count("sendmessage") > 7).await;
    assert_eq!(refused(&world, "5").await, ErrorCode::WindowClosed);
    let old = world.shown()[0].context_token.clone();
    world.hear("go on").await;
    let shown = world.sent(4).await;
    let texts: Vec<_> = shown.iter().map(|sent| sent.text.as_str()).collect();
    assert_eq!(texts, ["1", "2", "3", "4"]);
    assert!(shown[2..].iter().all(|sent| sent.context_token != old));
    let ids = client_ids(world.tap());
    assert_eq!(ids.len(), 9);
    assert!(ids[2..8].iter().all(|id| *id == ids[2]), "the refused one is sent again under its id");
}

#[tokio::test]
async fn s4_a_refusal_does_not_close_the_window_that_opened_meanwhile() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::SendMessage, -2, "prepare failed").after(Duration::from_secs(5)));
    let sent = world.send("just in time").await;
    world.asked("sendmessage", 1, Duration::from_millis(100)).await;
    world.hub.clock().advance(Duration::from_millis(1));
    world.hear("one more thing").await;
    world.becomes(&sent, "sent").await;
    assert_eq!(world.shown().len(), 1);
}

#[tokio::test]
async fn s13_a_long_text_is_sent_in_parts_in_order() {
    let world = World::greeted().await;
    let text: String = "一段话。\n".chars().cycle().take(4_500).collect();
    let sent = world.send(&text).await;
    let shown = world.sent(3).await;
    world.becomes(&sent, "sent").await;
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let whole: String = shown.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(squeeze(&whole), squeeze(&text));
    let mut ids = client_ids(world.tap());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(world.number("SELECT window_sends FROM contacts").await, 3);
}

#[tokio::test]
async fn s14_a_text_beyond_the_window_is_refused_whole() {
    let world = World::greeted().await;
    for n in 0..6 {
        world.send(&format!("{n}")).await;
    }
    world.sent(6).await;
    assert_eq!(refused(&world, &"x ".repeat(30_000)).await, ErrorCode::WindowClosed);
    assert_eq!(world.number("SELECT COUNT(*) FROM outbox WHERE state = 'queued'").await, 0);
    world.nothing_for(Duration::from_secs(10), || world.count("sendmessage") > 6).await;
    for n in 6..10 {
        world.send(&format!("{n}")).await;
    }
    world.sent(10).await;
    assert_eq!(refused(&world, "eleventh").await, ErrorCode::WindowClosed);
}

#[tokio::test]
async fn s15_one_send_at_a_time_in_order_with_a_gap() {
    let world = World::greeted().await;
    // On a clock that does not move only the first can go; the second waits out the gap, and no less.
    world.send("a").await;
    world.until("the first", async || world.shown().len() == 1).await;
    world.send("b").await;
    let gap = world.pause(299..=300).await;
    assert_eq!(world.count("sendmessage"), 1);
    world.hub.clock().advance(gap);
    world.until("the second", async || world.shown().len() == 2).await;
    // Two callers at once, a slow network.
    world.fault(Fault::on(Endpoint::SendMessage, Action::Pass).after(Duration::from_secs(2)).always());
    let caller = async |name: &str| {
        for n in 0..3 {
            world.send(&format!("{name}{n}")).await;
        }
    };
    tokio::join!(caller("x"), caller("y"));
    let accepted = world.texts("SELECT text FROM outbox ORDER BY id").await;
    world
        .advance_until("all eight", Duration::from_millis(500), async || {
            let asked = world.count("sendmessage");
            let shown = world.shown().len();
            assert!(asked <= shown + 1, "{asked} asked, {shown} answered");
            shown == 8
        })
        .await;
    let shown: Vec<_> = world.shown().into_iter().map(|sent| sent.text).collect();
    assert_eq!(shown, accepted);
}

#[tokio::test]
async fn s16_a_window_is_over_before_the_network_says_so() {
    let world = World::greeted().await;
    world.hub.clock().advance(Duration::from_secs((23 * 60 + 31) * 60));
    assert_eq!(refused(&world, "late").await, ErrorCode::WindowClosed);
    assert_eq!(world.count("sendmessage"), 0);
}

#[tokio::test]
async fn s17_a_persons_id_is_the_same_byte_for_byte_also_after_a_restart() {
    let mut world = World::greeted().await;
    let stranger = "o9cq80aBcD_e-F@im.wechat";
    world.stage.sim.say(&world.bot.wx_id, Some(stranger), "hi").unwrap();
    world.heard("hi").await;
    let to = |person: &str, text: &str| NewSend {
        to_user_id: Some(person.to_owned()),
        content: text.to_owned(),
        ..NewSend::default()
    };
    let send =
        async |world: &World, new| world.hub.hub().bots().send(&world.ada, world.bot.id, new, None).await;
    send(&world, to(stranger, "before")).await.unwrap();
    world.sent(1).await;
    world.hub.restart().await;
    send(&world, to(stranger, "after")).await.unwrap();
    world.sent(2).await;
    let receivers: Vec<_> =
        world.tap().bodies("sendmessage").iter().map(|body| body["msg"]["to_user_id"].clone()).collect();
    assert_eq!(receivers, [stranger, stranger]);
    let lower = send(&world, to(&stranger.to_lowercase(), "x")).await.unwrap_err();
    assert_eq!(lower.code(), ErrorCode::WindowClosed, "someone else, who never wrote");
}

#[tokio::test]
async fn a_closed_window_of_one_person_delays_no_other() {
    let world = World::new().await;
    let people: Vec<String> = (0..40).map(|n| format!("o9cq80Person{n:02}@im.wechat")).collect();
    for person in &people {
        world.stage.sim.say(&world.bot.wx_id, Some(person), person).unwrap();
        world.heard(person).await;
    }
    // All but the last are refused by the network, once each: their items wait for them.
    for person in &people[..39] {
        world.fault(refusal(Endpoint::SendMessage, -2, "prepare failed").for_user(person));
    }
    for person in &people {
        let new =
            NewSend { to_user_id: Some(person.clone()), content: "hi".to_owned(), ..NewSend::default() };
        world.hub.hub().bots().send(&world.ada, world.bot.id, new, None).await.unwrap();
    }
    let shown = world.sent(1).await;
    assert_eq!(shown[0].to_user_id, people[39]);
    world.asked("sendmessage", 40, Duration::from_millis(400)).await;
}
