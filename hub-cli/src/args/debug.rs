use clap::{Args, Subcommand};

use super::LocalArgs;

/// Try a plugin in the sandbox, without sending anything
#[derive(Debug, Subcommand)]
pub enum DebugCommand {
    /// Run onRequest and show what it makes of the request
    Request(DebugRequestArgs),
    /// Run onResponse with an answer
    Response(DebugResponseArgs),
    /// Type JavaScript against ctx and see what it does
    Repl(DebugReplArgs),
}

/// What a hook is tried with.
#[derive(Debug, Clone, Args)]
pub struct DebugInput {
    /// The source
    pub script: String,
    /// File with a webhook payload, or with its content and sender; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "trace"])]
    pub message: Option<String>,
    /// Text of the message
    #[arg(long, value_name = "TEXT", conflicts_with = "trace")]
    pub text: Option<String>,
    /// Name of the sender
    #[arg(long, value_name = "NAME", default_value = "Ada")]
    pub from: String,
    /// The message of this trace of a hub
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<String>,
    /// URL of the webhook
    #[arg(long, default_value = hub_core::plugins::debug::SAMPLE_URL)]
    pub url: String,
    /// Run again whenever the source is saved
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Run onRequest and show what it makes of the request
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug request tagger.js --text \"order 42\"\n  hub-cli debug request tagger.js --text \"order 42\" --watch\n  hub-cli debug request tagger.js --trace tr_01KAJ6Z8QH0000000000000000\n
Exit codes: 0 it ran, 1 it failed, 2 its metadata is wrong, 5 no such trace, 6 a file is unreadable.\nSee also: hub-cli plugins test, hub-cli debug repl"
)]
pub struct DebugRequestArgs {
    #[command(flatten)]
    pub input: DebugInput,
}

/// Run onResponse with an answer
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug response tagger.js --status 200 --body \"{}\"\n  hub-cli debug response tagger.js --response answer.json --watch\n
FILE holds {\"status\": 200, \"headers\": {}, \"body\": \"\"}.\n
Exit codes: 0 it ran, 1 it failed, 2 its metadata is wrong, 5 no such trace, 6 a file is unreadable.\nSee also: hub-cli debug request"
)]
pub struct DebugResponseArgs {
    #[command(flatten)]
    pub input: DebugInput,
    /// File with the answer; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["status", "body"])]
    pub response: Option<String>,
    /// Status of the answer
    #[arg(long, default_value_t = 200)]
    pub status: u16,
    /// Body of the answer
    #[arg(long, default_value = "")]
    pub body: String,
    /// What onRequest left in ctx.state, as JSON
    #[arg(long, value_name = "JSON")]
    pub state: Option<String>,
}

/// Type JavaScript against ctx and see what it does
///
/// Each line is run after those before it, in a fresh sandbox with the plugin's source in scope: `ctx`,
/// `onRequest(ctx)`, everything at its top level.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug repl tagger.js --text \"order 42\"\n  echo \"onRequest(ctx)\" | hub-cli debug repl tagger.js\n
Exit codes: 0 done, 2 its metadata is wrong, 6 a file is unreadable.\nSee also: hub-cli debug request"
)]
pub struct DebugReplArgs {
    #[command(flatten)]
    pub input: DebugInput,
}
