//! A channel for each shape of response that endpoints and adapters send: its person gets the words of the endpoint, or a
//! sentence in place of them, and the trace says why.

use std::{fs, path::Path, sync::Arc};

use async_trait::async_trait;
use hub_core::{
    ai::{Tool, ToolCall, ToolScope, Tools},
    channels::{NewChannel, sinks::AiUpdate},
    filter::Filter,
    id::ChannelId,
    traces::TraceStatus,
};
use serde_json::json;

use super::{own_model, said};
use crate::{
    fuzzing::shapes::{Meaning, SHAPES, parts},
    support::{
        receiver::Reply,
        world::{TestBot, World},
    },
};

const SORRY: &str = "No answer today, sorry.";
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

fn person(name: &str) -> String {
    format!("{name}@im.wechat")
}

fn path(name: &str) -> String {
    format!("/{name}/v1/chat/completions")
}

/// A channel that asks the endpoint that answers in this shape, for a person of its own.
async fn endpoint(hub: &World, bot: &TestBot, name: &str, meaning: &Meaning) -> ChannelId {
    hub.receiver.always(&path(name), shape(name));
    if let Meaning::Says { calls: [_, ..], .. } = meaning {
        hub.receiver.then(&path(name), [shape(name)]);
        hub.receiver.always(&path(name), said(FORECAST));
    }
    let ai = AiUpdate {
        base_url: format!("http://receiver.test/{name}/v1"),
        error_reply: SORRY.to_owned(),
        tools: true,
        ..own_model()
    };
    let filter = Filter { user_ids: vec![person(name)], ..Filter::default() };
    hub.channel_with(bot, NewChannel { ai: Some(ai), filter, ..NewChannel::named(name) }).await
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

async fn judge(
    hub: &World,
    bot: &TestBot,
    channel: ChannelId,
    name: &str,
    meaning: &Meaning,
) -> Option<String> {
    let (text, words) = expected(meaning);
    let trace = hub.wait_trace(bot, channel, |trace| trace.status != TraceStatus::Pending).await;
    let to_person = async || {
        let sent = hub.sent(bot).into_iter().filter(|sent| sent.to_user_id == person(name));
        let texts: Vec<_> = sent.map(|sent| sent.text.trim().to_owned()).collect();
        (!texts.is_empty()).then_some(texts)
    };
    let texts = hub.until("something for the person", to_person).await;
    let is_right = texts == [text]
        && trace.summary.contains(words)
        && (trace.status == TraceStatus::Ok) == (text != SORRY);
    (!is_right).then(|| format!("{name}: {texts:?} for {text:?}; {:?}: {}", trace.status, trace.summary))
}

#[tokio::test]
async fn the_person_gets_what_the_endpoint_said_in_any_shape() {
    let world = World::builder().config(|config| config.max_channels = 200);
    let hub = world.tools(Arc::new(Instruments)).start().await;
    let bot = hub.bot().await;
    let mut channels = Vec::new();
    for (name, meaning) in SHAPES {
        channels.push(endpoint(&hub, &bot, name, meaning).await);
    }
    for (name, _) in SHAPES {
        hub.say_as(&bot, &person(name), "hello");
    }
    let mut wrong = Vec::new();
    for (channel, (name, meaning)) in channels.into_iter().zip(SHAPES) {
        wrong.extend(judge(&hub, &bot, channel, name, meaning).await);
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
