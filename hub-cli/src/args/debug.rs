use clap::{Args, Subcommand};

use super::{Ends, Fields, HubArgs};

/// Try a plugin in the sandbox
#[derive(Debug, Subcommand)]
#[command(add = Fields::own(&["hook", "matched", "present", "before", "request", "response", "replies", "skipped", "logs", "state", "error", "duration_ms", "memory_bytes", "permissions", "warnings", "sent", "remote", "differences"]))]
pub enum DebugCommand {
    Request(DebugRequestArgs),
    Response(DebugResponseArgs),
    Repl(DebugReplArgs),
}

/// The input of a hook.
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
    /// Use the message of this trace of a hub
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<String>,
    /// Local server that is in for a host of @connect: fetch connects to it without TLS, and to nothing else
    #[arg(long, value_name = "NAME=ADDRESS:PORT")]
    pub host: Vec<String>,
    /// URL of the webhook
    #[arg(long, default_value = hub_core::plugins::debug::SAMPLE_URL)]
    pub url: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Repetition and expectation of a run.
#[derive(Debug, Clone, Args)]
pub struct DebugChecks {
    /// Run again whenever the source is saved
    #[arg(long)]
    pub watch: bool,
    /// Also run it on a server, with the webhook of this channel (its id), and show the differences
    #[arg(long, value_name = "CHANNEL")]
    pub remote: Option<String>,
    /// File with the expected result; only the fields in it are compared
    #[arg(long, value_name = "FILE")]
    pub expect: Option<String>,
    /// Write the result to the file of --expect
    #[arg(long, requires = "expect")]
    pub update: bool,
}

/// Run onRequest and show the resulting request
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug request tagger.js --text \"order 42\"\n  hub-cli debug request tagger.js --text \"order 42\" --watch\n  hub-cli debug request tagger.js --trace tr_01KAJ6Z8QH0000000000000000\n  hub-cli debug request tagger.js --text \"order 42\" --url http://localhost:3000/hook --send\n  hub-cli debug request tagger.js --text \"order 42\" --expect tagger.expected.json\n  hub-cli debug request lookup.js --text \"order 42\" --host api.example.com=127.0.0.1:8123\n  hub-cli debug request tagger.js --remote ch_01KAJ6Z8QH0000000000000000 --server https://hub.example.com\n
Nothing is sent without --send.\n\nSee also: hub-cli plugins test, hub-cli debug repl",
    add = Ends(&[(0, "completed"), (1, "it failed"), (2, "invalid metadata"), (6, "a file is unreadable"), (9, "it differs from the expectation or from the server")])
)]
pub struct DebugRequestArgs {
    #[command(flatten)]
    pub input: DebugInput,
    #[command(flatten)]
    pub checks: DebugChecks,
    /// Send the request, unsigned, and run onResponse on the answer
    #[arg(long)]
    pub send: bool,
}

/// Run onResponse with a response
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug response tagger.js --status 200 --body \"{}\"\n  hub-cli debug response tagger.js --response answer.json --watch\n
FILE contains {\"status\": 200, \"headers\": {}, \"body\": \"\"}.\n\nSee also: hub-cli debug request",
    add = Ends(&[(0, "completed"), (1, "it failed"), (2, "invalid metadata"), (6, "a file is unreadable"), (9, "it differs from the expectation or from the server")])
)]
pub struct DebugResponseArgs {
    #[command(flatten)]
    pub input: DebugInput,
    #[command(flatten)]
    pub checks: DebugChecks,
    /// File with the response; - reads stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["status", "body"])]
    pub response: Option<String>,
    /// Status of the response
    #[arg(long, default_value_t = 200)]
    pub status: u16,
    /// Body of the response
    #[arg(long, default_value = "")]
    pub body: String,
    /// ctx.state as onRequest left it, as JSON
    #[arg(long, value_name = "JSON")]
    pub state: Option<String>,
}

/// Evaluate JavaScript with ctx interactively
///
/// Each line runs after the previous ones, in a fresh sandbox with the plugin's source in scope: `ctx`,
/// `onRequest(ctx)`, everything at its top level.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug repl tagger.js --text \"order 42\"\n  echo \"onRequest(ctx)\" | hub-cli debug repl tagger.js\n\nSee also: hub-cli debug request",
    add = Ends(&[(2, "invalid metadata"), (6, "a file is unreadable")])
)]
pub struct DebugReplArgs {
    #[command(flatten)]
    pub input: DebugInput,
}
