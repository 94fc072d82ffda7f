//! `apps …`.

use std::collections::BTreeMap;

use hub_core::{
    apps::{AppPatch, AppTool},
    id::AppId,
};
use serde_json::{Value, json};

mod authorize;
mod log;
mod loopback;

use log::Log;

use super::read_file;
use crate::{
    args::{
        AppFields, AppsCommand, AppsCreateArgs, AppsDeleteArgs, AppsEditArgs, AppsInstallArgs, AppsListArgs,
        AppsRotateTokenArgs, AppsShowArgs, AppsUninstallArgs,
    },
    client::{InstallationRef, id_of},
    context::Context,
    document::{cell, lines, without_nulls, words},
    exit::Failure,
    fields::Fields,
    printer::{List, Printer},
    screen,
};

pub async fn run(command: AppsCommand, cx: &Context) -> Result<(), Failure> {
    match command {
        AppsCommand::List(args) => list(args, cx).await,
        AppsCommand::Show(args) => show(args, cx).await,
        AppsCommand::Create(args) => create(*args, cx).await,
        AppsCommand::Edit(args) => edit(*args, cx).await,
        AppsCommand::Verify(args) => verify(args, cx).await,
        AppsCommand::Delete(args) => delete(args, cx).await,
        AppsCommand::Install(args) => install(args, cx).await,
        AppsCommand::Uninstall(args) => uninstall(args, cx).await,
        AppsCommand::RotateToken(args) => rotate_token(args, cx).await,
        AppsCommand::Events(args) => log::run(Log::Events, args, cx).await,
        AppsCommand::ApiLogs(args) => log::run(Log::Calls, args, cx).await,
        AppsCommand::Authorize(args) => authorize::run(args, cx).await,
    }
}

async fn list(args: AppsListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let (page, columns, names, empty): (_, _, [&str; 5], _) = if let Some(bot) = &args.bot {
        let path = format!("/api/bots/{}/apps", client.bot(bot).await?);
        let columns: &[&str] = &["APP ID", "SLUG", "HANDLE", "SCOPES", "ON"];
        let names = ["app_id", "app_slug", "handle", "scopes", "enabled"];
        (client.list(&path, &[], &args.list.page).await?, columns, names, "this bot has no apps")
    } else {
        let columns: &[&str] = &["APP ID", "SLUG", "NAME", "LISTING", "INSTALLS"];
        let names = ["id", "slug", "name", "listing", "installs"];
        let view = [("view", args.view.map(|view| view.as_str().to_owned()))];
        (client.list("/api/apps", &view, &args.list.page).await?, columns, names, "there are no apps yet")
    };
    let row = |item: &Value| names.map(|name| words(item, name)).to_vec();
    cx.printer.list(List::of(page, columns, row, empty))
}

async fn show(args: AppsShowArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let app = client.app(&args.app).await?;
    print(app, &cx.printer)
}

async fn create(args: AppsCreateArgs, cx: &Context) -> Result<(), Failure> {
    let mut body = without_nulls(&patch(args.fields)?);
    body["name"] = args.name.into();
    if let Some(slug) = args.slug {
        body["slug"] = slug.into();
    }
    let client = cx.hub(&args.hub).await?;
    let app = client.as_user("--owner", args.owner.as_deref()).await?.post("/api/apps", &body).await?;
    cx.printer.note("these secrets are shown only now");
    warn_unverified(&app, &cx.printer);
    let text = lines(&app, ["id", "slug", "client_secret", "webhook_secret"], 16);
    cx.printer.one(app, &text)
}

async fn edit(args: AppsEditArgs, cx: &Context) -> Result<(), Failure> {
    let patch = AppPatch { name: args.name, ..patch(args.fields)? };
    if patch == AppPatch::default() {
        return Err(
            Failure::usage("nothing to change").with_hint("hub-cli apps edit --help lists the settings")
        );
    }
    let client = cx.hub(&args.hub).await?;
    let id: AppId = id_of(&client.app(&args.app).await?)?;
    let app = client.put(&format!("/api/apps/{id}"), &without_nulls(&patch)).await?;
    warn_unverified(&app, &cx.printer);
    print(app, &cx.printer)
}

async fn verify(args: AppsShowArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let id: AppId = id_of(&client.app(&args.app).await?)?;
    let app = client.post(&format!("/api/apps/{id}/verify-url"), &Value::Null).await?;
    print(app, &cx.printer)
}

async fn delete(args: AppsDeleteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let app = client.app(&args.app).await?;
    let id: AppId = id_of(&app)?;
    let (name, installs) = (cell(&app, "name"), cell(&app, "installs"));
    let what = format!("this permanently deletes {name}, also from {installs} bots");
    let confirmed = args.confirm.is_confirmed_by_name(&what, &name, &cx.printer).await?;
    if confirmed {
        client.delete(&format!("/api/apps/{id}")).await?;
        cx.printer.note(&format!("{name} was deleted, also from {installs} bots"));
    }
    cx.printer.one(json!({ "id": id, "name": name, "deleted": confirmed }), &id.to_string())
}

async fn install(args: AppsInstallArgs, cx: &Context) -> Result<(), Failure> {
    let config = config(args.config, args.config_file.as_deref())?;
    let client = cx.hub(&args.hub).await?;
    let InstallationRef { bot, app } = client.installation_ref(&args.app, &args.bot).await?;
    let scopes = Some(args.scope).filter(|scopes| !scopes.is_empty());
    let body = json!({ "app_id": app, "scopes": scopes, "handle": args.handle, "config": config });
    let body = without_nulls(&body);
    let installed = client.post(&format!("/api/bots/{bot}/apps/install"), &body).await?;
    if installed["needs_oauth"] == true {
        cx.printer.note("the app starts its installation itself: open this in a browser that is signed in");
        let url = cell(&installed, "oauth_redirect");
        return cx.printer.one(installed, &screen::clean(&url));
    }
    cx.printer.note(&format!("its handle is @{}; its token is shown only now", cell(&installed, "handle")));
    let token = cell(&installed, "app_token");
    cx.printer.one(installed, &token)
}

async fn uninstall(args: AppsUninstallArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.installation_ref(&args.app, &args.bot).await?;
    let what = format!("this uninstalls {} from {}, and revokes its token", args.app, args.bot);
    client.installation(place).await?;
    // A new installation has another token.
    let confirmed = args.confirm.is_confirmed(&what, &cx.printer).await?;
    if confirmed {
        client.delete(&place.path()).await?;
        cx.printer.note(&format!("{} was uninstalled from {}", args.app, args.bot));
    }
    let document = json!({ "app_id": place.app, "bot_id": place.bot, "uninstalled": confirmed });
    cx.printer.one(document, &place.app.to_string())
}

async fn rotate_token(args: AppsRotateTokenArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.installation_ref(&args.app, &args.bot).await?;
    let grace = [("grace_hours", args.grace.map(|hours| hours.to_string()))];
    let path = format!("{}/regenerate-token", place.path());
    let new = client.call("POST", &path, &grace, &Value::Null).await?;
    cx.printer.note(&match new["old_token_expires_at"].as_str() {
        Some(at) => format!("the old one is valid until {at}; the new one is shown only now"),
        None => "the old one is revoked; the new one is shown only now".to_owned(),
    });
    let token = cell(&new, "app_token");
    cx.printer.one(new, &token)
}

/// The settings of an app in the flags.
fn patch(fields: AppFields) -> Result<AppPatch, Failure> {
    let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
    let command = |name: &String| AppTool {
        name: name.trim_start_matches('/').to_owned(),
        description: String::new(),
        command: Some(name.clone()),
        parameters: None,
    };
    let tools = match &fields.tools {
        Some(file) => Some(read_tools(file)?),
        None => some(fields.command).map(|names| names.iter().map(command).collect()),
    };
    Ok(AppPatch {
        name: None,
        description: fields.description,
        icon_url: fields.icon_url,
        homepage: fields.homepage,
        redirect_uris: some(fields.redirect_uri),
        setup_url: fields.setup_url,
        webhook_url: fields.webhook_url,
        events: some(fields.event),
        scopes: some(fields.scope),
        tools,
    })
}

fn read_tools(file: &str) -> Result<Vec<AppTool>, Failure> {
    serde_json::from_str(&read_file(file)?).map_err(|error| Failure::file(file, error))
}

/// The configuration in the flags.
fn config(
    entries: Vec<(String, String)>,
    file: Option<&str>,
) -> Result<Option<BTreeMap<String, Value>>, Failure> {
    let Some(file) = file else {
        let entries: BTreeMap<_, _> = entries.into_iter().map(|(name, value)| (name, value.into())).collect();
        return Ok(Some(entries).filter(|entries| !entries.is_empty()));
    };
    serde_json::from_str(&read_file(file)?).map(Some).map_err(|error| Failure::file(file, error))
}

fn warn_unverified(app: &Value, printer: &Printer) {
    if app["webhook_url"].is_string() && app["webhook_verified"] == false {
        printer.note(
            "its URL did not echo the challenge, so it gets no events: run hub-cli apps verify once it is reachable",
        );
    }
}

fn print(app: Value, printer: &Printer) -> Result<(), Failure> {
    let text = lines(&app, Fields::of("getApp").names(), 16);
    printer.one(app, &text)
}
