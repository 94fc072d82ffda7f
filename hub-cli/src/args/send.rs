use std::path::PathBuf;

use clap::Args;
use hub_core::id::MessageId;

use super::{Ends, Fields, HubArgs};

/// Send a message as a bot
///
/// The message is stored, and a running server sends it within a second. With --via-app it is sent by the app: with
/// its scopes, and in its log (`apps api-logs`). A server needs the app's token in HUB_APP_TOKEN; with --local it is
/// not needed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli send demo ada@im.wechat \"on its way\"\n  hub-cli send demo ada@im.wechat - --wait\n  hub-cli send demo ada@im.wechat \"your invoice\" --file invoice.pdf\n  hub-cli send demo ada@im.wechat \"sunny\" --via-app weather\n\nSee also: hub-cli traces show",
    add = Ends(&[(0, "stored (with --wait: sent)"), (1, "rejected or failed"), (2, "the app's token is missing or belongs to another app"), (4, "not signed in, or the app lacks the scope"), (6, "the file cannot be read or is too large"), (7, "unreachable, or --wait and no server is running"), (8, "timed out")]),
    add = Fields::own(&["message_id", "trace_id", "bot_id", "status"])
)]
pub struct SendArgs {
    /// Id or name of the bot
    pub bot: String,
    /// Id of the person on the chat network
    pub to: String,
    /// The text; - reads stdin
    #[arg(required_unless_present = "file")]
    pub text: Option<String>,
    /// Send this file, after the text
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Id of the message that this one replies to
    #[arg(long, value_name = "MESSAGE", conflicts_with = "via_app")]
    pub reply_to: Option<MessageId>,
    /// Send as this app on the bot: its id, short name or name
    #[arg(long, value_name = "APP")]
    pub via_app: Option<String>,
    /// Wait until the message is sent
    #[arg(long)]
    pub wait: bool,
    /// Timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "wait")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    #[command(flatten)]
    pub hub: HubArgs,
}
