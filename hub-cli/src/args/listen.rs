use std::path::PathBuf;

use clap::Args;
use url::Url;

use super::ProfileArgs;

/// Forward a channel's messages to a local URL
///
/// Messages are posted as the channel's webhook would post them, with the same signature, and a JSON answer with
/// a text `reply` goes back to the sender. Whatever was missed since the last time comes first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli listen --forward-to http://localhost:3000/hook --key hubc_abc\n  hub-cli listen --forward-to http://localhost:3000/hook --key hubc_abc --header \"X-Env: dev\"\n  hub-cli listen --forward-to http://localhost:3000/hook --key hubc_abc --ui --record orders.jsonl\n
Exit codes: 0 ended with q (--ui), 2 wrong usage, 4 the key is not valid, 6 the recording cannot be written, 7 nobody answers at the start, 130 interrupted.\nSee also: hub-cli replay --from, hub-cli channels rotate-key"
)]
pub struct ListenArgs {
    /// Where messages go
    #[arg(long, value_name = "URL")]
    pub forward_to: Url,
    /// Server that has the channel [default: that of the profile in use, else http://localhost:9800]
    #[arg(long, env = "HUB_SERVER", value_name = "URL", help_heading = "Hub")]
    pub server: Option<Url>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Key of the channel
    #[arg(long, env = "HUB_CHANNEL_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: String,
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
}
