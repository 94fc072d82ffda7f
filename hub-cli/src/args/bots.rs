use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use hub_core::bots::Direction;

use super::{Confirm, HubArgs, PageArgs, duration};

/// Bind chat accounts, and look after them
#[derive(Debug, Subcommand)]
pub enum BotsCommand {
    /// Your bots, newest first
    #[command(alias = "ls")]
    List(BotsListArgs),
    /// One bot
    #[command(after_help = "Examples:\n  hub-cli bots show demo\n  hub-cli bots show demo --json=id,wx_id\n
Exit codes: 0 shown, 2 several have the name, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli bots status")]
    Show(BotArgs),
    /// Bind a chat account by scanning a code
    Bind(Box<BotsBindArgs>),
    /// Give a bot another name
    Rename(BotsRenameArgs),
    /// Delete a bot with its channels, messages and contacts
    #[command(alias = "rm")]
    Delete(BotsDeleteArgs),
    /// Whether a bot is connected, and what is wrong
    Status(BotsStatusArgs),
    /// Connect a bot anew
    #[command(
        after_help = "Examples:\n  hub-cli bots reconnect demo\n  hub-cli bots reconnect demo --json=status\n
Exit codes: 0 the hub connects it, 4 not signed in, 5 no such bot or hub, 6 the network wants a new login, 7 nobody answers.\nSee also: hub-cli bots bind, hub-cli bots status --watch"
    )]
    Reconnect(BotArgs),
    /// The people a bot talks to, the last active first
    #[command(alias = "contact")]
    Contacts(BotsContactsArgs),
    /// The messages of a bot, newest first
    #[command(alias = "message")]
    Messages(BotsMessagesArgs),
}

/// Your bots, newest first
///
/// On files: everybody's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli bots list\n  hub-cli bots list --json=id,name,status\n
Exit codes: 0 listed, 4 not signed in, 5 no such hub, 7 nobody answers.\nSee also: hub-cli bots bind")]
pub struct BotsListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// One bot
#[derive(Debug, Args)]
pub struct BotArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Bind a chat account by scanning a code
///
/// Draws the code in the terminal and says what happens: waiting, scanned, confirmed, online. A code that runs out is
/// replaced. An account that was bound before keeps its bot and channels, and gets the new login. Without a terminal
/// the link to be drawn, and each state, is a JSON document on a line of its own.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots bind\n  hub-cli bots bind --network sim --name Shop --wait 3m\n  hub-cli bots bind --png code.png --json\n
Exit codes: 0 bound, 1 the network refused, 2 a value is not acceptable, 4 not signed in, 5 no such hub, 7 nobody answers, 8 nobody confirmed in time, 130 interrupted.\nSee also: hub-cli bots status"
)]
pub struct BotsBindArgs {
    /// Chat network, for example ilink or sim [default: the hub's choice]
    #[arg(long)]
    pub network: Option<String>,
    /// Name of the bot, 1 to 64 characters
    #[arg(long)]
    pub name: Option<String>,
    /// Write the code as an image too, each time there is another one
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Longest wait: 90s, 3m, at most 8m
    #[arg(long, value_name = "TIME", default_value = "8m", value_parser = duration)]
    pub wait: Duration,
    /// Draw for a terminal with dark text on a light background
    #[arg(long)]
    pub invert: bool,
    /// When the phone shows a number, read it from a line of stdin; at a terminal it is asked for anyway
    #[arg(long)]
    pub code_stdin: bool,
    /// User name of the owner; on a server the signed-in user
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Give a bot another name
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots rename demo Shop\n  hub-cli bots rename bot_01KAJ6Z8QH0000000000000000 \"The shop\" --json=name\n
Exit codes: 0 renamed, 2 not acceptable, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli bots show"
)]
pub struct BotsRenameArgs {
    /// Id or name of the bot
    pub bot: String,
    /// The new name, 1 to 64 characters
    pub name: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a bot with its channels, messages and contacts
///
/// What waits to be sent or delivered goes too. There is no way back; the chat account itself stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli bots delete demo --dry-run\n  hub-cli bots delete demo --yes\n
Exit codes: 0 deleted, 2 not confirmed, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli bots list")]
pub struct BotsDeleteArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Whether a bot is connected, and what is wrong
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots status demo\n  hub-cli bots status demo --watch --json=status,since\n
Exit codes: 0 shown, 4 not signed in, 5 no such bot or hub, 7 nobody answers, 130 interrupted (--watch).\nSee also: hub-cli bots reconnect"
)]
pub struct BotsStatusArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Show it again whenever it changes, until interrupted
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// The people a bot talks to, the last active first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots contacts demo\n  hub-cli bots contacts demo --json=user_id,sends_left\n
Exit codes: 0 listed, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli send"
)]
pub struct BotsContactsArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// The messages of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots messages demo --limit 10\n  hub-cli bots messages demo --direction inbound --since 2h --q order --json=id,content\n
Exit codes: 0 listed, 2 a time is not acceptable, 4 not signed in, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli tail, hub-cli traces list"
)]
pub struct BotsMessagesArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Only this way
    #[arg(long)]
    pub direction: Option<DirectionArg>,
    /// Only with this person: their id on the chat network
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// Only those taken then or later: 30s, 10m, 2h, 7d ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only those taken before then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only those that contain this text
    #[arg(long, value_name = "TEXT")]
    pub q: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Ways of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DirectionArg {
    /// From a person to the bot
    Inbound,
    /// From the bot to a person
    Outbound,
}

impl From<DirectionArg> for Direction {
    fn from(direction: DirectionArg) -> Self {
        match direction {
            DirectionArg::Inbound => Self::Inbound,
            DirectionArg::Outbound => Self::Outbound,
        }
    }
}
