use clap::Args;

use super::LocalArgs;

/// Look whether a hub is set up well, and say what to do
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli doctor\n  hub-cli doctor --only store,keys --fix\n  hub-cli doctor --offline --json=id,status,message\n
It reads the settings of the server on this machine: environment, hub.toml, data folder. Checks have stable names, and no
secret is ever shown.
Exit codes: 0 nothing failed, 2 the settings have errors or there is no such check, 9 something failed.\nSee also: hub-cli db check, hub-cli config check"
)]
pub struct DoctorArgs {
    /// Mend what can be mended without a decision: permissions, missing folders
    #[arg(long)]
    pub fix: bool,
    /// Only these checks, by name or by what stands before the dot
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Open no connection; checks that need one are left out
    #[arg(long, conflicts_with = "server")]
    pub offline: bool,
    /// The running server to ask [default: the public URL, else the address it listens on]
    #[arg(long, env = "HUB_SERVER", value_name = "URL")]
    pub server: Option<url::Url>,
    #[command(flatten)]
    pub local: LocalArgs,
}
