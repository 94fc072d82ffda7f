//! `plugins list`, `plugins pending`.

use hub_core::plugins::VersionState;
use serde_json::Value;

use super::texts;
use crate::{
    args::{ListArgs, PluginsListArgs},
    context::Context,
    document::{cell, cells},
    exit::Failure,
    printer::List,
};

pub async fn run(args: PluginsListArgs, cx: &Context) -> Result<(), Failure> {
    if args.status == VersionState::Pending {
        return pending(&args.list, cx).await;
    }
    let client = cx.hub(&args.list.hub).await?;
    if args.mine && client.hub().is_some() {
        return Err(
            Failure::usage("--mine needs a server").with_hint("with --local, name the author: --author NAME")
        );
    }
    let caller = match &args.author {
        Some(author) => client.as_user("--author", Some(author)).await?,
        None => client.clone(),
    };
    let is_own = args.mine || args.author.is_some();
    let page =
        caller.list("/api/plugins", &[("mine", is_own.then(|| "true".to_owned()))], &args.list.page).await?;
    let row = |plugin: &Value| {
        cells(plugin, ["id", "name", "version", "status", "author", "installs", "description"]).to_vec()
    };
    let columns = &["PLUGIN ID", "NAME", "VERSION", "STATUS", "AUTHOR", "INSTALLS", "DESCRIPTION"];
    cx.printer.list(List::of(page, columns, row, "no plugins yet"))
}

pub async fn pending(list: &ListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&list.hub).await?;
    let page = client.list("/api/admin/plugins/pending", &[], &list.page).await?;
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
    cx.printer.list(List::of(page, columns, row, "no versions wait for a review"))
}
