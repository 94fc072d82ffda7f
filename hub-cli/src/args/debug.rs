use clap::{Args, Subcommand};

use super::HubArgs;

/// Try a plugin in the sandbox
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
    /// Program that answers for a host of @connect: fetch reaches it, without TLS, and nothing else
    #[arg(long, value_name = "NAME=ADDRESS:PORT")]
    pub host: Vec<String>,
    /// URL of the webhook
    #[arg(long, default_value = hub_core::plugins::debug::SAMPLE_URL)]
    pub url: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// How often a hook is tried, and against what.
#[derive(Debug, Clone, Args)]
pub struct DebugChecks {
    /// Run again whenever the source is saved
    #[arg(long)]
    pub watch: bool,
    /// Run it on a server as well, with the webhook of this channel (its id), and say what differs
    #[arg(long, value_name = "CHANNEL")]
    pub remote: Option<String>,
    /// What has to come of it: a file with the fields that are looked at
    #[arg(long, value_name = "FILE")]
    pub expect: Option<String>,
    /// Write what comes of it into the file of --expect
    #[arg(long, requires = "expect")]
    pub update: bool,
}

/// Run onRequest and show what it makes of the request
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug request tagger.js --text \"order 42\"\n  hub-cli debug request tagger.js --text \"order 42\" --watch\n  hub-cli debug request tagger.js --trace tr_01KAJ6Z8QH0000000000000000\n  hub-cli debug request tagger.js --text \"order 42\" --url http://localhost:3000/hook --send\n  hub-cli debug request tagger.js --text \"order 42\" --expect tagger.expected.json\n  hub-cli debug request lookup.js --text \"order 42\" --host api.example.com=127.0.0.1:8123\n  hub-cli debug request tagger.js --remote ch_01KAJ6Z8QH0000000000000000 --server https://hub.example.com\n
Nothing is sent without --send.\n
Exit codes: 0 it ran, 1 it failed, 2 its metadata is wrong, 5 no such trace, 6 a file is unreadable, 7 nobody answers, 9 it is not as expected, or not as on the server.\nSee also: hub-cli plugins test, hub-cli debug repl"
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

/// Run onResponse with an answer
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli debug response tagger.js --status 200 --body \"{}\"\n  hub-cli debug response tagger.js --response answer.json --watch\n
FILE holds {\"status\": 200, \"headers\": {}, \"body\": \"\"}.\n
Exit codes: 0 it ran, 1 it failed, 2 its metadata is wrong, 5 no such trace, 6 a file is unreadable, 7 nobody answers, 9 it is not as expected, or not as on the server.\nSee also: hub-cli debug request"
)]
pub struct DebugResponseArgs {
    #[command(flatten)]
    pub input: DebugInput,
    #[command(flatten)]
    pub checks: DebugChecks,
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
