//! `debug …`: runs a plugin in the sandbox of the server, with its limits, and without network access by default.

use std::collections::BTreeMap;

use hub_core::{
    plugins::debug::{DebugResponse, DebugRun, Debugged, debug_with},
    sandbox::Sandbox,
};
use serde_json::{Value, value::RawValue};

use super::{
    plugins::run::{Mock, close, metadata, note_confinement, sandbox},
    read_file,
};
use crate::{
    args::{DebugChecks, DebugCommand, DebugInput, DebugReplArgs, DebugRequestArgs, DebugResponseArgs},
    context::Context,
    exit::{Exit, Failure},
    printer::Printer,
};

mod expect;
mod hosts;
mod message;
mod remote;
mod repl;
mod send;
mod view;
mod watch;

use hosts::Hosts;

/// A hook to run.
struct Trial {
    message: Value,
    /// With a response it is the response hook.
    response: Option<DebugResponse>,
    state: Option<Box<RawValue>>,
    /// Whether the request is sent.
    send: bool,
}

/// A hook that was run.
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

/// Runs a command; with `local` a named server is not used.
pub async fn run(command: DebugCommand, cx: &Context) -> Result<Exit, Failure> {
    match command {
        DebugCommand::Request(DebugRequestArgs { input, checks, send }) => {
            let message = message::of(&input, cx).await?;
            let trial = Trial { message, response: None, state: None, send };
            try_hook(&input, &checks, trial, cx).await
        }
        DebugCommand::Response(args) => {
            let message = message::of(&args.input, cx).await?;
            let (response, state) = (Some(answer(&args)?), state(args.state.as_deref())?);
            let trial = Trial { message, response, state, send: false };
            try_hook(&args.input, &args.checks, trial, cx).await
        }
        DebugCommand::Repl(DebugReplArgs { input }) => {
            let message = message::of(&input, cx).await?;
            repl::run(&input, message, &cx.printer).await.map(|()| Exit::Done)
        }
    }
}

/// Runs the hook once, or whenever the source is saved.
async fn try_hook(
    input: &DebugInput,
    checks: &DebugChecks,
    trial: Trial,
    cx: &Context,
) -> Result<Exit, Failure> {
    let (sandbox, hosts) = (sandbox(), Hosts::read(&input.host)?);
    let server = match &checks.remote {
        Some(channel) => Some(remote::Server::open(&input.hub, channel, cx)?),
        None => None,
    };
    let once = async || try_once(&sandbox, &hosts, input, checks, &trial, server.as_ref(), &cx.printer).await;
    if checks.watch {
        watch::run(&input.script, once, &cx.printer).await?;
        return Ok(Exit::Done);
    }
    let tried = once().await?;
    close(&sandbox, &cx.printer);
    cx.printer.one(tried.document, &tried.text)?;
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
    let manifest = metadata(&input.script, &run.script)?;
    let theirs = match server {
        // The message as the server completed it is used here.
        Some(server) => Some(server.ask(&mut run).await?),
        None => None,
    };
    let source = run.script.clone();
    let gate = hosts.gate(&manifest, &run.url)?;
    let debugged = debug_with(sandbox, "cli", run, &manifest, &gate).await?;
    note_confinement(sandbox, printer);
    let draw = |debugged: &Debugged| view::draw(&input.script, &source, &manifest, debugged, printer);
    let mut tried = Tried { document: debugged.document(), text: draw(&debugged), exit: Exit::Done };
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
