use clap::Args;

use super::{Ends, Fields, LocalArgs, values::http_url};

/// Check the setup of a hub, and suggest fixes
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli doctor\n  hub-cli doctor --only store,keys --fix\n  hub-cli doctor --offline --json=id,status,message\n
It reads the settings of the server on this machine: environment, hub.toml, data folder. Checks have stable names. Secrets
are never shown.\nSee also: hub-cli db check, hub-cli config check",
    add = Ends(&[(0, "nothing failed"), (2, "the settings have errors or there is no such check"), (9, "something failed")]),
    add = Fields::own(&["id", "status", "message", "advice", "fixed"])
)]
pub struct DoctorArgs {
    /// Fix what needs no decision: permissions, missing folders
    #[arg(long)]
    pub fix: bool,
    /// Only these checks, by name or by the part before the dot
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Skip checks that need a connection
    #[arg(long, conflicts_with = "server")]
    pub offline: bool,
    /// The running server [default: the public URL, else the listen address]
    #[arg(long, env = "HUB_SERVER", value_name = "URL", value_parser = http_url)]
    pub server: Option<url::Url>,
    #[command(flatten)]
    pub local: LocalArgs,
}
