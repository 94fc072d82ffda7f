use clap::Args;

use super::{HubArgs, Which};

/// Where settings come from besides flags.
#[derive(Debug, Args)]
pub struct SettingsFile {
    /// JSON of the settings, as the HTTP API takes them; replaces all of them. - reads stdin. Flags come on top
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<String>,
    /// Switch it on
    #[arg(long, conflicts_with = "off")]
    pub on: bool,
    /// Switch it off
    #[arg(long)]
    pub off: bool,
}

/// Set a channel's webhook
///
/// What is not named stays. A webhook that is set for the first time is on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-webhook orders --bot demo --url https://shop.example/hook --method hmac\n  hub-cli channels set-webhook orders --bot demo --method hmac --secret-file ./hook.secret\n  hub-cli channels set-webhook orders --bot demo -f webhook.json\n  hub-cli channels set-webhook orders --bot demo --off\n  hub-cli channels set-webhook orders --bot demo --test\n
Exit codes: 0 set, 1 the ping failed, 2 a value is not acceptable, 5 no such channel, bot or hub, 7 nobody answers, 6 the file is unreadable.\nSee also: hub-cli channels show, hub-cli listen"
)]
pub struct SetWebhookArgs {
    #[command(flatten)]
    pub which: Which,
    /// Where messages go; a private address must be in the server's HUB_EGRESS_ALLOW
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// none, bearer, header or hmac. hmac without a secret generates one and prints it once
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// File whose first line is the secret; - reads stdin. Libraries of Standard Webhooks take whsec_ and base64
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<String>,
    /// Limit of one request in milliseconds
    #[arg(long, value_name = "N")]
    pub timeout_ms: Option<u32>,
    /// Whether a text `reply` in the answer goes to the sender
    #[arg(long, value_name = "BOOL")]
    pub auto_reply: Option<bool>,
    /// Then send one signed ping and show its trace
    #[arg(long)]
    pub test: bool,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Set a channel's WebSocket sink
///
/// What is not named stays.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-websocket orders --bot demo --include-outbound true\n  hub-cli channels set-websocket orders --bot demo --allow-origin https://shop.example\n
Exit codes: 0 set, 2 a value is not acceptable, 5 no such channel, bot or hub, 7 nobody answers, 6 the file is unreadable.\nSee also: hub-cli channels show"
)]
pub struct SetWebSocketArgs {
    #[command(flatten)]
    pub which: Which,
    /// Whether clients are shown what the bot sends
    #[arg(long, value_name = "BOOL")]
    pub include_outbound: Option<bool>,
    /// Origin whose pages may connect; may be repeated, and replaces the list
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Option<Vec<String>>,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Let a model answer a channel's messages
///
/// What is not named stays. A model that is set for the first time is on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-ai orders --bot demo --system-prompt \"You sell shoes.\"\n  hub-cli channels set-ai orders --bot demo --source custom --base-url https://ai.example/v1 --model small --api-key-file ./ai.key\n  hub-cli channels set-ai orders --bot demo --off\n
Exit codes: 0 set, 2 a value is not acceptable, 5 no such channel, bot or hub, 7 nobody answers, 6 the file is unreadable.\nSee also: hub-cli ai-config set"
)]
pub struct SetAiArgs {
    #[command(flatten)]
    pub which: Which,
    /// global, the administrator's endpoint, or custom, the channel's own
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Base URL of a custom endpoint, without /chat/completions
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// File whose first line is the key of a custom endpoint; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<String>,
    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What the model is told first
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

/// Say which messages a channel gets
///
/// The lists that are named replace those that are there; an empty one lets everything pass.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-filter orders --bot demo --keywords order,invoice\n  hub-cli channels set-filter orders --bot demo --expression \"content.size() > 10\"\n  hub-cli channels set-filter orders --bot demo --clear\n
Exit codes: 0 set, 2 a value is not acceptable, 5 no such channel, bot or hub, 7 nobody answers, 6 the file is unreadable.\nSee also: hub-cli channels show"
)]
pub struct SetFilterArgs {
    #[command(flatten)]
    pub which: Which,
    /// Senders, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub user_ids: Option<Vec<String>>,
    /// Words in the text, separated by commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub keywords: Option<Vec<String>>,
    /// text, image, voice, video, file or other, separated by commas
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub message_types: Option<Vec<String>>,
    /// all: every list that is not empty has to match; any: one is enough
    #[arg(long = "match", value_name = "MODE")]
    pub mode: Option<String>,
    /// A CEL expression that has to be true
    #[arg(long, value_name = "CEL")]
    pub expression: Option<String>,
    /// Begin with a filter that lets everything pass
    #[arg(long, conflicts_with = "file")]
    pub clear: bool,
    /// JSON of the filter, as the HTTP API takes it; - reads stdin. Flags come on top
    #[arg(long, short = 'f', value_name = "FILE")]
    pub file: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}
