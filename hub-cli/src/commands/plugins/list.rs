//! `plugins list`, `plugins pending`.

use serde_json::Value;

use super::texts;
use crate::{
    args::{ListArgs, PluginStatusArg, PluginsListArgs},
    client::Client,
    document::cell,
    exit::Failure,
    printer::{List, Printer},
};

pub async fn run(args: PluginsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    if args.status == PluginStatusArg::Pending {
        return pending(&args.list, local, printer).await;
    }
    let client = Client::open(&args.list.hub, local).await?;
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
    client.close().await;
    let row = |plugin: &Value| {
        ["id", "name", "version", "status", "author", "installs", "description"]
            .map(|field| cell(plugin, field))
            .to_vec()
    };
    let columns = &["PLUGIN ID", "NAME", "VERSION", "STATUS", "AUTHOR", "INSTALLS", "DESCRIPTION"];
    printer.list(List::of(page, columns, row, "no plugins yet"))
}

pub async fn pending(list: &ListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&list.hub, local).await?;
    let page = client.list("/api/admin/plugins/pending", &[], &list.page).await?;
    client.close().await;
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
    printer.list(List::of(page, columns, row, "no versions wait for a review"))
}
