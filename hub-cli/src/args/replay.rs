use std::{num::NonZeroU32, path::PathBuf};

use clap::Args;
use url::Url;

use super::{Confirm, HubArgs, SecretArgs, TraceFilterArgs};

/// Send recorded deliveries again
///
/// To the original webhook the hub sends them, through the channel's plugins as they are now; it waits for the first
/// attempt of each, and tries failed ones again on its schedule. With --to, --as-recorded or --resign they are sent from
/// here, past the hub. Traces of a filter come oldest first; those of replays are left out of them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli replay tr_01KAJ6Z8QH0000000000000000\n  hub-cli replay --bot demo --channel orders --status error --since 2h --yes\n  hub-cli replay --bot demo --since 1d --to http://localhost:3000/hook --compare\n  hub-cli replay --from traces.jsonl --to http://localhost:3000/hook --resign --secret-file hook.secret --rate 50\n  hub-cli replay --from traces.jsonl --to http://localhost:3000/hook --through-plugins --script tagger.js --dry-run\n  cut -f1 failed.tsv | hub-cli replay - --yes\n
Recordings hold no secrets: in a body sent as recorded *** stands in their place, and headers that held one are left out.
Each result is a row: trace, outcome, status, milliseconds, reason, difference, new trace.\n
Exit codes: 0 all were answered with 2xx, 1 none was, 2 wrong usage or not confirmed, 3 some were, 4 not signed in, 5 no such trace, bot or channel, 6 a file is not acceptable, 7 nobody answers, or no server works on the files, 9 an answer differs (--compare), 130 interrupted.\nSee also: hub-cli traces export, hub-cli listen"
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

/// What is sent, and where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What is sent")]
pub struct ReplayHow {
    /// Another URL than the webhook's
    #[arg(long, value_name = "URL")]
    pub to: Option<Url>,
    /// The recorded request, from here; what --to means without the other two
    #[arg(long, conflicts_with_all = ["through_plugins", "resign"])]
    pub as_recorded: bool,
    /// Through plugins: those of the channel, by the hub; with --script these, here
    #[arg(long, conflicts_with = "resign")]
    pub through_plugins: bool,
    /// The recorded request from here, signed with the secret; what a secret with --to means
    #[arg(long)]
    pub resign: bool,
    /// A plugin to run here, in the order of the flags; may be repeated
    #[arg(long, value_name = "FILE", requires = "through_plugins")]
    pub script: Vec<PathBuf>,
}

/// How fast, and when it ends.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Pace")]
pub struct ReplayPace {
    /// At most so many begin per second [default: as many as are answered]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// So many at a time; 1 keeps them in order [default: 1, through the hub 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: Option<u16>,
    /// Say in what each answer differs from the recorded one
    #[arg(long)]
    pub compare: bool,
    /// Begin no more after the first one that fails
    #[arg(long)]
    pub stop_on_fail: bool,
    /// Go on behind this trace, as an earlier run said
    #[arg(long, value_name = "TRACE")]
    pub resume_from: Option<String>,
    /// Seconds that the hub's first attempt at each is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}
