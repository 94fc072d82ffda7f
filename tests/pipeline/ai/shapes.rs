//! A bot for each shape of response that endpoints and adapters send: its person gets the words of the endpoint, or a
//! sentence in place of them, and the trace says why.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use hub_core::{
    ai::{Tool, ToolCall, ToolScope, Tools},
    channels::sinks::AiUpdate,
    traces::TraceStatus,
};
use serde_json::json;

use super::{MINUTE, channel, own_model, said};
use crate::{
    fuzzing::shapes::{Meaning, SHAPES, parts},
    support::{
        receiver::Reply,
        world::{TestBot, World},
    },
};

const SORRY: &str = "No answer today, sorry.";
/// Steps of a minute in which the attempts of an endpoint end.
const MINUTES: u32 = 100;
const FORECAST: &str = "It rains.";

/// The tools that the shapes ask for.
#[derive(Debug)]
struct Instruments;

#[async_trait]
impl Tools for Instruments {
    async fn offered(&self, _: &ToolScope) -> hub_core::Result<Vec<Tool>> {
        let tool = |name: &str| Tool::Function {
            name: name.to_owned(),
            description: format!("reads the {name}"),
            parameters: json!({ "type": "object" }),
        };
        Ok(vec![tool("weather"), tool("clock")])
    }

    async fn call(&self, _: &ToolScope, call: &ToolCall) -> Result<String, String> {
        Ok(format!("{} of {}", call.name, call.arguments))
    }
}

fn shape(name: &str) -> Reply {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/completion");
    let file = fs::read(folder.join(format!("{name}.txt"))).unwrap();
    let (status, content_type, body) = parts(&file);
    let reply = Reply::text(content_type, &String::from_utf8_lossy(body));
    reply.with_status(status)
}

fn path(name: &str) -> String {
    format!("/{name}/v1/chat/completions")
}

/// A bot whose channel asks the endpoint that answers in this shape.
async fn bot(hub: &World, name: &str, meaning: &Meaning) -> TestBot {
    hub.receiver.always(&path(name), shape(name));
    if let Meaning::Says { calls: [_, ..], .. } = meaning {
        hub.receiver.then(&path(name), [shape(name)]);
        hub.receiver.always(&path(name), said(FORECAST));
    }
    let bot = hub.bot().await;
    let ai = AiUpdate {
        base_url: format!("http://receiver.test/{name}/v1"),
        error_reply: SORRY.to_owned(),
        tools: true,
        ..own_model()
    };
    channel(hub, &bot, ai).await;
    bot
}

/// The text that the person is to get, and words of the trace.
fn expected(meaning: &Meaning) -> (&'static str, &'static str) {
    match *meaning {
        Meaning::Says { calls: [_, ..], .. } => (FORECAST, ""),
        // Thoughts are hidden.
        Meaning::Says { text, .. } if text.contains("Hello!") => ("Hello!", ""),
        Meaning::Says { text: "", finish, .. } => (SORRY, finish),
        Meaning::Says { text, .. } => (text, ""),
        Meaning::Fails { told, .. } => (SORRY, told),
    }
}

async fn judge(hub: &World, bot: &TestBot, name: &str, meaning: &Meaning) -> Option<String> {
    for _ in 0..MINUTES {
        let traces = hub.traces(bot).await;
        if !hub.sent(bot).is_empty() && traces[0].status != TraceStatus::Pending {
            break;
        }
        hub.jump(MINUTE).await;
    }
    let texts: Vec<_> = hub.sent(bot).into_iter().map(|sent| sent.text.trim().to_owned()).collect();
    let (text, words) = expected(meaning);
    let trace = hub.traces(bot).await.remove(0);
    let is_right = texts == [text]
        && trace.summary.contains(words)
        && (trace.status == TraceStatus::Ok) == (text != SORRY);
    (!is_right).then(|| format!("{name}: {texts:?} for {text:?}; {:?}: {}", trace.status, trace.summary))
}

#[tokio::test]
async fn the_person_gets_what_the_endpoint_said_in_any_shape() {
    let world = World::builder().config(|config| config.max_bots_per_user = 200);
    let hub = world.tools(Arc::new(Instruments)).start().await;
    let mut bots = Vec::new();
    for (name, meaning) in SHAPES {
        bots.push(bot(&hub, name, meaning).await);
    }
    for bot in &bots {
        hub.say(bot, "hello");
    }
    let mut wrong = Vec::new();
    for (bot, (name, meaning)) in bots.iter().zip(SHAPES) {
        wrong.extend(judge(&hub, bot, name, meaning).await);
        if let Meaning::Says { calls: calls @ [_, ..], .. } = meaning {
            let asked = hub.receiver.received_at(&path(name));
            let told = asked.get(1).map(|request| request.json()["messages"].to_string()).unwrap_or_default();
            let results = calls.iter().all(|(tool, _)| told.contains(&format!("{tool} of ")));
            if !results || asked.len() != 2 {
                wrong.push(format!("{name}: the model was sent {told}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), SHAPES.len(), wrong.join("\n"));
}
