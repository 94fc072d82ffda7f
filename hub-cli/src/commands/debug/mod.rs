//! `debug …`: a plugin in the sandbox of the server, with its limits, and without a network unless it is asked for.

use std::collections::BTreeMap;

use hub_core::{
    plugins::debug::{DebugResponse, DebugRun, Debugged, debug, debug_with},
    sandbox::{Body, PluginRequest, Reply, Sandbox, SandboxConfig, WorkerProgram},
    time::Clock,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::read_file;
use crate::{
    args::{DebugChecks, DebugCommand, DebugInput, DebugReplArgs, DebugRequestArgs, DebugResponseArgs},
    exit::{Exit, Failure},
    printer::Printer,
    reach::permissions_document,
};

mod expect;
mod hosts;
mod message;
mod metadata;
mod remote;
mod repl;
mod send;
pub mod view;
mod watch;

pub use expect::expectation;
use hosts::Hosts;
pub use message::payload;

pub const FIELDS: [&str; 18] = [
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
    "sent",
    "remote",
    "differences",
];

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

/// A hook to be tried.
struct Trial {
    message: Value,
    /// With an answer it is the response hook.
    response: Option<DebugResponse>,
    state: Option<Box<RawValue>>,
    /// Whether the request is really sent.
    send: bool,
}

/// A hook that was tried.
struct Tried {
    document: Value,
    text: String,
    exit: Exit,
}

impl Tried {
    /// Adds a line, or several.
    fn say(&mut self, text: &str) {
        self.text.push('\n');
        self.text.push_str(text);
    }
}

/// Runs a command; `local` is whether a server that is named is to be left alone.
pub async fn run(command: DebugCommand, local: bool, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        DebugCommand::Request(DebugRequestArgs { input, checks, send }) => {
            let message = message::of(&input, local).await?;
            let trial = Trial { message, response: None, state: None, send };
            try_hook(&input, &checks, trial, local, printer).await
        }
        DebugCommand::Response(args) => {
            let message = message::of(&args.input, local).await?;
            let (response, state) = (Some(answer(&args)?), state(args.state.as_deref())?);
            let trial = Trial { message, response, state, send: false };
            try_hook(&args.input, &args.checks, trial, local, printer).await
        }
        DebugCommand::Repl(DebugReplArgs { input }) => {
            let message = message::of(&input, local).await?;
            repl::run(&input, message, printer).await.map(|()| Exit::Done)
        }
    }
}

/// Tries the hook once, or whenever the source is saved.
async fn try_hook(
    input: &DebugInput,
    checks: &DebugChecks,
    trial: Trial,
    local: bool,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let (sandbox, hosts) = (sandbox(), Hosts::read(&input.host)?);
    let server = match &checks.remote {
        Some(channel) => Some(remote::Server::open(&input.hub, channel, local)?),
        None => None,
    };
    let once = async || try_once(&sandbox, &hosts, input, checks, &trial, server.as_ref(), printer).await;
    if checks.watch {
        watch::run(&input.script, once, printer).await?;
        return Ok(Exit::Done);
    }
    let tried = once().await?;
    sandbox.close();
    printer.one(tried.document, &tried.text)?;
    Ok(tried.exit)
}

async fn try_once(
    sandbox: &Sandbox,
    hosts: &Hosts,
    input: &DebugInput,
    checks: &DebugChecks,
    trial: &Trial,
    server: Option<&remote::Server>,
    printer: &Printer,
) -> Result<Tried, Failure> {
    let mut run = DebugRun {
        script: read_file(&input.script)?,
        message: trial.message.clone(),
        request: None,
        url: input.url.clone(),
        response: trial.response.clone(),
        state: trial.state.clone(),
    };
    let manifest = metadata::read(&input.script, &run.script)?;
    let theirs = match server {
        // What the server makes of the message is what is tried here.
        Some(server) => Some(server.ask(&mut run).await?),
        None => None,
    };
    let source = run.script.clone();
    let gate = hosts.gate(&manifest, &run.url)?;
    let debugged = debug_with(sandbox, "cli", run, &manifest, &gate).await?;
    let draw = |debugged: &Debugged| view::draw(&input.script, &source, &manifest, debugged, printer);
    let mut tried = Tried { document: document(&debugged), text: draw(&debugged), exit: Exit::Done };
    if debugged.error.is_some() {
        tried.exit = Exit::Failed;
    }
    if trial.send {
        let plugin = send::Plugin { sandbox, gate: &gate, source: &source, manifest: &manifest };
        send::send(plugin, &trial.message, debugged, &mut tried, draw).await?;
    }
    if let Some(theirs) = theirs {
        remote::compare_runs(&theirs, &mut tried, printer);
    }
    if let Some(file) = &checks.expect {
        expect::check(file, checks.update, &mut tried, printer)?;
    }
    Ok(tried)
}

/// A sandbox of this program's own processes.
pub fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::of(WorkerProgram::SelfExe), Clock::system())
}

/// Tries a hook with the metadata of its source, which is the file `path`.
pub async fn make(sandbox: &Sandbox, path: &str, run: DebugRun) -> Result<Debugged, Failure> {
    let manifest = metadata::read(path, &run.script)?;
    Ok(debug(sandbox, "cli", run, &manifest).await?)
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
        "permissions": permissions_document(&debugged.permissions),
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
