//! Steps of traces.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_with::skip_serializing_none;

use crate::{
    ai::Usage,
    egress::{Phase, Phases},
    id::{AppEventId, AppId, IlinkClientId, MessageId, PluginId, TraceId},
    model::trace::TraceStatus,
    time::Timestamp,
    words::words,
};

words! {
    /// Name of a step.
    pub enum StepName {
        /// The hub received the message.
        Received = "received",
        /// The channel's handle and filter.
        Filter = "filter",
        /// A plugin's request hook ran.
        PluginOnRequest = "plugin.on_request",
        /// A request to the receiver.
        Request = "request",
        /// The response of the receiver.
        Response = "response",
        /// A plugin's response hook ran.
        PluginOnResponse = "plugin.on_response",
        /// A reply.
        Reply = "reply",
        /// The AI sink.
        Ai = "ai",
        /// The WebSocket sink.
        Websocket = "websocket",
        /// The message was given to a client of the iLink sink.
        Ilink = "ilink",
    }
}

words! {
    /// Component that performed a step.
    pub enum StepKind {
        /// The hub took the message from the network.
        Inbox = "inbox",
        /// The channel's handle and filter.
        Filter = "filter",
        /// The channel's log, which WebSocket clients follow.
        Log = "log",
        /// The webhook.
        Webhook = "webhook",
        /// A plugin.
        Plugin = "plugin",
        /// The model.
        Ai = "ai",
        /// A tool that the model requested.
        ToolCall = "tool_call",
        /// An app.
        App = "app",
        /// A client of the channel sent the message.
        Channel = "channel",
        /// A client of the channel's iLink sink received or sent the message.
        Ilink = "ilink",
        /// A user sent the message.
        Api = "api",
        /// The outbox sent a part to the network.
        Outbox = "outbox",
        /// A replay was requested.
        Replay = "replay",
        /// A parked delivery was cancelled.
        Cancel = "cancel",
        /// The outcome of an attempt could not be stored.
        Store = "store",
    }
}

/// A step.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "attempt": 1,
    "detail": {"body": "{}", "headers": [["content-type", "application/json"]], "status": 200},
    "duration_ms": 0,
    "kind": "webhook",
    "name": "response",
    "started_at": "2025-11-21T09:30:00.000Z",
    "status": "ok",
})]
pub struct Step {
    /// Name.
    pub name: StepName,
    /// Component.
    #[serde(deserialize_with = "kind")]
    pub kind: StepKind,
    /// Outcome.
    #[serde(default = "ok")]
    pub status: TraceStatus,
    /// When it began.
    #[serde(alias = "at", deserialize_with = "time")]
    pub started_at: Timestamp,
    /// Duration in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// Number of the attempt that it belongs to, from 1; absent for a step of no attempt.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Details.
    #[serde(default)]
    pub detail: StepDetail,
}

const fn ok() -> TraceStatus {
    TraceStatus::Ok
}

/// As in a document, or as stored.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Time {
        Millis(i64),
        Text(Timestamp),
    }
    Ok(match Time::deserialize(deserializer)? {
        Time::Millis(millis) => Timestamp::from_millis(millis),
        Time::Text(at) => at,
    })
}

impl Step {
    /// A step that began at `started_at` and ended at `ended_at`.
    pub fn new(
        name: StepName,
        kind: StepKind,
        status: TraceStatus,
        started_at: Timestamp,
        ended_at: Timestamp,
        detail: StepDetail,
    ) -> Self {
        let duration_ms = u64::try_from(ended_at.since(started_at).as_millis()).unwrap_or(u64::MAX);
        Self { name, kind, status, started_at, duration_ms, attempt: None, detail }
    }

    /// The step of an attempt.
    #[must_use]
    pub fn of_attempt(self, attempt: u32) -> Self {
        Self { attempt: Some(attempt), ..self }
    }
}

/// Version 0.1 stored the name of the tool after `tool_call:`, too.
fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StepKind, D::Error> {
    let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    let kind = word.split(':').next().and_then(StepKind::parse);
    kind.ok_or_else(|| D::Error::custom(format!("unknown kind of step `{word}`")))
}

/// Details of a step: each field is present if the step knows it. The description says which steps have it. Secrets are
/// replaced by `***` before they are stored.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
#[api(example = { "body": "{}", "headers": [["content-type", "application/json"]], "status": 200 })]
pub struct StepDetail {
    /// Why the step failed.
    #[serde(deserialize_with = "error")]
    pub error: Option<StepError>,
    /// Why a filter or a sink took no notice, why a plugin did not run, why a reply is not sent, and what is wrong
    /// with the body of a response.
    #[api(cause)]
    pub reason: Option<String>,
    /// `received`: type of the message.
    pub msg_type: Option<String>,
    /// `received`: number of parts of the message.
    pub items: Option<u64>,
    /// `received`: the app that gets an event.
    pub app: Option<AppId>,
    /// `received`: the handle that addressed the app.
    pub handle: Option<String>,
    /// `received`: the trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// `received`, `reply`: recipient. Of a replay: URL without its query, or the model.
    pub to: Option<String>,
    /// `request`: method.
    pub method: Option<String>,
    /// `request`: URL.
    pub url: Option<String>,
    /// `response`: HTTP status.
    pub status: Option<u16>,
    /// `request`, `response`: names and values of headers, in order.
    #[api(with(Option<Vec<Vec<String>>>, |headers: &Option<Vec<(String, String)>>| {
        headers.as_ref().map(|all| all.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect())
    }))]
    pub headers: Option<Vec<(String, String)>>,
    /// `request`, `response`: body, truncated at 64 KiB.
    pub body: Option<String>,
    /// `request`: durations of its phases, where they are measured.
    pub phases: Option<StepPhases>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// Whether later messages of the conversation no longer wait for this one.
    pub parked: Option<bool>,
    /// `plugin.*`: id of the plugin.
    pub plugin_id: Option<PluginId>,
    /// `plugin.*`: its name.
    pub plugin: Option<String>,
    /// `plugin.*`: its version.
    pub version: Option<String>,
    /// `plugin.*`: whether the plugin has this hook.
    pub hook: Option<bool>,
    /// `plugin.*`: duration of the run in microseconds, without the wait.
    pub duration_us: Option<u64>,
    /// `plugin.*`: time that it waited for a worker, in milliseconds.
    pub wait_ms: Option<u64>,
    /// `plugin.*`: memory that the run allocated, in bytes, where it is measured.
    pub memory_bytes: Option<u64>,
    /// `plugin.*`: whether it skipped the message.
    pub skipped: Option<bool>,
    /// `plugin.*`: number of replies that it made.
    pub replies: Option<u64>,
    /// `plugin.*`: what it changed in the request.
    pub changes: Option<StepChanges>,
    /// `plugin.*`: what it logged.
    pub logs: Option<Vec<StepLog>>,
    /// `plugin.*`: what it fetched.
    pub fetches: Option<Vec<StepFetch>>,
    /// `plugin.*`: why the hub disabled the plugin after this run.
    #[api(cause)]
    pub paused: Option<String>,
    /// `reply`: id of the message.
    pub message_id: Option<MessageId>,
    /// `reply`: state of the part, or `queued`.
    pub state: Option<String>,
    /// `reply`: position of the part, from 1.
    pub part: Option<u64>,
    /// `received`, `reply`: number of parts that the message is sent in.
    pub parts: Option<u64>,
    /// `reply`: name of the file.
    pub file: Option<String>,
    /// `reply`: size of the file in bytes.
    pub size: Option<u64>,
    /// `reply`: id of the message on the network.
    pub network_id: Option<String>,
    /// `ai`: where the settings of the model come from: `custom` for the channel's own, or `global`.
    pub source: Option<String>,
    /// `ai`: the model.
    pub model: Option<String>,
    /// `ai`: number of this call within the attempt, from 1.
    pub round: Option<u32>,
    /// `ai`: number of messages of the conversation that were sent.
    pub messages: Option<u64>,
    /// `ai`: number of images that were sent.
    pub images: Option<u64>,
    /// `ai`: number of tools that were offered.
    pub tools: Option<u64>,
    /// `ai`: parts of the request that were left out or renamed, because the endpoint refuses them.
    pub left_out: Option<Vec<String>>,
    /// `ai`: why the model stopped.
    pub finish_reason: Option<String>,
    /// `ai`: what the call cost.
    pub usage: Option<Usage>,
    /// `ai`: text of the model, or result of the tool.
    pub answer: Option<String>,
    /// `ai`: names of the tools that the model requested.
    pub tool_calls: Option<Vec<String>>,
    /// `ai`: name of the tool that was called.
    pub tool: Option<String>,
    /// `ai`: arguments of the tool, as JSON text.
    pub arguments: Option<String>,
    /// `websocket`: number of clients that were connected.
    pub clients: Option<u64>,
    /// `ilink`: the client.
    pub ilink_client: Option<IlinkClientId>,
    /// Id of the event for an app.
    pub event_id: Option<AppEventId>,
    /// `request`: CRC-32 of a body that is not stored, as it is the payload of the message; a trace that is
    /// read has the body in its place.
    #[api(skip)]
    pub payload_crc: Option<u32>,
}

/// Why a step failed.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
#[api(example = { "class": "connect", "message": "connection refused" })]
pub struct StepError {
    /// One sentence.
    #[api(cause)]
    pub message: String,
    /// Class of the failure of a request.
    pub class: Option<String>,
    /// The phase of a measured request that failed.
    pub phase: Option<Phase>,
    /// What the receiver said, where it may be shown.
    pub told: Option<String>,
    /// Kind of the failure of a plugin.
    pub kind: Option<String>,
    /// Line in the source of the plugin, from 1.
    pub line: Option<u32>,
    /// Column in the source of the plugin, from 1.
    pub column: Option<u32>,
    /// The calls that led to the failure.
    pub stack: Option<String>,
}

impl StepError {
    /// A failure without more than a sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Version 0.1 stored some failures as a text.
fn error<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StepError>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Text(String),
        Error(StepError),
    }
    let stored = Option::<Stored>::deserialize(deserializer)?;
    Ok(stored.map(|stored| match stored {
        Stored::Text(message) => StepError::new(message),
        Stored::Error(error) => error,
    }))
}

/// Durations of the phases of a request, in milliseconds; what did not happen, or cannot be distinguished, is absent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
pub struct StepPhases {
    /// Resolution of the name.
    pub dns_ms: Option<u64>,
    /// TCP connection and, for https, TLS handshake.
    pub connect_ms: Option<u64>,
    /// From the connection to the beginning of the response.
    pub first_byte_ms: Option<u64>,
}

impl From<&Phases> for StepPhases {
    fn from(phases: &Phases) -> Self {
        let ms = |took: Option<std::time::Duration>| {
            took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
        };
        Self { dns_ms: ms(phases.dns), connect_ms: ms(phases.connect), first_byte_ms: ms(phases.first_byte) }
    }
}

/// What a plugin changed in the request.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
#[api(example = { "headers": ["+ x-kind: order"] })]
pub struct StepChanges {
    /// Method before and after.
    #[api(with(Option<Vec<String>>, |both: &Option<[String; 2]>| both.clone().map(Vec::from)))]
    pub method: Option<[String; 2]>,
    /// URL before and after.
    #[api(with(Option<Vec<String>>, |both: &Option<[String; 2]>| both.clone().map(Vec::from)))]
    pub url: Option<[String; 2]>,
    /// Lines `- name: value` and `+ name: value`.
    pub headers: Option<Vec<String>>,
    /// Difference of the bodies, in the unified format.
    pub body: Option<String>,
}

/// A line that a plugin logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct StepLog {
    /// When, in milliseconds after the run began.
    pub at_ms: u64,
    /// Level: `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Text.
    pub text: String,
}

/// A request that a plugin made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct StepFetch {
    /// Method.
    pub method: String,
    /// URL.
    pub url: String,
    /// HTTP status of the response.
    #[serde(default)]
    pub status: Option<u16>,
    /// Why there is no response.
    #[serde(default)]
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_of_version_0_1_are_read() {
        let step: Step = serde_json::from_value(json!({
            "name": "ai", "kind": "tool_call:weather", "status": "error",
            "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 1,
            "detail": { "attempt": 2, "error": "the tool did not respond in time", "to": null },
        }))
        .unwrap();
        let detail = StepDetail {
            error: Some(StepError::new("the tool did not respond in time")),
            ..StepDetail::default()
        };
        assert_eq!((step.kind, step.attempt, step.detail), (StepKind::ToolCall, None, detail));
    }
}
