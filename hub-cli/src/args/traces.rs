use std::path::PathBuf;

use clap::{Args, Subcommand};
use hub_core::traces::TraceStatus;

use super::{Ends, Fields, HubArgs, ListArgs, closed};

/// Inspect the traces of messages
#[derive(Debug, Subcommand)]
pub enum TracesCommand {
    #[command(alias = "ls")]
    List(TracesListArgs),
    Show(TracesShowArgs),
    Explain(TracesExplainArgs),
    Attempt(TracesAttemptArgs),
    Cancel(TracesCancelArgs),
    Export(TracesExportArgs),
    Diff(TracesDiffArgs),
    ToTest(TracesToTestArgs),
}

/// States of a trace.
pub(super) const STATES: [TraceStatus; 4] =
    [TraceStatus::Pending, TraceStatus::Ok, TraceStatus::Error, TraceStatus::Skipped];

/// A selection of traces.
#[derive(Debug, Clone, Args)]
pub struct TraceFilterArgs {
    /// Only this channel: its id or name
    #[arg(long)]
    pub channel: Option<String>,
    /// Only those that began at or after this time: 30s, 10m, 2h, 7d ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only those that began before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only in this state
    #[arg(long, value_parser = closed(STATES, TraceStatus::as_str))]
    pub status: Option<TraceStatus>,
}

/// List the traces of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces list --bot demo\n  hub-cli traces list --bot demo --status error --json=trace_id,summary\n  hub-cli traces list --bot demo --channel orders --since 2h\n\nSee also: hub-cli traces show",
    add = Ends(&[(2, "invalid time")]),
    add = Fields::of("listTraces").without(&["steps", "message"])
)]
pub struct TracesListArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub filter: TraceFilterArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show a trace, step by step
///
/// Or its requests and responses for other tools: as HTTP text, as a curl command, as a HAR archive. Secrets are not
/// recorded: they are replaced by ***, and curl leaves out their headers.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --json=status,steps\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --curl\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --har > trace.har\n\nSee also: hub-cli traces list, hub-cli replay",
    add = Ends(&[(5, "no such trace or hub, or nothing was sent (--raw, --curl, --har)")]),
    add = Fields::of("getTrace")
)]
pub struct TracesShowArgs {
    /// Id of the trace
    pub trace: String,
    /// Each request and its response, as HTTP text
    #[arg(long)]
    pub raw: bool,
    /// The last request as a command for curl
    #[arg(long, conflicts_with = "raw")]
    pub curl: bool,
    /// Requests and responses as an HTTP archive (HAR), for browsers and proxies
    #[arg(long, conflicts_with_all = ["raw", "curl"])]
    pub har: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Explain why a message did or did not arrive, and what solves the problem
///
/// From what the hub has stored: the bot, the channel, the newest trace of the message in it and its deliveries.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces explain tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces explain msg_01KAJ6Z8QH0000000000000000 --channel orders\n  hub-cli traces explain tr_01KAJ6Z8QH0000000000000000 --json=verdict,remedy\n\nSee also: hub-cli traces show",
    add = Ends(&[(0, "explained"), (5, "no such trace, message, channel or hub")]),
    add = Fields::of("explainMessage")
)]
pub struct TracesExplainArgs {
    /// Id of a trace or of a message
    #[arg(value_name = "TRACE|MESSAGE")]
    pub id: String,
    /// Channel to explain: its id or name [default: that of the trace, or the one with the worst outcome]
    #[arg(long)]
    pub channel: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Attempt a parked delivery now
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces attempt tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces attempt tr_01KAJ6Z8QH0000000000000000 --json\n\nSee also: hub-cli traces explain, hub-cli replay",
    add = Ends(&[(6, "no delivery of the trace is parked")]),
    add = Fields::own(&["trace_id"])
)]
pub struct TracesAttemptArgs {
    /// Id of the trace
    pub trace: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Cancel a parked delivery; it can be replayed
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces cancel tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces cancel tr_01KAJ6Z8QH0000000000000000 --json\n\nSee also: hub-cli traces explain, hub-cli replay",
    add = Ends(&[(6, "no delivery of the trace is parked")]),
    add = Fields::own(&["trace_id"])
)]
pub struct TracesCancelArgs {
    /// Id of the trace
    pub trace: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Export traces as recordings, one JSON document per line
///
/// Each line is a trace with its steps and its message, oldest first, for `replay --from`. It contains message
/// content, but no secrets.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces export --bot demo --since 1d --out traces.jsonl\n  hub-cli traces export --bot demo --channel orders --status error\n\nSee also: hub-cli replay, hub-cli traces to-test",
    add = Ends(&[(0, "written"), (2, "invalid time"), (6, "the file exists or cannot be written")]),
    add = Fields::of("getTrace").and(&["message"])
)]
pub struct TracesExportArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    #[command(flatten)]
    pub filter: TraceFilterArgs,
    /// New file, readable only by you [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Compare two traces
///
/// Shows request, response and steps side by side, without the ids and times of the delivery, which always differ.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces diff tr_01KAJ6Z8QH0000000000000000 tr_01KAJ6Z8QH0000000000000001\n  hub-cli traces diff tr_01KAJ6Z8QH0000000000000000 tr_01KAJ6Z8QH0000000000000001 --json=same,response\n\nSee also: hub-cli traces show, hub-cli replay --compare",
    add = Ends(&[(0, "compared")]),
    add = Fields::own(&["before", "after", "same", "status", "request", "response", "steps"])
)]
pub struct TracesDiffArgs {
    /// Id of a trace
    #[arg(value_name = "A")]
    pub before: String,
    /// Id of the other trace
    #[arg(value_name = "B")]
    pub after: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Create a plugin test from a trace, with personal data and secrets replaced
///
/// Writes the recording and a case for `plugins test`. The source of a plugin of the hub is written next to the case;
/// a source given with --script is not copied but referred to by its path, so that the case tests its changes. User
/// ids, names, telephone numbers, e-mail addresses and tokens are replaced consistently; the expected result is the
/// plugin's output for the replaced data.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces to-test tr_01KAJ6Z8QH0000000000000000 --out cases\n  hub-cli traces to-test tr_01KAJ6Z8QH0000000000000000 --script tagger.js --out cases\n
Review the files before you share them: names inside a text are not recognized.\n\nSee also: hub-cli plugins test, hub-cli debug request --trace",
    add = Ends(&[(0, "written"), (2, "no plugin is named and several ran"), (6, "the trace is pending, or a file exists already or cannot be written")]),
    add = Fields::own(&["trace_id", "plugin", "files"])
)]
pub struct TracesToTestArgs {
    /// Id of the trace
    pub trace: String,
    /// Folder for the files; created if missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the plugin, where several ran
    #[arg(long, value_name = "NAME", conflicts_with = "script")]
    pub plugin: Option<String>,
    /// Local source instead of the plugin that ran; the case refers to this file
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    #[command(flatten)]
    pub hub: HubArgs,
}
