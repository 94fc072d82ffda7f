//! Runs a hook of a plugin in the sandbox of the server, with its limits; the outcome as text.

use std::{collections::BTreeMap, sync::Once};

use hub_core::{
    plugins::{
        Manifest,
        debug::{DebugResponse, DebugRun, Debugged, debug, sample_message},
        diff, manifest,
    },
    sandbox::{CallFilter, Confinement, PluginRequest, Sandbox, SandboxConfig, WorkerProgram},
    time::Clock,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    exit::Failure,
    printer::{Printer, Tone},
    screen,
};

/// A response of a webhook, as in a file.
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

/// A payload with defaults for missing fields.
pub fn payload(given: Value) -> Value {
    let mut payload = sample_message("", "user_1", "Ada", Clock::system().now().as_seconds());
    if let (Value::Object(payload), Value::Object(given)) = (&mut payload, given) {
        payload.extend(given);
    }
    payload
}

/// A sandbox with processes of this program, for plugins of the caller: they also run where their system calls cannot be
/// filtered, as on a Mac.
pub fn sandbox() -> Sandbox {
    Sandbox::new(own_plugins(), Clock::system())
}

/// The settings of [`sandbox`].
pub fn own_plugins() -> SandboxConfig {
    SandboxConfig { filter: CallFilter::Optional, ..SandboxConfig::of(WorkerProgram::SelfExe) }
}

/// Ends a sandbox, and notes if plugins ran without a filter of system calls.
pub fn close(sandbox: &Sandbox, printer: &Printer) {
    note_confinement(sandbox, printer);
    sandbox.close();
}

/// Notes, once per process, that plugins run without a filter of system calls.
pub fn note_confinement(sandbox: &Sandbox, printer: &Printer) {
    static NOTED: Once = Once::new();
    if sandbox.confinement() == Confinement::Unfiltered {
        NOTED.call_once(|| {
            printer.note(
                "plugins run here without a filter of system calls, which this system cannot install; \
                 a server runs none then unless sandbox_filter = \"optional\"",
            );
        });
    }
}

/// Runs a hook with the metadata of its source, the file `path`.
pub async fn make(sandbox: &Sandbox, path: &str, run: DebugRun) -> Result<Debugged, Failure> {
    let manifest = metadata(path, &run.script)?;
    Ok(debug(sandbox, "cli", run, &manifest).await?)
}

/// Reads the metadata of a source in a file; an error contains its place.
pub fn metadata(path: &str, source: &str) -> Result<Manifest, Failure> {
    manifest::check_size(source)?;
    Manifest::inspect(source).map_err(|flaws| {
        let lines = flaws
            .into_iter()
            .map(|flaw| format!("{path}:{}:{}: {}", flaw.line, flaw.column, screen::clean(&flaw.message)));
        Failure::usage(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// The request, with what the plugin changed.
pub fn changes(before: &PluginRequest, after: &PluginRequest, printer: &Printer) -> Vec<String> {
    let mut lines = vec![format!("  {} {}", screen::clean(&after.method), screen::clean(&after.url))];
    if before == after {
        lines.push(printer.paint("    as it was", Tone::Faint));
        return lines;
    }
    if (&before.method, &before.url) != (&after.method, &after.url) {
        let line = format!("- {} {}", before.method, before.url);
        lines.push(format!("  {}", printer.paint_diff(&line)));
    }
    let header = |sign: &str, (name, value): (&String, &String)| {
        printer.paint_diff(&format!("{sign}   {name}: {value}"))
    };
    let gone = before.headers.iter().filter(|(name, value)| after.headers.get(*name) != Some(value));
    let new = after.headers.iter().filter(|(name, value)| before.headers.get(*name) != Some(value));
    let headers: Vec<String> =
        gone.map(|pair| header("-", pair)).chain(new.map(|pair| header("+", pair))).collect();
    if !headers.is_empty() {
        lines.push("    headers".to_owned());
        lines.extend(headers.into_iter().map(|line| format!("  {line}")));
    }
    if before.body != after.body {
        lines.push("    body".to_owned());
        let text = diff::unified(&diff::laid_out(before.body.text()), &diff::laid_out(after.body.text()));
        lines.extend(text.lines().map(|line| format!("  {}", printer.paint_diff(line))));
    }
    lines
}
