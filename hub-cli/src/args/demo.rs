use clap::Args;

/// Run a message through a hub in this process, and show its way
///
/// Ada, in a simulated chat network, orders something. The hub stores the message, filters it, posts it signed
/// to a receiver, and sends the receiver's answer back into the chat. No port, no account, and no file is left.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli demo\n  hub-cli demo --json=reply,verified\n
Exit codes: 0 everything arrived, 1 a step did not come within 10 s.\nSee also: hub-cli sim say, hub-cli traces show")]
pub struct DemoArgs {}
