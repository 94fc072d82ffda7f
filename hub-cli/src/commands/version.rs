//! `version`.

use serde_json::json;

use crate::{exit::Failure, printer::Printer};

pub fn run(printer: &Printer) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    printer.one(json!({ "version": version }), &format!("hub-cli {version}"))
}
