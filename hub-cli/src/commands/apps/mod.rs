//! `apps …`.

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
        AppsRotateTokenArgs, AppsShowArgs, AppsUninstallArgs, word,
    },
    client::{Client, InstallationRef, id_of},
    document::{cell, without_nulls, words},
    exit::Failure,
    fields::Fields,
    printer::{List, Printer},
    screen,
};

const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];
const UNINSTALL_FIELDS: [&str; 3] = ["app_id", "bot_id", "uninstalled"];

pub fn fields(command: &AppsCommand) -> Fields {
    match command {
        AppsCommand::List(args) if args.bot.is_some() => Fields::of("listInstalledApps"),
        AppsCommand::List(_) => Fields::of("listApps"),
        AppsCommand::Show(_) => Fields::of("getApp"),
        AppsCommand::Edit(_) => Fields::of("updateApp"),
        AppsCommand::Verify(_) => Fields::of("verifyAppUrl"),
        AppsCommand::Create(_) => Fields::of("createApp"),
        AppsCommand::Install(_) => Fields::of("installApp"),
        AppsCommand::RotateToken(_) => Fields::of("regenerateAppToken"),
        AppsCommand::Delete(_) => Fields::own(&DELETE_FIELDS),
        AppsCommand::Uninstall(_) => Fields::own(&UNINSTALL_FIELDS),
        AppsCommand::Events(_) => Fields::of("listAppEvents"),
        AppsCommand::ApiLogs(_) => Fields::of("listAppCalls"),
        AppsCommand::Authorize(_) => Fields::own(&authorize::FIELDS),
    }
}

pub async fn run(command: AppsCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        AppsCommand::List(args) => list(args, local, printer).await,
        AppsCommand::Show(args) => show(args, local, printer).await,
        AppsCommand::Create(args) => create(*args, local, printer).await,
        AppsCommand::Edit(args) => edit(*args, local, printer).await,
        AppsCommand::Verify(args) => verify(args, local, printer).await,
        AppsCommand::Delete(args) => delete(args, local, printer).await,
        AppsCommand::Install(args) => install(args, local, printer).await,
        AppsCommand::Uninstall(args) => uninstall(args, local, printer).await,
        AppsCommand::RotateToken(args) => rotate_token(args, local, printer).await,
        AppsCommand::Events(args) => log::run(Log::Events, args, local, printer).await,
        AppsCommand::ApiLogs(args) => log::run(Log::Calls, args, local, printer).await,
        AppsCommand::Authorize(args) => authorize::run(args, local, printer).await,
    }
}

async fn list(args: AppsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.list.hub, local).await?;
    let (page, columns, names, empty): (_, _, [&str; 5], _) = if let Some(bot) = &args.bot {
        let path = format!("/api/bots/{}/apps", client.bot(bot).await?);
        let columns: &[&str] = &["APP ID", "SLUG", "HANDLE", "SCOPES", "ON"];
        let names = ["app_id", "app_slug", "handle", "scopes", "enabled"];
        (client.list(&path, &[], &args.list.page).await?, columns, names, "this bot has no apps")
    } else {
        let columns: &[&str] = &["APP ID", "SLUG", "NAME", "LISTING", "INSTALLS"];
        let names = ["id", "slug", "name", "listing", "installs"];
        let view = [("view", args.view.as_ref().map(word))];
        (client.list("/api/apps", &view, &args.list.page).await?, columns, names, "there are no apps yet")
    };
    client.close().await;
    let row = |item: &Value| names.map(|name| words(item, name)).to_vec();
    printer.list(List::of(page, columns, row, empty))
}

async fn show(args: AppsShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let app = client.app(&args.app).await?;
    client.close().await;
    print(app, printer)
}

async fn create(args: AppsCreateArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let mut body = without_nulls(&patch(args.fields)?);
    body["name"] = args.name.into();
    if let Some(slug) = args.slug {
        body["slug"] = slug.into();
    }
    let client = Client::open(&args.hub, local).await?;
    let app = client.as_user("--owner", args.owner.as_deref()).await?.post("/api/apps", &body).await?;
    client.close().await;
    printer.note("these secrets are shown only now");
    tell_unverified(&app, printer);
    let text = ["id", "slug", "client_secret", "webhook_secret"].map(|name| line(&app, name)).join("\n");
    printer.one(app, &text)
}

async fn edit(args: AppsEditArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let patch = AppPatch { name: args.name, ..patch(args.fields)? };
    if patch == AppPatch::default() {
        return Err(
            Failure::usage("nothing to change").with_hint("hub-cli apps edit --help lists the settings")
        );
    }
    let client = Client::open(&args.hub, local).await?;
    let id: AppId = id_of(&client.app(&args.app).await?)?;
    let app = client.put(&format!("/api/apps/{id}"), &without_nulls(&patch)).await?;
    client.close().await;
    tell_unverified(&app, printer);
    print(app, printer)
}

async fn verify(args: AppsShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let id: AppId = id_of(&client.app(&args.app).await?)?;
    let app = client.post(&format!("/api/apps/{id}/verify-url"), &Value::Null).await?;
    client.close().await;
    print(app, printer)
}

async fn delete(args: AppsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let app = client.app(&args.app).await?;
    let id: AppId = id_of(&app)?;
    let (name, installs) = (cell(&app, "name"), cell(&app, "installs"));
    let what = format!("this permanently deletes {name}, also from {installs} bots");
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        client.delete(&format!("/api/apps/{id}")).await?;
    }
    client.close().await;
    printer.note(&if meant {
        format!("{name} was deleted, also from {installs} bots")
    } else {
        format!("{name} would be deleted, also from {installs} bots; nothing was changed")
    });
    printer.one(json!({ "id": id, "name": name, "deleted": meant }), &id.to_string())
}

async fn install(args: AppsInstallArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let InstallationRef { bot, app } = client.installation_ref(&args.app, &args.bot).await?;
    let scopes = Some(args.scope).filter(|scopes| !scopes.is_empty());
    let body = without_nulls(&json!({ "app_id": app, "scopes": scopes, "handle": args.handle }));
    let installed = client.post(&format!("/api/bots/{bot}/apps/install"), &body).await?;
    client.close().await;
    if installed["needs_oauth"] == true {
        printer.note("the app starts its installation itself: open this in a browser that is signed in");
        let url = cell(&installed, "oauth_redirect");
        return printer.one(installed, &screen::clean(&url));
    }
    printer.note(&format!("its handle is @{}; its token is shown only now", cell(&installed, "handle")));
    let token = cell(&installed, "app_token");
    printer.one(installed, &token)
}

async fn uninstall(args: AppsUninstallArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let place = client.installation_ref(&args.app, &args.bot).await?;
    let what = format!("this uninstalls {} from {}, and revokes its token", args.app, args.bot);
    client.installation(place).await?;
    // A new installation has another token.
    let meant = args.confirm.is_meant(&what, printer).await?;
    if meant {
        client.delete(&place.path()).await?;
    }
    client.close().await;
    printer.note(&if meant {
        format!("{} was uninstalled from {}", args.app, args.bot)
    } else {
        format!("{what} (dry run: nothing was changed)")
    });
    let document = json!({ "app_id": place.app, "bot_id": place.bot, "uninstalled": meant });
    printer.one(document, &place.app.to_string())
}

async fn rotate_token(args: AppsRotateTokenArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let place = client.installation_ref(&args.app, &args.bot).await?;
    let grace = [("grace_hours", args.grace.map(|hours| hours.to_string()))];
    let path = format!("{}/regenerate-token", place.path());
    let new = client.call("POST", &path, &grace, &Value::Null).await?;
    client.close().await;
    printer.note(&match new["old_token_expires_at"].as_str() {
        Some(at) => format!("the old one is valid until {at}; the new one is shown only now"),
        None => "the old one is revoked; the new one is shown only now".to_owned(),
    });
    let token = cell(&new, "app_token");
    printer.one(new, &token)
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

fn tell_unverified(app: &Value, printer: &Printer) {
    if app["webhook_url"].is_string() && app["webhook_verified"] == false {
        printer.note(
            "its URL did not echo the challenge, so it gets no events: run hub-cli apps verify once it is reachable",
        );
    }
}

fn line(document: &Value, name: &str) -> String {
    format!("{name:<16}  {}", screen::clean(&words(document, name)))
}

fn print(app: Value, printer: &Printer) -> Result<(), Failure> {
    let names = Fields::of("getApp").names();
    let text = names.into_iter().map(|name| line(&app, name)).collect::<Vec<_>>().join("\n");
    printer.one(app, &text)
}
