//! `debug …`: a plugin in the sandbox of the server, with its limits, and without a network.

use std::collections::BTreeMap;

use hub_core::{
    access::Actor,
    bots::{Bots, MessageFilter},
    page::{MAX_LIMIT, PageRequest},
    plugins::{
        Manifest,
        debug::{DebugResponse, DebugRun, Debugged, debug, sample_message},
    },
    sandbox::{Body, PluginRequest, Reply, Sandbox, SandboxConfig, WorkerProgram},
    time::Clock,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{read_file, text_or_stdin};
use crate::{
    args::{DebugCommand, DebugInput, DebugReplArgs, DebugRequestArgs, DebugResponseArgs},
    exit::{Exit, Failure},
    local::{self, Open},
    printer::Printer,
};

mod repl;
mod view;
mod watch;

pub const FIELDS: [&str; 15] = [
    "hook",
    "matched",
    "present",
    "before",
    "request",
    "response",
    "replies",
    "skipped",
    "logs",
    "state",
    "error",
    "duration_ms",
    "memory_bytes",
    "permissions",
    "warnings",
];

/// Messages that are looked through for the one of a trace.
const MAX_MESSAGES: usize = 2_000;

/// An answer of a webhook, as a file holds it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mock {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

impl From<Mock> for DebugResponse {
    fn from(mock: Mock) -> Self {
        Self { status: mock.status, headers: mock.headers, body: mock.body }
    }
}

pub async fn run(command: DebugCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        DebugCommand::Request(DebugRequestArgs { input }) => {
            let message = message(&input).await?;
            try_hook(&input, message, None, None, printer).await
        }
        DebugCommand::Response(args) => {
            let message = message(&args.input).await?;
            let (response, state) = (answer(&args)?, state(args.state.as_deref())?);
            try_hook(&args.input, message, Some(response), state, printer).await
        }
        DebugCommand::Repl(DebugReplArgs { input }) => {
            let message = message(&input).await?;
            repl::run(&input, message, printer).await.map(|()| Exit::Done)
        }
    }
}

/// Tries the hook once, or whenever the source is saved.
async fn try_hook(
    input: &DebugInput,
    message: Value,
    response: Option<DebugResponse>,
    state: Option<Box<RawValue>>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let sandbox = sandbox();
    let once = async || {
        let run = DebugRun {
            script: read_file(&input.script)?,
            message: message.clone(),
            request: None,
            url: input.url.clone(),
            response: response.clone(),
            state: state.clone(),
        };
        let manifest = Manifest::parse(&run.script)?;
        let source = run.script.clone();
        let debugged = debug(&sandbox, "cli", run, &manifest).await?;
        let text = view::draw(&input.script, &source, &manifest, &debugged, printer);
        Ok::<_, Failure>((debugged, text))
    };
    if input.watch {
        watch::run(&input.script, once, printer).await?;
        return Ok(Exit::Done);
    }
    let (debugged, text) = once().await?;
    sandbox.close();
    printer.one(document(&debugged), &text)?;
    Ok(if debugged.error.is_some() { Exit::Failed } else { Exit::Done })
}

/// A sandbox of this program's own processes.
pub fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::of(WorkerProgram::SelfExe), Clock::system())
}

/// Tries a hook with the metadata of its source.
pub async fn make(sandbox: &Sandbox, run: DebugRun) -> Result<Debugged, Failure> {
    let manifest = Manifest::parse(&run.script)?;
    Ok(debug(sandbox, "cli", run, &manifest).await?)
}

/// The message of the arguments.
async fn message(input: &DebugInput) -> Result<Value, Failure> {
    if let Some(trace) = &input.trace {
        return recorded(input, trace).await;
    }
    if let Some(file) = &input.message {
        let message = serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))?;
        return Ok(payload(message));
    }
    let text = text_or_stdin(input.text.clone().unwrap_or_else(|| "hello".to_owned()))?;
    Ok(sample_message(&text, "user_1", &input.from, now()))
}

/// A payload with everything that a file may leave out.
pub fn payload(given: Value) -> Value {
    let mut payload = sample_message("", "user_1", "Ada", now());
    if let (Value::Object(payload), Value::Object(given)) = (&mut payload, given) {
        payload.extend(given);
    }
    payload
}

fn now() -> i64 {
    Clock::system().now().as_seconds()
}

/// The message of a trace, as its channel got it.
async fn recorded(input: &DebugInput, trace: &str) -> Result<Value, Failure> {
    let missing = || {
        Failure::not_found(format!("there is no trace {trace}")).with_hint("hub-cli traces list --bot BOT")
    };
    let id = trace.parse().map_err(|_| missing())?;
    let hub = local::open(&input.local, Open::Existing).await?;
    let found = hub.traces().find(&Actor::Operator, None, id).await?.ok_or_else(missing)?;
    let filter = MessageFilter::default();
    let list = Bots::message_list(found.bot_id, &filter);
    let (mut cursor, mut seen) = (None, 0);
    let message = loop {
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.bots().messages(&Actor::Operator, found.bot_id, &filter, &page).await?;
        seen += page.items.len();
        if let Some(message) = page.items.into_iter().find(|message| message.id == found.message_id) {
            break message;
        }
        cursor = page.next_cursor;
        if cursor.is_none() || seen >= MAX_MESSAGES {
            return Err(missing());
        }
    };
    hub.shutdown().await;
    let sent = message.created_at.as_seconds();
    let mut payload = sample_message(&message.content, &message.from_user_id, &message.user_name, sent);
    payload["msg_type"] = json!(message.kind.msg_type());
    payload["sessionID"] = json!(message.session_id);
    payload["bot_id"] = json!(found.bot_id);
    if let Some(channel) = found.channel_id {
        payload["channel_id"] = json!(channel);
    }
    Ok(payload)
}

fn answer(args: &DebugResponseArgs) -> Result<DebugResponse, Failure> {
    match &args.response {
        Some(file) => {
            let mock: Mock =
                serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))?;
            Ok(mock.into())
        }
        None => Ok(DebugResponse { status: args.status, headers: BTreeMap::new(), body: args.body.clone() }),
    }
}

fn state(json: Option<&str>) -> Result<Option<Box<RawValue>>, Failure> {
    let read = |text: &str| RawValue::from_string(text.to_owned());
    json.map(read).transpose().map_err(|error| Failure::usage(format!("--state: {error}")))
}

/// What a hook did, as the debug endpoints answer.
pub fn document(debugged: &Debugged) -> Value {
    json!({
        "hook": debugged.hook.as_str(),
        "matched": debugged.matched,
        "present": debugged.present,
        "before": request_document(&debugged.before),
        "request": debugged.request.as_ref().map(request_document),
        "response": debugged.response,
        "replies": debugged.replies.iter().map(reply_document).collect::<Vec<_>>(),
        "skipped": debugged.skipped,
        "logs": debugged.logs,
        "state": debugged.state,
        "error": debugged.error.as_ref().map(|error| json!({
            "kind": error.kind,
            "message": error.message,
            "line": error.line,
            "column": error.column,
            "stack": error.stack,
        })),
        "duration_ms": millis(debugged.duration_us),
        "memory_bytes": debugged.memory_bytes,
        "permissions": {
            "grants": debugged.permissions.grants,
            "matches": debugged.permissions.matches,
            "connects": debugged.permissions.connects,
            "timeout_ms": debugged.permissions.timeout_ms,
            "words": debugged.permissions.words,
        },
        "warnings": debugged.warnings.iter().map(|note| format!("line {}: {}", note.line, note.message)).collect::<Vec<_>>(),
    })
}

fn request_document(request: &PluginRequest) -> Value {
    let body = match &request.body {
        Body::Empty => Value::Null,
        Body::Text(text) => json!(text),
        Body::Json(json) => json!(json),
    };
    json!({ "url": request.url, "method": request.method, "headers": request.headers, "body": body })
}

fn reply_document(reply: &Reply) -> Value {
    match reply {
        Reply::Text(text) => json!({ "type": "text", "text": text }),
        Reply::DataUri(uri) => json!({ "type": "data_uri", "uri": uri }),
        Reply::File { base64, filename } => {
            json!({ "type": "base64", "filename": filename, "base64": base64 })
        }
        Reply::Forward => json!({ "type": "forward" }),
    }
}

/// Microseconds as milliseconds with one decimal.
#[expect(clippy::cast_precision_loss, reason = "a run lasts seconds")]
pub fn millis(micros: u64) -> f64 {
    (micros as f64 / 100.0).round() / 10.0
}
