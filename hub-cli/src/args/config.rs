use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The settings of the server
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a hub.toml that explains every setting, with its default
    #[command(after_help = "Examples:\n  hub-cli config init\n  hub-cli config init /etc/hub/hub.toml\n
Exit codes: 0 written, 6 there is such a file, or it cannot be written.\nSee also: hub-cli config check")]
    Init {
        /// Where to write it
        #[arg(default_value = "hub.toml")]
        file: PathBuf,
    },
    /// Check the settings as the start of the server does, and print those that are not defaults
    #[command(
        after_help = "Examples:\n  hub-cli config check\n  hub-cli config check /etc/hub/hub.toml --json\n
The environment counts too, as it does for the server. With --json: the problems and warnings.
Exit codes: 0 the server starts with these settings, 9 it does not.\nSee also: hub-cli config list --origin"
    )]
    Check {
        /// Print the settings at their defaults, too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        file: ConfigFile,
    },
    /// The settings that are in force
    #[command(
        alias = "ls",
        after_help = "Examples:\n  hub-cli config list --origin\n  hub-cli config list /etc/hub/hub.toml --json=name,value\n
Secrets are shown as ***. Flags win over variables, variables over credentials of systemd, those over the file.
Exit codes: 0 listed, 2 the settings have errors.\nSee also: hub-cli config check, hub-cli help env"
    )]
    List {
        /// Where each value comes from, too
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        file: ConfigFile,
    },
    /// The JSON Schema of hub.toml, for editors
    #[command(after_help = "Examples:\n  hub-cli config schema\n  hub-cli config schema > hub.schema.json\n
Exit codes: 0 printed.\nSee also: hub-cli config init")]
    Schema,
}

/// A configuration file.
#[derive(Debug, Args)]
pub struct ConfigFile {
    /// The file [default: HUB_CONFIG, else hub.toml here or in /etc/hub]
    pub file: Option<PathBuf>,
}
