use clap::{Args, Subcommand};

use super::{Confirm, Ends, Fields, HubArgs};

/// Manage the plugins of a channel
#[derive(Debug, Subcommand)]
pub enum ChannelPluginsCommand {
    #[command(alias = "ls")]
    /// List them in the order in which they run
    #[command(
        after_help = "Examples:\n  hub-cli channels plugins list --bot demo --channel demo\n  hub-cli channels plugins list --bot demo --channel demo --json=name,version\n\nSee also: hub-cli channels plugins order",
        add = Fields::of("listChannelPlugins")
    )]
    List(ChannelTarget),
    Install(ChannelPluginsInstallArgs),
    #[command(alias = "rm")]
    Uninstall(ChannelPluginArgs),
    Order(ChannelPluginsOrderArgs),
    /// Enable a plugin again
    #[command(
        after_help = "Examples:\n  hub-cli channels plugins enable tagger --bot demo --channel demo\n  hub-cli channels plugins enable tagger --bot demo --channel demo --quiet\n\nSee also: hub-cli channels plugins disable",
        add = Fields::of("listChannelPlugins")
    )]
    Enable(ChannelPlugin),
    /// Disable a plugin without uninstalling it
    #[command(
        after_help = "Examples:\n  hub-cli channels plugins disable tagger --bot demo --channel demo\n  hub-cli channels plugins disable tagger --bot demo --channel demo --quiet\n\nSee also: hub-cli channels plugins enable",
        add = Fields::of("listChannelPlugins")
    )]
    Disable(ChannelPlugin),
}

/// A channel.
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

/// Install a plugin, or change its version
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins install tagger --bot demo --channel demo\n  hub-cli channels plugins install tagger --version 1.2.0 --position 0 --bot demo --channel demo\n\nSee also: hub-cli plugins list",
    add = Ends(&[(0, "installed"), (6, "the version is withdrawn or the channel is full")]),
    add = Fields::of("listChannelPlugins")
)]
pub struct ChannelPluginsInstallArgs {
    /// Name or id of the plugin
    pub plugin: String,
    /// Name or id of the version [default: the newest approved one]
    #[arg(long)]
    pub version: Option<String>,
    /// Position in the order, from 0 [default: last]
    #[arg(long)]
    pub position: Option<u32>,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Uninstall a plugin from a channel
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins uninstall tagger --bot demo --channel demo --yes\n  hub-cli channels plugins uninstall plg_01KAJ6Z8QH0000000000000000 --bot demo --channel demo --dry-run\n\nSee also: hub-cli channels plugins list",
    add = Fields::of("listChannelPlugins")
)]
pub struct ChannelPluginArgs {
    /// Name or id of the plugin
    pub plugin: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// Set the order in which they run
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels plugins order tagger bridge --bot demo --channel demo\n  hub-cli channels plugins order bridge --bot demo --channel demo\n
Plugins that are not named run after the others.\n\nSee also: hub-cli channels plugins list",
    add = Fields::of("listChannelPlugins")
)]
pub struct ChannelPluginsOrderArgs {
    /// Names or ids of plugins, first to last
    #[arg(required = true)]
    pub plugins: Vec<String>,
    #[command(flatten)]
    pub target: ChannelTarget,
}

/// A plugin of a channel.
#[derive(Debug, Args)]
pub struct ChannelPlugin {
    /// Name or id of the plugin
    pub plugin: String,
    #[command(flatten)]
    pub target: ChannelTarget,
}
