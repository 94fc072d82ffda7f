//! Names that documents, the OpenAPI document and the console call settings are settings.
//!
//! A document calls a name a setting where it follows or precedes that word as code (the setting `drain`), or is in a
//! column of settings or limits of a table. Other code that looks like a setting, because a field of the domain's
//! configuration has that name or because it begins or ends as settings do, is one too, unless the API has the name.

use std::{collections::BTreeSet, path::Path, sync::LazyLock};

use hub_server::config::SETTINGS;
use regex::Regex;
use serde_json::Value;

use super::{language::prose, links::documents, read, workspace};

/// Titles of columns that name settings.
const COLUMNS: [&str; 3] = ["setting", "settings", "limit"];

/// Beginnings and ends of names that only settings have, and fields of the API.
const BEGINNINGS: [&str; 1] = ["max_"];
const ENDS: [&str; 4] = ["_retention", "_lifetime", "_grace", "_in_flight"];

/// The names of the program that documents compare with.
struct Names {
    settings: BTreeSet<String>,
    /// Fields of the configuration of the domain.
    fields: BTreeSet<String>,
    /// Fields, parameters and values of the API.
    api: BTreeSet<String>,
}

impl Names {
    fn new() -> Self {
        let settings = SETTINGS.iter().flat_map(|setting| {
            let file = setting.in_file.then(|| format!("{}_file", setting.name));
            [Some(setting.name.to_owned()), Some(setting.variable()), file].into_iter().flatten()
        });
        let field = Regex::new(r"(?m)^    pub (\w+): ").unwrap();
        let source = read("hub-core/src/model/config/mod.rs");
        let mut api = BTreeSet::new();
        collect_words(&openapi(), &mut api);
        Self {
            settings: settings.collect(),
            fields: field.captures_iter(&source).map(|found| found[1].to_owned()).collect(),
            api,
        }
    }

    /// Whether there is such a setting; `name…` means all that begin so.
    fn is_setting(&self, name: &str) -> bool {
        match name.strip_suffix('…') {
            Some(start) => self.settings.iter().any(|setting| setting.starts_with(start)),
            None => self.settings.contains(name),
        }
    }

    fn looks_like_setting(&self, name: &str) -> bool {
        let has_form = name.contains('_')
            && (BEGINNINGS.iter().any(|start| name.starts_with(start))
                || ENDS.iter().any(|end| name.ends_with(end)));
        (has_form || (name.contains('_') && self.fields.contains(name))) && !self.api.contains(name)
    }

    /// The names in a text that are called settings, or look like one, and are none.
    fn unknown(&self, text: &str) -> BTreeSet<String> {
        let mut called = adjacent(text);
        called.extend(in_columns(text).into_iter().filter(|name| !self.api.contains(name)));
        called.extend(code(text).into_iter().filter(|name| self.looks_like_setting(name)));
        called.into_iter().filter(|name| !self.is_setting(name)).collect()
    }
}

fn openapi() -> Value {
    serde_json::from_str(&read("openapi/hub.json")).unwrap()
}

/// Keys and texts of a document that are single words.
fn collect_words(value: &Value, found: &mut BTreeSet<String>) {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.extend(is_word(name).then(|| name.clone()));
                collect_words(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_words(item, found)),
        Value::String(text) if is_word(text) => drop(found.insert(text.clone())),
        _ => {}
    }
}

/// Names that are marked as code: whole, or before a value (`name = …`).
fn code(text: &str) -> Vec<String> {
    static SPAN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("`([a-zA-Z0-9_]+…?)(?: = [^`\n]*)?`").unwrap());
    SPAN.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// Names next to the word *setting*: code after it, in a list too, and code or a name with `_` before and after it.
fn adjacent(text: &str) -> BTreeSet<String> {
    static AFTER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:\b[Ss]ettings?|配置项)\s+((?:`[^`]+`(?:, | and | or |、| 和 )?)+)").unwrap()
    });
    static OTHER: [LazyLock<Regex>; 2] = [
        LazyLock::new(|| Regex::new(r"`([a-zA-Z0-9_]+)` settings?\b").unwrap()),
        LazyLock::new(|| Regex::new(r"\b[Ss]ettings? ([a-z0-9]+(?:_[a-z0-9]+)+(?:_?…)?)").unwrap()),
    ];
    let mut found: BTreeSet<String> = AFTER.captures_iter(text).flat_map(|list| code(&list[1])).collect();
    for pattern in &OTHER {
        found.extend(pattern.captures_iter(text).map(|name| name[1].to_owned()));
    }
    found
}

/// Names in the columns of tables that have settings.
fn in_columns(text: &str) -> Vec<String> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let (mut found, mut column) = (Vec::new(), None);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') {
            column = None;
        } else if lines.peek().is_some_and(|next| next.starts_with("|---")) {
            column = cells(line).iter().position(|title| COLUMNS.contains(&title.as_str()));
        } else if let Some(cell) = column.and_then(|column| cells(line).get(column).cloned()) {
            found.extend(code(&cell));
        }
    }
    found
}

/// The descriptions of the OpenAPI document.
fn descriptions(value: &Value, found: &mut String) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if ["description", "summary"].contains(&name.as_str()) => {
                        found.push_str(text);
                        found.push_str("\n\n");
                    }
                    value => descriptions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| descriptions(item, found)),
        _ => {}
    }
}

/// Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(workspace().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if workspace().join(&path).is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn what_a_document_calls_a_setting_can_be_set() {
    let names = Names::new();
    let mut texts: Vec<(String, String)> = documents()
        .into_iter()
        .map(|path| path.display().to_string())
        // Settings of other versions are named there.
        .filter(|path| path != "CHANGELOG.md")
        .chain(["hub-server/src/config/default.toml".to_owned()])
        .map(|path| (read(&path), path))
        .map(|(text, path)| (path, text))
        .collect();
    let mut described = String::new();
    descriptions(&openapi(), &mut described);
    texts.push(("OpenAPI descriptions".to_owned(), described));
    let mut shown = Vec::new();
    for folder in ["hub-server/src", "hub-cli/src"] {
        sources(Path::new(folder), &mut shown);
    }
    texts.extend(shown.into_iter().map(|path| (prose(&read(&path)), path)).map(|(text, path)| (path, text)));
    let wrong: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| names.unknown(text).into_iter().map(move |name| format!("{path}: {name}")))
        .collect();
    assert!(wrong.is_empty(), "called settings, and are none:\n{}", wrong.join("\n"));
    let called: BTreeSet<String> = texts.iter().flat_map(|(_, text)| adjacent(text)).collect();
    for expected in ["max_text", "trace_retention", "egress_allow", "sandbox_filter"] {
        assert!(called.contains(expected), "the search does not find {expected}: {called:?}");
    }
}

#[test]
fn names_that_are_called_settings_or_look_like_one_are_found() {
    let names = Names::new();
    let unknown = |text: &str| names.unknown(text).into_iter().collect::<Vec<_>>().join(" ");
    for known in [
        "the setting `drain`, and the settings `max_text`, `max_jobs` and `log`",
        "a webhook has `max_concurrency`, and `delivery_id` is no setting",
        "(setting egress_allow); 由配置项 `trace_retention` 决定; `max_sockets…`",
        "| what | limit |\n|---|---|\n| requests | `max_in_flight`, per channel `max_concurrency` |",
        "`HUB_DATA_DIR`, `backup_to = \"/mnt\"`",
    ] {
        assert_eq!(unknown(known), "", "{known}");
    }
    for (text, name) in [
        ("the setting `fence`", "fence"),
        ("the `lease` setting", "lease"),
        ("settings `drain`, `drains`", "drains"),
        ("raise the setting text_limit", "text_limit"),
        ("配置项 `trace_days`", "trace_days"),
        ("| data | setting |\n|---|---|\n| traces | `trace_days` |", "trace_days"),
        ("| what | limit |\n|---|---|\n| jobs | `jobs` |", "jobs"),
        ("kept for `event_retention`", "event_retention"),
        ("at most `max_channels`", "max_channels"),
        ("`max_sock_…` and `session_idle`", "max_sock_… session_idle"),
    ] {
        assert_eq!(unknown(text), name, "{text}");
    }
}
