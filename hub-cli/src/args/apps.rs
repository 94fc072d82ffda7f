use clap::{Args, Subcommand, ValueEnum};
use hub_core::apps::AppView;

use super::{Confirm, HubArgs, PageArgs};

/// Make apps, put them onto bots, see what they are told and ask
#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    /// Apps that you may see, or those on a bot
    #[command(alias = "ls")]
    List(AppsListArgs),
    /// One app
    Show(AppsShowArgs),
    /// Make an app
    Create(Box<AppsCreateArgs>),
    /// Change an app
    Edit(Box<AppsEditArgs>),
    /// Try an app's URL for events again
    #[command(
        after_help = "Examples:\n  hub-cli apps verify weather\n  hub-cli apps verify app_01KAJ6Z8QH0000000000000000 --json=webhook_verified\n
Exit codes: 0 it echoed the challenge, 5 no such app, 6 it has no URL, 7 nobody answers there, or something else.\nSee also: hub-cli apps edit"
    )]
    Verify(AppsShowArgs),
    /// Delete an app with its installations
    #[command(alias = "rm")]
    Delete(AppsDeleteArgs),
    /// Put an app onto a bot
    Install(AppsInstallArgs),
    /// Take an app off a bot
    Uninstall(AppsUninstallArgs),
    /// Give an app on a bot a new token
    RotateToken(AppsRotateTokenArgs),
    /// What an app on a bot was told
    #[command(
        alias = "event",
        after_help = "Examples:\n  hub-cli apps events weather --bot demo\n  hub-cli apps events weather --bot demo --follow\n
With --follow each event is shown when it is there, and again whenever its state changes.
Exit codes: 0 listed, 4 not signed in, 5 no such app on this bot, 7 nobody answers, 130 interrupted.\nSee also: hub-cli apps api-logs"
    )]
    Events(AppsLogArgs),
    /// What an app on a bot asked of the bot API
    #[command(
        alias = "api-log",
        after_help = "Examples:\n  hub-cli apps api-logs weather --bot demo\n  hub-cli apps api-logs weather --bot demo --follow --json\n
Exit codes: 0 listed, 4 not signed in, 5 no such app on this bot, 7 nobody answers, 130 interrupted.\nSee also: hub-cli apps events"
    )]
    ApiLogs(AppsLogArgs),
    /// Get a token for an app as the app itself would: by OAuth with PKCE
    Authorize(AppsAuthorizeArgs),
}

/// Apps that you may see, or those on a bot
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli apps list\n  hub-cli apps list --bot demo --json=id,app_slug\n
Exit codes: 0 listed, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli apps show")]
pub struct AppsListArgs {
    /// Which apps
    #[arg(long, conflicts_with = "bot")]
    pub view: Option<AppViewArg>,
    /// Those on this bot: its id or name
    #[arg(long)]
    pub bot: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// One app
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps show weather\n  hub-cli apps show weather --json=id,tools\n
Exit codes: 0 shown, 2 several have the name, 4 not signed in, 5 no such app, 7 nobody answers.\nSee also: hub-cli apps list"
)]
pub struct AppsShowArgs {
    /// Id, short name or name of the app
    pub app: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// What an app is.
#[derive(Debug, Args)]
pub struct AppFields {
    /// What it does
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Page about it
    #[arg(long, value_name = "URL")]
    pub homepage: Option<String>,
    /// Picture
    #[arg(long, value_name = "URL")]
    pub icon_url: Option<String>,
    /// Where events go; it has to echo a challenge
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<String>,
    /// Where its installation begins, when the app begins it itself
    #[arg(long, value_name = "URL")]
    pub setup_url: Option<String>,
    /// Where authorizations may lead; may be repeated
    #[arg(long, value_name = "URL")]
    pub redirect_uri: Vec<String>,
    /// What it wants to be told of; may be repeated
    #[arg(long, value_name = "KIND")]
    pub event: Vec<String>,
    /// What it asks for; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// A command by which people call it; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "tools")]
    pub command: Vec<String>,
    /// JSON file with its tools: [{name, description, command, parameters}]; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub tools: Option<String>,
}

/// Make an app
///
/// Its two secrets are shown once, here. The scopes are `message:read`, `message:write`, `contact:read`, `bot:read`
/// and `tools:write`; the kinds of events `message`, `message.text` and its like, `command`, `bot.status`,
/// `app.installed`, `app.uninstalled`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps create Weather --webhook-url http://127.0.0.1:3000/events --command weather --scope message:read --scope message:write\n  hub-cli apps create Weather --tools tools.json --owner ada --data-dir ./data --json=id,webhook_secret\n
Exit codes: 0 made, 2 not acceptable, or no --owner on files, 4 not signed in, 6 the short name is taken, 7 nobody answers.\nSee also: hub-cli apps install"
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
/// What is left out stays; lists are replaced as a whole, and the empty text takes an address away.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps edit weather --webhook-url https://weather.example/hub\n  hub-cli apps edit weather --redirect-uri http://127.0.0.1:8976/callback\n
Exit codes: 0 changed, 2 nothing to change or not acceptable, 4 not yours, 5 no such app, 7 nobody answers.\nSee also: hub-cli apps verify"
)]
pub struct AppsEditArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Another name
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub fields: AppFields,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete an app with its installations
///
/// Its tokens end at once. There is no way back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps delete weather --dry-run\n  hub-cli apps delete weather --yes\n
Exit codes: 0 deleted, 2 not confirmed, 4 not yours, 5 no such app, 7 nobody answers.\nSee also: hub-cli apps uninstall"
)]
pub struct AppsDeleteArgs {
    /// Id, short name or name of the app
    pub app: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Put an app onto a bot
///
/// Its token is shown once, here. An app that begins its installation itself is not put there: the address at which
/// it begins is shown instead.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps install weather --bot demo\n  hub-cli apps install weather --bot demo --scope message:read --handle sky --json=app_token\n
Exit codes: 0 there, or where to go on, 2 not acceptable, 4 not signed in, 5 no such app or bot, 6 there already, or the handle is taken, 7 nobody answers.\nSee also: hub-cli apps authorize"
)]
pub struct AppsInstallArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// What it gets, of what it asks for; everything when left out; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// How people call it there, without the @ [default: its short name]
    #[arg(long)]
    pub handle: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Take an app off a bot
///
/// Its token ends at once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps uninstall weather --bot demo --yes\n  hub-cli apps uninstall weather --bot bot_01KAJ6Z8QH0000000000000000 --yes --json\n
Exit codes: 0 done, 2 not confirmed, 4 not signed in, 5 no such app on this bot, 7 nobody answers.\nSee also: hub-cli apps install"
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

/// Give an app on a bot a new token
///
/// The old one ends at once, or after the grace; the new one is shown once, here.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps rotate-token weather --bot demo\n  hub-cli apps rotate-token weather --bot demo --grace 24\n
Exit codes: 0 done, 2 not acceptable, 4 not signed in, 5 no such app on this bot, 7 nobody answers.\nSee also: hub-cli apps install"
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

/// A log of an app on a bot.
#[derive(Debug, Args)]
pub struct AppsLogArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Show what comes, until interrupted
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    pub follow: bool,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Get a token for an app as the app itself would: by OAuth with PKCE
///
/// Listens on the app's registered address on this machine, shows the page on which the bot's owner decides,
/// exchanges the code, and shows the token once, here. The app needs such an address first:
/// `hub-cli apps edit APP --redirect-uri http://127.0.0.1:8976/callback`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli apps authorize weather --bot demo\n  hub-cli apps authorize weather --scope message:read --no-open --timeout 60 --json=app_token\n
Exit codes: 0 the token is shown, 2 no registered address on this machine, or its port is taken, 4 not signed in, or the bot's owner said no, 5 no such app, 7 nobody answers, 8 nobody decided in time.\nSee also: hub-cli apps install"
)]
pub struct AppsAuthorizeArgs {
    /// Id, short name or name of the app
    pub app: String,
    /// The bot: its id or name; its owner chooses when left out
    #[arg(long)]
    pub bot: Option<String>,
    /// Which of the app's registered addresses [default: the first on this machine]
    #[arg(long, value_name = "URL")]
    pub redirect_uri: Option<String>,
    /// What to ask for, of what the app asks for; everything when left out; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Seconds to wait for the decision, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Only show the address, open no browser
    #[arg(long)]
    pub no_open: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Which apps a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AppViewArg {
    /// All that you may see
    All,
    /// Your own
    Own,
    /// What everybody finds
    Public,
    /// What is on a bot of yours
    Installed,
}

impl From<AppViewArg> for AppView {
    fn from(view: AppViewArg) -> Self {
        match view {
            AppViewArg::All => Self::All,
            AppViewArg::Own => Self::Own,
            AppViewArg::Public => Self::Public,
            AppViewArg::Installed => Self::Installed,
        }
    }
}
