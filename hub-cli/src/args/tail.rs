use clap::Args;
use hub_core::traces::TraceStatus;

use super::{Ends, Fields, HubArgs, closed, traces::STATES};

/// Follow what happens to the messages of a bot
///
/// Prints one line per message, and one per completed trace, oldest first. `--since` continues after a trace that an
/// earlier run showed, or starts at a time in the past; with `--status` only traces are printed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli tail --bot demo\n  hub-cli tail --bot demo --status error --json=trace_id,summary\n  hub-cli tail --bot demo --channel orders --since 10m\n  hub-cli tail --bot demo --follow=false --since tr_01KAJ6Z8QH0000000000000000\n\nSee also: hub-cli traces show",
    add = Ends(&[(0, "shown (--follow=false)"), (2, "invalid time"), (130, "interrupted")]),
    add = Fields::of("listTraces").without(&["steps", "message"])
)]
pub struct TailArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Only messages of this channel: its id or name
    #[arg(long)]
    pub channel: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = closed(STATES, TraceStatus::as_str))]
    pub status: Option<TraceStatus>,
    /// Continue after this trace, or start at this time: 30s, 10m, 2h, 7d ago, or an RFC 3339 time [default: now]
    #[arg(long, value_name = "TRACE|TIME")]
    pub since: Option<String>,
    /// Continue until interrupted
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub follow: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
