use std::path::PathBuf;

use clap::Args;
use url::Url;

use super::{Ends, Fields, HubArgs, values::http_url};

/// Forward a bot's or a channel's messages to a local URL
///
/// Messages are posted as by the webhook of a channel, with the same signature, and a text `reply` in a JSON response
/// is sent to the sender. With --bot, a temporary channel receives all messages of the bot; it is deleted when the
/// command ends. With the key of a channel, messages missed since the last run come first.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli listen --bot demo --forward-to http://localhost:3000/hook\n  hub-cli listen --bot demo --forward-to http://localhost:3000/hook --ui --record orders.jsonl\n  hub-cli listen --forward-to http://localhost:3000/hook --key hubc_abc --header \"X-Env: dev\"\n
Every listener of a bot or channel receives each message. Of several listeners with the same key, the first reply is sent.\nSee also: hub-cli replay --from, hub-cli channels rotate-key",
    add = Ends(&[(0, "ended with q (--ui)"), (2, "wrong usage"), (4, "the key is invalid or not signed in"), (6, "the recording cannot be written"), (7, "the hub is unreachable at the start"), (130, "interrupted")]),
    add = Fields::own(&["seq", "id", "status", "reply"])
)]
pub struct ListenArgs {
    /// URL to post messages to
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub forward_to: Url,
    /// Bot whose messages are forwarded through a temporary channel
    #[arg(long, value_name = "BOT")]
    pub bot: Option<String>,
    /// Key of the channel whose messages are forwarded, unless a bot is named
    #[arg(long, env = "HUB_CHANNEL_KEY", hide_env_values = true, value_name = "KEY")]
    #[arg(required_unless_present = "bot")]
    pub key: Option<String>,
    /// Additional header of each request; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Secret of the signatures [default: a new one]
    #[arg(long, env = "HUB_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub secret: Option<String>,
    /// Print the secret of the signatures
    #[arg(long)]
    pub print_secret: bool,
    /// Append each message and its response to a file that `replay --from` reads; secrets are masked, content is not
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// At a terminal, show the state, counts and the last messages in place; q ends it
    #[arg(long)]
    pub ui: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
