//! `plugins lint`: metadata and syntax of sources.

use hub_core::{
    plugins::{Manifest, manifest},
    sandbox::{Sandbox, Source},
};
use serde_json::{Value, json};

use super::super::{debug::sandbox, read_file};
use crate::{
    args::PluginsLintArgs,
    exit::{Exit, Failure},
    printer::{List, Printer},
    screen,
};

pub const FIELDS: [&str; 5] = ["file", "line", "column", "severity", "message"];

/// Something about a line.
struct Finding {
    file: String,
    line: u32,
    column: Option<u32>,
    severity: &'static str,
    message: String,
}

pub async fn run(args: &PluginsLintArgs, printer: &Printer) -> Result<Exit, Failure> {
    let sandbox = sandbox();
    let mut found = Vec::new();
    for file in &args.files {
        found.extend(lint(&sandbox, file, &read_file(file)?).await?);
    }
    sandbox.close();
    let row = |finding: &Finding| {
        let place = match finding.column {
            Some(column) => format!("{}:{}:{column}", finding.file, finding.line),
            None => format!("{}:{}", finding.file, finding.line),
        };
        vec![place, finding.severity.to_owned(), screen::clean(&finding.message)]
    };
    let item = |finding: &Finding| -> Value {
        json!({
            "file": finding.file,
            "line": finding.line,
            "column": finding.column,
            "severity": finding.severity,
            "message": finding.message,
        })
    };
    printer.list(List {
        columns: &["PLACE", "SEVERITY", "MESSAGE"],
        rows: found.iter().map(row).collect(),
        items: found.iter().map(item).collect(),
        next_cursor: None,
        empty: "nothing to say",
    })?;
    let wrong = found.iter().any(|finding| finding.severity == "error");
    Ok(if wrong { Exit::Conflict } else { Exit::Done })
}

async fn lint(sandbox: &Sandbox, file: &str, source: &str) -> Result<Vec<Finding>, Failure> {
    let mut found = Vec::new();
    let mut add = |line, column, severity, message: String| {
        found.push(Finding { file: file.to_owned(), line, column, severity, message });
    };
    if let Err(error) = manifest::check_size(source) {
        add(1, None, "error", error.message().to_owned());
        return Ok(found);
    }
    match Manifest::inspect(source) {
        Err(flaws) => {
            for flaw in flaws {
                add(flaw.line, None, "error", flaw.message);
            }
        }
        Ok(manifest) => {
            if manifest.dialect.is_none() {
                add(1, None, "error", "there is no metadata block: // ==UserScript==".to_owned());
            } else if manifest.name.is_none() {
                add(1, None, "error", "the metadata block has no @name".to_owned());
            }
            for note in manifest.warnings {
                add(note.line, None, "warning", note.message);
            }
        }
    }
    let checked = sandbox.check("cli", &Source::new(source)).await.map_err(hub_core::Error::from)?;
    if let Some(error) = checked {
        add(error.line.unwrap_or(1), error.column, "error", error.message);
    }
    Ok(found)
}
