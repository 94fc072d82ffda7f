use clap::{Args, Subcommand};
use hub_core::apps::AppView;

use super::{Confirm, Ends, Fields, HubArgs, ListArgs, closed};

/// Create and install apps, and inspect their events and calls
#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    #[command(alias = "ls")]
    List(AppsListArgs),
    Show(AppsShowArgs),
    Create(Box<AppsCreateArgs>),
    Edit(Box<AppsEditArgs>),
    /// Verify an app's event URL again
    #[command(
        after_help = "Examples:\n  hub-cli apps verify weather\n  hub-cli apps verify app_01KAJ6Z8QH0000000000000000 --json=webhook_verified\n\nSee also: hub-cli apps edit",
        add = Ends(&[(0, "verified"), (6, "the app has no URL"), (7, "the URL is unreachable or echoed something else")]),
        add = Fields::of("verifyAppUrl")
    )]
    Verify(AppsShowArgs),
    #[command(alias = "rm")]
    Delete(AppsDeleteArgs),
    Install(AppsInstallArgs),
    Uninstall(AppsUninstallArgs),
    RotateToken(AppsRotateTokenArgs),
    /// The events of an installed app
    #[command(
        alias = "event",
        after_help = "Examples:\n  hub-cli apps events weather --bot demo\n  hub-cli apps events weather --bot demo --follow\n
With --follow each new event is shown, and again whenever its state changes.\nSee also: hub-cli apps api-logs",
        add = Fields::of("listAppEvents")
    )]
    Events(AppsLogArgs),
    /// The bot API calls of an installed app
    #[command(
        alias = "api-log",
        after_help = "Examples:\n  hub-cli apps api-logs weather --bot demo\n  hub-cli apps api-logs weather --bot demo --follow --json\n\nSee also: hub-cli apps events",
        add = Fields::of("listAppCalls")
    )]
    ApiLogs(AppsLogArgs),
    Authorize(AppsAuthorizeArgs),
}

const APP_VIEWS: [AppView; 4] = [AppView::All, AppView::Own, AppView::Public, AppView::Installed];

/// List the apps that you may see, or those installed on a bot
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps list\n  hub-cli apps list --bot demo --json=id,app_slug\n\nSee also: hub-cli apps show",
    add = Fields::of("listApps")
)]
pub struct AppsListArgs {
    /// Which apps: all that you may see, your own, published ones, or those installed on your bots
    #[arg(long, conflicts_with = "bot", value_parser = closed(APP_VIEWS, AppView::as_str))]
    pub view: Option<AppView>,
    /// Apps installed on this bot: its id or name
    #[arg(long)]
    pub bot: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show an app
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps show weather\n  hub-cli apps show weather --json=id,tools\n\nSee also: hub-cli apps list",
    add = Ends(&[(2, "ambiguous name")]),
    add = Fields::of("getApp")
)]
pub struct AppsShowArgs {
    /// Id, short name or name of the app
    pub app: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// The properties of an app.
#[derive(Debug, Args)]
pub struct AppFields {
    /// Description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Home page
    #[arg(long, value_name = "URL")]
    pub homepage: Option<String>,
    /// Icon
    #[arg(long, value_name = "URL")]
    pub icon_url: Option<String>,
    /// URL for events; it has to echo a challenge
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<String>,
    /// URL that starts the installation, if the app starts it itself
    #[arg(long, value_name = "URL")]
    pub setup_url: Option<String>,
    /// Redirect URI for authorizations; may be repeated
    #[arg(long, value_name = "URL")]
    pub redirect_uri: Vec<String>,
    /// Kind of event that it subscribes to; may be repeated
    #[arg(long, value_name = "KIND")]
    pub event: Vec<String>,
    /// Scope that it requests; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Command that people can send it; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "tools")]
    pub command: Vec<String>,
    /// JSON file with its tools: [{name, description, command, parameters}]; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub tools: Option<String>,
}

/// Create an app
///
/// Its two secrets are shown only here, once. The scopes are `message:read`, `message:write`, `contact:read`,
/// `bot:read`, `tools:write` and `config:read`; the kinds of events `message`, `message.text` and the other message
/// types, `command`, `bot.status`, `app.installed`, `app.uninstalled`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps create Weather --webhook-url http://127.0.0.1:3000/events --command weather --scope message:read --scope message:write\n  hub-cli apps create Weather --tools tools.json --owner ada --data-dir ./data --json=id,webhook_secret\n\nSee also: hub-cli apps install",
    add = Ends(&[(2, "invalid value, or --local without --owner"), (6, "the short name is taken")]),
    add = Fields::of("createApp")
)]
pub struct AppsCreateArgs {
    /// Name, 1 to 64 characters
    pub name: String,
    /// Short name: 3 to 40 of a-z, 0-9 and -
    #[arg(long)]
    pub slug: Option<String>,
    /// User name of the owner; on a server the signed-in user
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    #[command(flatten)]
    pub fields: AppFields,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Change an app
///
/// Settings that are not named keep their values; lists are replaced as a whole, and an empty string removes an
/// address.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps edit weather --webhook-url https://weather.example/hub\n  hub-cli apps edit weather --redirect-uri http://127.0.0.1:8976/callback\n\nSee also: hub-cli apps verify",
    add = Ends(&[(2, "nothing to change, or invalid value"), (4, "not the owner")]),
    add = Fields::of("updateApp")
)]
pub struct AppsEditArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// New name
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub fields: AppFields,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete an app with its installations
///
/// Its tokens are revoked immediately. This cannot be undone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps delete weather --dry-run\n  hub-cli apps delete weather --yes\n\nSee also: hub-cli apps uninstall",
    add = Ends(&[(4, "not the owner")]),
    add = Fields::own(&["id", "name", "deleted"])
)]
pub struct AppsDeleteArgs {
    /// Id, short name or name of the app
    pub app: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Install an app on a bot
///
/// Its token is shown only here, once. An app that starts its installation itself is not installed: the address at
/// which the installation starts is shown instead, and its configuration is not stored. Values on the command line are
/// visible to other users of this machine: pass secrets with --config-file.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps install weather --bot demo\n  hub-cli apps install weather --bot demo --scope message:read --handle sky --json=app_token\n  hub-cli apps install weather --bot demo --config units=metric --config language=en\n\nSee also: hub-cli apps authorize",
    add = Ends(&[(0, "installed, or the address to continue at"), (2, "invalid value"), (6, "already installed, or the handle is taken")]),
    add = Fields::of("installApp")
)]
pub struct AppsInstallArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Scope to grant, of those it requests [default: all]; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Handle on this bot, without the @ [default: its short name]
    #[arg(long)]
    pub handle: Option<String>,
    /// Entry of its configuration on this bot; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = config_entry)]
    pub config: Vec<(String, String)>,
    /// JSON file with its configuration: {name: value}; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub config_file: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Reads `NAME=VALUE`; the value may contain further `=`.
fn config_entry(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Uninstall an app from a bot
///
/// Its token is revoked immediately.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps uninstall weather --bot demo --yes\n  hub-cli apps uninstall weather --bot bot_01KAJ6Z8QH0000000000000000 --yes --json\n\nSee also: hub-cli apps install",
    add = Fields::own(&["app_id", "bot_id", "uninstalled"])
)]
pub struct AppsUninstallArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Rotate the token of an installed app
///
/// The old one is revoked immediately, or after the grace period; the new one is shown only here, once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps rotate-token weather --bot demo\n  hub-cli apps rotate-token weather --bot demo --grace 24\n\nSee also: hub-cli apps install",
    add = Ends(&[(2, "invalid value")]),
    add = Fields::of("regenerateAppToken")
)]
pub struct AppsRotateTokenArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Hours for which the old token stays valid, 1 to 72: 24 or 24h
    #[arg(long, value_name = "HOURS", value_parser = super::hours)]
    pub grace: Option<u32>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// A log of an installed app.
#[derive(Debug, Args)]
pub struct AppsLogArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Show new entries until interrupted
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    pub follow: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Get a token for an app by OAuth with PKCE, as the app itself would
///
/// Listens on the app's registered address on this machine, shows the link to the page on which the bot's owner
/// decides, exchanges the code, and shows the token only here, once. The app must have such an address: `hub-cli apps
/// edit APP --redirect-uri http://127.0.0.1:8976/callback`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps authorize weather --bot demo\n  hub-cli apps authorize weather --scope message:read --no-open --timeout 60 --json=app_token\n\nSee also: hub-cli apps install",
    add = Ends(&[(0, "authorized"), (2, "no redirect URI on this machine, or its port is in use"), (4, "not signed in, or rejected by the bot's owner"), (8, "timed out without a decision")]),
    add = Fields::own(&["installation_id", "bot_id", "app_token", "webhook_secret"])
)]
pub struct AppsAuthorizeArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot [default: its owner chooses]
    #[arg(long)]
    pub bot: Option<String>,
    /// Redirect URI of the app [default: the first on this machine]
    #[arg(long, value_name = "URL")]
    pub redirect_uri: Option<String>,
    /// Scope to request, of those of the app [default: all]; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Seconds to wait for the decision, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Print the address without opening a browser
    #[arg(long)]
    pub no_open: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
