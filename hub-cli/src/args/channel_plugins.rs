use clap::{Args, Subcommand};

use super::{Confirm, HubArgs};

/// The plugins of a channel
#[derive(Debug, Subcommand)]
pub enum ChannelPluginsCommand {
    /// In the order they run
    #[command(alias = "ls")]
    List(ChannelPluginsListArgs),
    /// Install a plugin, or move it to another version
    Install(ChannelPluginsInstallArgs),
    /// Take a plugin out of a channel
    #[command(alias = "rm")]
    Uninstall(ChannelPluginArgs),
    /// Say in which order they run
    Order(ChannelPluginsOrderArgs),
    /// Let a plugin run again
    Enable(ChannelPluginEnableArgs),
    /// Keep a plugin installed and do not run it
    Disable(ChannelPluginDisableArgs),
}

/// Which channel.
#[derive(Debug, Clone, Args)]
pub struct ChannelTarget {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Id or name of the channel
    #[arg(long)]
    pub channel: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// In the order they run
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins list --bot demo --channel demo\n  hub-cli channels plugins list --bot demo --channel demo --json=name,version\n
Exit codes: 0 listed, 5 no such bot or channel.\nSee also: hub-cli channels plugins order"
)]
pub struct ChannelPluginsListArgs {
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Install a plugin, or move it to another version
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins install tagger --bot demo --channel demo\n  hub-cli channels plugins install tagger --version 1.2.0 --position 0 --bot demo --channel demo\n
Exit codes: 0 installed, 5 no such plugin, version, bot or channel, 6 the version is over or the channel is full.\nSee also: hub-cli plugins list"
)]
pub struct ChannelPluginsInstallArgs {
    /// Name or id of the plugin
    pub plugin: String,
    /// Name or id of the version [default: the newest that may run]
    #[arg(long)]
    pub version: Option<String>,
    /// Place in the order, from 0 [default: the end]
    #[arg(long)]
    pub position: Option<u32>,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Take a plugin out of a channel
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins uninstall tagger --bot demo --channel demo --yes\n  hub-cli channels plugins uninstall plg_01KAJ6Z8QH0000000000000000 --bot demo --channel demo --dry-run\n
Exit codes: 0 done, 2 not confirmed, 5 no such plugin, bot or channel.\nSee also: hub-cli channels plugins list"
)]
pub struct ChannelPluginArgs {
    /// Name or id of the plugin
    pub plugin: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Say in which order they run
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins order tagger bridge --bot demo --channel demo\n  hub-cli channels plugins order bridge --bot demo --channel demo\n
What is not named runs after what is.\n
Exit codes: 0 done, 5 no such plugin, bot or channel.\nSee also: hub-cli channels plugins list"
)]
pub struct ChannelPluginsOrderArgs {
    /// Names or ids of plugins, first to last
    #[arg(required = true)]
    pub plugins: Vec<String>,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Let a plugin run again
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins enable tagger --bot demo --channel demo\n  hub-cli channels plugins enable tagger --bot demo --channel demo --quiet\n
Exit codes: 0 done, 5 no such plugin, bot or channel.\nSee also: hub-cli channels plugins disable"
)]
pub struct ChannelPluginEnableArgs {
    /// Name or id of the plugin
    pub plugin: String,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Keep a plugin installed and do not run it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins disable tagger --bot demo --channel demo\n  hub-cli channels plugins disable tagger --bot demo --channel demo --quiet\n
Exit codes: 0 done, 5 no such plugin, bot or channel.\nSee also: hub-cli channels plugins enable"
)]
pub struct ChannelPluginDisableArgs {
    /// Name or id of the plugin
    pub plugin: String,
    #[command(flatten)]
    pub target: ChannelTarget,
}
