//! The AI sink (`contract.md` §5; reliability I1–I3, E10), with a model that answers as it is told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use hub_core::{
    ErrorCode,
    admin::ai_config::AiConfigUpdate,
    ai::{Tool, ToolCall, ToolScope, Tools},
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

/// A model that asks for a tool.
fn asks_for(tool: &str, arguments: &str) -> Reply {
    let call = json!({ "index": 0, "id": "call_7", "type": "function",
        "function": { "name": tool, "arguments": arguments } });
    let event = json!({ "choices": [{ "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
    Reply::text("text/event-stream", &format!("data: {event}\n\ndata: [DONE]\n\n"))
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

fn ai_steps(trace: &Trace) -> Vec<(&str, TraceStatus)> {
    let steps = trace.steps.iter().filter(|step| step.name == StepName::Ai);
    steps.map(|step| (step.kind.as_str(), step.status)).collect()
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
    hub.say_as(&bot, "o9cq80_other@im.wechat", "I am somebody else");
    hub.wait_sent(&bot, 2).await;
    hub.say(&bot, "In red?");
    hub.wait_sent(&bot, 3).await;
    let asked = hub.receiver.received_at(MODEL);
    let system = ("system", "You sell shoes.");
    assert_eq!(messages(&asked[0]), pairs(&[system, ("user", "Do you have sandals?")]));
    assert_eq!(messages(&asked[1]), pairs(&[system, ("user", "I am somebody else")]));
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
    assert_eq!(detail["usage"], json!({ "prompt_tokens": 20, "completion_tokens": 5 }));
    assert_eq!((&detail["answer"], &detail["finish_reason"]), (&json!("Hello!"), &json!("stop")));
    let shown = serde_json::to_string(&trace.steps).unwrap();
    assert!(!shown.contains(OWN_KEY) && !shown.contains("You sell shoes"), "{shown}");
    let stats = hub.hub.channels().get(&hub.owner, bot.id, channel).await.unwrap().stats;
    assert_eq!((stats.received, stats.delivered, stats.pending), (3, 3, 0));
    let counters = &hub.hub.context().counters;
    assert!(counters.ai_calls.counts().any(|count| count == ("answered", 3)));
    assert!(counters.ai_tokens.counts().eq([("prompt", 60), ("completion", 15)]));
}

#[tokio::test]
async fn webhook_and_model_get_the_same_message_and_one_trace_tells_of_both() {
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

    // The worse end stands, whichever comes first.
    hub.receiver
        .always(MODEL, Reply::json(&json!({ "error": { "message": "no such key" } })).with_status(401));
    hub.say(&bot, "again");
    let failed = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert!(
        failed.steps.iter().any(|step| step.name == StepName::Response && step.status == TraceStatus::Ok)
    );
    assert!(failed.summary.contains("401"), "{}", failed.summary);
}

#[tokio::test]
async fn a_model_that_hangs_delays_no_webhook_and_is_given_up() {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("never").after(MINUTE * 60));
    let bot = hub.bot().await;
    let both = NewChannel {
        webhook: Some(World::webhook("/hook")),
        ai: Some(AiUpdate { timeout_ms: 300, ..own_model() }),
        ..NewChannel::named("both")
    };
    let channel = hub.channel_with(&bot, both).await;
    for n in 0..8 {
        hub.say(&bot, &n.to_string());
    }
    hub.until("the webhook has everything", async || {
        (hub.receiver.received_at("/hook").len() == 8).then_some(())
    })
    .await;
    let mut given_up = None;
    for _ in 0..200 {
        // Attempts end in real time, and the waits between them by the clock.
        hub.jump(MINUTE).await;
        given_up = hub.traces(&bot).await.into_iter().find(|trace| trace.status == TraceStatus::Error);
        if given_up.is_some() {
            break;
        }
    }
    let given_up = given_up.expect("the schedule ends");
    assert_eq!(
        (given_up.channel_id, given_up.attempts),
        (Some(channel), 6),
        "the first try and one per wait"
    );
    assert!(given_up.summary.contains("timeout"), "{}", given_up.summary);
    assert_eq!(hub.sent(&bot).len(), 0);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_answered_once() {
    let (hub, bot, channel) = scene().await;
    let start = hub.now();
    hub.receiver.then(
        MODEL,
        [
            Reply::status(500),
            Reply::status(429).header("retry-after", "40"),
            Reply::text("text/html", "<html>not a model</html>"),
            Reply::text("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n"),
        ],
    );
    hub.say(&bot, "hello");
    let sent = hub.wait_sent(&bot, 1).await;
    assert_eq!(sent[0].text, "Hello!");
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let (failed, ok) = (("ai", TraceStatus::Error), ("ai", TraceStatus::Ok));
    assert_eq!((trace.attempts, ai_steps(&trace)), (5, vec![failed, failed, failed, failed, ok]));
    let asked = hub.receiver.received_at(MODEL);
    assert!(asked[2].at.since(asked[1].at) >= SECOND * 40, "the pause that was asked for");
    assert!(asked[4].at.since(start) < MINUTE * 10);
    hub.jump(MINUTE * 60).await;
    assert_eq!(hub.sent(&bot).len(), 1);
}

#[tokio::test]
async fn what_cannot_pass_is_given_up_at_once() {
    let (hub, bot, channel) = scene().await;
    let refusal = json!({ "error": { "message": format!("Incorrect API key provided: {OWN_KEY}") } });
    hub.receiver.always(MODEL, Reply::json(&refusal).with_status(401));
    hub.say(&bot, "hello");
    let dead = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert_eq!(dead.attempts, 1);
    assert!(dead.summary.contains("Incorrect API key provided: ***"), "{}", dead.summary);
    hub.jump(MINUTE * 60).await;
    assert_eq!(hub.receiver.received_at(MODEL).len(), 1);

    // The channel is repaired and the message sent to its model again.
    hub.receiver.always(MODEL, said("Hello!"));
    let off = AiUpdate { enabled: false, ..own_model() };
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, off).await.unwrap();
    let refused = hub.hub.traces().replay_to_model(&hub.owner, bot.id, dead.trace_id).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, own_model()).await.unwrap();
    let replay = hub.hub.traces().replay_to_model(&hub.owner, bot.id, dead.trace_id).await.unwrap();
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "Hello!");
    let trace = hub.wait_trace(&bot, channel, |trace| trace.trace_id == replay && trace.attempts == 1).await;
    assert_eq!((trace.status, trace.replay_of), (TraceStatus::Ok, Some(dead.trace_id)));
}

#[tokio::test]
async fn a_second_run_after_a_crash_adds_no_second_answer() {
    let (hub, bot, channel) = scene().await;
    hub.say(&bot, "hello");
    hub.wait_sent(&bot, 1).await;
    ended(&hub, &bot, channel, TraceStatus::Ok).await;
    hub.receiver.always(MODEL, said("something else"));
    // The delivery is found again, as after a crash between the answer and the commit of its outcome.
    let reopen = "UPDATE deliveries SET state = 'pending', claim = 0";
    let store = &hub.hub.context().store;
    store
        .write(move |tx| Box::pin(async move { tx.channels().execute(reopen.to_owned()).await }))
        .await
        .unwrap();
    hub.until("the model is asked again", async || {
        (hub.receiver.received_at(MODEL).len() == 2).then_some(())
    })
    .await;
    hub.jump(MINUTE).await;
    let sent = hub.sent(&bot);
    assert_eq!(sent.iter().map(|sent| sent.text.as_str()).collect::<Vec<_>>(), ["Hello!"]);
}

#[tokio::test]
async fn only_channels_that_use_the_global_endpoint_get_its_key() {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("own"));
    hub.receiver.always(GLOBAL, said("global"));
    let bot = hub.bot().await;
    let global = channel(&hub, &bot, AiUpdate::default()).await;
    hub.say(&bot, "too early");
    let none = ended(&hub, &bot, global, TraceStatus::Error).await;
    assert!(none.summary.contains("no AI endpoint") && none.attempts == 1, "{}", none.summary);

    let config = AiConfigUpdate {
        system_prompt: "Be polite.".to_owned(),
        models: vec!["bigger".to_owned()],
        max_tokens: Some(50),
        ..AiConfigUpdate::default()
    };
    set_global(&hub, config.clone()).await;
    let keyless = AiUpdate { api_key: Change::Clear, ..own_model() };
    let own = channel(&hub, &bot, keyless).await;
    hub.say(&bot, "hello");
    ended(&hub, &bot, own, TraceStatus::Ok).await;
    ended(&hub, &bot, global, TraceStatus::Ok).await;
    let (mine, theirs) = (hub.receiver.received_at(MODEL), hub.receiver.received_at(GLOBAL));
    assert_eq!((mine.len(), theirs.len()), (1, 1));
    assert_eq!(mine[0].header("authorization"), "", "no key of ours, and none of anybody else's");
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
    hub.until("it is asked", async || (hub.receiver.received_at(GLOBAL).len() == 3).then_some(())).await;
    let asked = hub.receiver.received_at(GLOBAL)[2].json();
    assert_eq!((&asked["model"], &asked["max_tokens"]), (&json!("bigger"), &json!(9)));
    hub.hub.channels().set_ai(&hub.owner, bot.id, global, named("biggest")).await.unwrap();
    hub.say(&bot, "with one that is not offered");
    hub.wait_trace(&bot, global, |trace| trace.summary.contains("does not offer the model biggest")).await;
    assert_eq!(hub.receiver.received_at(GLOBAL).len(), 3);
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
    // Another bot answers whatever it reads; the clock stands still meanwhile.
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
    // Somebody else is answered meanwhile, and the same person a minute later.
    hub.say_as(&bot, "o9cq80_other@im.wechat", "hello");
    hub.until("somebody else is answered", async || {
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
    hub.wait_trace(&bot, channel, |trace| trace.summary.contains("nothing to say")).await;
    assert_eq!(hub.sent(&bot).len(), 3);
}

/// Tools as apps will have them: one that works, one that fails, one that never ends.
#[derive(Debug, Default)]
struct Shop {
    calls: Mutex<Vec<(ToolScope, String)>>,
}

#[async_trait]
impl Tools for Shop {
    async fn offered(&self, _: &ToolScope) -> hub_core::Result<Vec<Tool>> {
        let tool = |name: &str| Tool::Function {
            name: name.to_owned(),
            description: format!("does {name}"),
            parameters: json!({ "type": "object", "properties": { "id": { "type": "integer" } } }),
        };
        Ok(vec![tool("order"), tool("broken"), tool("endless")])
    }

    async fn call(&self, scope: &ToolScope, call: &ToolCall) -> Result<String, String> {
        self.calls.lock().unwrap().push((scope.clone(), call.arguments.clone()));
        match &*call.name {
            "order" => Ok("x".repeat(20_000)),
            "broken" => Err("the shop is closed".to_owned()),
            _ => std::future::pending().await,
        }
    }
}

async fn shop() -> (World, TestBot, ChannelId, Arc<Shop>) {
    let shop = Arc::new(Shop::default());
    let hub = World::builder().tools(shop.clone()).start().await;
    hub.receiver.always(MODEL, said("It is on its way."));
    let bot = hub.bot().await;
    let channel = channel(&hub, &bot, AiUpdate { tools: true, ..own_model() }).await;
    (hub, bot, channel, shop)
}

#[tokio::test]
async fn tools_are_offered_and_called_for_this_conversation_alone() {
    let (hub, bot, channel, shop) = shop().await;
    let replies =
        [asks_for("order", r#"{"id":42}"#), asks_for("broken", "{}"), asks_for("steal", "not even JSON")];
    hub.receiver.then(MODEL, replies);
    hub.say(&bot, "where is order 42?");
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "It is on its way.");
    let asked = hub.receiver.received_at(MODEL);
    assert_eq!(asked.len(), 4);
    let first = asked[0].json();
    assert_eq!(first["tools"].as_array().unwrap().len(), 3);
    assert_eq!(first["tools"][0]["function"]["name"], "order");
    let last = asked[3].json()["messages"].as_array().unwrap().clone();
    assert_eq!(last.len(), 8, "system, question, and three times a wish and its answer");
    assert_eq!(last[2]["tool_calls"][0]["function"], json!({ "name": "order", "arguments": r#"{"id":42}"# }));
    assert_eq!((&last[3]["role"], &last[3]["tool_call_id"]), (&json!("tool"), &json!("call_7")));
    assert_eq!(last[3]["content"].as_str().unwrap().len(), 16 * 1024, "a tool's answer is cut");
    assert_eq!(last[5]["content"], "error: the shop is closed");
    assert_eq!(last[7]["content"], "error: there is no tool called steal");
    let calls = shop.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 2, "what is not offered is not called");
    let (scope, arguments) = &calls[0];
    assert_eq!((scope.bot_id, scope.channel_id, scope.place), (bot.id, channel, 0));
    assert_eq!((&scope.user_id, arguments.as_str()), (&bot.account.owner_user_id, r#"{"id":42}"#));
    assert_eq!(calls[1].0.place, 1);
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let kinds: Vec<_> = ai_steps(&trace).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["ai", "tool", "ai", "tool", "ai", "tool", "ai"]);
}

#[tokio::test]
async fn a_model_that_asks_for_ever_is_stopped() {
    let (hub, bot, channel, shop) = shop().await;
    hub.receiver.always(MODEL, asks_for("broken", "{}"));
    hub.say(&bot, "hello");
    let stopped = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert_eq!(stopped.attempts, 1, "it would do the same again");
    assert!(stopped.summary.contains("five times"), "{}", stopped.summary);
    assert_eq!((hub.receiver.received_at(MODEL).len(), shop.calls.lock().unwrap().len()), (5, 4));
    // Without tools there is nothing to ask for.
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, own_model()).await.unwrap();
    hub.say(&bot, "hello");
    hub.wait_trace(&bot, channel, |trace| trace.summary.contains("was offered none")).await;
    assert_eq!((hub.receiver.received_at(MODEL).len(), shop.calls.lock().unwrap().len()), (6, 4));
}

#[tokio::test]
async fn a_tool_that_never_ends_takes_no_more_than_the_time_of_the_answer() {
    let (hub, bot, channel, _shop) = shop().await;
    hub.receiver.then(MODEL, [asks_for("endless", "{}")]);
    hub.say(&bot, "hello");
    let trace = hub.wait_trace(&bot, channel, |trace| !ai_steps(trace).is_empty()).await;
    let steps = ai_steps(&trace);
    assert_eq!(steps[..2], [("ai", TraceStatus::Ok), ("tool", TraceStatus::Error)]);
    // The time runs from the beginning of the attempt.
    assert!(trace.steps[3].duration_ms >= 55_000, "{:?}", trace.steps[3]);
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "It is on its way.", "the next try goes through");
}
