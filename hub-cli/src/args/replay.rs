use std::{num::NonZeroU32, path::PathBuf};

use clap::Args;
use url::Url;

use super::{Confirm, Ends, Fields, HubArgs, SecretArgs, TraceFilterArgs, values::http_url};

/// Send recorded deliveries again
///
/// To the original webhook they are sent by the hub, through the current plugins of the channel; the command waits
/// for the first attempt of each, and the hub retries failed ones on its schedule. With --to, --as-recorded or
/// --resign they are sent from here, past the hub. Traces of a filter come oldest first; those of replays are left
/// out of them. A message whose delivery to the same receiver is in flight or still waits is not replayed, so that it
/// does not arrive twice; --supersede cancels a delivery that waits.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli replay tr_01KAJ6Z8QH0000000000000000\n  hub-cli replay --bot demo --channel orders --status error --since 2h --yes\n  hub-cli replay --bot demo --since 1d --to http://localhost:3000/hook --compare\n  hub-cli replay --from traces.jsonl --to http://localhost:3000/hook --resign --secret-file hook.secret --rate 50\n  hub-cli replay --from traces.jsonl --to http://localhost:3000/hook --through-plugins --script tagger.js --dry-run\n  cut -f1 failed.tsv | hub-cli replay - --yes\n  hub-cli replay --bot demo --status error --bulk --dry-run\n  hub-cli replay tr_01KAJ6Z8QH0000000000000000 --supersede\n
Recordings contain no secrets: in recorded bodies they are replaced by ***, and headers with secrets are left out.
Each result is a row: trace, outcome, status, milliseconds, reason, difference, new trace.\n\nSee also: hub-cli traces export, hub-cli listen",
    add = Ends(&[(0, "all were answered with 2xx"), (1, "none was sent"), (2, "wrong usage or not confirmed"), (3, "some were"), (6, "a file is invalid"), (7, "unreachable, or no server is running"), (9, "a response differs (--compare)"), (130, "interrupted")]),
    add = Fields::own(&["trace_id", "outcome", "status", "reason", "duration_ms", "new_trace_id", "replies", "differences"])
)]
pub struct ReplayArgs {
    /// Ids of traces; - reads them from stdin, the first word of each line
    #[arg(value_name = "TRACE", conflicts_with_all = ["from", "channel", "since", "until", "status"])]
    pub traces: Vec<String>,
    /// Recordings of `traces export`: a file, a folder with *.jsonl, or - for stdin
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "bot")]
    pub from: Option<String>,
    /// Id or name of the bot
    #[arg(long)]
    pub bot: Option<String>,
    #[command(flatten)]
    pub filter: TraceFilterArgs,
    #[command(flatten)]
    pub how: ReplayHow,
    #[command(flatten)]
    pub secret: SecretArgs,
    #[command(flatten)]
    pub pace: ReplayPace,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Content and target.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Content and target")]
pub struct ReplayHow {
    /// URL instead of the webhook's
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub to: Option<Url>,
    /// Send the recorded request from this machine; the default with --to
    #[arg(long, conflicts_with_all = ["through_plugins", "resign"])]
    pub as_recorded: bool,
    /// Through plugins: those of the channel, on the hub; with --script these, on this machine
    #[arg(long, conflicts_with = "resign")]
    pub through_plugins: bool,
    /// Send the recorded request from this machine, signed with the secret; the default with --to and a secret
    #[arg(long)]
    pub resign: bool,
    /// Cancel a delivery of the message that still waits; without this, the message is not replayed
    #[arg(long)]
    pub supersede: bool,
    /// With one request to the hub for all, at most 1000; it continues if this command is interrupted
    #[arg(long, conflicts_with_all = [
        "from", "as_recorded", "resign", "script", "rate", "concurrency", "compare", "stop_on_fail", "resume_from"
    ])]
    pub bulk: bool,
    /// Plugin to run on this machine, in the order of the flags; may be repeated
    #[arg(long, value_name = "FILE", requires = "through_plugins")]
    pub script: Vec<PathBuf>,
}

/// Speed and end.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pace")]
pub struct ReplayPace {
    /// Maximum number of requests per second [default: no limit]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Number of concurrent requests; 1 keeps the order [default: 1, through the hub 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: Option<u16>,
    /// Show how each response differs from the recorded one
    #[arg(long)]
    pub compare: bool,
    /// Stop after the first failure
    #[arg(long)]
    pub stop_on_fail: bool,
    /// Continue after this trace, which the previous run printed
    #[arg(long, value_name = "TRACE")]
    pub resume_from: Option<String>,
    /// Seconds to wait for the hub's first attempt of each
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}
