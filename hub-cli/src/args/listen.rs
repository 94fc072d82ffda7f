use std::path::PathBuf;

use clap::Args;
use url::Url;

use super::HubArgs;

/// Forward a bot's or a channel's messages to a local URL
///
/// Messages are posted as the webhook of a channel would post them, with the same signature, and a JSON answer with
/// a text `reply` is sent to the sender. With --bot, a temporary channel receives all messages of the bot; it is
/// deleted when the command ends. With the key of a channel, messages that were missed since the last time come first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli listen --bot demo --forward-to http://localhost:3000/hook\n  hub-cli listen --bot demo --forward-to http://localhost:3000/hook --ui --record orders.jsonl\n  hub-cli listen --forward-to http://localhost:3000/hook --key hubc_abc --header \"X-Env: dev\"\n
Every listener of a bot or channel receives each message. Of listeners with the same key, the first answer is sent.
Exit codes: 0 ended with q (--ui), 2 wrong usage, 4 the key is not valid or nobody is signed in, 5 no such bot, 6 the recording cannot be written, 7 no hub answers at the start, 130 interrupted.\nSee also: hub-cli replay --from, hub-cli channels rotate-key"
)]
pub struct ListenArgs {
    /// Where messages go
    #[arg(long, value_name = "URL")]
    pub forward_to: Url,
    /// Bot whose messages are forwarded, over a temporary channel
    #[arg(long, value_name = "BOT")]
    pub bot: Option<String>,
    /// Key of the channel whose messages are forwarded, unless a bot is named
    #[arg(long, env = "HUB_CHANNEL_KEY", hide_env_values = true, value_name = "KEY")]
    #[arg(required_unless_present = "bot")]
    pub key: Option<String>,
    /// Another header for each request; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Secret of the signatures; without one a new one is made
    #[arg(long, env = "HUB_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub secret: Option<String>,
    /// Say which secret the signatures are made with
    #[arg(long)]
    pub print_secret: bool,
    /// Append each message and its answer to a file that `replay --from` reads; secrets are masked, content is not
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// At a terminal, show the state, counts and the last messages in place; q ends it
    #[arg(long)]
    pub ui: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
