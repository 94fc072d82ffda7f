use clap::{Args, Subcommand};

use super::{
    ChannelPluginsCommand, Confirm, HubArgs, PageArgs, SetAiArgs, SetFilterArgs, SetWebSocketArgs,
    SetWebhookArgs,
};

/// Manage where the messages of a bot go
#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    /// The channels of a bot, newest first
    #[command(alias = "ls")]
    List(ChannelsListArgs),
    /// One channel with its settings
    Show(ChannelArgs),
    /// Make a channel
    Create(ChannelsCreateArgs),
    /// Change a channel
    Edit(ChannelsEditArgs),
    /// Delete a channel with its log, traces and deliveries
    #[command(alias = "rm")]
    Delete(ChannelsDeleteArgs),
    /// Give a channel a new key
    RotateKey(ChannelsRotateKeyArgs),
    /// Set a channel's webhook
    SetWebhook(Box<SetWebhookArgs>),
    /// Set a channel's WebSocket sink
    SetWebsocket(Box<SetWebSocketArgs>),
    /// Let a model answer a channel's messages
    SetAi(Box<SetAiArgs>),
    /// Say which messages a channel gets
    SetFilter(Box<SetFilterArgs>),
    /// The plugins of a channel
    #[command(subcommand)]
    Plugins(ChannelPluginsCommand),
}

/// The channels of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels list --bot demo\n  hub-cli channels list --bot demo --json=id,name\n
Exit codes: 0 listed, 5 no such bot or hub, 7 nobody answers.\nSee also: hub-cli channels show"
)]
pub struct ChannelsListArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Which channel.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels show orders --bot demo\n  hub-cli channels show orders --bot demo --json\n
Exit codes: 0 shown, 2 several have the name, 5 no such channel, bot or hub, 7 nobody answers.\nSee also: hub-cli channels list"
)]
pub struct ChannelArgs {
    /// Id or name of the channel
    pub channel: String,
    /// Id or name of its bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make a channel
///
/// Its key is shown once, here.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels create orders --bot demo\n  hub-cli channels create help --bot demo --handle help --json=id,api_key\n  hub-cli channels create orders --bot demo --if-absent\n
Exit codes: 0 made, 2 not acceptable, 5 no such bot or hub, 7 nobody answers, 6 the name or the handle is taken.\nSee also: hub-cli channels rotate-key"
)]
pub struct ChannelsCreateArgs {
    /// Name, 1 to 64 characters
    pub name: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Take only messages that mention this handle
    #[arg(long)]
    pub handle: Option<String>,
    /// Show the clients what the bot sends, too
    #[arg(long)]
    pub include_outbound: bool,
    /// Succeed without a change when the bot has a channel with this name; its key is not shown again
    #[arg(long)]
    pub if_absent: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Change a channel
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels edit orders --bot demo --name shop\n  hub-cli channels edit orders --bot demo --enabled false\n
Exit codes: 0 changed, 2 not acceptable, 5 no such channel, bot or hub, 7 nobody answers.\nSee also: hub-cli channels show"
)]
pub struct ChannelsEditArgs {
    #[command(flatten)]
    pub which: Which,
    /// Another name
    #[arg(long)]
    pub name: Option<String>,
    /// On or off
    #[arg(long)]
    pub enabled: Option<bool>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a channel with its log, traces and deliveries
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels delete orders --bot demo --yes\n  hub-cli channels delete orders --bot demo --dry-run\n
Exit codes: 0 deleted, 2 not confirmed, 5 no such channel, bot or hub, 7 nobody answers.\nSee also: hub-cli channels list"
)]
pub struct ChannelsDeleteArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Give a channel a new key
///
/// The old one ends at once, or after the grace; the new one is shown once, here.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels rotate-key orders --bot demo\n  hub-cli channels rotate-key orders --bot demo --grace 24h\n
Exit codes: 0 done, 2 not acceptable, 5 no such channel, bot or hub, 7 nobody answers.\nSee also: hub-cli channels show"
)]
pub struct ChannelsRotateKeyArgs {
    #[command(flatten)]
    pub which: Which,
    /// Hours for which the old key stays valid, 1 to 72: 24 or 24h
    #[arg(long, value_name = "HOURS", value_parser = super::hours)]
    pub grace: Option<u32>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// A channel of a bot.
#[derive(Debug, Args)]
pub struct Which {
    /// Id or name of the channel
    pub channel: String,
    /// Id or name of its bot
    #[arg(long)]
    pub bot: String,
}
