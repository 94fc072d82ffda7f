use clap::Args;

/// Show the version
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli version\n  hub-cli version --json\n
Exit codes: 0 shown.\nSee also: hub-cli debug request --remote warns when a server has another version")]
pub struct VersionArgs {}
