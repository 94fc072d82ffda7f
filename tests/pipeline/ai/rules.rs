//! Rules of AI replies: the endpoint, its limits, the messages that get a reply, and the text that people read.

use hub_core::{
    admin::ai_config::AiConfigUpdate,
    channels::{
        NewChannel,
        sinks::{AiUpdate, Change},
    },
    traces::TraceStatus,
};
use serde_json::json;

use super::{
    GLOBAL, GLOBAL_KEY, MINUTE, MODEL, ai_steps, channel, ended, messages, own_model, said, scene, set_global,
};
use crate::support::{receiver::Reply, world::World};

#[tokio::test]
async fn only_channels_that_use_the_global_endpoint_get_its_key() {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("own"));
    hub.receiver.always(GLOBAL, said("global"));
    let bot = hub.bot().await;
    let global = channel(&hub, &bot, AiUpdate::default()).await;
    hub.say(&bot, "too early");
    let waits = hub.wait_trace(&bot, global, |trace| trace.summary.contains("no AI endpoint")).await;
    assert_eq!((waits.status, waits.attempts), (TraceStatus::Pending, 0), "{}", waits.summary);
    let shown = hub.hub.channels().get(&hub.owner, bot.id, global).await.unwrap();
    let warning = hub.hub.channels().ai_warning(&shown).await.unwrap();
    assert!(warning == Some(hub_core::traces::Cause::NoEndpoint));

    let config = AiConfigUpdate {
        system_prompt: "Be polite.".to_owned(),
        models: vec!["bigger".to_owned()],
        max_tokens: Some(50),
        ..AiConfigUpdate::default()
    };
    set_global(&hub, config.clone()).await;
    assert_eq!(hub.hub.channels().ai_warning(&shown).await.unwrap(), None);
    // What waited is answered at once, without waiting for the next look.
    let asked = async |count| (hub.receiver.received_at(GLOBAL).len() == count).then_some(());
    hub.until("the waiting message is answered", async || asked(1).await).await;
    let keyless = AiUpdate { api_key: Change::Clear, ..own_model() };
    let own = channel(&hub, &bot, keyless).await;
    hub.say(&bot, "hello");
    ended(&hub, &bot, own, TraceStatus::Ok).await;
    hub.until("the other endpoint is asked", async || asked(2).await).await;
    let (mine, theirs) = (hub.receiver.received_at(MODEL), hub.receiver.received_at(GLOBAL));
    assert_eq!((mine.len(), theirs.len()), (1, 2));
    assert_eq!(mine[0].header("authorization"), "", "no key of ours, and none of anyone else's");
    assert_eq!(theirs[0].header("authorization"), format!("Bearer {GLOBAL_KEY}"));
    let all = [&mine[0], &theirs[0]].map(|request| String::from_utf8_lossy(&request.body).into_owned());
    assert!(!all.concat().contains(GLOBAL_KEY));
    assert_eq!((&theirs[0].json()["model"], &theirs[0].json()["max_tokens"]), (&json!("big"), &json!(50)));
    assert_eq!(messages(&theirs[0])[0], ("system".to_owned(), "Be polite.".to_owned()));

    // What the administrator's provider says is the administrator's.
    let refusal = json!({ "error": { "message": "organisation acme is over its budget" } });
    hub.receiver.always(GLOBAL, Reply::json(&refusal).with_status(403));
    hub.say(&bot, "again");
    let refused = hub
        .wait_trace(&bot, global, |trace| trace.status == TraceStatus::Error && trace.summary.contains("403"))
        .await;
    assert!(!serde_json::to_string(&refused.steps).unwrap().contains("acme"));

    let named =
        |model: &str| AiUpdate { model: model.to_owned(), max_tokens: Some(9), ..AiUpdate::default() };
    hub.receiver.always(GLOBAL, said("global"));
    hub.hub.channels().set_ai(&hub.owner, bot.id, global, named("bigger")).await.unwrap();
    hub.say(&bot, "with another model");
    hub.until("it is asked", async || (hub.receiver.received_at(GLOBAL).len() == 4).then_some(())).await;
    let asked = hub.receiver.received_at(GLOBAL)[3].json();
    assert_eq!((&asked["model"], &asked["max_tokens"]), (&json!("bigger"), &json!(9)));
    hub.hub.channels().set_ai(&hub.owner, bot.id, global, named("biggest")).await.unwrap();
    hub.say(&bot, "with one that is not offered");
    hub.wait_trace(&bot, global, |trace| trace.summary.contains("does not offer the model biggest")).await;
    assert_eq!(hub.receiver.received_at(GLOBAL).len(), 4);
}

#[tokio::test]
async fn a_channel_uses_no_more_of_the_global_endpoint_than_it_may() {
    let hub = World::start().await;
    hub.receiver.always(GLOBAL, said("Hello!"));
    let bot = hub.bot().await;
    set_global(&hub, AiConfigUpdate { daily_tokens: Some(50), ..AiConfigUpdate::default() }).await;
    let channel = channel(&hub, &bot, AiUpdate::default()).await;
    for n in 1..=2 {
        hub.say(&bot, "hello");
        hub.wait_sent(&bot, n).await;
    }
    hub.say(&bot, "once more");
    let over = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert!(over.summary.contains("tokens of this day"), "{}", over.summary);
    assert_eq!(hub.receiver.received_at(GLOBAL).len(), 2);
    hub.jump(MINUTE * 60 * 24).await;
    hub.say(&bot, "the day after");
    hub.wait_sent(&bot, 3).await;
}

#[tokio::test]
async fn two_bots_that_talk_to_each_other_stop() {
    let (hub, bot, channel) = scene().await;
    // Another bot answers whatever it reads; the clock does not move meanwhile.
    for n in 0..25 {
        hub.say(&bot, &format!("ping {n}"));
    }
    let mut traces = Vec::new();
    for _ in 0..500 {
        hub.settle().await;
        traces = hub.traces(&bot).await;
        if traces.iter().filter(|trace| trace.status == TraceStatus::Skipped).count() == 5 {
            break;
        }
    }
    let stopped: Vec<_> = traces.iter().filter(|trace| trace.status == TraceStatus::Skipped).collect();
    assert_eq!(stopped.len(), 5, "twenty are answered");
    assert!(stopped.iter().all(|trace| trace.summary.contains("loop")), "{}", stopped[0].summary);
    assert_eq!(ai_steps(stopped[0]), [("ai", TraceStatus::Skipped)]);
    assert_eq!((stopped[0].channel_id, hub.receiver.received_at(MODEL).len()), (Some(channel), 20));
    // Someone else is answered meanwhile, and the same person a minute later.
    hub.say_as(&bot, "o9cq80_other@im.wechat", "hello");
    hub.until("someone else is answered", async || {
        (hub.receiver.received_at(MODEL).len() == 21).then_some(())
    })
    .await;
    hub.jump(MINUTE).await;
    hub.say(&bot, "are you still there?");
    hub.until("it goes on", async || (hub.receiver.received_at(MODEL).len() == 22).then_some(())).await;
}

#[tokio::test]
async fn commands_and_mentions_are_not_for_the_model() {
    let (hub, bot, channel) = scene().await;
    for text in ["/order 42", "@weather today", "  /x"] {
        hub.say(&bot, text);
    }
    hub.say(&bot, "a question / a mention of me@example.com");
    hub.wait_sent(&bot, 1).await;
    ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let skipped: Vec<_> =
        hub.traces(&bot).await.into_iter().filter(|trace| trace.status == TraceStatus::Skipped).collect();
    assert_eq!(skipped.len(), 3);
    assert!(skipped.iter().all(|trace| trace.summary.contains("commands and mentions")));
    assert_eq!(hub.receiver.received_at(MODEL).len(), 1);
    // With a handle the mention is how the channel is addressed, and not part of the text.
    let addressed =
        NewChannel { handle: Some("shop".to_owned()), ai: Some(own_model()), ..NewChannel::named("shop") };
    hub.channel_with(&bot, addressed).await;
    hub.say(&bot, "@shop sandals");
    let asked = hub.wait_received(2).await;
    assert_eq!(messages(&asked[1]).last().unwrap().1, "sandals");
}

#[tokio::test]
async fn people_read_what_the_channel_wants_them_to() {
    let (hub, bot, channel) = scene().await;
    hub.receiver.always(MODEL, said("<think>She wants shoes.</think>We have **red** ones."));
    let read = async |hide_thinking, strip_markdown, count: usize| {
        let ai = AiUpdate { hide_thinking, strip_markdown, ..own_model() };
        hub.hub.channels().set_ai(&hub.owner, bot.id, channel, ai).await.unwrap();
        hub.say(&bot, "shoes?");
        hub.wait_sent(&bot, count).await[count - 1].text.clone()
    };
    assert_eq!(read(true, false, 1).await, "We have **red** ones.");
    assert_eq!(read(true, true, 2).await, "We have red ones.");
    assert!(read(false, false, 3).await.contains("She wants shoes."));
    hub.receiver.always(MODEL, said("<think>I had rather not."));
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, own_model()).await.unwrap();
    hub.say(&bot, "well?");
    hub.wait_trace(&bot, channel, |trace| trace.summary.contains("empty response")).await;
    assert_eq!(hub.sent(&bot).len(), 3);
}
