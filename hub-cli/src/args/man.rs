use std::path::PathBuf;

use clap::Args;

use super::{Ends, Fields};

/// Write the manual pages, one per command
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli man --out ~/.local/share/man/man1\n  hub-cli man --out man\n\nSee also: hub-cli completions",
    add = Ends(&[(0, "written"), (6, "the folder cannot be written")]),
    add = Fields::own(&["folder", "pages"])
)]
pub struct ManArgs {
    /// Folder for the pages; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "markdown")]
    pub out: Option<PathBuf>,
    /// Print all of it as one page of Markdown instead
    #[arg(long, hide = true, conflicts_with = "out")]
    pub markdown: bool,
}
