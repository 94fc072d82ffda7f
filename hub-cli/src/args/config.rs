use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Ends, Fields};

/// Show and check the settings of the server
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a hub.toml that explains every setting, with its default
    #[command(
        after_help = "Examples:\n  hub-cli config init\n  hub-cli config init /etc/hub/hub.toml\n\nSee also: hub-cli config check",
        add = Ends(&[(0, "written"), (6, "the file exists or cannot be written")]),
        add = Fields::own(&["file"])
    )]
    Init {
        /// Where to write it
        #[arg(default_value = "hub.toml")]
        file: PathBuf,
    },
    /// Validate the settings, and print those that are not defaults
    #[command(
        after_help = "Examples:\n  hub-cli config check\n  hub-cli config check /etc/hub/hub.toml --json\n
The environment is included, as for the server. With --json: the problems and warnings.\nSee also: hub-cli config list --origin",
        add = Ends(&[(0, "the settings are valid"), (9, "the settings have errors")]),
        add = Fields::own(&["severity", "message"])
    )]
    Check {
        /// Also print the settings that have their defaults
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        file: ConfigFile,
    },
    /// Print the effective settings
    #[command(
        alias = "ls",
        after_help = "Examples:\n  hub-cli config list --origin\n  hub-cli config list /etc/hub/hub.toml --json=name,value\n
Secrets are shown as ***. Flags override variables, variables override systemd credentials, and those override the file.\nSee also: hub-cli config check, hub-cli help env",
        add = Ends(&[(2, "the settings have errors")]),
        add = Fields::own(&["name", "value", "origin"])
    )]
    List {
        /// Also print the origin of each value
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        file: ConfigFile,
    },
    /// Print the JSON Schema of hub.toml, for editors
    #[command(
        after_help = "Examples:\n  hub-cli config schema\n  hub-cli config schema > hub.schema.json\n\nSee also: hub-cli config init",
        add = Ends(&[(0, "printed")]),
        add = Fields::own(&["$schema", "title", "type", "properties", "additionalProperties"])
    )]
    Schema,
}

/// A configuration file.
#[derive(Debug, Args)]
pub struct ConfigFile {
    /// The file [default: HUB_CONFIG, else hub.toml here or in /etc/hub]
    pub file: Option<PathBuf>,
}
