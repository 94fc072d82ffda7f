//! `plugins submit`, `approve`, `reject`, `withdraw`, `delete`.

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
    if !args.yes {
        return Err(Failure::usage("a version that is withdrawn runs nowhere any more")
            .with_hint(format!("hub-cli plugins withdraw {} {} --yes", args.plugin, args.version)));
    }
    let reach = Reach::open(&args.hub, local).await?;
    let plugin = reach.plugin(&args.plugin).await?;
    let version = show::version(&plugin, &args.version)?;
    match &args.reason {
        Some(reason) => reach.review_plugin(&version, Verdict::Reject(reason), None).await.map(drop)?,
        None => reach.delete_plugin(&version).await?,
    }
    let plugin = reach.plugin(&args.plugin).await?;
    reach.close().await;
    let mut versions = plugin["versions"].as_array().into_iter().flatten();
    // Its author still sees it; somebody else does not.
    let left = versions.find(|one| one["id"] == version).cloned().unwrap_or_default();
    let document = json!({
        "id": plugin["id"], "version_id": version, "version": left["version"], "status": left["status"],
    });
    printer.note(&format!("{} {} runs nowhere any more", cell(&plugin, "name"), args.version));
    printer.one(document, &version)
}

pub async fn delete(args: PluginsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    if !args.yes {
        return Err(Failure::usage("this cannot be undone")
            .with_hint(format!("hub-cli plugins delete {} --yes", args.plugin)));
    }
    let reach = Reach::open(&args.hub, local).await?;
    reach.delete_plugin(&args.plugin).await?;
    reach.close().await;
    printer.one(json!({ "deleted": args.plugin }), "")
}
