//! `plugins submit`, `approve`, `reject`, `withdraw`, `delete`.

use hub_core::id::PluginVersionId;
use serde_json::{Value, json};

use super::{read_file, show};
use crate::{
    args::{
        HubArgs, PluginsApproveArgs, PluginsDeleteArgs, PluginsRejectArgs, PluginsSubmitArgs,
        PluginsWithdrawArgs,
    },
    commands::users::cell,
    exit::Failure,
    printer::Printer,
    reach::{Reach, Verdict},
};

pub const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];
pub const WITHDRAW_FIELDS: [&str; 4] = ["id", "version_id", "version", "status"];

pub async fn submit(args: PluginsSubmitArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let script = read_file(&args.file)?;
    let reach = Reach::open(&args.hub, local).await?;
    let plugin = reach.submit_plugin(script, args.author.as_deref()).await?;
    reach.close().await;
    printer.note(&format!("{} {} waits for a review", cell(&plugin, "name"), cell(&plugin, "version")));
    let id = cell(&plugin, "id");
    printer.one(plugin, &id)
}

pub async fn approve(args: PluginsApproveArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let hash = args.content_hash.as_deref();
    let done = review(&args.hub, &args.plugins, Verdict::Approve, hash, local, |plugin| {
        printer.note(&format!("{} {} is approved", cell(plugin, "name"), cell(plugin, "approved_version")));
    });
    reviewed(&done.await?, printer)
}

pub async fn reject(args: PluginsRejectArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let (verdict, hash) = (Verdict::Reject(&args.reason), args.content_hash.as_deref());
    let done = review(&args.hub, &args.plugins, verdict, hash, local, |plugin| {
        printer.note(&format!("{} was told why", cell(plugin, "author")));
    });
    reviewed(&done.await?, printer)
}

/// Decides on one after the other; what was decided before a failure stays so.
async fn review(
    hub: &HubArgs,
    plugins: &[String],
    verdict: Verdict<'_>,
    hash: Option<&str>,
    local: bool,
    tell: impl Fn(&Value),
) -> Result<Vec<Value>, Failure> {
    let reach = Reach::open(hub, local).await?;
    let mut done = Vec::new();
    for plugin in plugins {
        let plugin = reach.review_plugin(plugin, verdict, hash).await?;
        tell(&plugin);
        done.push(plugin);
    }
    reach.close().await;
    Ok(done)
}

fn reviewed(done: &[Value], printer: &Printer) -> Result<(), Failure> {
    let line = |plugin: &Value| format!("{}\t{}", cell(plugin, "id"), cell(plugin, "status"));
    let text: Vec<String> = done.iter().map(line).collect();
    printer.one(json!({ "items": done }), &text.join("\n"))
}

pub async fn withdraw(args: PluginsWithdrawArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let plugin = reach.plugin(&args.plugin).await?;
    let version = show::version(&plugin, &args.version)?;
    let name = cell(&plugin, "name");
    let what = format!("{name} {} runs nowhere any more, for good", args.version);
    if !args.confirm.is_meant_for_good(&what, &name, printer).await? {
        reach.close().await;
        printer.note(&format!("{what}; nothing was changed"));
        let is_it = |one: &&Value| one["id"] == version;
        let found = plugin["versions"].as_array().into_iter().flatten().find(is_it).cloned();
        return withdrawn(&plugin, &version, &found.unwrap_or_default(), printer);
    }
    match &args.reason {
        Some(reason) => reach.review_plugin(&version, Verdict::Reject(reason), None).await.map(drop)?,
        None => reach.delete_plugin(&version).await?,
    }
    let plugin = reach.plugin(&args.plugin).await?;
    reach.close().await;
    let mut versions = plugin["versions"].as_array().into_iter().flatten();
    // Its author still sees it; somebody else does not.
    let left = versions.find(|one| one["id"] == version).cloned().unwrap_or_default();
    printer.note(&format!("{name} {} runs nowhere any more", args.version));
    withdrawn(&plugin, &version, &left, printer)
}

/// A version that is withdrawn, or would be, with its status.
fn withdrawn(plugin: &Value, id: &str, version: &Value, printer: &Printer) -> Result<(), Failure> {
    let document = json!({
        "id": plugin["id"], "version_id": id, "version": version["version"], "status": version["status"],
    });
    printer.one(document, id)
}

pub async fn delete(args: PluginsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let plugin = reach.plugin(&args.plugin).await?;
    let name = cell(&plugin, "name");
    let what = if args.plugin.parse::<PluginVersionId>().is_ok() {
        format!("version {} of {name} runs nowhere any more, for good", args.plugin)
    } else {
        format!("{name} goes for good, with its versions and from {} channels", cell(&plugin, "installs"))
    };
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        reach.delete_plugin(&args.plugin).await?;
    } else {
        printer.note(&format!("{what}; nothing was changed"));
    }
    reach.close().await;
    let document = json!({ "id": plugin["id"], "name": name, "deleted": meant });
    printer.one(document, &cell(&plugin, "id"))
}
