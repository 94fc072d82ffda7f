//! Replies of which the commit that stores them begins to send the first text.

use std::time::Duration;

use hub_core::{
    bots::{Direction, Message, MessageFilter, MessageStatus},
    channels::sinks::WebhookUpdate,
    id::ChannelId,
    network::sim::{Action, Endpoint, Fault},
    page::PageRequest,
    traces::{CheckName, Explanation, StepName, TraceStatus},
};
use serde_json::json;

use crate::support::{
    receiver::Reply,
    world::{TestBot, World},
};

const SECOND: Duration = Duration::from_secs(1);

/// A running hub whose webhook answers with this text of so many parts, and a bot whose person got it once.
async fn scene(reply: &str, parts: usize) -> (World, TestBot, ChannelId) {
    scene_of(World::start().await, reply, parts).await
}

async fn scene_of(hub: World, reply: &str, parts: usize) -> (World, TestBot, ChannelId) {
    let bot = hub.bot().await;
    let mut webhook = World::webhook("/hook");
    webhook.auto_reply = true;
    let channel = hub.channel(&bot, webhook).await;
    hub.receiver.always("/hook", Reply::json(&json!({ "reply": reply })));
    answered(&hub, &bot, channel, "first", parts).await;
    (hub, bot, channel)
}

/// The person writes, and gets so many messages, the last of them settled.
async fn answered(hub: &World, bot: &TestBot, channel: ChannelId, text: &str, sent: usize) {
    // The gap after the last one has passed.
    hub.jump(SECOND).await;
    hub.say(bot, text);
    hub.until("the reply is settled", async || {
        hub.jump(SECOND).await;
        let traces = hub.traces(bot).await;
        let last = traces.iter().find(|trace| trace.channel_id == Some(channel))?;
        let settled = last.steps.iter().filter(|step| {
            step.name == StepName::Reply && step.detail.network_id.is_some() && step.status == TraceStatus::Ok
        });
        (settled.count() > 0 && hub.sent(bot).len() >= sent).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_reply_is_sent_without_a_commit_of_its_own() {
    let (mut hub, bot, channel) = scene("pong", 1).await;
    // After a start it is read what was sent to the person before.
    hub.restart().await;
    answered(&hub, &bot, channel, "after the restart", 2).await;
    hub.sql(
        "CREATE TRIGGER no_begin BEFORE UPDATE ON outbox WHEN NEW.state = 'sending'
         BEGIN SELECT RAISE(ABORT, 'a send was begun by itself'); END",
    )
    .await;
    let stranger = "o9cq80aStranger@im.wechat";
    hub.say_as(&bot, stranger, "a first message");
    hub.wait_sent(&bot, 3).await;
    for (place, text) in ["second", "third"].into_iter().enumerate() {
        answered(&hub, &bot, channel, text, place + 4).await;
    }
    assert_eq!(hub.sent(&bot).len(), 5);
}

#[tokio::test]
async fn a_reply_in_parts_arrives_in_order() {
    let text = ["a", "b", "c"].map(|letter| letter.repeat(1_900)).join("\n");
    let (hub, bot, channel) = scene(&text, 3).await;
    answered(&hub, &bot, channel, "again", 6).await;
    let texts: Vec<String> = hub.sent(&bot).into_iter().map(|one| one.text).collect();
    assert_eq!(texts[..3], texts[3..]);
    assert_eq!(texts.len(), 6);
}

#[tokio::test]
async fn a_reply_whose_answer_was_cut_is_repeated_under_its_id() {
    let (hub, bot, channel) = scene("pong", 1).await;
    hub.sim.add_fault(Fault::on(Endpoint::SendMessage, Action::Cut { effect: true })).unwrap();
    answered(&hub, &bot, channel, "second", 2).await;
    let repeats: Vec<_> = hub.sent(&bot).into_iter().map(|one| one.repeats).collect();
    assert_eq!(repeats, [0, 1]);
}

#[tokio::test]
async fn replies_keep_to_the_limit_within_five_minutes() {
    let hub = World::builder().config(|config| config.sends_per_five_minutes = 12).start().await;
    let (hub, bot, channel) = scene_of(hub, "pong", 1).await;
    for sent in 2..=12 {
        answered(&hub, &bot, channel, &format!("message {sent}"), sent).await;
    }
    hub.say(&bot, "one too many");
    hub.until("the last reply waits", async || {
        let traces = hub.traces(&bot).await;
        traces[0].steps.iter().any(|step| step.detail.next_attempt_at.is_some()).then_some(())
    })
    .await;
    assert_eq!(hub.sent(&bot).len(), 12);
    hub.jump(SECOND * 300).await;
    assert_eq!(hub.wait_sent(&bot, 13).await.len(), 13);
}

/// The last message of the bot, with the reason why it waits.
async fn waiting(hub: &World, bot: &TestBot, part: &str) -> Message {
    hub.until("the reply waits for its person", async || {
        let filter = MessageFilter { direction: Some(Direction::Outbound), ..MessageFilter::default() };
        let page = PageRequest::default();
        let found = hub.hub.bots().messages(&hub.owner, bot.id, &filter, &page).await.unwrap();
        found.items.into_iter().find(|one| one.status_reason.as_ref().is_some_and(|why| why.contains(part)))
    })
    .await
}

/// The explanation of the message that the last trace is about.
async fn explained(hub: &World, bot: &TestBot) -> Explanation {
    let trace = hub.traces(bot).await.remove(0);
    hub.hub.traces().explain(&hub.owner, bot.id, trace.message_id, None).await.unwrap()
}

#[tokio::test]
async fn a_reply_beyond_the_window_says_that_its_person_has_to_write() {
    let hub = World::start().await;
    let bot = hub.bot().await;
    let webhook = WebhookUpdate { auto_reply: true, ..World::webhook("/hook") };
    hub.channel(&bot, webhook).await;
    let text =
        ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(|letter| letter.repeat(1_900)).join("\n");
    hub.receiver.then("/hook", [Reply::json(&json!({ "reply": text }))]);
    hub.say(&bot, "question");
    let reply = waiting(&hub, &bot, "every send since this person's last message is used up").await;
    assert_eq!((reply.status, hub.sent(&bot).len()), (MessageStatus::Queued, 10));
    let explanation = explained(&hub, &bot).await;
    let check = explanation.checks.iter().find(|check| check.name == CheckName::Reply).unwrap();
    assert!(!check.ok && check.finding.to_string().contains("is used up"), "{check:?}");
    assert!(explanation.sentence().contains("A reply waits: every send since"), "{explanation:?}");
    hub.jump(SECOND * 300).await;
    assert_eq!(hub.sent(&bot).len(), 10);
    hub.say(&bot, "thanks");
    assert_eq!(hub.wait_sent(&bot, 11).await.len(), 11);
    let reply = hub.until("the reply is sent", async || {
        let message = hub.hub.bots().message(&hub.owner, bot.id, reply.id).await.unwrap();
        (message.status == MessageStatus::Sent).then_some(message)
    });
    assert_eq!(reply.await.status_reason, None);
}
