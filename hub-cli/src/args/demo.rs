use clap::Args;

use super::{Ends, Fields};

/// Process a message in a hub in this process, and show each step
///
/// Ada, a user of a simulated chat network, orders something. The hub stores the message, filters it, posts it,
/// signed, to a receiver, and sends the receiver's reply to the chat. It needs no port and no account, and leaves no
/// files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli demo\n  hub-cli demo --json=reply,verified\n\nSee also: hub-cli sim say, hub-cli traces show",
    add = Ends(&[(0, "completed"), (1, "a step took longer than 10 s")]),
    add = Fields::own(&["said", "reply", "verified", "receiver", "trace_id", "trace", "elapsed_ms"])
)]
pub struct DemoArgs {}
