//! Testing a plugin over HTTP.

use std::{collections::BTreeMap, sync::Arc};

use hub_core::{
    Hub,
    id::ChannelId,
    openapi::Api,
    plugins::{
        Permissions,
        debug::{DebugResponse, DebugRun, Debugged, SAMPLE_URL, sample_message},
        manifest::MAX_SOURCE,
        outcome::reply_document,
    },
    sandbox::{Body as PluginBody, LogLevel, PluginRequest, PluginResponse},
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Path, types::Any};
use serde_json::{Value, json};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    rate_limit::RateLimits,
    wire::{Body, Checked, Text},
};

/// Testing plugins.
#[derive(Debug, Clone, Copy)]
pub struct PluginDebugApi;

/// A request hook to test.
#[derive(Debug, Api)]
#[api(input, example = {
    "message": {
        "content": "order 42",
        "sender": {
            "user_id": "user_1",
            "user_name": "Ada"
        }
    },
    "script": "function onRequest(ctx) { ctx.reply('seen: ' + ctx.msg.content); }"
})]
pub struct DebugRequestHook {
    /// The source, at most 256 KiB. Without a metadata block the defaults apply.
    pub script: Checked<0, MAX_SOURCE>,
    /// The message.
    pub message: MockMessage,
}

/// A response hook to test.
#[derive(Debug, Api)]
#[api(input, example = {
    "response": {
        "body": "",
        "status": 500
    },
    "script": "function onResponse(ctx) { if (ctx.res.status !== 200) ctx.reply('try again'); }"
})]
pub struct DebugResponseHook {
    /// The source, at most 256 KiB. Without a metadata block the defaults apply.
    pub script: Checked<0, MAX_SOURCE>,
    /// The response of the webhook.
    pub response: MockResponse,
    /// The message of the delivery; a sample if absent.
    pub message: Option<MockMessage>,
    /// `ctx.state` as the request hook left it.
    pub state: Option<Any<Value>>,
}

/// A message for a test. The other fields of the payload are generated.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockMessage {
    /// Text of the message.
    pub content: Text<0, 65_536>,
    /// Sender.
    pub sender: MockSender,
    /// Kind: 1 text, 3 image, 34 voice, 43 video, 49 file; 1 if absent.
    pub msg_type: Option<i64>,
}

/// Sender of a message.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockSender {
    /// Id on the network.
    pub user_id: Text<0, 256>,
    /// Display name.
    pub user_name: Text<0, 256>,
}

/// A response for a test.
#[derive(Debug, Api)]
#[api(input)]
pub struct MockResponse {
    /// Status, 100 to 599.
    #[api(range = 100..=599)]
    pub status: u16,
    /// Body.
    pub body: Text<0, 524_288>,
    /// Headers by name.
    pub headers: Option<BTreeMap<String, Text<0, 8192>>>,
}

/// Result of a hook. Nothing was sent.
#[derive(Debug, Api)]
pub struct DebuggedView {
    /// The request as it would be sent, without authentication; `null` if nothing would be sent.
    pub request: Option<DebuggedRequest>,
    /// The request before the hook.
    pub before: DebuggedRequest,
    /// The response before the hook; `null` for a request hook.
    pub response: Option<PluginResponse>,
    /// Replies to the sender: `{type: "text", text}`, `{type: "data_uri", uri}`, `{type: "base64", filename, base64}`
    /// or `{type: "forward"}`.
    pub replies: Vec<Any<Value>>,
    /// Whether the hook skipped the request.
    pub skipped: bool,
    /// Whether `@match` matches the message; otherwise nothing ran.
    pub matched: bool,
    /// Whether the source has the hook.
    pub present: bool,
    /// Output of `console`.
    pub logs: Vec<DebuggedLog>,
    /// `ctx.state` after the hook.
    pub state: Option<Any<Value>>,
    /// Error of the hook; `null` if there was none.
    pub error: Option<DebuggedError>,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// Size of the JavaScript heap in bytes.
    pub memory_bytes: u64,
    /// Version of the server that ran it.
    pub hub_version: String,
    /// Permissions of the plugin.
    pub permissions: Permissions,
    /// Warnings about the metadata.
    pub warnings: Vec<String>,
}

/// A request, before it is signed.
#[derive(Debug, Api)]
pub struct DebuggedRequest {
    /// Target.
    pub url: String,
    /// Method.
    pub method: String,
    /// Headers by name.
    pub headers: BTreeMap<String, String>,
    /// Body as JSON or as text; `null` without a body.
    pub body: Any<Value>,
}

/// A line of `console`.
#[derive(Debug, Api)]
pub struct DebuggedLog {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Text of the line.
    pub text: String,
}

/// Error of a hook.
#[derive(Debug, Api)]
pub struct DebuggedError {
    /// `syntax`, `throw`, `timeout`, `memory`, `crash`, `stack`, `output`, `blocked_url` or `match`.
    pub kind: String,
    /// Message of the error.
    pub message: String,
    /// Line in the source, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// Stack of the JavaScript error.
    pub stack: Option<String>,
}

#[OpenApi(tag = "Tag::Plugins")]
impl PluginDebugApi {
    /// Tests a request hook
    ///
    /// With the webhook of the channel, in the sandbox of real runs and within its limits. Nothing is sent or stored,
    /// and `fetch` is rejected. At most 30 per minute and user. Errors of the plugin are in `error`.
    #[oai(path = "/api/webhooks/:id/debug/request", method = "post", operation_id = "debugRequestHook")]
    async fn request(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        id: Path<ChannelId>,
        body: Body<DebugRequestHook>,
    ) -> ApiResult<DebuggedView> {
        limits.check_debug(&user.0.principal())?;
        let message = body.0.message.payload(&hub);
        let run = run(body.0.script.into(), message, None, None);
        ok(hub.plugins().debug(&user.0, id.0, run).await?.into())
    }

    /// Tests a response hook
    ///
    /// Like the test of a request hook, with this response of the webhook.
    #[oai(path = "/api/webhooks/:id/debug/response", method = "post", operation_id = "debugResponseHook")]
    async fn response(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        id: Path<ChannelId>,
        body: Body<DebugResponseHook>,
    ) -> ApiResult<DebuggedView> {
        limits.check_debug(&user.0.principal())?;
        let DebugResponseHook { script, response, message, state } = body.0;
        let message = message.unwrap_or_else(MockMessage::example_text).payload(&hub);
        let run = run(script.into(), message, Some(response.into()), state.map(|state| state.0));
        ok(hub.plugins().debug(&user.0, id.0, run).await?.into())
    }
}

fn run(script: String, message: Value, response: Option<DebugResponse>, state: Option<Value>) -> DebugRun {
    let state = state.and_then(|state| serde_json::value::to_raw_value(&state).ok());
    DebugRun { script, message, request: None, url: SAMPLE_URL.to_owned(), response, state }
}

impl MockMessage {
    fn example_text() -> Self {
        Self {
            content: Text("order 42".to_owned()),
            sender: MockSender { user_id: Text("user_1".to_owned()), user_name: Text("Ada".to_owned()) },
            msg_type: None,
        }
    }

    fn payload(&self, hub: &Hub) -> Value {
        let now = hub.context().store.now().as_seconds();
        let mut payload = sample_message(&self.content, &self.sender.user_id, &self.sender.user_name, now);
        if let Some(number) = self.msg_type {
            payload["msg_type"] = json!(number);
        }
        payload
    }
}

impl From<MockResponse> for DebugResponse {
    fn from(response: MockResponse) -> Self {
        let MockResponse { status, body, headers } = response;
        let headers = headers.unwrap_or_default().into_iter().map(|(name, value)| (name, value.into()));
        Self { status, headers: headers.collect(), body: body.into() }
    }
}

impl From<PluginRequest> for DebuggedRequest {
    fn from(request: PluginRequest) -> Self {
        let body = match request.body {
            PluginBody::Empty => Value::Null,
            PluginBody::Text(text) => Value::String(text),
            PluginBody::Json(json) => serde_json::from_str(json.get()).unwrap_or_default(),
        };
        Self { url: request.url, method: request.method, headers: request.headers, body: Any(body) }
    }
}

const fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

impl From<Debugged> for DebuggedView {
    fn from(debugged: Debugged) -> Self {
        let state = debugged.state.and_then(|state| serde_json::from_str(state.get()).ok());
        let logs = debugged.logs.into_iter().map(|log| DebuggedLog {
            level: level(log.level).to_owned(),
            at_ms: log.at_ms,
            text: log.text,
        });
        let notes = debugged.warnings.into_iter().map(|note| format!("line {}: {}", note.line, note.message));
        #[expect(clippy::cast_precision_loss, reason = "a run lasts seconds")]
        let duration_ms = debugged.duration_us as f64 / 1000.0;
        Self {
            request: debugged.request.map(Into::into),
            before: debugged.before.into(),
            response: debugged.response,
            replies: debugged.replies.iter().map(|reply| Any(reply_document(reply))).collect(),
            skipped: debugged.skipped,
            matched: debugged.matched,
            present: debugged.present,
            logs: logs.collect(),
            state: state.map(Any),
            error: debugged.error.map(|error| DebuggedError {
                kind: error.kind,
                message: error.message,
                line: error.line,
                column: error.column,
                stack: error.stack,
            }),
            duration_ms,
            memory_bytes: debugged.memory_bytes,
            hub_version: env!("CARGO_PKG_VERSION").to_owned(),
            permissions: debugged.permissions,
            warnings: notes.collect(),
        }
    }
}
