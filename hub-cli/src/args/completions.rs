use clap::Args;
use clap_complete::Shell;

/// Print a script with which a shell completes commands and names
///
/// The script asks this program: bots, channels, plugins and profiles are those of the hub that a command would work
/// on. A hub that does not answer at once is not waited for.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli completions bash > ~/.local/share/bash-completion/completions/hub-cli\n  hub-cli completions fish > ~/.config/fish/completions/hub-cli.fish\n  hub-cli completions zsh > ~/.zfunc/_hub-cli\n
Exit codes: 0 printed.\nSee also: hub-cli man"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}
