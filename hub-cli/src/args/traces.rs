use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hub_core::traces::TraceStatus;

use super::{HubArgs, PageArgs};

/// Look at what happened to messages
#[derive(Debug, Subcommand)]
pub enum TracesCommand {
    /// The traces of a bot, newest first
    #[command(alias = "ls")]
    List(TracesListArgs),
    /// One trace, step by step
    Show(TracesShowArgs),
    /// Write traces as recordings, one JSON document per line
    Export(TracesExportArgs),
    /// In what two traces differ
    Diff(TracesDiffArgs),
    /// Make a test of a plugin from a trace, with people and secrets replaced
    ToTest(TracesToTestArgs),
}

/// Which traces.
#[derive(Debug, Clone, Args)]
pub struct TraceFilterArgs {
    /// Only of this channel: its id or name
    #[arg(long)]
    pub channel: Option<String>,
    /// Only those that began then or later: 30s, 10m, 2h, 7d ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only those that began before then
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only in this state
    #[arg(long)]
    pub status: Option<TraceStatusArg>,
}

/// The traces of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces list --bot demo\n  hub-cli traces list --bot demo --status error --json=trace_id,summary\n  hub-cli traces list --bot demo --channel orders --since 2h\n
Exit codes: 0 listed, 2 a time is not acceptable, 5 no such bot, channel or hub.\nSee also: hub-cli traces show"
)]
pub struct TracesListArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub filter: TraceFilterArgs,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// One trace, step by step
///
/// Or what was sent and answered, for other tools: as it went over the wire, as a command for curl, as a HAR archive. Secrets
/// are not recorded: *** stands in their place, and curl leaves their headers out.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --json=status,steps\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --curl\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --har > trace.har\n
Exit codes: 0 shown, 5 no such trace or hub, or nothing was sent (--raw, --curl, --har).\nSee also: hub-cli traces list, hub-cli replay"
)]
pub struct TracesShowArgs {
    /// Id of the trace
    pub trace: String,
    /// Each request and its answer, as they went over the wire
    #[arg(long)]
    pub raw: bool,
    /// The last request as a command for curl
    #[arg(long, conflicts_with = "raw")]
    pub curl: bool,
    /// Requests and answers as an HTTP archive, which browsers and proxies read
    #[arg(long, conflicts_with_all = ["raw", "curl"])]
    pub har: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Write traces as recordings, one JSON document per line
///
/// Each line is a trace with its steps and its message, oldest first: what `replay --from` reads. Content is in it,
/// secrets are not.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces export --bot demo --since 1d --out traces.jsonl\n  hub-cli traces export --bot demo --channel orders --status error\n
Exit codes: 0 written, 2 a time is not acceptable, 5 no such bot, channel or hub, 6 the file exists or cannot be written.\nSee also: hub-cli replay, hub-cli traces to-test"
)]
pub struct TracesExportArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub filter: TraceFilterArgs,
    /// A new file, for its owner alone; stdout without it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// In what two traces differ
///
/// Request, answer and steps of one beside the other; ids and times of the
/// delivery are left out, because they are others each time.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces diff tr_01KAJ6Z8QH0000000000000000 tr_01KAJ6Z8QH0000000000000001\n  hub-cli traces diff tr_01KAJ6Z8QH0000000000000000 tr_01KAJ6Z8QH0000000000000001 --json=same,response\n
Exit codes: 0 compared, 5 no such trace or hub.\nSee also: hub-cli traces show, hub-cli replay --compare"
)]
pub struct TracesDiffArgs {
    /// Id of a trace
    #[arg(value_name = "A")]
    pub before: String,
    /// Id of another
    #[arg(value_name = "B")]
    pub after: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make a test of a plugin from a trace, with people and secrets replaced
///
/// Writes the recording and a case that `plugins test` runs. The source of a plugin of the hub is written next to the
/// case; one of --script stays where it is and is named by its path, so that the case tests each change of it. User ids, names, telephone numbers,
/// e-mail addresses and tokens become fakes, each always the same; what is expected is what the plugin makes of them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces to-test tr_01KAJ6Z8QH0000000000000000 --out cases\n  hub-cli traces to-test tr_01KAJ6Z8QH0000000000000000 --script tagger.js --out cases\n
Look through what was written before it leaves this machine: a name that only stands in a text is not known to be one.\n
Exit codes: 0 written, 2 no plugin is named and several ran, 5 no such trace, plugin or hub, 6 a file exists already or cannot be written.\nSee also: hub-cli plugins test, hub-cli debug request --trace"
)]
pub struct TracesToTestArgs {
    /// Id of the trace
    pub trace: String,
    /// Folder for the files; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the plugin, where several ran
    #[arg(long, value_name = "NAME", conflicts_with = "script")]
    pub plugin: Option<String>,
    /// A source of yours in place of the plugin that ran; the case refers to this file
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// States of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceStatusArg {
    /// Work goes on
    Pending,
    /// Done
    Ok,
    /// Given up
    Error,
    /// Nothing had to happen
    Skipped,
}

impl From<TraceStatusArg> for TraceStatus {
    fn from(status: TraceStatusArg) -> Self {
        match status {
            TraceStatusArg::Pending => Self::Pending,
            TraceStatusArg::Ok => Self::Ok,
            TraceStatusArg::Error => Self::Error,
            TraceStatusArg::Skipped => Self::Skipped,
        }
    }
}
