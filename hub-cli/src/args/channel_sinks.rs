use clap::Args;

use super::{Ends, Fields, HubArgs, Which};

/// Settings from a file, and the switch.
#[derive(Debug, Args)]
pub struct SettingsFile {
    /// JSON of the settings, as the HTTP API takes them; replaces all of them. - reads stdin. Flags override it
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<String>,
    /// Enable it
    #[arg(long, conflicts_with = "off")]
    pub on: bool,
    /// Disable it
    #[arg(long)]
    pub off: bool,
}

/// Configure the webhook of a channel
///
/// Settings that are not named keep their values. A new webhook is enabled.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-webhook orders --bot demo --url https://shop.example/hook --method hmac\n  hub-cli channels set-webhook orders --bot demo --method hmac --secret-file ./hook.secret\n  hub-cli channels set-webhook orders --bot demo -f webhook.json\n  hub-cli channels set-webhook orders --bot demo --off\n  hub-cli channels set-webhook orders --bot demo --test\n\nSee also: hub-cli channels show, hub-cli listen",
    add = Ends(&[(0, "set"), (1, "the ping failed"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("setWebhookSink").and(&["test"])
)]
pub struct SetWebhookArgs {
    #[command(flatten)]
    pub which: Which,
    /// URL of the webhook; a private address must be in the server's HUB_EGRESS_ALLOW
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// none, bearer, header or hmac. hmac without a secret generates one and prints it once
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// File whose first line is the secret; - reads stdin. Libraries of Standard Webhooks take whsec_ and base64
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<String>,
    /// Timeout of a request in milliseconds
    #[arg(long, value_name = "N")]
    pub timeout_ms: Option<u32>,
    /// Whether a text `reply` in the response is sent to the sender
    #[arg(long, value_name = "BOOL")]
    pub auto_reply: Option<bool>,
    /// Afterwards send a signed ping and show its trace
    #[arg(long)]
    pub test: bool,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Configure the WebSocket sink of a channel
///
/// Settings that are not named keep their values.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-websocket orders --bot demo --include-outbound true\n  hub-cli channels set-websocket orders --bot demo --allow-origin https://shop.example\n\nSee also: hub-cli channels show",
    add = Ends(&[(0, "set"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("setWebSocketSink")
)]
pub struct SetWebSocketArgs {
    #[command(flatten)]
    pub which: Which,
    /// Whether clients also receive the messages that the bot sends
    #[arg(long, value_name = "BOOL")]
    pub include_outbound: Option<bool>,
    /// Origin whose pages may connect; may be repeated; replaces the list
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Option<Vec<String>>,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Configure the AI sink of a channel
///
/// Settings that are not named keep their values. A new AI sink is enabled.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-ai orders --bot demo --system-prompt \"You sell shoes.\"\n  hub-cli channels set-ai orders --bot demo --source custom --base-url https://ai.example/v1 --model small --api-key-file ./ai.key\n  hub-cli channels set-ai orders --bot demo --off\n\nSee also: hub-cli ai-config set",
    add = Ends(&[(0, "set"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("setAiSink")
)]
pub struct SetAiArgs {
    #[command(flatten)]
    pub which: Which,
    /// global, the administrator's endpoint, or custom, the channel's own
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Base URL of a custom endpoint, with or without /chat/completions
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Header of the key, for example api-key; "" for Authorization: Bearer
    #[arg(long, value_name = "NAME")]
    pub key_header: Option<String>,
    /// File whose first line is the key of a custom endpoint; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<String>,
    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// System prompt of the model
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// What the sender gets when the model fails permanently or returns an empty answer; "" for nothing
    #[arg(long, value_name = "TEXT")]
    pub error_reply: Option<String>,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Set which messages a channel receives
///
/// The given lists replace the current ones; an empty list matches everything.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-filter orders --bot demo --keywords order,invoice\n  hub-cli channels set-filter orders --bot demo --expression \"content.size() > 10\"\n  hub-cli channels set-filter orders --bot demo --clear\n\nSee also: hub-cli channels show",
    add = Ends(&[(0, "set"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("setChannelFilter")
)]
pub struct SetFilterArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub filter: FilterFlags,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Test a filter on the last messages of the bot, without changing the channel
///
/// Without flags, tests the current filter. Prints for each message whether it passes, or the rule that rejects it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels test-filter orders --bot demo --keywords order\n  hub-cli channels test-filter orders --bot demo --expression \"content.size() > 10\" --last 100\n\nSee also: hub-cli channels set-filter",
    add = Ends(&[(0, "tested"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::own(&["message_id", "from_user_id", "excerpt", "created_at", "passed", "reason", "reason_cause"])
)]
pub struct TestFilterArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub filter: FilterFlags,
    /// Number of messages
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub last: u32,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// The filter of a command.
#[derive(Debug, Args)]
pub struct FilterFlags {
    /// Senders, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub user_ids: Option<Vec<String>>,
    /// Words in the text, separated by commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub keywords: Option<Vec<String>>,
    /// text, image, voice, video, file or other, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub message_types: Option<Vec<String>>,
    /// all: every list that is not empty has to match; any: one match is enough
    #[arg(long = "match", value_name = "MODE")]
    pub mode: Option<String>,
    /// CEL expression that has to be true
    #[arg(long, value_name = "CEL")]
    pub expression: Option<String>,
    /// Start from an empty filter, which matches everything
    #[arg(long, conflicts_with = "file")]
    pub clear: bool,
    /// JSON of the filter, as the HTTP API takes it; - reads stdin. Flags override it
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<String>,
}
