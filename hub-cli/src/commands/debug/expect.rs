//! `--expect`: what a hook has to do, in a file.

use serde_json::{Map, Value, json};

use super::Tried;
use crate::{
    commands::{plugins::cases::compare, read_file},
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

/// What is written of a run: what its author means, and nothing that the next run does differently.
const KEPT: [&str; 4] = ["request", "replies", "skipped", "state"];

/// Compares what came with what the file says, by the fields that it names; with `update` writes the file anew.
pub fn check(file: &str, update: bool, tried: &mut Tried, printer: &Printer) -> Result<(), Failure> {
    if update {
        let text = serde_json::to_string_pretty(&expectation(&tried.document)).unwrap_or_default();
        std::fs::write(file, text + "\n").map_err(|error| Failure::file(file, error))?;
        tried.say(&format!("  expect {file} was written"));
        return Ok(());
    }
    let expected: Value =
        serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))?;
    let mut differences = Vec::new();
    compare("", &expected, &tried.document, &mut differences);
    // A failure that is expected is none.
    tried.exit = if differences.is_empty() { Exit::Done } else { Exit::CheckFailed };
    if differences.is_empty() {
        tried.say(&format!("  {} as {file} says", printer.paint("expect", Tone::Good)));
    }
    for difference in &differences {
        let difference = screen::clean(difference);
        tried.say(&format!("  {} {difference}", printer.paint("expect", Tone::Bad)));
    }
    tried.document["differences"] = json!(differences);
    Ok(())
}

/// What a run is held against later: what its author means, and nothing that the next run does differently.
pub fn expectation(document: &Value) -> Value {
    let mut kept: Map<String, Value> =
        KEPT.iter().map(|name| ((*name).to_owned(), document[*name].clone())).collect();
    kept.insert("error".to_owned(), document["error"]["kind"].clone());
    Value::Object(kept)
}
