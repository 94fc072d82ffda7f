use clap::Args;

use super::HubArgs;

/// Send a message as a bot
///
/// The message is stored, and a running server sends it within a second.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli send demo ada@im.wechat \"on its way\"\n  hub-cli send demo ada@im.wechat - --wait\n
Exit codes: 0 stored (with --wait: sent), 1 refused or failed, 5 no such bot, 8 not sent in time.\nSee also: hub-cli traces show"
)]
pub struct SendArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Id of the person on the chat network
    pub to: String,
    /// The text; - reads stdin
    pub text: String,
    /// Wait until the message was sent
    #[arg(long)]
    pub wait: bool,
    /// Longest wait in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "wait")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    #[command(flatten)]
    pub hub: HubArgs,
}
