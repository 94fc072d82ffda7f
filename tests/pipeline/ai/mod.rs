//! The AI sink, with a model that answers as instructed.

use std::time::Duration;

use hub_core::{
    admin::ai_config::AiConfigUpdate,
    channels::{
        NewChannel,
        sinks::{AiSource, AiUpdate, Change},
    },
    id::ChannelId,
    traces::{StepName, Trace, TraceStatus},
};
use serde_json::{Value, json};

use crate::support::{
    receiver::{Received, Reply},
    world::{TestBot, World},
};

mod apps;
mod images;
mod retries;
mod rules;
mod shapes;
mod tools;

const MODEL: &str = "/v1/chat/completions";
const GLOBAL: &str = "/global/chat/completions";
const GLOBAL_KEY: &str = "sk-of-the-administrator";
const OWN_KEY: &str = "sk-of-the-channel";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A stream that says something in two pieces, with what it cost.
fn said(text: &str) -> Reply {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let events = [
        json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": first } }] }),
        json!({ "choices": [{ "index": 0, "delta": { "content": second }, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25 } }),
    ];
    let events = events.map(|event| format!("data: {event}\n\n")).concat();
    Reply::text("text/event-stream", &format!("{events}data: [DONE]\n\n"))
}

fn own_model() -> AiUpdate {
    AiUpdate {
        source: AiSource::Custom,
        base_url: "http://receiver.test/v1".to_owned(),
        api_key: Change::Set(OWN_KEY.into()),
        model: "small".to_owned(),
        system_prompt: "You sell shoes.".to_owned(),
        ..AiUpdate::default()
    }
}

async fn channel(hub: &World, bot: &TestBot, ai: AiUpdate) -> ChannelId {
    hub.channel_with(bot, NewChannel { ai: Some(ai), ..NewChannel::named("model") }).await
}

/// A running hub with a bot and a channel with a model of its own.
async fn scene() -> (World, TestBot, ChannelId) {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("Hello!"));
    let bot = hub.bot().await;
    let channel = channel(&hub, &bot, own_model()).await;
    (hub, bot, channel)
}

async fn set_global(hub: &World, update: AiConfigUpdate) {
    let update = AiConfigUpdate {
        base_url: "http://receiver.test/global".to_owned(),
        api_key: Change::Set(GLOBAL_KEY.into()),
        model: "big".to_owned(),
        ..update
    };
    hub.hub.ai_config().set(&hub.owner, update).await.unwrap();
}

fn messages(request: &Received) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = request.json()["messages"].as_array().unwrap().clone();
    messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}

/// The calls of the model and, by their names, of its tools.
fn ai_steps(trace: &Trace) -> Vec<(&str, TraceStatus)> {
    let steps = trace.steps.iter().filter(|step| step.name == StepName::Ai);
    steps.map(|step| (step.detail.tool.as_deref().unwrap_or("ai"), step.status)).collect()
}

async fn ended(hub: &World, bot: &TestBot, channel: ChannelId, status: TraceStatus) -> Trace {
    hub.wait_trace(bot, channel, |trace| trace.status == status).await
}

#[tokio::test]
async fn a_model_answers_the_sender_with_what_was_said_before() {
    let (hub, bot, channel) = scene().await;
    hub.say(&bot, "Do you have sandals?");
    let sent = hub.wait_sent(&bot, 1).await;
    assert_eq!((sent[0].text.as_str(), &sent[0].to_user_id), ("Hello!", &bot.account.owner_user_id));
    hub.say_as(&bot, "o9cq80_other@im.wechat", "I am someone else");
    hub.wait_sent(&bot, 2).await;
    hub.say(&bot, "In red?");
    hub.wait_sent(&bot, 3).await;
    let asked = hub.receiver.received_at(MODEL);
    let system = ("system", "You sell shoes.");
    assert_eq!(messages(&asked[0]), pairs(&[system, ("user", "Do you have sandals?")]));
    assert_eq!(messages(&asked[1]), pairs(&[system, ("user", "I am someone else")]));
    let third = [system, ("user", "Do you have sandals?"), ("assistant", "Hello!"), ("user", "In red?")];
    assert_eq!(messages(&asked[2]), pairs(&third));
    let first = asked[0].json();
    assert_eq!(
        (&first["model"], &first["stream"], first.get("tools")),
        (&json!("small"), &json!(true), None)
    );
    assert_eq!(asked[0].header("authorization"), format!("Bearer {OWN_KEY}"));

    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let names: Vec<_> = trace.steps.iter().map(|step| step.name).collect();
    assert_eq!(names[..4], [StepName::Received, StepName::Filter, StepName::Ai, StepName::Reply]);
    assert!(trace.summary.contains("small") && trace.summary.contains("25 tokens"), "{}", trace.summary);
    let detail = &trace.steps[2].detail;
    assert_eq!(json!(detail.usage), json!({ "prompt_tokens": 20, "completion_tokens": 5 }));
    assert_eq!((detail.answer.as_deref(), detail.finish_reason.as_deref()), (Some("Hello!"), Some("stop")));
    let shown = serde_json::to_string(&trace.steps).unwrap();
    assert!(!shown.contains(OWN_KEY) && !shown.contains("You sell shoes"), "{shown}");
    let stats = hub.hub.channels().get(&hub.owner, bot.id, channel).await.unwrap().stats;
    assert_eq!((stats.received, stats.delivered, stats.pending), (3, 3, 0));
    let counters = &hub.hub.context().node.counters;
    assert!(counters.ai_calls.counts().any(|count| count == ("answered", 3)));
    assert!(counters.ai_tokens.counts().eq([("prompt", 60), ("completion", 15)]));
}

#[tokio::test]
async fn webhook_and_model_receive_the_same_message_and_share_a_trace() {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("Hello!").after(SECOND * 5));
    let bot = hub.bot().await;
    let both = NewChannel {
        webhook: Some(World::webhook("/hook")),
        ai: Some(own_model()),
        ..NewChannel::named("both")
    };
    let channel = hub.channel_with(&bot, both).await;
    hub.say(&bot, "hello");
    let pending = hub
        .wait_trace(&bot, channel, |trace| trace.steps.iter().any(|step| step.name == StepName::Response))
        .await;
    assert_eq!(pending.status, TraceStatus::Pending, "the model still thinks");
    hub.until("the person sees that the bot is typing", async || {
        (!hub.sim.typing(Some(&bot.account.wx_id)).is_empty()).then_some(())
    })
    .await;
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let has = |name| trace.steps.iter().any(|step| step.name == name);
    assert!(has(StepName::Request) && has(StepName::Response) && has(StepName::Ai), "{:?}", trace.steps);
    assert_eq!(hub.traces(&bot).await.len(), 1);

    // The worse outcome counts, in either order.
    hub.receiver
        .always(MODEL, Reply::json(&json!({ "error": { "message": "no such key" } })).with_status(401));
    hub.say(&bot, "again");
    let failed = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert!(
        failed.steps.iter().any(|step| step.name == StepName::Response && step.status == TraceStatus::Ok)
    );
    assert!(failed.summary.contains("401"), "{}", failed.summary);
}
