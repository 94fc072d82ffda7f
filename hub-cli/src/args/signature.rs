use clap::{Args, Subcommand};

use super::{Ends, Fields};

/// Sign a body as the hub does, or diagnose a rejected signature
#[derive(Debug, Subcommand)]
pub enum SignatureCommand {
    Sign(SignArgs),
    Verify(VerifyArgs),
}

/// The shared secret.
#[derive(Debug, Clone, Args)]
pub struct SecretArgs {
    /// File whose first line is the secret; - reads stdin [default: HUB_WEBHOOK_SECRET]
    #[arg(long, value_name = "FILE", conflicts_with = "secret")]
    pub secret_file: Option<String>,
    /// The secret itself. Others on this machine can read arguments: prefer a file or the variable
    #[arg(long, value_name = "SECRET")]
    pub secret: Option<String>,
}

/// Print the headers with which the hub would sign a body
///
/// One line per header, as curl takes them from a file: X-Signature (sha256= and the HMAC of the body in hex) and the
/// three of Standard Webhooks; with --app those of an event for an app.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli signature sign --secret-file hook.secret --body body.json\n  hub-cli signature sign --secret-file hook.secret --body body.json --app --json\n  hub-cli signature sign --secret-file hook.secret --body - --id msg_1 --timestamp 1790000000\n
With curl: hub-cli signature sign --secret-file hook.secret --body body.json > headers; curl -H @headers --data-binary @body.json URL\n\nSee also: hub-cli signature verify, hub-cli replay",
    add = Ends(&[(0, "signed"), (2, "no secret"), (6, "a file is unreadable")]),
    add = Fields::own(&["X-Signature", "X-Timestamp", "webhook-id", "webhook-timestamp", "webhook-signature"])
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

/// Check the signature of a received request, and explain a mismatch
///
/// It recognizes a body that was parsed and serialized again, an added or missing newline, a secret that was used
/// with or without its prefix or decoded, and old timestamps. If none of these explains the difference, the secret or
/// the body is different.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli signature verify --secret-file hook.secret --body body.json --header \"X-Signature: sha256=0ab1\"\n  hub-cli signature verify --secret-file hook.secret --body body.json --headers request.txt --json\n  hub-cli signature verify --secret-file hook.secret --body - --headers request.txt --at 1790000000\n\nSee also: hub-cli signature sign",
    add = Ends(&[(0, "the signature is correct"), (2, "no secret or no header"), (6, "a file is unreadable"), (9, "the signature is wrong")]),
    add = Fields::own(&["verified", "findings"])
)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub secret: SecretArgs,
    /// File with the exact bytes received; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub body: String,
    /// A header of the request; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// File with the request's headers, one per line; other lines are ignored; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub headers: Option<String>,
    /// Time of receipt in Unix seconds [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub at: Option<i64>,
    /// Maximum difference between timestamp and receipt in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub tolerance: u64,
}
