//! `plugins list`, `plugins pending`.

use serde_json::Value;

use super::texts;
use crate::{
    args::{HubArgs, PageArgs, PluginStatusArg, PluginsListArgs},
    commands::users::cell,
    exit::Failure,
    printer::{List, Printer},
    reach::{Reach, Whose},
};

pub const PENDING_FIELDS: [&str; 13] = [
    "id",
    "name",
    "author",
    "version",
    "version_id",
    "description",
    "content_hash",
    "status",
    "replaces",
    "permissions",
    "diff",
    "script",
    "created_at",
];

pub async fn run(args: PluginsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    if args.status == PluginStatusArg::Pending {
        return pending(&args.hub, &args.page, local, printer).await;
    }
    let whose = match &args.author {
        Some(name) => Whose::Author(name),
        None if args.mine => Whose::Mine,
        None => Whose::Everybody,
    };
    let reach = Reach::open(&args.hub, local).await?;
    let page = reach.plugins(whose, &args.page).await?;
    reach.close().await;
    let row = |plugin: &Value| {
        ["id", "name", "version", "status", "author", "installs", "description"]
            .map(|field| cell(plugin, field))
            .to_vec()
    };
    let columns = &["PLUGIN ID", "NAME", "VERSION", "STATUS", "AUTHOR", "INSTALLS", "DESCRIPTION"];
    print(page, columns, row, "no plugins yet", printer)
}

pub async fn pending(hub: &HubArgs, page: &PageArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(hub, local).await?;
    let page = reach.pending_plugins(page).await?;
    reach.close().await;
    let row = |waits: &Value| {
        let diff = waits["diff"].as_str().unwrap_or_default();
        let lines = diff.lines().filter(|line| line.starts_with(['+', '-'])).count();
        let hosts: Vec<&str> = texts(&waits["permissions"], "connects").collect();
        vec![
            cell(waits, "version_id"),
            cell(waits, "name"),
            cell(waits, "version"),
            cell(waits, "author"),
            waits["replaces"].as_str().unwrap_or("nothing").to_owned(),
            lines.to_string(),
            hosts.join(", "),
        ]
    };
    let columns = &["VERSION ID", "NAME", "VERSION", "AUTHOR", "REPLACES", "CHANGED LINES", "MAY REACH"];
    print(page, columns, row, "nothing waits for a review", printer)
}

fn print(
    mut page: Value,
    columns: &'static [&'static str],
    row: impl Fn(&Value) -> Vec<String>,
    empty: &'static str,
    printer: &Printer,
) -> Result<(), Failure> {
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    printer.list(List {
        columns,
        rows: items.iter().map(row).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty,
    })
}
