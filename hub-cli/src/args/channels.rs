use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    ChannelPluginsCommand, Confirm, Ends, Fields, HubArgs, IlinkClientsArgs, IlinkLoginArgs, IlinkUrlArgs,
    ListArgs, SetAiArgs, SetFilterArgs, SetIlinkArgs, SetWebSocketArgs, SetWebhookArgs, TestFilterArgs,
};

/// Manage the channels of a bot
#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    #[command(alias = "ls")]
    List(ChannelsListArgs),
    Show(ChannelArgs),
    Create(ChannelsCreateArgs),
    Edit(ChannelsEditArgs),
    #[command(alias = "rm")]
    Delete(ChannelsDeleteArgs),
    RotateKey(ChannelsRotateKeyArgs),
    Clients(ChannelsClientsArgs),
    TestAi(ChannelsTestAiArgs),
    SetWebhook(Box<SetWebhookArgs>),
    SetWebsocket(Box<SetWebSocketArgs>),
    SetAi(Box<SetAiArgs>),
    SetIlink(Box<SetIlinkArgs>),
    IlinkUrl(IlinkUrlArgs),
    IlinkClients(IlinkClientsArgs),
    IlinkLogin(IlinkLoginArgs),
    SetFilter(Box<SetFilterArgs>),
    TestFilter(Box<TestFilterArgs>),
    #[command(subcommand)]
    Plugins(ChannelPluginsCommand),
}

/// List the channels of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels list --bot demo\n  hub-cli channels list --bot demo --json=id,name\n\nSee also: hub-cli channels show",
    add = Fields::of("listChannels")
)]
pub struct ChannelsListArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show a channel with its settings
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels show orders --bot demo\n  hub-cli channels show orders --bot demo --json\n\nSee also: hub-cli channels list",
    add = Ends(&[(2, "ambiguous name")]),
    add = Fields::of("getChannel")
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

/// Create a channel
///
/// Its key is shown only here, once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels create orders --bot demo\n  hub-cli channels create help --bot demo --handle help --json=id,api_key\n  hub-cli channels create orders --bot demo --if-absent\n\nSee also: hub-cli channels rotate-key",
    add = Ends(&[(2, "invalid value"), (6, "the name or the handle is taken")]),
    add = Fields::of("createChannel")
)]
pub struct ChannelsCreateArgs {
    /// Name, 1 to 64 characters
    pub name: String,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub settings: ChannelSettings,
    /// Also send the bot's own messages to clients
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
    after_help = "Examples:\n  hub-cli channels edit orders --bot demo --name shop\n  hub-cli channels edit orders --bot demo --enabled false\n  hub-cli channels edit orders --bot demo --handle orders --on-plugin-error retry --lane-hold-s 120\n\nSee also: hub-cli channels show",
    add = Ends(&[(2, "invalid value")]),
    add = Fields::of("updateChannel")
)]
pub struct ChannelsEditArgs {
    #[command(flatten)]
    pub which: Which,
    /// New name
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub settings: ChannelSettings,
    /// Remove the handle: receive messages without a mention again
    #[arg(long, conflicts_with = "handle")]
    pub no_handle: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Settings of a channel except those of its sinks.
#[derive(Debug, Args, Serialize)]
pub struct ChannelSettings {
    /// Receive only messages that mention this handle
    #[arg(long)]
    pub handle: Option<String>,
    /// Whether the channel is enabled
    #[arg(long)]
    pub enabled: Option<bool>,
    /// How to handle a delivery whose plugin failed: retry, send or drop
    #[arg(long, value_name = "ACTION")]
    pub on_plugin_error: Option<String>,
    /// How long a failing delivery may block its conversation, in seconds, 0 to 3600
    #[arg(long, value_name = "SECONDS")]
    pub lane_hold_s: Option<u32>,
}

/// Delete a channel with its log, traces and deliveries
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels delete orders --bot demo --yes\n  hub-cli channels delete orders --bot demo --dry-run\n\nSee also: hub-cli channels list",
    add = Fields::own(&["id", "name", "deleted"])
)]
pub struct ChannelsDeleteArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Rotate the key of a channel
///
/// The old one is revoked immediately, or after the grace period; the new one is shown only here, once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels rotate-key orders --bot demo\n  hub-cli channels rotate-key orders --bot demo --grace 24h\n\nSee also: hub-cli channels show",
    add = Ends(&[(2, "invalid value")]),
    add = Fields::of("regenerateChannelKey").and(&["id"])
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

/// List the WebSocket clients of a channel, or disconnect one
///
/// Only clients of the node that responds are listed; those of other nodes are counted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels clients orders --bot demo\n  hub-cli channels clients orders --bot demo --disconnect sock_01KAJ6Z8QH0000000000000000\n\nSee also: hub-cli listen, hub-cli channels rotate-key",
    add = Ends(&[(7, "unreachable, or no server is running")]),
    add = Fields::own(&["clients", "on_other_nodes", "id", "disconnected"])
)]
pub struct ChannelsClientsArgs {
    #[command(flatten)]
    pub which: Which,
    /// Id of the client whose connection is closed; it may connect again
    #[arg(long, value_name = "CLIENT")]
    pub disconnect: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Ask the model of a channel one question, with the settings of its AI sink
///
/// Nothing is sent to anyone; the tokens count as those of the channel.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels test-ai orders --bot demo\n  hub-cli channels test-ai orders --bot demo --json=ok,duration_ms\n\nSee also: hub-cli channels set-ai, hub-cli ai-config test",
    add = Ends(&[(0, "the model responded"), (1, "it did not")]),
    add = Fields::of("testAiSink")
)]
pub struct ChannelsTestAiArgs {
    #[command(flatten)]
    pub which: Which,
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
