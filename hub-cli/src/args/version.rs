use clap::Args;

use super::{Fields};

/// Show the version
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli version\n  hub-cli version --json\n\nSee also: hub-cli debug request --remote warns when a server has another version",
    add = Fields::own(&["version"])
)]
pub struct VersionArgs {}
