//! `plugins show`, `plugins versions`.

use hub_core::plugins::diff;
use serde_json::{Value, json};

use super::texts;
use crate::{
    args::{PluginsShowArgs, PluginsVersionsArgs},
    client::Client,
    context::Context,
    document::{cell, cells},
    exit::Failure,
    printer::{List, Printer, Tone},
    screen::{clean, code_line},
};

pub async fn run(args: PluginsShowArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let mut document = client.plugin(&args.plugin).await?;
    let (old, new) = ends(&document, args.diff.as_deref())?;
    let changes = match old {
        Some(old) => diff::unified(&source(&client, &old).await?, &source(&client, &new).await?),
        None => String::new(),
    };
    document["diff"] = json!(changes);
    let text = described(&document, args.source, &cx.printer);
    cx.printer.one(document, &text)
}

pub async fn versions(args: PluginsVersionsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let mut document = client.plugin(&args.plugin).await?;
    let items = document["versions"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let row = |version: &Value| cells(version, ["id", "version", "status", "created_at", "reason"]).to_vec();
    cx.printer.list(List {
        columns: &["VERSION ID", "VERSION", "STATUS", "SUBMITTED", "REASON"],
        rows: items.iter().map(row).collect(),
        items,
        next_cursor: None,
        empty: "no versions",
    })
}

/// The id of a version by its name or id; of several with one name the one that runs, else the newest.
pub fn version(plugin: &Value, wanted: &str) -> Result<String, Failure> {
    let versions = plugin["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut named: Vec<&Value> =
        versions.iter().filter(|version| version["version"] == wanted || version["id"] == wanted).collect();
    named.sort_by_key(|version| !matches!(version["status"].as_str(), Some("approved" | "pending")));
    let found = named.first().and_then(|version| version["id"].as_str());
    found.map(str::to_owned).ok_or_else(|| {
        let known: Vec<&str> =
            versions.iter().filter_map(|version| version["version"].as_str()).take(5).collect();
        Failure::not_found(format!("there is no version {wanted}"))
            .with_hint(format!("newest versions: {}", known.join(", ")))
    })
}

/// The two versions to compare: the named ones, else the approved and the newest one.
fn ends(plugin: &Value, range: Option<&str>) -> Result<(Option<String>, String), Failure> {
    if let Some(range) = range {
        let (old, new) = range.split_once("..").ok_or_else(|| Failure::usage("--diff: must be OLD..NEW"))?;
        return Ok((Some(version(plugin, old)?), version(plugin, new)?));
    }
    let latest = cell(plugin, "version_id");
    let approved = plugin["approved_version_id"].as_str().filter(|approved| *approved != latest);
    Ok((approved.map(str::to_owned), latest))
}

async fn source(client: &Client, version: &str) -> Result<String, Failure> {
    Ok(cell(&client.plugin(version).await?, "script"))
}

fn described(plugin: &Value, with_source: bool, printer: &Printer) -> String {
    let text = |field: &str| clean(&cell(plugin, field));
    let mut lines = vec![format!(
        "{} {}  {}  by {}",
        printer.paint(&text("name"), Tone::Strong),
        text("version"),
        text("status"),
        text("author"),
    )];
    if !text("description").is_empty() {
        lines.push(text("description"));
    }
    lines.push(format!("  id      {}", text("id")));
    lines.push(format!("  sha256  {}", text("content_hash")));
    lines.push(format!("  in      {} channels", text("installs")));
    lines.push(String::new());
    lines.extend(texts(&plugin["permissions"], "words").map(|word| format!("  · {}", clean(word))));
    lines.push(String::new());
    for version in plugin["versions"].as_array().into_iter().flatten() {
        let [id, name, state, created, reason] =
            ["id", "version", "status", "created_at", "reason"].map(|field| clean(&cell(version, field)));
        lines.push(format!("  {id}  {name:<10} {state:<10} {created}  {reason}").trim_end().to_owned());
    }
    let changes = cell(plugin, "diff");
    if !changes.is_empty() {
        lines.push(String::new());
        lines.extend(changes.lines().map(|line| printer.paint_diff(line)));
    }
    if with_source {
        lines.push(String::new());
        lines.extend(cell(plugin, "script").lines().map(|line| format!("  {}", code_line(line))));
    }
    lines.join("\n")
}
