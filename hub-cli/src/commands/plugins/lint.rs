//! `plugins lint`: checks sources by the rules.

use serde_json::{Value, json};

use super::{fix, read_file, rules, sarif};
use crate::{
    args::{LintFormat, PluginsLintArgs},
    commands::plugins::run::{close, sandbox},
    exit::{Exit, Failure},
    printer::{List, Printer},
    screen,
};

pub struct Finding {
    pub file: String,
    pub line: u32,
    pub column: Option<u32>,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// `metadata`, `syntax`, `absent`, `connect`, `hooks` or `top-level`.
    pub rule: &'static str,
    pub message: String,
}

pub async fn run(args: &PluginsLintArgs, printer: &Printer) -> Result<Exit, Failure> {
    let sandbox = sandbox();
    let mut found = Vec::new();
    for file in &args.files {
        let mut source = read_file(file)?;
        if args.fix {
            source = fix(file, source, printer)?;
        }
        found.extend(rules::check(&sandbox, file, &source).await?);
    }
    close(&sandbox, printer);
    if args.format == LintFormat::Sarif {
        let document = sarif::document(&found);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        printer.one(document, &text)?;
    } else {
        list(&found, args.format, printer)?;
    }
    let wrong = found.iter().any(|finding| finding.severity == "error");
    Ok(if wrong { Exit::Conflict } else { Exit::Done })
}

/// Fixes a file, if necessary.
fn fix(file: &str, source: String, printer: &Printer) -> Result<String, Failure> {
    if file == "-" {
        return Err(Failure::usage("--fix cannot fix stdin"));
    }
    let Some(completed) = fix::completed(file, &source) else { return Ok(source) };
    std::fs::write(file, &completed).map_err(|error| Failure::file(file, error))?;
    printer.note(&format!("{file}: the metadata block was completed"));
    Ok(completed)
}

fn list(found: &[Finding], format: LintFormat, printer: &Printer) -> Result<(), Failure> {
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
            "rule": finding.rule,
            "message": finding.message,
        })
    };
    let list = List {
        columns: &["PLACE", "SEVERITY", "MESSAGE"],
        rows: found.iter().map(row).collect(),
        items: found.iter().map(item).collect(),
        next_cursor: None,
        empty: "no problems",
    };
    if format == LintFormat::Json { printer.as_json().list(list) } else { printer.list(list) }
}
