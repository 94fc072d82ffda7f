//! `openapi export`: the document of the server of this version.

use hub_server::openapi::Rendering;
use serde_json::{Value, json};

use super::read_file;
use crate::{
    args::{DocumentFormat, ExportArgs, SpecVersion},
    exit::{Exit, Failure},
    printer::{Format, Printer},
};

pub fn run(args: &ExportArgs, printer: &Printer) -> Result<(), Failure> {
    let by_ending = args.check.as_deref().and_then(|file| {
        let ending = std::path::Path::new(file).extension()?;
        (ending == "yaml" || ending == "yml").then_some(DocumentFormat::Yaml)
    });
    let format = args.format.or(by_ending).unwrap_or(DocumentFormat::Json);
    let document = choose(args, format)?.text();
    let Some(file) = &args.check else { return print(&document, format, printer) };
    let found = read_file(file)?;
    if let Some(line) = first_difference(&document, &found) {
        let what = format!("{file} differs from the document of this version in line {line}");
        return Err(Failure::new(Exit::CheckFailed, "CONFLICT", what)
            .with_hint("print the current one with hub-cli openapi export"));
    }
    printer.note(&format!("{file} equals the document of this version"));
    match printer.format {
        Format::Json(_) => printer.one(json!({ "file": file, "equal": true }), ""),
        Format::Text => Ok(()),
    }
}

fn choose(args: &ExportArgs, format: DocumentFormat) -> Result<Rendering, Failure> {
    let is_named = |ending: &str| args.check.as_deref().is_some_and(|file| file.ends_with(ending));
    let by_name = if is_named("v3_1.json") { SpecVersion::V3_1 } else { SpecVersion::V3_0 };
    match (args.spec.unwrap_or(by_name), format) {
        (SpecVersion::V3_0, DocumentFormat::Json) => Ok(Rendering::Json),
        (SpecVersion::V3_0, DocumentFormat::Yaml) => Ok(Rendering::Yaml),
        (SpecVersion::V3_1, DocumentFormat::Json) => Ok(Rendering::JsonV3_1),
        (SpecVersion::V3_1, DocumentFormat::Yaml) => {
            Err(Failure::usage("OpenAPI 3.1 is printed as JSON only; --format yaml is for 3.0"))
        }
    }
}

fn print(document: &str, format: DocumentFormat, printer: &Printer) -> Result<(), Failure> {
    if printer.format != Format::Text && format == DocumentFormat::Yaml {
        return Err(Failure::usage("--json and --format yaml cannot be combined"));
    }
    printer.one(if printer.format == Format::Text { Value::Null } else { parsed(document)? }, document)
}

fn parsed(document: &str) -> Result<Value, Failure> {
    serde_json::from_str(document)
        .map_err(|error| Failure::new(Exit::Failed, "INTERNAL_ERROR", error.to_string()))
}

/// Number of the first line that differs, from 1.
fn first_difference(expected: &str, found: &str) -> Option<usize> {
    if expected.trim_end() == found.trim_end() {
        return None;
    }
    let equal = expected.lines().zip(found.lines()).take_while(|(expected, found)| expected == found).count();
    Some(equal + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_line_is_reported() {
        assert_eq!(first_difference("a\nb\n", "a\nb"), None);
        assert_eq!(first_difference("a\nb", "a\nc"), Some(2));
        assert_eq!(first_difference("a\nb", "a"), Some(2));
        assert_eq!(first_difference("a", "a\nb"), Some(2));
    }
}
