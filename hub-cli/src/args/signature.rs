use clap::{Args, Subcommand};

/// Sign a body as the hub does, or find out why one is refused
#[derive(Debug, Subcommand)]
pub enum SignatureCommand {
    /// The headers with which the hub would sign a body
    Sign(SignArgs),
    /// Check the signature of a request that arrived, and say what is wrong with it
    Verify(VerifyArgs),
}

/// The secret that was agreed on.
#[derive(Debug, Clone, Args)]
pub struct SecretArgs {
    /// File whose first line is the secret; - reads stdin [default: HUB_WEBHOOK_SECRET]
    #[arg(long, value_name = "FILE", conflicts_with = "secret")]
    pub secret_file: Option<String>,
    /// The secret itself. Everybody on this machine can read arguments: a file or the variable is better
    #[arg(long, value_name = "SECRET")]
    pub secret: Option<String>,
}

/// The headers with which the hub would sign a body
///
/// One line per header, as curl takes them from a file: X-Signature (sha256= and the HMAC of the body in hex) and the
/// three of Standard Webhooks; with --app those of an event for an app.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli signature sign --secret-file hook.secret --body body.json\n  hub-cli signature sign --secret-file hook.secret --body body.json --app --json\n  hub-cli signature sign --secret-file hook.secret --body - --id msg_1 --timestamp 1790000000\n
With curl: hub-cli signature sign --secret-file hook.secret --body body.json > headers; curl -H @headers --data-binary @body.json URL\n
Exit codes: 0 signed, 2 no secret, 6 a file is unreadable.\nSee also: hub-cli signature verify, hub-cli replay"
)]
pub struct SignArgs {
    #[command(flatten)]
    pub secret: SecretArgs,
    /// File with the exact bytes; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub body: String,
    /// Id of the message, in webhook-id
    #[arg(long, value_name = "ID", default_value = "msg_test")]
    pub id: String,
    /// Unix seconds [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<i64>,
    /// As an event for an app: X-Timestamp, and X-Signature over timestamp:body
    #[arg(long)]
    pub app: bool,
}

/// Check the signature of a request that arrived, and say what is wrong with it
///
/// It finds a body that was parsed and written again, a newline more or less, a digest in base64 or in capitals, a
/// secret that was decoded or has white space around it, and timestamps that are too old. When nothing of it explains
/// the difference, the secret or the body is another one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli signature verify --secret-file hook.secret --body body.json --header \"X-Signature: sha256=0ab1\"\n  hub-cli signature verify --secret-file hook.secret --body body.json --headers request.txt --json\n  hub-cli signature verify --secret-file hook.secret --body - --headers request.txt --at 1790000000\n
Exit codes: 0 it fits, 2 no secret or no header, 6 a file is unreadable, 9 it does not fit.\nSee also: hub-cli signature sign"
)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub secret: SecretArgs,
    /// File with the exact bytes that arrived; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub body: String,
    /// A header of the request; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// File with the request's headers, one per line; other lines are left out; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub headers: Option<String>,
    /// When it arrived, in Unix seconds [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<i64>,
    /// How many seconds its timestamp may be away from then
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub tolerance: u64,
}
