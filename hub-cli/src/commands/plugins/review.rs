//! `plugins submit`, `approve`, `reject`, `withdraw`, `delete`.

use hub_core::{id::PluginVersionId, plugins::Manifest};
use serde_json::{Value, json};

use super::{read_file, show};
use crate::{
    args::{
        HubArgs, PluginsApproveArgs, PluginsDeleteArgs, PluginsRejectArgs, PluginsSubmitArgs,
        PluginsWithdrawArgs,
    },
    client::Client,
    context::Context,
    document::{cell, without_nulls},
    exit::Failure,
    printer::Printer,
};

pub async fn submit(args: PluginsSubmitArgs, cx: &Context) -> Result<(), Failure> {
    let script = read_file(&args.file)?;
    let client = cx.hub(&args.hub).await?;
    let author = client.as_user("--author", args.author.as_deref()).await?;
    // The author's own plugin gets a new version; the name of another author's plugin is rejected either way.
    let known = match Manifest::parse(&script)?.name {
        Some(name) => author.plugin_named(&name, true).await?,
        None => None,
    };
    let body = json!({ "script": script });
    let plugin = match known.as_ref().and_then(|plugin| plugin["id"].as_str()) {
        Some(id) => author.put(&format!("/api/plugins/{id}"), &body).await?,
        None => author.post("/api/plugins", &body).await?,
    };
    cx.printer.note(&format!("{} {} waits for a review", cell(&plugin, "name"), cell(&plugin, "version")));
    let id = cell(&plugin, "id");
    cx.printer.one(plugin, &id)
}

pub async fn approve(args: PluginsApproveArgs, cx: &Context) -> Result<(), Failure> {
    let hash = args.content_hash.as_deref();
    let done = review(&args.hub, &args.plugins, Verdict::Approve, hash, cx, |plugin| {
        cx.printer.note(&format!(
            "{} {} is approved",
            cell(plugin, "name"),
            cell(plugin, "approved_version")
        ));
    });
    reviewed(&done.await?, &cx.printer)
}

pub async fn reject(args: PluginsRejectArgs, cx: &Context) -> Result<(), Failure> {
    let (verdict, hash) = (Verdict::Reject(&args.reason), args.content_hash.as_deref());
    let done = review(&args.hub, &args.plugins, verdict, hash, cx, |plugin| {
        cx.printer.note(&format!("the reason is shown to {}", cell(plugin, "author")));
    });
    reviewed(&done.await?, &cx.printer)
}

/// Decides on one after another; decisions before a failure remain.
async fn review(
    hub: &HubArgs,
    plugins: &[String],
    verdict: Verdict<'_>,
    hash: Option<&str>,
    cx: &Context,
    report: impl Fn(&Value),
) -> Result<Vec<Value>, Failure> {
    let client = cx.hub(hub).await?;
    let mut done = Vec::new();
    for plugin in plugins {
        let plugin = decide(&client, plugin, verdict, hash).await?;
        report(&plugin);
        done.push(plugin);
    }
    Ok(done)
}

/// A decision of a reviewer.
#[derive(Debug, Clone, Copy)]
enum Verdict<'a> {
    /// Every user may install it.
    Approve,
    /// No user may, with the reason for its author.
    Reject(&'a str),
}

/// Decides on the pending version of a plugin, or on a version; with a hash only if its source has that one.
async fn decide(
    client: &Client,
    wanted: &str,
    verdict: Verdict<'_>,
    content_hash: Option<&str>,
) -> Result<Value, Failure> {
    let plugin = client.plugin_ref(wanted).await?;
    let (verb, reason) = match verdict {
        Verdict::Approve => ("approve", None),
        Verdict::Reject(reason) => ("reject", Some(reason)),
    };
    let body = without_nulls(&json!({ "reason": reason, "content_hash": content_hash }));
    client.post(&format!("/api/admin/plugins/{plugin}/{verb}"), &body).await
}

fn reviewed(done: &[Value], printer: &Printer) -> Result<(), Failure> {
    let line = |plugin: &Value| format!("{}\t{}", cell(plugin, "id"), cell(plugin, "status"));
    let text: Vec<String> = done.iter().map(line).collect();
    printer.one(json!({ "items": done }), &text.join("\n"))
}

pub async fn withdraw(args: PluginsWithdrawArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let plugin = client.plugin(&args.plugin).await?;
    let version = show::version(&plugin, &args.version)?;
    let name = cell(&plugin, "name");
    let what = format!("this permanently stops {name} {} everywhere", args.version);
    if !args.confirm.is_confirmed_by_name(&what, &name, &cx.printer).await? {
        let is_it = |one: &&Value| one["id"] == version;
        let found = plugin["versions"].as_array().into_iter().flatten().find(is_it).cloned();
        return withdrawn(&plugin, &version, &found.unwrap_or_default(), &cx.printer);
    }
    match &args.reason {
        Some(reason) => decide(&client, &version, Verdict::Reject(reason), None).await?,
        None => client.delete(&format!("/api/plugins/{version}")).await?,
    };
    let plugin = client.plugin(&args.plugin).await?;
    let mut versions = plugin["versions"].as_array().into_iter().flatten();
    // Only its author still sees it.
    let left = versions.find(|one| one["id"] == version).cloned().unwrap_or_default();
    cx.printer.note(&format!("{name} {} is withdrawn and no longer runs", args.version));
    withdrawn(&plugin, &version, &left, &cx.printer)
}

/// A version that is withdrawn, or would be, with its status.
fn withdrawn(plugin: &Value, id: &str, version: &Value, printer: &Printer) -> Result<(), Failure> {
    let document = json!({
        "id": plugin["id"], "version_id": id, "version": version["version"], "status": version["status"],
    });
    printer.one(document, id)
}

pub async fn delete(args: PluginsDeleteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let plugin = client.plugin(&args.plugin).await?;
    let name = cell(&plugin, "name");
    let what = if args.plugin.parse::<PluginVersionId>().is_ok() {
        format!("this permanently stops version {} of {name} everywhere", args.plugin)
    } else {
        format!(
            "this permanently deletes {name} with its versions, also from {} channels",
            cell(&plugin, "installs")
        )
    };
    let confirmed = args.confirm.is_confirmed_by_name(&what, &name, &cx.printer).await?;
    if confirmed {
        client.delete(&format!("/api/plugins/{}", client.plugin_ref(&args.plugin).await?)).await?;
    }
    let document = json!({ "id": plugin["id"], "name": name, "deleted": confirmed });
    cx.printer.one(document, &cell(&plugin, "id"))
}
