//! `plugins new`: the first files of a plugin.

use std::path::Path;

use serde_json::json;

use crate::{
    args::PluginsNewArgs,
    exit::{Exit, Failure},
    printer::Printer,
};

/// The types of the plugin API, for editors.
const TYPES: &str = include_str!("plugin.d.ts");
const TEMPLATE: &str = include_str!("template.js");
const CASE: &str = include_str!("template.case.json");

pub fn run(args: &PluginsNewArgs, printer: &Printer) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if args.name.is_empty()
        || args.name.len() > 64
        || !args.name.chars().all(is_plain)
        || args.name.starts_with('.')
    {
        return Err(Failure::usage("the name must be 1 to 64 letters, digits, - and _"));
    }
    let folder = args.dir.join(&args.name);
    let shown = folder.display().to_string();
    if folder.exists() {
        return Err(Failure::new(Exit::Conflict, "CONFLICT", format!("{shown} exists already")));
    }
    std::fs::create_dir_all(&folder).map_err(|error| Failure::file(&shown, error))?;
    let script = format!("{}.js", args.name);
    let files = [(script.as_str(), TEMPLATE), ("plugin.d.ts", TYPES), ("greeting.case.json", CASE)];
    for (name, text) in files {
        write(&folder.join(name), &text.replace("PLUGIN", &args.name))?;
    }
    printer.note(&format!("try it: hub-cli debug request {shown}/{script} --text hello --watch"));
    let names: Vec<String> = files.iter().map(|(name, _)| folder.join(name).display().to_string()).collect();
    printer.one(json!({ "folder": shown, "files": names }), &names.join("\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, error))
}
