//! `apps …`.

use hub_core::{
    apps::{AppPatch, AppTool, AppView, NewApp, NewInstallation},
    id::AppId,
};
use serde_json::{Value, json};

mod authorize;
mod log;
mod loopback;

use super::{read_file, users::cell};
use crate::{
    args::{
        AppFields, AppsCommand, AppsCreateArgs, AppsDeleteArgs, AppsEditArgs, AppsInstallArgs, AppsListArgs,
        AppsRotateTokenArgs, AppsShowArgs, AppsUninstallArgs,
    },
    exit::Failure,
    printer::{List, Printer},
    reach::{AppLog, Reach, id_of},
    screen,
};

const FIELDS: [&str; 22] = [
    "id",
    "owner_id",
    "owner_name",
    "name",
    "slug",
    "description",
    "icon_url",
    "homepage",
    "redirect_uris",
    "setup_url",
    "webhook_url",
    "webhook_verified",
    "events",
    "scopes",
    "tools",
    "listing",
    "listing_reason",
    "installs",
    "created_at",
    "updated_at",
    "client_secret",
    "webhook_secret",
];
const INSTALLATION_FIELDS: [&str; 14] = [
    "id",
    "app_id",
    "app_name",
    "app_slug",
    "bot_id",
    "handle",
    "scopes",
    "tools",
    "enabled",
    "app_token_prefix",
    "created_at",
    "app_token",
    "needs_oauth",
    "oauth_redirect",
];
const TOKEN_FIELDS: [&str; 2] = ["app_token", "old_token_expires_at"];
const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];
const UNINSTALL_FIELDS: [&str; 3] = ["app_id", "bot_id", "uninstalled"];

pub fn fields(command: &AppsCommand) -> &'static [&'static str] {
    match command {
        AppsCommand::List(args) if args.bot.is_some() => &INSTALLATION_FIELDS[..11],
        AppsCommand::List(_) | AppsCommand::Show(_) | AppsCommand::Edit(_) | AppsCommand::Verify(_) => {
            &FIELDS[..20]
        }
        AppsCommand::Create(_) => &FIELDS,
        AppsCommand::Install(_) => &INSTALLATION_FIELDS,
        AppsCommand::RotateToken(_) => &TOKEN_FIELDS,
        AppsCommand::Delete(_) => &DELETE_FIELDS,
        AppsCommand::Uninstall(_) => &UNINSTALL_FIELDS,
        AppsCommand::Events(_) => &log::EVENT_FIELDS,
        AppsCommand::ApiLogs(_) => &log::CALL_FIELDS,
        AppsCommand::Authorize(_) => &authorize::FIELDS,
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
        AppsCommand::Events(args) => log::run(AppLog::Events, args, local, printer).await,
        AppsCommand::ApiLogs(args) => log::run(AppLog::Calls, args, local, printer).await,
        AppsCommand::Authorize(args) => authorize::run(args, local, printer).await,
    }
}

async fn list(args: AppsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let mut page = match &args.bot {
        Some(bot) => reach.installed_apps(reach.bot(bot).await?, &args.page).await?,
        None => reach.apps(args.view.map_or(AppView::All, Into::into), &args.page).await?,
    };
    reach.close().await;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let (columns, names, empty): (_, [&str; 5], _) = if args.bot.is_some() {
        let columns: &[&str] = &["APP ID", "SLUG", "HANDLE", "SCOPES", "ON"];
        (columns, ["app_id", "app_slug", "handle", "scopes", "enabled"], "this bot has no apps")
    } else {
        let columns: &[&str] = &["APP ID", "SLUG", "NAME", "LISTING", "INSTALLS"];
        (columns, ["id", "slug", "name", "listing", "installs"], "there are no apps yet")
    };
    printer.list(List {
        columns,
        rows: items.iter().map(|item| names.map(|name| words(item, name)).to_vec()).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty,
    })
}

async fn show(args: AppsShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let app = reach.app(&args.app).await?;
    reach.close().await;
    print(app, printer)
}

async fn create(args: AppsCreateArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let new = NewApp { name: args.name, slug: args.slug, rest: patch(args.fields)? };
    let reach = Reach::open(&args.hub, local).await?;
    let app = reach.create_app(new, args.owner.as_deref()).await?;
    reach.close().await;
    printer.note("these secrets are shown this once");
    tell_unverified(&app, printer);
    let text = ["id", "slug", "client_secret", "webhook_secret"].map(|name| line(&app, name)).join("\n");
    printer.one(app, &text)
}

async fn edit(args: AppsEditArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let patch = AppPatch { name: args.name, ..patch(args.fields)? };
    if patch == AppPatch::default() {
        return Err(
            Failure::usage("nothing to change").with_hint("hub-cli apps edit --help lists what can be")
        );
    }
    let reach = Reach::open(&args.hub, local).await?;
    let id = id_of(&reach.app(&args.app).await?)?;
    let app = reach.update_app(id, patch).await?;
    reach.close().await;
    tell_unverified(&app, printer);
    print(app, printer)
}

async fn verify(args: AppsShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let id = id_of(&reach.app(&args.app).await?)?;
    let app = reach.verify_app(id).await?;
    reach.close().await;
    print(app, printer)
}

async fn delete(args: AppsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let app = reach.app(&args.app).await?;
    let id: AppId = id_of(&app)?;
    let (name, installs) = (cell(&app, "name"), cell(&app, "installs"));
    let what = format!("{name} goes for good, and from {installs} bots");
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        reach.delete_app(id).await?;
    }
    reach.close().await;
    printer.note(&if meant {
        format!("{name} is gone, and off {installs} bots")
    } else {
        format!("{name} would go, and from {installs} bots; nothing was changed")
    });
    printer.one(json!({ "id": id, "name": name, "deleted": meant }), &id.to_string())
}

async fn install(args: AppsInstallArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.app_place(&args.app, &args.bot).await?;
    let scopes = Some(args.scope).filter(|scopes| !scopes.is_empty());
    let new = NewInstallation { app_id: place.app, scopes, handle: args.handle };
    let installed = reach.install_app(place.bot, new).await?;
    reach.close().await;
    if installed["needs_oauth"] == true {
        printer.note("the app begins its installation itself: open this in a browser that is signed in");
        let url = cell(&installed, "oauth_redirect");
        return printer.one(installed, &screen::clean(&url));
    }
    printer.note(&format!("people call it @{}; its token is shown this once", cell(&installed, "handle")));
    let token = cell(&installed, "app_token");
    printer.one(installed, &token)
}

async fn uninstall(args: AppsUninstallArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.app_place(&args.app, &args.bot).await?;
    let what = format!("{} goes from {}, and its token there ends", args.app, args.bot);
    reach.installation(place).await?;
    // Whoever puts it there again gives it another token.
    let meant = args.confirm.is_meant(&what, printer).await?;
    if meant {
        reach.uninstall_app(place).await?;
    }
    reach.close().await;
    printer.note(&if meant {
        format!("{} is off {}", args.app, args.bot)
    } else {
        format!("{what}; nothing was changed")
    });
    let document = json!({ "app_id": place.app, "bot_id": place.bot, "uninstalled": meant });
    printer.one(document, &place.app.to_string())
}

async fn rotate_token(args: AppsRotateTokenArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.app_place(&args.app, &args.bot).await?;
    let new = reach.rotate_app_token(place, args.grace).await?;
    reach.close().await;
    printer.note(&match new["old_token_expires_at"].as_str() {
        Some(at) => format!("the old one ends at {at}; the new one is shown this once"),
        None => "the old one has ended; the new one is shown this once".to_owned(),
    });
    let token = cell(&new, "app_token");
    printer.one(new, &token)
}

/// What the flags say about an app.
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
            "its URL did not echo the challenge, so it gets no events: hub-cli apps verify, once it listens",
        );
    }
}

/// A field as a cell; lists with commas.
fn words(document: &Value, name: &str) -> String {
    match &document[name] {
        Value::Array(items) => {
            let word = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            items.iter().map(word).collect::<Vec<_>>().join(",")
        }
        _ => cell(document, name),
    }
}

fn line(document: &Value, name: &str) -> String {
    format!("{name:<16}  {}", screen::clean(&words(document, name)))
}

fn print(app: Value, printer: &Printer) -> Result<(), Failure> {
    let text = FIELDS[..20].iter().map(|name| line(&app, name)).collect::<Vec<_>>().join("\n");
    printer.one(app, &text)
}
