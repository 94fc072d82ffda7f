//! `--expect`: the expected result of a hook, in a file.

use hub_core::plugins::outcome::expectation;
use serde_json::{Value, json};

use super::Tried;
use crate::{
    commands::{plugins::cases::compare, read_file},
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

/// Compares the result with the fields in the file; with `update` it rewrites the file.
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
    // An expected failure counts as success.
    tried.exit = if differences.is_empty() { Exit::Done } else { Exit::CheckFailed };
    if differences.is_empty() {
        tried.say(&format!("  {} matches {file}", printer.paint("expect", Tone::Good)));
    }
    for difference in &differences {
        let difference = screen::clean(difference);
        tried.say(&format!("  {} {difference}", printer.paint("expect", Tone::Bad)));
    }
    tried.document["differences"] = json!(differences);
    Ok(())
}
