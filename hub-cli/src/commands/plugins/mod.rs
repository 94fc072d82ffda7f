//! `plugins …`: the author's side in files beside it, the marketplace's here.

use hub_core::{
    Hub,
    access::{Actor, Role, UserActor},
    page::PageRequest,
    plugins::{PendingVersion, Plugin, PluginDetail, PluginRef, Plugins, Submission, Version, diff},
};
use serde_json::{Value, json};

use super::read_file;
use crate::{
    args::{
        LocalArgs, PluginStatusArg, PluginsApproveArgs, PluginsCommand, PluginsDeleteArgs, PluginsListArgs,
        PluginsRejectArgs, PluginsShowArgs, PluginsSubmitArgs,
    },
    exit::{Exit, Failure},
    local::{self, Open},
    printer::{List, Printer, Tone},
};

mod cases;
mod lint;
mod new;

pub const FIELDS: [&str; 16] = [
    "id",
    "name",
    "description",
    "version",
    "version_id",
    "content_hash",
    "author",
    "status",
    "reason",
    "approved_version",
    "matches",
    "connects",
    "timeout_ms",
    "installs",
    "created_at",
    "approved_version_id",
];

pub const PENDING_FIELDS: [&str; 11] = [
    "id",
    "name",
    "author",
    "version",
    "version_id",
    "content_hash",
    "replaces",
    "permissions",
    "diff",
    "script",
    "created_at",
];

pub const SHOW_FIELDS: [&str; 20] = [
    "id",
    "name",
    "description",
    "version",
    "version_id",
    "content_hash",
    "author",
    "status",
    "reason",
    "approved_version",
    "matches",
    "connects",
    "timeout_ms",
    "installs",
    "created_at",
    "approved_version_id",
    "permissions",
    "versions",
    "script",
    "diff",
];

/// The names in a command's JSON document.
pub fn fields(command: &PluginsCommand) -> &'static [&'static str] {
    match command {
        PluginsCommand::New(_) => &new::FIELDS,
        PluginsCommand::Lint(_) => &lint::FIELDS,
        PluginsCommand::Test(_) => &cases::FIELDS,
        PluginsCommand::List(args) if args.status == PluginStatusArg::Pending => &PENDING_FIELDS,
        PluginsCommand::Pending(_) => &PENDING_FIELDS,
        PluginsCommand::Show(_) => &SHOW_FIELDS,
        PluginsCommand::Delete(_) => &["deleted"],
        PluginsCommand::Approve(_) | PluginsCommand::Reject(_) => &["items"],
        PluginsCommand::Submit(_) | PluginsCommand::List(_) => &FIELDS,
    }
}

pub async fn run(command: PluginsCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        PluginsCommand::New(args) => new::run(&args, printer)?,
        PluginsCommand::Lint(args) => return lint::run(&args, printer).await,
        PluginsCommand::Test(args) => return cases::run(&args, printer).await,
        PluginsCommand::Submit(args) => submit(args, printer).await?,
        PluginsCommand::List(args) => list(args, printer).await?,
        PluginsCommand::Pending(args) => {
            pending(&args.local, args.limit, args.cursor.as_deref(), printer).await?;
        }
        PluginsCommand::Show(args) => show(args, printer).await?,
        PluginsCommand::Approve(args) => approve(args, printer).await?,
        PluginsCommand::Reject(args) => reject(args, printer).await?,
        PluginsCommand::Delete(args) => delete(args, printer).await?,
    }
    Ok(Exit::Done)
}

async fn submit(args: PluginsSubmitArgs, printer: &Printer) -> Result<(), Failure> {
    let script = read_file(&args.file)?;
    let hub = local::open(&args.local, Open::Existing).await?;
    let author = user(&hub, &args.author).await?;
    let name = hub_core::plugins::Manifest::parse(&script)?.name;
    let mine = match &name {
        Some(name) => hub.plugins().named(&author, name).await.ok(),
        None => None,
    };
    let submission = Submission { script, ..Submission::default() };
    // A name that is the author's gets a new version; a name of somebody else is refused either way.
    let submitted = match mine {
        Some(id) => match hub.plugins().update(&author, id, submission.clone()).await {
            Err(error) if error.code() == hub_core::ErrorCode::NotFound => {
                hub.plugins().submit(&author, submission, None).await
            }
            done => done,
        },
        None => hub.plugins().submit(&author, submission, None).await,
    };
    hub.shutdown().await;
    let plugin = submitted?;
    printer.note(&format!("{} {} waits for a review", plugin.name, plugin.latest.version));
    printer.one(document(&plugin), &plugin.id.to_string())
}

async fn list(args: PluginsListArgs, printer: &Printer) -> Result<(), Failure> {
    let cursor = args.cursor.as_deref();
    if args.status == PluginStatusArg::Pending {
        return pending(&args.local, args.limit, cursor, printer).await;
    }
    let hub = local::open(&args.local, Open::Existing).await?;
    let page = if let Some(name) = &args.author {
        let author = user(&hub, name).await?;
        let page = PageRequest::parse(&Plugins::own_list(&author), Some(args.limit), cursor)?;
        hub.plugins().list_own(&author, &page).await?
    } else {
        let page = PageRequest::parse(Plugins::MARKETPLACE, Some(args.limit), cursor)?;
        hub.plugins().list(&Actor::Operator, &page).await?
    };
    hub.shutdown().await;
    let row = |plugin: &Plugin| {
        vec![
            plugin.id.to_string(),
            plugin.name.clone(),
            plugin.latest.version.clone(),
            plugin.latest.state.as_str().to_owned(),
            plugin.author.clone(),
            plugin.installs.to_string(),
            plugin.latest.description.clone(),
        ]
    };
    printer.list(List {
        columns: &["PLUGIN ID", "NAME", "VERSION", "STATUS", "AUTHOR", "INSTALLS", "DESCRIPTION"],
        rows: page.items.iter().map(row).collect(),
        items: page.items.iter().map(document).collect(),
        next_cursor: page.next_cursor,
        empty: "no plugins yet",
    })
}

async fn pending(
    local: &LocalArgs,
    limit: u32,
    cursor: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    let hub = local::open(local, Open::Existing).await?;
    let page = PageRequest::parse(Plugins::PENDING_LIST, Some(limit), cursor)?;
    let page = hub.plugins().pending(&Actor::Operator, &page).await?;
    hub.shutdown().await;
    let row = |pending: &PendingVersion| {
        let lines = pending.diff.lines().filter(|line| line.starts_with(['+', '-'])).count();
        vec![
            pending.version.id.to_string(),
            pending.name.clone(),
            pending.version.version.clone(),
            pending.author.clone(),
            pending.replaces.clone().unwrap_or_else(|| "nothing".to_owned()),
            lines.to_string(),
            pending.version.connects.join(", "),
        ]
    };
    printer.list(List {
        columns: &["VERSION ID", "NAME", "VERSION", "AUTHOR", "REPLACES", "CHANGED LINES", "MAY REACH"],
        rows: page.items.iter().map(row).collect(),
        items: page.items.iter().map(pending_document).collect(),
        next_cursor: page.next_cursor,
        empty: "nothing waits for a review",
    })
}

async fn show(args: PluginsShowArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let id = hub.plugins().named(&Actor::Operator, &args.plugin).await?;
    let detail = hub.plugins().get(&Actor::Operator, id).await?;
    let (old, new) = if let Some(range) = &args.diff {
        let ends = range.split_once("..");
        let (old, new) = ends.ok_or_else(|| Failure::usage("--diff: must be OLD..NEW"))?;
        (Some(version(&detail, old)?), version(&detail, new)?)
    } else {
        // What a reviewer wants: against what everybody runs now.
        let approved = detail.plugin.approved.as_ref().map(|(id, _)| *id);
        let latest = detail.plugin.latest.id;
        (approved.filter(|approved| *approved != latest), latest)
    };
    let changes = if let Some(old) = old {
        let (before, after) = (
            hub.plugins().source(&Actor::Operator, old).await?,
            hub.plugins().source(&Actor::Operator, new).await?,
        );
        diff::unified(&before, &after)
    } else {
        String::new()
    };
    hub.shutdown().await;
    let mut document = document(&detail.plugin);
    document["permissions"] = json!(detail.permissions.words);
    document["versions"] = detail.versions.iter().map(version_document).collect();
    document["script"] = json!(detail.script);
    document["diff"] = json!(changes);
    printer.one(document, &described(&detail, &changes, args.source, printer))
}

/// A plugin as lines.
fn described(detail: &PluginDetail, changes: &str, with_source: bool, printer: &Printer) -> String {
    let plugin = &detail.plugin;
    let clean = crate::screen::clean;
    let mut lines = vec![format!(
        "{} {}  {}  by {}",
        printer.paint(&clean(&plugin.name), Tone::Strong),
        clean(&plugin.latest.version),
        plugin.latest.state.as_str(),
        clean(&plugin.author),
    )];
    if !plugin.latest.description.is_empty() {
        lines.push(clean(&plugin.latest.description));
    }
    lines.push(format!("  id      {}", plugin.id));
    lines.push(format!("  sha256  {}", plugin.latest.content_hash));
    lines.push(format!("  in      {} channels", plugin.installs));
    lines.push(String::new());
    lines.extend(detail.permissions.words.iter().map(|word| format!("  · {}", clean(word))));
    lines.push(String::new());
    for version in &detail.versions {
        let reason =
            version.reason.as_deref().map(|reason| format!("  {}", clean(reason))).unwrap_or_default();
        let (name, state) = (clean(&version.version), version.state.as_str());
        lines.push(format!("  {}  {name:<10} {state:<10} {}{reason}", version.id, version.created_at));
    }
    if !changes.is_empty() {
        lines.push(String::new());
        lines.extend(changes.lines().map(|line| painted(line, printer)));
    }
    if with_source {
        lines.push(String::new());
        lines.extend(detail.script.lines().map(|line| format!("  {}", unreordered(line))));
    }
    lines.join("\n")
}

/// A line of a difference.
pub fn painted(line: &str, printer: &Printer) -> String {
    let text = unreordered(line);
    match line.as_bytes().first() {
        Some(b'+') => printer.paint(&text, Tone::Good),
        Some(b'-') => printer.paint(&text, Tone::Bad),
        Some(b'@') => printer.paint(&text, Tone::Faint),
        _ => text,
    }
}

/// A line of source that cannot change the terminal, with its indentation.
fn unreordered(line: &str) -> String {
    crate::screen::clean(&line.replace('\t', "    "))
}

async fn approve(args: PluginsApproveArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let mut done = Vec::new();
    for plugin in &args.plugins {
        let target = target(&hub, plugin).await?;
        let approved = hub.plugins().approve(&Actor::Operator, target, args.content_hash.as_deref()).await?;
        let version = approved.approved.as_ref().map_or("", |(_, name)| name);
        printer.note(&format!("{} {version} is approved", approved.name));
        done.push(document(&approved));
    }
    hub.shutdown().await;
    reviewed(&done, printer)
}

async fn reject(args: PluginsRejectArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let mut done = Vec::new();
    for plugin in &args.plugins {
        let target = target(&hub, plugin).await?;
        let hash = args.content_hash.as_deref();
        let rejected = hub.plugins().reject(&Actor::Operator, target, &args.reason, hash).await?;
        printer.note(&format!("{} was told why", rejected.author));
        done.push(document(&rejected));
    }
    hub.shutdown().await;
    reviewed(&done, printer)
}

fn reviewed(done: &[Value], printer: &Printer) -> Result<(), Failure> {
    let text: Vec<String> = done
        .iter()
        .map(|plugin| {
            format!("{}\t{}", plugin["id"].as_str().unwrap_or(""), plugin["status"].as_str().unwrap_or(""))
        })
        .collect();
    printer.one(json!({ "items": done }), &text.join("\n"))
}

async fn delete(args: PluginsDeleteArgs, printer: &Printer) -> Result<(), Failure> {
    if !args.yes {
        return Err(Failure::usage("this cannot be undone")
            .with_hint(format!("hub-cli plugins delete {} --yes", args.plugin)));
    }
    let hub = local::open(&args.local, Open::Existing).await?;
    let target = target(&hub, &args.plugin).await?;
    hub.plugins().delete(&Actor::Operator, target).await?;
    hub.shutdown().await;
    printer.one(json!({ "deleted": args.plugin }), "")
}

/// A plugin by name or id, or a version by id.
async fn target(hub: &Hub, text: &str) -> Result<PluginRef, Failure> {
    if let Ok(target) = text.parse() {
        return Ok(target);
    }
    Ok(PluginRef::Plugin(hub.plugins().named(&Actor::Operator, text).await?))
}

/// A user by name, to act for.
async fn user(hub: &Hub, name: &str) -> Result<Actor, Failure> {
    let mut read = hub.context().store.read().await?;
    let found = read.accounts().find_user_by_name(&name.to_lowercase()).await?;
    let (user, _) = found.ok_or_else(|| Failure::not_found(format!("there is no user called {name}")))?;
    Ok(Actor::User(UserActor::embedded(user.id, Role::Member)))
}

fn version(detail: &PluginDetail, wanted: &str) -> Result<hub_core::id::PluginVersionId, Failure> {
    let found =
        detail.versions.iter().find(|version| version.version == wanted || version.id.to_string() == wanted);
    found.map(|version| version.id).ok_or_else(|| Failure::not_found(format!("there is no version {wanted}")))
}

fn document(plugin: &Plugin) -> Value {
    let latest = &plugin.latest;
    let (approved_id, approved) = plugin.approved.as_ref().map(|(id, name)| (*id, name.as_str())).unzip();
    json!({
        "id": plugin.id,
        "name": plugin.name,
        "description": latest.description,
        "version": latest.version,
        "version_id": latest.id,
        "content_hash": latest.content_hash,
        "author": plugin.author,
        "status": latest.state,
        "reason": latest.reason,
        "approved_version": approved,
        "approved_version_id": approved_id,
        "matches": latest.matches,
        "connects": latest.connects,
        "timeout_ms": latest.timeout_ms,
        "installs": plugin.installs,
        "created_at": plugin.created_at,
    })
}

fn version_document(version: &Version) -> Value {
    json!({
        "id": version.id,
        "version": version.version,
        "content_hash": version.content_hash,
        "status": version.state,
        "reason": version.reason,
        "created_at": version.created_at,
    })
}

fn pending_document(pending: &PendingVersion) -> Value {
    json!({
        "id": pending.plugin_id,
        "name": pending.name,
        "author": pending.author,
        "version": pending.version.version,
        "version_id": pending.version.id,
        "content_hash": pending.version.content_hash,
        "replaces": pending.replaces,
        "permissions": pending.permissions.words,
        "diff": pending.diff,
        "script": pending.script,
        "created_at": pending.version.created_at,
    })
}
