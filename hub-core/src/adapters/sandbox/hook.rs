//! One run of one hook: its input and its outcome.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::words::words;

/// Largest source of a plugin, in bytes.
pub const MAX_SOURCE: usize = 256 * 1024;
/// Most replies of one run; further ones are dropped with a log line.
pub const MAX_REPLIES: usize = 10;
/// Longest text of one reply, in bytes; a longer one throws in the plugin. The limit of the API; long texts are split
/// for the network.
pub const MAX_REPLY_TEXT: usize = 64 * 1024;
/// Most log lines of one run, and their bytes together; what comes after is dropped.
pub const MAX_LOG_LINES: usize = 100;
/// See [`MAX_LOG_LINES`].
pub const MAX_LOG_BYTES: usize = 8 * 1024;
/// Largest result: the request, the replies and the state together, in bytes.
pub const MAX_RESULT: usize = 512 * 1024;
/// Most headers a plugin may leave on a request.
pub const MAX_HEADERS: usize = 64;
/// Largest `ctx.state`, in bytes of JSON.
pub const MAX_STATE: usize = 64 * 1024;
/// Most fetches of one run; the next one throws in the plugin.
pub const MAX_FETCHES: u32 = 5;
/// Largest body of a fetch, in bytes.
pub const MAX_FETCH_BODY: usize = 256 * 1024;
/// Deepest nesting of JSON that comes out of a plugin.
pub const MAX_DEPTH: usize = 64;
/// Longest name that [`Sandbox::unknown_names`](super::Sandbox::unknown_names) finds, in bytes, and how many it finds.
pub(super) const MAX_NAME: usize = 64;
pub(super) const MAX_NAMES: usize = 64;
/// Longest text of an error or its stack, in bytes.
pub const MAX_ERROR_TEXT: usize = 2 * 1024;

/// A plugin's source, immutable, with the hash by which it is known and cached. Clones share the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    text: Arc<str>,
    hash: [u8; 32],
}

impl Source {
    /// Takes the whole file as the author wrote it; lines and columns of errors refer to it.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let hash = Sha256::digest(text.as_bytes()).into();
        Self { text, hash }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text: what a review is bound to.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes, {})", self.text.len(), data_encoding::HEXLOWER.encode(&self.hash[..4]))
    }
}

words! {
    /// Which function of the plugin is called.
    pub enum Hook {
        /// Before the webhook request.
        OnRequest = "onRequest",
        /// After the webhook's answer.
        OnResponse = "onResponse",
    }
}

/// Metadata block of the plugin. Both dialects get `ctx.reply`, `ctx.skip`, `ctx.fetch` and globals of the same
/// names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `==UserScript==`, the form of the specification.
    #[default]
    UserScript,
    /// `==WebhookPlugin==`, the published form: `ctx` is a global as well.
    WebhookPlugin,
}

/// Permissions of a plugin. The use of one that is not granted throws in the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// `reply()`.
    pub reply: bool,
    /// `skip()`, in `onRequest`.
    pub skip: bool,
    /// `fetch()`; to which hosts is decided by the [`FetchGate`](super::FetchGate).
    pub fetch: bool,
}

impl Default for Grants {
    /// Replies and skips, no fetches.
    fn default() -> Self {
        Self { reply: true, skip: true, fetch: false }
    }
}

/// Limits of time and memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall time over everything: compiling, the hook, its promises and fetches, reading the result back. Waiting
    /// for a free worker is not part of it.
    pub timeout: Duration,
    /// Memory of the JavaScript heap, in bytes, at least [`Limits::MIN_MEMORY`].
    pub memory: usize,
}

impl Limits {
    /// The longest timeout.
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(10);
    /// With less, not even the standard library fits.
    pub const MIN_MEMORY: usize = 1 << 20;
}

impl Default for Limits {
    /// 5 s and 32 MiB.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), memory: 32 << 20 }
    }
}

/// A run to make.
#[derive(Debug, Clone)]
pub struct HookRun {
    /// Key for fair queueing, any text; the owner of the channel.
    pub tenant: String,
    /// The plugin.
    pub source: Source,
    /// Arguments of the hook.
    pub input: HookInput,
}

/// Arguments of a hook, its permissions and its limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HookInput {
    /// The hook to call.
    pub hook: Hook,
    /// Metadata block of the plugin.
    pub dialect: Dialect,
    /// `ctx.msg`, JSON; frozen in the plugin.
    pub msg: Box<RawValue>,
    /// `ctx.req`; read-only in `onResponse`.
    pub request: PluginRequest,
    /// `ctx.res`; absent in `onRequest`.
    pub response: Option<PluginResponse>,
    /// `ctx.state` as the earlier hook left it; `{}` for the plugin when absent.
    pub state: Option<Box<RawValue>>,
    /// Permissions of the plugin.
    pub grants: Grants,
    /// Its limits.
    pub limits: Limits,
    /// Runs the top level only, to learn [`HookOutcome::hooks`]; no hook is called.
    pub only_load: bool,
    /// Seed of the randomness of `crypto`: the same seed gives the same values, so that a run can be repeated.
    pub seed: [u8; 32],
    /// Whether [`HookOutcome::memory_bytes`] is read after every run. Reading it walks the whole heap, which can cost
    /// more than the run; after an error it is read anyway.
    pub measure: bool,
}

impl HookInput {
    /// `onRequest` with everything else at its default.
    pub fn on_request(msg: Box<RawValue>, request: PluginRequest) -> Self {
        Self {
            hook: Hook::OnRequest,
            dialect: Dialect::default(),
            msg,
            request,
            response: None,
            state: None,
            grants: Grants::default(),
            limits: Limits::default(),
            only_load: false,
            seed: [0; 32],
            measure: false,
        }
    }

    /// Whether it may share a frame with other runs: without fetches all its effects are in the outcome, so it can be
    /// repeated.
    pub(super) fn may_run_together(&self) -> bool {
        !self.grants.fetch && !self.measure
    }

    /// `onResponse` with everything else at its default.
    pub fn on_response(msg: Box<RawValue>, request: PluginRequest, response: PluginResponse) -> Self {
        Self { hook: Hook::OnResponse, response: Some(response), ..Self::on_request(msg, request) }
    }
}

/// A request, before it is signed.
// What comes out of a plugin is unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "DebuggedRequest")]
pub struct PluginRequest {
    /// Target.
    pub url: String,
    /// Method.
    pub method: String,
    /// Headers by name.
    pub headers: BTreeMap<String, String>,
    /// Body as JSON or as text; `null` without a body.
    #[api(with(crate::openapi::Any, |body: &Body| crate::openapi::one_any(&body.value())))]
    pub body: Body,
}

/// A request's body.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// Sent as it is; a string for the plugin.
    Text(String),
    /// Sent as it is; an object, array or other value for the plugin.
    Json(Box<RawValue>),
}

impl Body {
    /// The body as JSON: a text as a string, and none as `null`.
    pub fn value(&self) -> serde_json::Value {
        match self {
            Self::Empty => serde_json::Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Json(json) => serde_json::from_str(json.get()).unwrap_or_default(),
        }
    }

    /// The text to be sent; empty when there is none.
    pub fn text(&self) -> &str {
        match self {
            Self::Empty => "",
            Self::Text(text) => text,
            Self::Json(json) => json.get(),
        }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.text() == other.text()
    }
}

impl Eq for Body {}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "DebuggedAnswer")]
pub struct PluginResponse {
    /// Status.
    pub status: u16,
    /// Headers by name.
    pub headers: BTreeMap<String, String>,
    /// Body; `null` if it is binary.
    pub body: Option<String>,
}

/// Result of a run. A hook that failed has an [`error`](Self::error), and the effects it had before it failed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HookOutcome {
    /// Whether the source defines the hook. No hook was called if it does not.
    pub present: bool,
    /// The hooks that the source defines; `None` when its top level did not finish.
    pub hooks: Option<Hooks>,
    /// The undeclared names of the source, if the run searched for them.
    pub unknown_names: Vec<String>,
    /// The request as `onRequest` left it; `None` when it changed nothing, failed, or in `onResponse`.
    pub request: Option<PluginRequest>,
    /// Replies in the order in which they were made, at most [`MAX_REPLIES`].
    pub replies: Vec<Reply>,
    /// Whether `skip()` was called.
    pub skipped: bool,
    /// `ctx.state` as the hook left it; `None` when it set nothing.
    pub state: Option<Box<RawValue>>,
    /// Lines written with `console`.
    pub logs: Vec<LogLine>,
    /// Failure of the plugin.
    pub error: Option<ScriptError>,
    /// Wall time of the run, without the wait for a worker.
    pub duration: Duration,
    /// Time that the run waited for a worker.
    #[serde(skip)]
    pub waited: Duration,
    /// Bytes of the JavaScript heap in use when the hook ended; the limit when that was reached. 0 when it was not
    /// read: the run succeeded and [`HookInput::measure`] is off, or it was stopped first.
    pub memory_bytes: u64,
}

impl HookOutcome {
    /// Whether the run did not end by itself.
    pub(super) fn is_overrun(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind.is_overrun())
    }
}

/// Hooks that a source defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// `onRequest`.
    pub on_request: bool,
    /// `onResponse`.
    pub on_response: bool,
}

impl Hooks {
    /// Whether there is none.
    pub const fn are_none(self) -> bool {
        !self.on_request && !self.on_response
    }

    /// Whether this one is among them.
    pub const fn have(self, hook: Hook) -> bool {
        match hook {
            Hook::OnRequest => self.on_request,
            Hook::OnResponse => self.on_response,
        }
    }
}

/// A reply made by a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A text, at most [`MAX_REPLY_TEXT`] bytes.
    Text(String),
    /// A `data:` URI, unchecked but for its first five characters.
    DataUri(String),
    /// A file, in base64 that is not checked here.
    File {
        /// Contents.
        base64: String,
        /// Its name; empty when the plugin gave none.
        filename: String,
    },
    /// The webhook's answer, whatever it is.
    Forward,
}

/// A line of `console`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "DebuggedLog")]
pub struct LogLine {
    /// `debug`, `info`, `warn` or `error`.
    #[api(with(String, |level: &LogLevel| level.to_string()))]
    pub level: LogLevel,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Text of the line.
    pub text: String,
}

words! {
    /// A function of `console`.
    pub enum LogLevel {
        /// `console.debug`.
        Debug = "debug",
        /// `console.log` and `console.info`.
        Info = "info",
        /// `console.warn`, and what the sandbox itself remarks.
        Warn = "warn",
        /// `console.error`.
        Error = "error",
    }
}

words! {
    /// How a plugin failed.
    pub enum ErrorKind {
        /// The source is not JavaScript.
        Syntax = "syntax",
        /// It threw, or its promise was rejected.
        Throw = "throw",
        /// It took longer than it may.
        Timeout = "timeout",
        /// It needed more memory than it may.
        Memory = "memory",
        /// It crashed the engine, and with it the worker process.
        Crash = "crash",
        /// It called deeper than 1000 levels.
        Stack = "stack",
        /// What it left in `ctx` cannot be used.
        Output = "output",
    }
}

impl ErrorKind {
    /// Whether the run did not end by itself: five such runs in a row pause a plugin.
    pub const fn is_overrun(self) -> bool {
        matches!(self, Self::Timeout | Self::Crash)
    }
}

/// A failure of the plugin, shown to its author and to the channel's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", kind.as_str())]
pub struct ScriptError {
    /// Category of the failure.
    pub kind: ErrorKind,
    /// Name and message of the JavaScript error, or a sentence.
    pub message: String,
    /// Line in the author's file, from 1.
    pub line: Option<u32>,
    /// Column in that line, from 1.
    pub column: Option<u32>,
    /// Stack of the JavaScript error.
    pub stack: Option<String>,
}

impl ScriptError {
    /// An error without a position.
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), line: None, column: None, stack: None }
    }

    /// Creates the error of a worker process that ended in the middle of the run.
    pub(super) fn crash(how: &str) -> Self {
        Self::new(ErrorKind::Crash, format!("the script crashed the JavaScript engine ({how})"))
    }

    pub(super) fn timeout(limit: Duration) -> Self {
        Self::new(ErrorKind::Timeout, format!("took longer than {} ms", limit.as_millis()))
    }
}
