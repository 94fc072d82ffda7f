//! `debug repl`: JavaScript against `ctx`, line by line. A sandbox keeps no state between runs and compiles nothing
//! at run time, so each line is appended to the previous ones, and all of them run again.

use std::io::{IsTerminal, Write};

use hub_core::{
    plugins::debug::{DebugRun, Debugged, debug_with},
    sandbox::{Sandbox, Source},
};
use serde_json::Value;

use super::{Hosts, close, metadata, note_confinement, read_file, sandbox, view};
use crate::{
    args::DebugInput, ask, commands::plugins::run::changes, exit::Failure, printer::Printer, screen,
};

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 16 * 1024;

pub async fn run(input: &DebugInput, message: Value, printer: &Printer) -> Result<(), Failure> {
    let script = read_file(&input.script)?;
    let manifest = metadata(&input.script, &script)?;
    let gate = Hosts::read(&input.host)?.gate(&manifest, &input.url)?;
    let sandbox = sandbox();
    let terminal = std::io::stdin().is_terminal();
    if terminal {
        printer.note("ctx, onRequest(ctx) and the names of the source are in scope; Ctrl-D ends");
    }
    let (mut history, mut logged, mut replied) = (Vec::new(), 0, 0);
    loop {
        if terminal {
            // Errors are ignored: stderr is closed.
            let _ = write!(std::io::stderr(), "> ").and_then(|()| std::io::stderr().flush());
        }
        let Some(line) = next_line().await? else { break };
        if line.trim().is_empty() {
            continue;
        }
        let Some(made) = compiled(&sandbox, &script, &history, &line).await? else {
            printer.one(Value::Null, &format!("! syntax error: {}", screen::clean(&line)))?;
            continue;
        };
        let run = DebugRun {
            script: made,
            message: message.clone(),
            request: None,
            url: input.url.clone(),
            response: None,
            state: None,
        };
        let debugged = debug_with(&sandbox, "cli", run, &manifest, &gate).await?;
        note_confinement(&sandbox, printer);
        printer.one(Value::Null, &answer(&debugged, logged, replied, printer))?;
        if debugged.error.is_none() {
            (logged, replied) = (debugged.logs.len(), debugged.replies.len());
            // The value of the last line is printed with console, and is not part of later runs.
            logged = logged.saturating_sub(1);
            history.push(line);
        }
    }
    close(&sandbox, printer);
    Ok(())
}

/// The source followed by the lines; the last one as an expression, or else as a statement.
async fn compiled(
    sandbox: &Sandbox,
    script: &str,
    history: &[String],
    line: &str,
) -> Result<Option<String>, Failure> {
    let before = history.join("\n;");
    for last in [format!("return (\n{line}\n);"), line.to_owned()] {
        let made = format!(
            "var __run = (() => {{ {script}\n;return (ctx) => {{ {before}\n;return (() => {{ {last} }})(); }}; }})();\n\
             function onRequest(ctx) {{ console.log(__run(ctx)); }}\n"
        );
        if sandbox.check("cli", &Source::new(made.as_str())).await.map_err(hub_core::Error::from)?.is_none() {
            return Ok(Some(made));
        }
    }
    Ok(None)
}

/// The effects of the last line: its logs, replies and value, and the changes of the request.
fn answer(debugged: &Debugged, logged: usize, replied: usize, printer: &Printer) -> String {
    if let Some(error) = &debugged.error {
        return format!("! {}: {}", error.kind, screen::clean(&error.message));
    }
    let mut lines: Vec<String> =
        debugged.logs.iter().skip(logged).map(|log| format!("  {}", screen::clean(&log.text))).collect();
    lines
        .extend(debugged.replies.iter().skip(replied).map(|reply| format!("  reply {}", view::shown(reply))));
    if debugged.skipped {
        lines.push("  skip".to_owned());
    }
    if let Some(request) = debugged.request.as_ref().filter(|request| **request != debugged.before) {
        lines.extend(changes(&debugged.before, request, printer));
    }
    lines.join("\n")
}

async fn next_line() -> Result<Option<String>, Failure> {
    match ask::line().await.map_err(|error| Failure::file("stdin", error))? {
        Some(line) if line.len() > MAX_LINE => Err(Failure::file("stdin", "has a line over 16 KiB")),
        line => Ok(line.map(|line| line.trim_end().to_owned())),
    }
}
