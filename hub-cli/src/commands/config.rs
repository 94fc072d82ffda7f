//! `config`: the settings of the server, from the same sources.

use hub_core::private_files;
use hub_server::config::{Config, DEFAULT_FILE, Report, schema};
use serde_json::{Value, json};

use crate::{
    args::{ConfigCommand, ConfigFile},
    exit::{Exit, Failure},
    local,
    printer::{Format, List, Printer},
};

pub fn run(command: ConfigCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Init { file } => {
            let path = file.display().to_string();
            private_files::create_new(&file, DEFAULT_FILE.as_bytes())
                .map_err(|error| Failure::file(&path, error))?;
            printer.note("it contains every setting, commented out");
            printer.one(json!({ "file": path }), &path)?;
        }
        ConfigCommand::Check { all, file } => return check(all, file, printer),
        ConfigCommand::List { origin, file } => list(origin, file, printer)?,
        ConfigCommand::Schema => {
            let schema = schema();
            let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
            printer.one(schema, &text)?;
        }
    }
    Ok(Exit::Done)
}

fn check(all: bool, file: ConfigFile, printer: &Printer) -> Result<Exit, Failure> {
    let report = Report::new(Config::load(&local::sources(file.file)), all);
    let problems = report.problems.iter().map(|text| json!({ "severity": "error", "message": text }));
    let warnings = report.warnings.iter();
    let warnings = warnings.map(|found| json!({ "severity": "warning", "message": found.text }));
    let items: Vec<Value> = problems.chain(warnings).collect();
    match printer.format {
        Format::Text => printer.one(Value::Null, &report.to_string())?,
        Format::Json(_) => {
            printer.list(List { items, ..List::default() })?;
        }
    }
    Ok(if report.is_ok() { Exit::Done } else { Exit::CheckFailed })
}

fn list(origin: bool, file: ConfigFile, printer: &Printer) -> Result<(), Failure> {
    let config = Config::load(&local::sources(file.file)).map_err(|problems| local::unusable(&problems))?;
    let row = |name: &str, value: &str, from: &str| {
        let mut row = vec![name.to_owned(), value.to_owned()];
        row.extend(origin.then(|| from.to_owned()));
        row
    };
    let entries = config.effective.iter().map(|(name, value, from)| (*name, value, from.to_string()));
    let entries: Vec<_> = entries.collect();
    printer.list(List {
        columns: if origin { &["NAME", "VALUE", "ORIGIN"] } else { &["NAME", "VALUE"] },
        rows: entries.iter().map(|(name, value, from)| row(name, value, from)).collect(),
        items: entries
            .iter()
            .map(|(name, value, from)| json!({ "name": name, "value": value, "origin": from }))
            .collect::<Vec<Value>>(),
        ..List::default()
    })
}
