use clap::Args;
use hub_core::events::EventKind;

use super::{Ends, Fields, HubArgs, closed};

/// Follow the events of your bots, plugins and apps
///
/// Prints one line per event: ids and states, no contents. `hello` is the first one. After a lost connection the command
/// connects again and continues after the last event; `resync`, or `hello` with `resync`, means that events may be
/// missing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli events\n  hub-cli events --bot demo --kinds message,trace\n  hub-cli events --json=type,trace_id,state\n\nSee also: hub-cli tail, hub-cli traces show",
    add = Ends(&[(130, "interrupted")]),
    add = Fields::own(&["id", "type", "resync", "bot_id", "channel_id", "message_id", "trace_id", "plugin_id", "app_id", "state"])
)]
pub struct EventsArgs {
    /// Id or name of the bot; otherwise all bots
    #[arg(long)]
    pub bot: Option<String>,
    /// Only these kinds of events, separated by commas
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = closed(EventKind::ALL, EventKind::as_str))]
    pub kinds: Vec<EventKind>,
    /// Events of all users; for administrators
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
