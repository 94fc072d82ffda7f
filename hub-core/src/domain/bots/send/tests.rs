use std::time::Duration;

use super::*;
use crate::{
    bots::testing::*,
    error::{Advice, ErrorCode},
};

async fn code(world: &World, actor: &Actor, bot: BotId, new: NewSend) -> ErrorCode {
    world.hub.bots().send(actor, bot, new, None).await.unwrap_err().code()
}

#[tokio::test]
async fn an_accepted_message_is_stored_with_its_parts() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    world.person_writes(bot, "wx-a").await;
    let mut hints = world.hub.context().node.wake.listen();
    let sent = world.hub.bots().send(&ann, bot, say("one|two"), None).await.unwrap();
    assert_eq!(sent.status, "queued");
    assert_eq!(hints.try_recv().unwrap().hint, Hint::Outbox(bot));
    let parts = "SELECT COUNT(DISTINCT client_id) FROM outbox AS o JOIN messages AS m ON m.id = o.message_id
         WHERE o.state = 'queued' AND o.parts = 2 AND o.peer = 'wx-a' AND o.client_id LIKE 'hub-%'
            AND o.text = CASE o.part WHEN 0 THEN 'one' ELSE 'two' END AND o.due_at = o.created_at
            AND m.content = 'one|two' AND m.status = 'queued' AND m.from_user_id = 'wx-a@bot'
            AND m.user_name = 'Name of wx-a' AND m.channel_id IS NULL
            AND (o.part = 1 OR m.dedupe_key = o.client_id)
            AND (o.part = 0 OR o.id > (SELECT id FROM outbox WHERE part = 0))";
    assert_eq!(world.number(parts).await, 2);
    let channel = world.channel_actor(&ann, bot).await;
    world.hub.bots().send(&channel, bot, say("three"), None).await.unwrap();
    let by_channel = "SELECT COUNT(*) FROM messages WHERE channel_id IS NOT NULL";
    assert_eq!(world.number(by_channel).await, 1);
    let other = world.bot(&ann, "wx-b").await;
    assert_eq!(code(&world, &channel, other, say("x")).await, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_reply_names_a_message_of_the_same_bot() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let (bot, other) = (world.bot(&ann, "wx-a").await, world.bot(&ann, "wx-b").await);
    world.person_writes(bot, "wx-a").await;
    world.person_writes(other, "wx-b").await;
    let bots = world.hub.bots();
    let first = bots.send(&ann, bot, say("one"), None).await.unwrap().message_id;
    let foreign = bots.send(&ann, other, say("foreign"), None).await.unwrap().message_id;
    let reply = |id| NewSend { reply_to: Some(id), ..say("two") };
    for unknown in [foreign, MessageId::from_u128(1)] {
        let error = bots.send(&ann, bot, reply(unknown), None).await.unwrap_err();
        assert_eq!(error.details()[0].field.as_ref(), "reply_to");
    }
    let second = bots.send(&ann, bot, reply(first), Some("key")).await.unwrap();
    assert_eq!(bots.send(&ann, bot, reply(first), Some("key")).await.unwrap(), second);
    let other_reply = bots.send(&ann, bot, say("two"), Some("key")).await.unwrap_err();
    assert_eq!(other_reply.code(), ErrorCode::Conflict);
    let stored = bots.message(&ann, bot, second.message_id).await.unwrap();
    let quoted = stored.quoted.unwrap();
    assert_eq!((quoted.message_id, quoted.text.as_deref()), (Some(first), Some("one")));
}

#[tokio::test]
async fn s2_s3_s16_a_closed_window_refuses_and_stores_nothing() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    let bots = world.hub.bots();
    let never = bots.send(&ann, bot, say("hi"), None).await.unwrap_err();
    assert_eq!(never.code(), ErrorCode::WindowClosed);
    assert!(never.message().contains("write first"));
    world.person_writes(bot, "wx-a").await;
    assert_eq!(code(&world, &ann, bot, to("Wx-A", "hi")).await, ErrorCode::WindowClosed);
    let long = bots.send(&ann, bot, say("1|2|3|4"), None).await.unwrap_err();
    assert_eq!(long.code(), ErrorCode::WindowClosed);
    assert!(long.message().contains("text_part_chars"), "{}", long.message());
    bots.send(&ann, bot, say("1|2"), None).await.unwrap();
    let full = bots.send(&ann, bot, say("3|4"), None).await.unwrap_err();
    assert_eq!(full.code(), ErrorCode::WindowClosed);
    assert!(full.message().contains("1 are left"), "{}", full.message());
    bots.send(&ann, bot, say("3"), None).await.unwrap();
    world.sql("UPDATE contacts SET window_closed = 'prepare failed'".to_owned()).await;
    assert_eq!(code(&world, &ann, bot, say("4")).await, ErrorCode::WindowClosed);
    world.sql("DELETE FROM messages".to_owned()).await;
    world.person_writes(bot, "wx-a").await;
    assert!(bots.get(&ann, bot).await.unwrap().can_send);
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(code(&world, &ann, bot, say("late")).await, ErrorCode::WindowClosed);
    let seen = bots.get(&ann, bot).await.unwrap();
    assert!(!seen.can_send && seen.send_disabled_reason.is_some());
    assert_eq!(
        world.number("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM outbox)").await,
        0
    );
}

#[tokio::test]
async fn bad_input_names_every_field() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    world.person_writes(bot, "wx-a").await;
    let bad = NewSend {
        to_user_id: Some("a\nb".into()),
        context_token: Some("x".repeat(5000).into()),
        ..say(&"x".repeat(64 * 1024 + 1))
    };
    let error = world.hub.bots().send(&ann, bot, bad, None).await.unwrap_err();
    let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
    assert_eq!(fields, ["to_user_id", "content", "context_token"]);
    for text in ["", " \n", "a\0b", " | "] {
        assert_eq!(code(&world, &ann, bot, say(text)).await, ErrorCode::InvalidParams, "{text:?}");
    }
    world.set_status(bot, BotStatus::Expired, None).await;
    let expired = world.hub.bots().send(&ann, bot, say("hi"), None).await.unwrap_err();
    assert_eq!(expired.code(), ErrorCode::Conflict);
    // For people and for programs.
    assert_eq!(expired.advice(), [Advice::BindBot]);
    assert_eq!(world.number("SELECT COUNT(*) FROM messages").await, 0);
}

#[tokio::test]
async fn a_repeated_key_sends_once() {
    let world = World::open().await;
    let (ann, bob) = (world.user("ann").await, world.user("bob").await);
    let (bot, bobs) = (world.bot(&ann, "wx-a").await, world.bot(&bob, "wx-b").await);
    world.person_writes(bot, "wx-a").await;
    world.person_writes(bobs, "wx-b").await;
    let bots = world.hub.bots();
    let first = bots.send(&ann, bot, say("1|2|3"), Some("k")).await.unwrap();
    // The window is used up by the first: the repeat must not trip over it.
    assert_eq!(bots.send(&ann, bot, say("1|2|3"), Some("k")).await.unwrap(), first);
    let other = bots.send(&ann, bot, say("4"), Some("k")).await.unwrap_err();
    assert_eq!(other.code(), ErrorCode::Conflict);
    let his = bots.send(&bob, bobs, say("1|2|3"), Some("k")).await.unwrap();
    assert_ne!(his.message_id, first.message_id, "keys belong to their caller");
    assert_eq!(world.number("SELECT COUNT(*) FROM messages").await, 2);
}

#[tokio::test]
async fn sends_at_once_share_what_is_left() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    world.person_writes(bot, "wx-a").await;
    let bots = world.hub.bots();
    let texts = ["a", "b", "c", "d", "e"];
    let sends = texts.map(|text| bots.send(&ann, bot, say(text), None));
    let accepted = futures_util::future::join_all(sends).await.into_iter().flatten().count();
    assert_eq!(accepted, 3);
    assert_eq!(world.number("SELECT COUNT(*) FROM outbox").await, 3);
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let config = crate::config::HubConfig { max_outbox_per_peer: 2, ..Default::default() };
    let world = World::with(config).await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    world.person_writes(bot, "wx-a").await;
    world.hub.bots().send(&ann, bot, say("1|2"), None).await.unwrap();
    let full = world.hub.bots().send(&ann, bot, say("3"), None).await.unwrap_err();
    assert_eq!(full.code(), ErrorCode::RateLimited);
    assert!(full.retry_after().is_some());
}

#[tokio::test]
async fn enqueue_adds_each_key_once_and_nothing_for_a_bot_that_is_gone() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    let ctx = world.hub.context();
    let row = |bot_id: BotId, key: &str| NewOutbound {
        message_id: ctx.ids.next(),
        bot_id,
        peer: "Peer".to_owned(),
        dedupe_key: key.to_owned(),
        content: "quo\"te".to_owned(),
        parts: vec![NewPart {
            id: ctx.ids.next(),
            client_id: key.to_owned(),
            text: "quo\"te".to_owned(),
            file: None,
        }],
        quoted: None,
        channel_id: None,
        trace_id: None,
        private: None,
        expires_at: world.clock.now(),
        now: world.clock.now(),
    };
    let run = async |rows: Vec<NewOutbound>| {
        ctx.store.write(move |tx| Box::pin(async move { tx.outbox().enqueue(&rows).await })).await.unwrap()
    };
    let (one, two) = (row(bot, "dlv:0"), row(bot, "dlv:1"));
    assert_eq!(run(vec![one.clone(), two.clone()]).await, [one.message_id, two.message_id]);
    let three = row(bot, "dlv:2");
    let again = vec![row(bot, "dlv:0"), three.clone(), row(ctx.ids.next(), "dlv:0")];
    assert_eq!(run(again).await, [three.message_id]);
    assert_eq!(run(Vec::new()).await, []);
    assert_eq!(world.number("SELECT COUNT(*) FROM outbox").await, 3);
    let items = r#"SELECT COUNT(*) FROM messages WHERE content = 'quo"te' AND items = ''"#;
    assert_eq!(world.number(items).await, 3);
    let queued = ctx.store.read().await.unwrap().outbox().queued_parts(bot, "Peer").await.unwrap();
    assert_eq!(queued.parts, 3);
}
