use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use hub_core::bots::Direction;

use super::{Confirm, Ends, Fields, HubArgs, ListArgs, closed, duration};

/// Bind and manage chat accounts
#[derive(Debug, Subcommand)]
pub enum BotsCommand {
    #[command(alias = "ls")]
    /// List your bots, newest first
    ///
    /// With --local: the bots of all users.
    #[command(
        after_help = "Examples:\n  hub-cli bots list\n  hub-cli bots list --json=id,name,status\n\nSee also: hub-cli bots bind",
        add = Fields::of("listBots")
    )]
    List(ListArgs),
    /// Show a bot
    #[command(
        after_help = "Examples:\n  hub-cli bots show demo\n  hub-cli bots show demo --json=id,wx_id\n\nSee also: hub-cli bots status",
        add = Ends(&[(2, "ambiguous name")]),
        add = Fields::of("getBot")
    )]
    Show(BotArgs),
    Bind(Box<BotsBindArgs>),
    Rename(BotsRenameArgs),
    #[command(alias = "rm")]
    Delete(BotsDeleteArgs),
    Status(BotsStatusArgs),
    /// Reconnect a bot
    #[command(
        after_help = "Examples:\n  hub-cli bots reconnect demo\n  hub-cli bots reconnect demo --json=status\n\nSee also: hub-cli bots bind, hub-cli bots status --watch",
        add = Ends(&[(0, "connecting"), (6, "the network requires a new login")]),
        add = Fields::of("reconnectBot")
    )]
    Reconnect(BotArgs),
    #[command(alias = "contact")]
    Contacts(BotsContactsArgs),
    #[command(alias = "message")]
    Messages(BotsMessagesArgs),
}

/// Show a bot
#[derive(Debug, Args)]
pub struct BotArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Bind a chat account by scanning a code
///
/// Draws the code in the terminal and shows the state: waiting, scanned, confirmed, online. An expired code is
/// replaced. An account that was bound before keeps its bot and channels, with the new login. Without a terminal, the
/// link and each state are printed as JSON, one document per line.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots bind\n  hub-cli bots bind --network sim --name Shop --wait 3m\n  hub-cli bots bind --png code.png --json\n\nSee also: hub-cli bots status",
    add = Ends(&[(0, "bound"), (1, "rejected by the network"), (2, "invalid value"), (8, "timed out without a confirmation"), (130, "interrupted")]),
    add = Fields::own(&["status", "bind_id", "qr_text", "expires_at", "reason", "reason_cause", "bot"])
)]
pub struct BotsBindArgs {
    /// Chat network, for example ilink or sim [default: the hub's choice]
    #[arg(long)]
    pub network: Option<String>,
    /// Name of the bot, 1 to 64 characters
    #[arg(long)]
    pub name: Option<String>,
    /// Also write each code to an image file
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Timeout: 90s, 3m, at most 8m
    #[arg(long, value_name = "TIME", default_value = "8m", value_parser = duration)]
    pub wait: Duration,
    /// Draw for a terminal with dark text on a light background
    #[arg(long)]
    pub invert: bool,
    /// Read the number that the phone shows from a line of stdin; at a terminal it is prompted for
    #[arg(long)]
    pub code_stdin: bool,
    /// User name of the owner; on a server the signed-in user
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Rename a bot
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots rename demo Shop\n  hub-cli bots rename bot_01KAJ6Z8QH0000000000000000 \"The shop\" --json=name\n\nSee also: hub-cli bots show",
    add = Ends(&[(0, "renamed"), (2, "invalid value")]),
    add = Fields::of("renameBot")
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
/// Pending sends and deliveries are deleted too. This cannot be undone; the chat account itself is not affected.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots delete demo --dry-run\n  hub-cli bots delete demo --yes\n\nSee also: hub-cli bots list",
    add = Fields::own(&["id", "name", "deleted"])
)]
pub struct BotsDeleteArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Show whether a bot is connected, and any problem
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots status demo\n  hub-cli bots status demo --watch --json=status,since\n\nSee also: hub-cli bots reconnect",
    add = Fields::of("getBotStatus")
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

/// List the contacts of a bot, most recently active first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots contacts demo\n  hub-cli bots contacts demo --json=user_id,sends_left\n\nSee also: hub-cli send",
    add = Fields::of("listContacts")
)]
pub struct BotsContactsArgs {
    /// Id or name of the bot
    pub bot: String,
    #[command(flatten)]
    pub list: ListArgs,
}

/// List the messages of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli bots messages demo --limit 10\n  hub-cli bots messages demo --direction inbound --since 2h --q order --json=id,content\n\nSee also: hub-cli tail, hub-cli traces list",
    add = Ends(&[(2, "invalid time")]),
    add = Fields::of("listMessages")
)]
pub struct BotsMessagesArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Only this direction
    #[arg(long, value_parser = closed([Direction::Inbound, Direction::Outbound], Direction::as_str))]
    pub direction: Option<Direction>,
    /// Only with this contact: their id on the chat network
    #[arg(long = "user", value_name = "ID")]
    pub contact: Option<String>,
    /// Only those received at or after this time: 30s, 10m, 2h, 7d ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only those received before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only those that contain this text
    #[arg(long, value_name = "TEXT")]
    pub q: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}
