//! A hub's AI sink against @copilotkit/aimock 1.43.0, a server of the OpenAI API by other authors, over a socket:
//! streams, history, keys, tools, rate limits, broken answers.

use std::{process::Stdio, sync::Arc, time::Duration};

use async_trait::async_trait;
use hub_core::{
    access::Actor,
    admin::ai_config::AiConfigUpdate,
    ai::{Tool, ToolCall, ToolScope, Tools},
    channels::{
        NewChannel,
        sinks::{AiSource, AiUpdate, Change},
    },
    testing::{TestBot, TestHub},
    traces::{StepName, TraceQuery, TraceStatus},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::installed;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The server, as long as it is not dropped.
struct Server {
    url: String,
    _process: Child,
}

impl Server {
    /// `None` when it is not installed.
    async fn start() -> Option<Self> {
        let mut command = Command::from(installed::aimock()?);
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(TEST_TIMEOUT, lines.next_line()).await.expect("it starts").unwrap();
        let told: Value = serde_json::from_str(&first.expect("it says where it is")).unwrap();
        Some(Self { url: format!("{}/v1", told["url"].as_str().unwrap()), _process: process })
    }
}

/// One tool, as an app might have it.
#[derive(Debug)]
struct Harbour;

#[async_trait]
impl Tools for Harbour {
    async fn offered(&self, _: &ToolScope) -> hub_core::Result<Vec<Tool>> {
        let parameters = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        let (name, description) = ("find_order".to_owned(), "Where an order is".to_owned());
        Ok(vec![Tool::Function { name, description, parameters }])
    }

    async fn call(&self, _: &ToolScope, call: &ToolCall) -> Result<String, String> {
        let arguments: Value = serde_json::from_str(&call.arguments).map_err(|error| error.to_string())?;
        Ok(format!("order {} left the harbour", arguments["id"]))
    }
}

struct Stage {
    hub: TestHub,
    ada: Actor,
    bot: TestBot,
    answers: usize,
}

impl Stage {
    async fn open(server: &Server) -> Self {
        let hub = TestHub::builder()
            .system_clock()
            .egress(|egress| egress.allow = vec!["127.0.0.0/8".parse().unwrap()])
            .tools(Arc::new(Harbour))
            .start()
            .await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let ai = AiUpdate {
            source: AiSource::Custom,
            base_url: server.url.clone(),
            api_key: Change::Set("sk-of-the-story".into()),
            model: "gpt-4o-mini".to_owned(),
            system_prompt: "You sell shoes.".to_owned(),
            tools: true,
            ..AiUpdate::default()
        };
        let channel = NewChannel { ai: Some(ai), ..NewChannel::named("model") };
        hub.hub().channels().create(&ada, bot.id, channel, None).await.unwrap();
        Self { hub, ada, bot, answers: 0 }
    }

    /// Says something and waits for the answer.
    async fn ask(&mut self, text: &str) -> String {
        self.hub.say(&self.bot, text);
        self.answers += 1;
        self.hub.sent(&self.bot, self.answers).await.pop().unwrap().text
    }
}

#[tokio::test]
async fn a_server_of_other_authors_answers_for_a_channel() {
    let Some(server) = Server::start().await else { return };
    let mut stage = Stage::open(&server).await;
    assert_eq!(stage.ask("Good morning").await, "**Good** morning! 早上好 🙂");
    assert_eq!(stage.ask("And again?").await, "I know you already.", "it was shown what was said before");
    assert_eq!(stage.ask("Are you busy?").await, "Now I have time.", "after the pause that it asked for");
    assert_eq!(stage.ask("Where is order 42?").await, "Your order is at sea.", "with the tool's answer");
    assert_eq!(stage.ask("Are you broken?").await, "Repaired.", "after 503 and a cut stream");

    let all = stage.hub.until("every trace ended", async || {
        let traces = stage.hub.traces(&stage.ada, stage.bot.id, &TraceQuery::default()).await;
        traces.iter().all(|trace| trace.status == TraceStatus::Ok).then_some(traces)
    });
    let traces = all.await;
    let calls = |place: usize| -> Vec<(String, TraceStatus)> {
        let steps = traces[place].steps.iter().filter(|step| step.name == StepName::Ai);
        steps
            .map(|step| {
                let error = step.detail.error.as_ref();
                (error.and_then(|error| error.class.clone()).unwrap_or_default(), step.status)
            })
            .collect()
    };
    let (ok, failed) = (TraceStatus::Ok, TraceStatus::Error);
    let call = |class: &str, status| (class.to_owned(), status);
    assert_eq!(calls(4), [call("", ok)]);
    assert_eq!(calls(2), [call("rate_limited", failed), call("", ok)]);
    assert_eq!(calls(1).len(), 3, "the call, the tool and the call after it");
    // The connection of the cut stream may be reset before its beginning is read; the request is sent again at once then.
    let broken = calls(0);
    let [first, between @ .., last] = &*broken else { panic!("{broken:?}") };
    assert_eq!((first, last), (&call("failed", failed), &call("", ok)));
    assert!(between.iter().all(|(class, status)| !class.is_empty() && *status == failed), "{broken:?}");
    assert!(between.len() <= 1, "{broken:?}");
    let first = traces[4].steps.iter().find(|step| step.name == StepName::Ai).unwrap();
    assert_eq!(json!(first.detail.usage), json!({ "prompt_tokens": 11, "completion_tokens": 7 }));
}

#[tokio::test]
async fn the_administrators_endpoint_is_tested_and_a_wrong_key_is_reported() {
    let Some(server) = Server::start().await else { return };
    let stage = Stage::open(&server).await;
    let configs = stage.hub.hub().ai_config();
    for (key, class) in [("sk-of-the-story", None), ("sk-of-nobody-at-all", Some("refused"))] {
        let update = AiConfigUpdate {
            base_url: server.url.clone(),
            api_key: Change::Set(key.into()),
            ..AiConfigUpdate::default()
        };
        configs.set(&stage.ada, update).await.unwrap();
        let tested = configs.test(&stage.ada).await.unwrap();
        // Nothing is prepared for the question of the test: with the right key it is refused for another reason.
        let (found, message) = tested.outcome.unwrap_err();
        assert_eq!(found, "refused", "{message}");
        assert_eq!(message.contains("401"), class.is_some(), "{message}");
        assert!(!message.contains(key), "{message}");
    }
}
