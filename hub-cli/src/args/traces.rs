use clap::{Args, Subcommand, ValueEnum};
use hub_core::traces::TraceStatus;

use super::{LocalArgs, PageArgs};

/// Look at what happened to messages
#[derive(Debug, Subcommand)]
pub enum TracesCommand {
    /// The traces of a bot, newest first
    #[command(alias = "ls")]
    List(TracesListArgs),
    /// One trace, step by step
    Show(TracesShowArgs),
}

/// The traces of a bot, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces list --bot demo\n  hub-cli traces list --bot demo --status error --json=trace_id,summary\n
Exit codes: 0 listed, 5 no such bot or hub.\nSee also: hub-cli traces show"
)]
pub struct TracesListArgs {
    /// Id or name of the bot
    #[arg(long)]
    pub bot: String,
    /// Only in this state
    #[arg(long)]
    pub status: Option<TraceStatusArg>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// One trace, step by step
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000\n  hub-cli traces show tr_01KAJ6Z8QH0000000000000000 --json=status,steps\n
Exit codes: 0 shown, 5 no such trace or hub.\nSee also: hub-cli traces list"
)]
pub struct TracesShowArgs {
    /// Id of the trace
    pub trace: String,
    #[command(flatten)]
    pub local: LocalArgs,
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
