use clap::Args;

use super::{HubArgs, traces::TraceStatusArg};

/// Follow what happens to the messages of a bot
///
/// One line per message, and one per trace that came to an end, oldest first. `--since` goes on behind a trace that
/// an earlier run showed, or begins so long ago; `--status` leaves the messages out.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli tail --bot demo\n  hub-cli tail --bot demo --status error --json=trace_id,summary\n  hub-cli tail --bot demo --channel orders --since 10m\n  hub-cli tail --bot demo --follow=false --since tr_01KAJ6Z8QH0000000000000000\n
Exit codes: 0 shown (--follow=false), 2 a time is not acceptable, 4 not signed in, 5 no such bot, channel or hub, 7 nobody answers, 130 interrupted.\nSee also: hub-cli traces show"
)]
pub struct TailArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Only what goes through this channel: its id or name
    #[arg(long)]
    pub channel: Option<String>,
    /// Only in this state
    #[arg(long)]
    pub status: Option<TraceStatusArg>,
    /// Go on behind this trace, or begin then: 30s, 10m, 2h, 7d ago, or an RFC 3339 time; without it, from now on
    #[arg(long, value_name = "TRACE|TIME")]
    pub since: Option<String>,
    /// Go on until interrupted
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub follow: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
