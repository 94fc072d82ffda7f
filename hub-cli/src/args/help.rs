use clap::Args;

use crate::exit;

use super::{Ends, Fields};

/// Explain a command, exit-codes, env, config, filters, formatting
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli help exit-codes\n  hub-cli help sim say\n  hub-cli help --json\n\nSee also: hub-cli man",
    add = Ends(&[(0, "explained"), (5, "no such command or topic")]),
    add = Fields::own(&["name", "about", "examples", "arguments", "commands"])
)]
pub struct HelpArgs {
    /// A topic or a command
    pub topic: Vec<String>,
}

/// Topics and their texts.
pub const TOPICS: [(&str, &str); 5] = [
    ("exit-codes", exit::TABLE),
    ("env", include_str!("topics/env.txt")),
    ("config", include_str!("topics/config.txt")),
    ("filters", include_str!("topics/filters.txt")),
    ("formatting", include_str!("topics/formatting.txt")),
];
