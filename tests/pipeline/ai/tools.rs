//! Tools that a model asks for.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hub_core::{
    ai::{Tool, ToolCall, ToolScope, Tools},
    channels::sinks::AiUpdate,
    id::ChannelId,
    traces::TraceStatus,
};
use serde_json::json;

use super::{MODEL, ai_steps, channel, ended, own_model, said};
use crate::support::{
    receiver::Reply,
    world::{TestBot, World},
};

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

/// A model that asks for a tool.
pub(super) fn asks_for(tool: &str, arguments: &str) -> Reply {
    let call = json!({ "index": 0, "id": "call_7", "type": "function",
        "function": { "name": tool, "arguments": arguments } });
    let event = json!({ "choices": [{ "delta": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
    Reply::text("text/event-stream", &format!("data: {event}\n\ndata: [DONE]\n\n"))
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
    let expected = ["ai", "order", "ai", "broken", "ai", "steal", "ai"];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_model_that_keeps_calling_tools_is_stopped() {
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
    hub.wait_trace(&bot, channel, |trace| trace.summary.contains("none was offered")).await;
    assert_eq!((hub.receiver.received_at(MODEL).len(), shop.calls.lock().unwrap().len()), (6, 4));
}

#[tokio::test]
async fn a_tool_that_never_ends_takes_no_more_than_the_time_of_the_answer() {
    let (hub, bot, channel, _shop) = shop().await;
    hub.receiver.then(MODEL, [asks_for("endless", "{}")]);
    hub.say(&bot, "hello");
    let trace = hub.wait_trace(&bot, channel, |trace| !ai_steps(trace).is_empty()).await;
    let steps = ai_steps(&trace);
    assert_eq!(steps[..2], [("ai", TraceStatus::Ok), ("endless", TraceStatus::Error)]);
    // The time runs from the beginning of the attempt.
    assert!(trace.steps[3].duration_ms >= 55_000, "{:?}", trace.steps[3]);
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "It is on its way.", "the next try goes through");
}
