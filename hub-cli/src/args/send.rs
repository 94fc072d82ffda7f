use clap::Args;

use super::HubArgs;

/// Send a message as a bot
///
/// The message is stored, and a running server sends it within a second. With --via-app it is the app's message: with its
/// scopes, in its log (`apps api-logs`). On files nobody asks for the app's token; a server wants it in HUB_APP_TOKEN.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli send demo ada@im.wechat \"on its way\"\n  hub-cli send demo ada@im.wechat - --wait\n  hub-cli send demo ada@im.wechat \"sunny\" --via-app weather\n
Exit codes: 0 stored (with --wait: sent), 1 refused or failed, 2 the app's token is missing or another one's, 4 not signed in, or the app may not, 5 no such bot or app, 7 nobody answers, or --wait and no server works on the files, 8 not sent in time.\nSee also: hub-cli traces show"
)]
pub struct SendArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Id of the person on the chat network
    pub to: String,
    /// The text; - reads stdin
    pub text: String,
    /// As this app on the bot: its id, short name or name
    #[arg(long, value_name = "APP")]
    pub via_app: Option<String>,
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
