use clap::Args;
use clap_complete::Shell;

use super::{Ends, Fields};

/// Print a shell completion script
///
/// The script runs this program: it completes the bots, channels, plugins and profiles of the hub that a command
/// would use, unless that hub takes too long to answer.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli completions bash > ~/.local/share/bash-completion/completions/hub-cli\n  hub-cli completions fish > ~/.config/fish/completions/hub-cli.fish\n  hub-cli completions zsh > ~/.zfunc/_hub-cli\n\nSee also: hub-cli man",
    add = Ends(&[(0, "printed")]),
    add = Fields::own(&[])
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}
