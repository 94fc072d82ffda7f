//! The arguments that select a hub, and a page of a list.

use std::path::PathBuf;

use clap::Args;

use super::{ProfileArgs, values::http_url};

/// The hub: a data folder or a database.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hub")]
pub struct LocalArgs {
    /// Folder of the hub's database and key [default: the same as the server's]
    #[arg(long, env = "HUB_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Database instead of the one in the folder: sqlite://PATH or postgres://…
    #[arg(long, env = "HUB_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
}

/// The hub, for commands that can also use a server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hub")]
pub struct HubArgs {
    /// Server to use, with the API key of the profile signed in to it, or with HUB_TOKEN [default: the server of the
    /// active profile, unless a folder or a database is named]
    #[arg(long, env = "HUB_SERVER", value_name = "URL", value_parser = http_url)]
    pub server: Option<url::Url>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// A page of a list.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// Maximum number of items, 1 to 200
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
    /// Cursor from the previous page
    #[arg(long)]
    pub cursor: Option<String>,
}

/// A page of a list, and the hub.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}
