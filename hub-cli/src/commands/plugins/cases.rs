//! `plugins test`: runs the cases of a folder in the sandbox.

use std::path::{Path, PathBuf};

use hub_core::{
    plugins::{
        debug::{DebugRun, Debugged, SAMPLE_URL},
        outcome,
    },
    sandbox::Sandbox,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::run::{self, Mock};
use crate::{
    args::PluginsTestArgs,
    commands::read_file,
    exit::{Exit, Failure},
    printer::{List, Printer},
};

/// A case, as in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The source, next to the case; by default the only `*.js` of the folder.
    script: Option<String>,
    message: Value,
    response: Option<Mock>,
    state: Option<Value>,
    url: Option<String>,
    /// The expected result; fields that are not named are not compared.
    expect: Value,
}

pub async fn run(args: &PluginsTestArgs, printer: &Printer) -> Result<Exit, Failure> {
    let cases = find(&args.dir)?;
    let sandbox = run::sandbox();
    let (mut rows, mut items, mut failed) = (Vec::new(), Vec::new(), false);
    for path in cases {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.trim_end_matches(".case.json").to_owned();
        let case = read(&path)?;
        let debugged = make(&sandbox, &args.dir, &case).await?;
        let mut differences = Vec::new();
        compare("", &case.expect, &debugged.document(), &mut differences);
        failed |= !differences.is_empty();
        let result = if differences.is_empty() { "ok" } else { "differs" };
        let took = outcome::millis(debugged.duration_us);
        rows.push(vec![name.clone(), result.to_owned(), format!("{took} ms"), differences.join("; ")]);
        items.push(json!({
            "case": name,
            "result": result,
            "differences": differences,
            "duration_ms": took,
        }));
    }
    run::close(&sandbox, printer);
    let columns = &["CASE", "RESULT", "TOOK", "DIFFERENCES"];
    printer.list(List { columns, rows, items, empty: "no cases", ..List::default() })?;
    Ok(if failed { Exit::CheckFailed } else { Exit::Done })
}

fn find(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = folder.display().to_string();
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(&shown, error))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut cases: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(".case.json")).collect();
    cases.sort();
    if cases.is_empty() {
        return Err(Failure::not_found(format!("there is no *.case.json in {shown}"))
            .with_hint("hub-cli plugins new creates a folder with one"));
    }
    Ok(cases)
}

fn read(path: &Path) -> Result<Case, Failure> {
    let shown = path.display().to_string();
    serde_json::from_str(&read_file(&shown)?).map_err(|error| Failure::file(&shown, error))
}

async fn make(sandbox: &Sandbox, folder: &Path, case: &Case) -> Result<Debugged, Failure> {
    let script = match &case.script {
        Some(script) => folder.join(script),
        None => only_script(folder)?,
    };
    let script = script.display().to_string();
    let trial = DebugRun {
        script: read_file(&script)?,
        message: run::payload(case.message.clone()),
        request: None,
        url: case.url.clone().unwrap_or_else(|| SAMPLE_URL.to_owned()),
        response: case.response.clone().map(Into::into),
        state: case.state.as_ref().and_then(|state| serde_json::value::to_raw_value(state).ok()),
    };
    run::make(sandbox, &script, trial).await
}

fn only_script(folder: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut scripts: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "js")).collect();
    match (scripts.pop(), scripts.is_empty()) {
        (Some(script), true) => Ok(script),
        _ => Err(Failure::file(folder, "needs exactly one *.js; or name the script in the case")),
    }
}

/// Collects the differences from the expectation: objects by the named fields, everything else as a whole.
pub fn compare(place: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                compare(&place, value, found.get(name).unwrap_or(&Value::Null), differences);
            }
        }
        // `"error": "throw"` matches any error.
        (Value::String(kind), Value::Object(error)) if error.get("kind") == Some(&json!(kind)) => {}
        (expected, found) if expected == found => {}
        (expected, found) => differences.push(format!("{place} is {found}, not {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_fields_are_compared() {
        let found = json!({ "request": { "url": "u", "headers": { "A": "1" } }, "replies": [], "error": { "kind": "throw" } });
        let differs = |expected: Value| {
            let mut differences = Vec::new();
            compare("", &expected, &found, &mut differences);
            differences
        };
        assert!(differs(json!({ "request": { "headers": { "A": "1" } }, "error": "throw" })).is_empty());
        assert!(differs(json!({})).is_empty());
        assert_eq!(differs(json!({ "replies": ["x"] })), ["replies is [], not [\"x\"]"]);
        assert_eq!(differs(json!({ "request": null })).len(), 1);
        assert_eq!(differs(json!({ "request": { "headers": { "B": "1" } } })).len(), 1);
    }
}
