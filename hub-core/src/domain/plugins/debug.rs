//! Trying a plugin without sending anything: the same sandbox, the same limits, the same checks of what comes out,
//! and no network.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json, value::RawValue};
use url::Url;

use super::{
    Plugins,
    manifest::{Manifest, Note},
    permission::Permissions,
    request::{self, Reach},
};
use crate::{
    access::Actor,
    error::{Error, Result},
    filter::FilterInput,
    id::ChannelId,
    network::MessageKind,
    sandbox::{
        FetchGate, Grants, Hook, HookInput, HookOutcome, HookRun, Limits, LogLine, NoFetch, PluginRequest,
        PluginResponse, Reply, Sandbox, ScriptError, Source,
    },
};

/// The URL of a request without a webhook.
pub const SAMPLE_URL: &str = "http://localhost:3000/hook";
/// Largest message and answer that a plugin is tried with, together, in bytes.
const MAX_INPUT: usize = 512 * 1024;

/// Input of a trial run of a hook.
#[derive(Debug, Clone)]
pub struct DebugRun {
    /// The source. Without a metadata block it has the defaults.
    pub script: String,
    /// The webhook payload with `content`, `sender` and the other fields; see [`sample_message`].
    pub message: Value,
    /// The request; drafted from the message when left out.
    pub request: Option<PluginRequest>,
    /// The webhook.
    pub url: String,
    /// The response: with one `onResponse` runs, without one `onRequest`.
    pub response: Option<DebugResponse>,
    /// `ctx.state`.
    pub state: Option<Box<RawValue>>,
}

/// An answer to try `onResponse` with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugResponse {
    /// Status, 100 to 599.
    pub status: u16,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: String,
}

/// Result of a hook. Nothing was sent.
#[derive(Debug, Clone, hub_macros::Api)]
pub struct Debugged {
    /// Which hook.
    #[api(skip)]
    pub hook: Hook,
    /// The request as it would be sent, without authentication; absent if nothing would be sent.
    pub request: Option<PluginRequest>,
    /// The request before the hook.
    pub before: PluginRequest,
    /// The response before the hook; absent for a request hook.
    pub response: Option<PluginResponse>,
    /// Replies to the sender: `{type: "text", text}`, `{type: "data_uri", uri}`, `{type: "base64", filename, base64}`
    /// or `{type: "forward"}`.
    #[api(with(Vec<crate::openapi::Any>, |replies: &Vec<Reply>| {
        replies.iter().map(|reply| crate::openapi::one_any(&super::outcome::reply_document(reply))).collect()
    }))]
    pub replies: Vec<Reply>,
    /// Whether the hook skipped the request.
    pub skipped: bool,
    /// Whether `@match` matches the message; otherwise nothing ran.
    pub matched: bool,
    /// Whether the source has the hook.
    pub present: bool,
    /// Output of `console`.
    pub logs: Vec<LogLine>,
    /// `ctx.state` after the hook.
    #[api(with(Option<crate::openapi::Any>, |state: &Option<Box<RawValue>>| {
        state.as_ref().map(|state| crate::openapi::parsed(state.get()))
    }))]
    pub state: Option<Box<RawValue>>,
    /// Error of the hook; absent if there was none.
    pub error: Option<DebugError>,
    /// Duration in milliseconds.
    #[api(name = "duration_ms", with(f64, |micros: &u64| super::outcome::millis(*micros)))]
    pub duration_us: u64,
    /// Size of the JavaScript heap in bytes.
    #[api(and(
        hub_version: String = |_: &Self| env!("CARGO_PKG_VERSION").to_owned(),
        "Version of the server that ran it."
    ))]
    pub memory_bytes: u64,
    /// Permissions of the plugin.
    pub permissions: Permissions,
    /// Warnings about the metadata.
    #[api(with(Vec<String>, |notes: &Vec<Note>| notes.iter().map(Note::to_string).collect()))]
    pub warnings: Vec<Note>,
}

/// Error of a hook.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(name = "DebuggedError")]
pub struct DebugError {
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

impl From<ScriptError> for DebugError {
    fn from(error: ScriptError) -> Self {
        Self {
            kind: error.kind.as_str().to_owned(),
            message: error.message,
            line: error.line,
            column: error.column,
            stack: error.stack,
        }
    }
}

impl DebugError {
    fn new(kind: &str, message: String) -> Self {
        Self { kind: kind.to_owned(), message, line: None, column: None, stack: None }
    }
}

/// The payload of a message, for trying: everything that is not said is made up.
pub fn sample_message(content: &str, user_id: &str, user_name: &str, timestamp: i64) -> Value {
    json!({
        "type": "message",
        "content": content,
        "sender": { "user_id": user_id, "user_name": user_name },
        "sessionID": user_id,
        "contextToken": "sample",
        "msg_type": MessageKind::Text.msg_type(),
        "timestamp": timestamp,
        "bot_id": "bot_00000000000000000000000000",
        "channel_id": "ch_00000000000000000000000000",
        "id": "msg_00000000000000000000000000",
    })
}

impl Plugins<'_> {
    /// Tries a hook with the webhook of a channel. Nothing is sent and nothing is stored.
    ///
    /// # Errors
    /// `NOT_FOUND` for a channel of another user; `INVALID_PARAMS` for a source or metadata that could not be
    /// submitted; `RATE_LIMITED` or `UNAVAILABLE` when the sandbox cannot run it now.
    pub async fn debug(&self, actor: &Actor, channel_id: ChannelId, mut run: DebugRun) -> Result<Debugged> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        let bot =
            read.channels().bot_of(scope, channel_id).await?.ok_or_else(|| Error::not_found("channel"))?;
        let record = read.channels().find(scope, bot, channel_id).await?;
        let record = record.ok_or_else(|| Error::not_found("channel"))?;
        drop(read);
        let url = record.webhook()?.url;
        if !url.is_empty() {
            run.url = url;
        }
        if let Value::Object(message) = &mut run.message {
            message.insert("bot_id".into(), json!(bot));
            message.insert("channel_id".into(), json!(channel_id));
        }
        let script = run.script.clone();
        let manifest = self.ctx.computations.run(move || Manifest::parse(&script)).await??;
        debug(&self.ctx.sandbox, &actor.principal(), run, &manifest).await
    }
}

/// Tries a hook anywhere, also without a hub, and without a network; `tenant` is who tries it.
///
/// # Errors
/// As [`debug_with`].
pub async fn debug(sandbox: &Sandbox, tenant: &str, run: DebugRun, manifest: &Manifest) -> Result<Debugged> {
    debug_with(sandbox, tenant, run, manifest, &NoFetch).await
}

/// Tries a hook as [`debug`] does; `gate` makes its fetches.
///
/// # Errors
/// `INVALID_PARAMS` for input that is too large or not usable; `RATE_LIMITED` or `UNAVAILABLE` when the sandbox
/// cannot run it now.
pub async fn debug_with(
    sandbox: &Sandbox,
    tenant: &str,
    run: DebugRun,
    manifest: &Manifest,
    gate: &dyn FetchGate,
) -> Result<Debugged> {
    let url = Url::parse(&run.url).map_err(|_| Error::invalid("url", "must be an absolute URL"))?;
    let message = serde_json::value::to_raw_value(&run.message).map_err(Error::internal)?;
    let answer = run.response.as_ref().map(DebugResponse::shown).transpose()?;
    let size = message.get().len() + run.response.as_ref().map_or(0, |response| response.body.len());
    if size > MAX_INPUT {
        return Err(Error::invalid(
            "message",
            format!("must be at most {MAX_INPUT} bytes with the response"),
        ));
    }
    let before = run.request.unwrap_or_else(|| drafted(&run.url, &message));
    let mut debugged = Debugged {
        hook: if answer.is_some() { Hook::OnResponse } else { Hook::OnRequest },
        matched: true,
        present: false,
        request: Some(before.clone()),
        before: before.clone(),
        response: answer.clone(),
        replies: Vec::new(),
        skipped: false,
        logs: Vec::new(),
        state: None,
        error: None,
        duration_us: 0,
        memory_bytes: 0,
        permissions: Permissions::from(manifest),
        warnings: manifest.warnings.clone(),
    };
    match manifest.matches.matches(&filter_input(&run.message)) {
        Ok(true) => {}
        Ok(false) => {
            debugged.matched = false;
            return Ok(debugged);
        }
        Err(reason) => {
            debugged.request = None;
            debugged.error = Some(DebugError::new("match", reason));
            return Ok(debugged);
        }
    }
    let mut input = match answer {
        Some(answer) => HookInput::on_response(message, before.clone(), answer),
        None => HookInput::on_request(message, before.clone()),
    };
    input.state = run.state;
    input.dialect = manifest.sandbox_dialect();
    input.grants = Grants {
        reply: manifest.grants.reply,
        skip: manifest.grants.skip,
        fetch: !manifest.connects.is_empty(),
    };
    input.limits = Limits { timeout: manifest.timeout.as_duration(), ..Limits::default() };
    input.measure = true;
    let run = HookRun { tenant: tenant.to_owned(), source: Source::new(run.script), input };
    let outcome = sandbox.run(run, gate).await?;
    let reach =
        Reach { configured: Some(&url), connects: &manifest.connects, plain_http: url.scheme() == "http" };
    debugged.take(outcome, &before, &reach);
    Ok(debugged)
}

impl Debugged {
    fn take(&mut self, outcome: HookOutcome, before: &PluginRequest, reach: &Reach<'_>) {
        self.present = outcome.present;
        self.replies = outcome.replies;
        self.skipped = outcome.skipped;
        self.logs = outcome.logs;
        self.state = outcome.state;
        self.duration_us = u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX);
        self.memory_bytes = outcome.memory_bytes;
        self.error = outcome.error.map(DebugError::from);
        if let Some(left) = outcome.request
            && self.error.is_none()
        {
            match request::checked(left, before, reach) {
                Ok(left) => {
                    self.request = Some(request::shown(&left.method, &left.url, &left.headers, &left.body));
                }
                Err(violation) => self.error = Some(DebugError::new(violation.kind, violation.message)),
            }
        }
        if self.skipped || self.error.is_some() {
            self.request = None;
        }
    }
}

impl DebugResponse {
    fn shown(&self) -> Result<PluginResponse> {
        let status = StatusCode::from_u16(self.status).ok().filter(|status| status.as_u16() < 600);
        let status = status.ok_or_else(|| Error::invalid("response.status", "must be from 100 to 599"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let pair = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            let (name, value) = pair
                .ok_or_else(|| Error::invalid("response.headers", "must be names and values of headers"))?;
            headers.append(name, value);
        }
        Ok(request::shown_answer(status, &headers, &Bytes::from(self.body.clone())))
    }
}

/// Returns the request that a hub would send for a message, without authentication.
fn drafted(url: &str, message: &RawValue) -> PluginRequest {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = HeaderValue::from_static(concat!("message-hub/", env!("CARGO_PKG_VERSION")));
    headers.insert(header::USER_AGENT, agent);
    request::shown(&Method::POST, url, &headers, &Bytes::from(message.get().to_owned()))
}

/// Returns the input of `@match` for a message.
fn filter_input(message: &Value) -> FilterInput<'_> {
    let field = |name: &str| message[name].as_str().unwrap_or_default();
    let kinds =
        [MessageKind::Text, MessageKind::Image, MessageKind::Voice, MessageKind::Video, MessageKind::File];
    let number = message["msg_type"].as_i64().unwrap_or(MessageKind::Text.msg_type());
    FilterInput {
        content: field("content"),
        user_id: message["sender"]["user_id"].as_str().unwrap_or_default(),
        user_name: message["sender"]["user_name"].as_str().unwrap_or_default(),
        session_id: field("sessionID"),
        kind: kinds.into_iter().find(|kind| kind.msg_type() == number).unwrap_or(MessageKind::Other),
        timestamp: message["timestamp"].as_i64().unwrap_or_default(),
        bot_id: field("bot_id"),
        channel_id: field("channel_id"),
    }
}
