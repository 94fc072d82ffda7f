use clap::{Args, Subcommand};

use super::{Ends, Fields, HubArgs};

/// Configure the AI endpoint that channels use
#[derive(Debug, Subcommand)]
pub enum AiConfigCommand {
    /// Show the endpoint, without its key
    #[command(
        after_help = "Examples:\n  hub-cli ai-config show\n  hub-cli ai-config show --json=base_url,model\n\nSee also: hub-cli ai-config set, hub-cli ai-config test",
        add = Fields::of("getAiConfig")
    )]
    Show(HubArgs),
    Set(AiConfigSetArgs),
    /// Send a test question to the endpoint
    #[command(
        after_help = "Examples:\n  hub-cli ai-config test\n  hub-cli ai-config test --json=ok,error\n\nSee also: hub-cli ai-config set",
        add = Ends(&[(0, "the endpoint works"), (1, "it failed"), (6, "no endpoint is configured")]),
        add = Fields::of("testAiConfig")
    )]
    Test(HubArgs),
}

/// Change the endpoint
///
/// Settings that are not named keep their values. Channels use the new settings from their next message on.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli ai-config set --api-key-file ./openai.key --model gpt-4o-mini\n  hub-cli ai-config set --base-url http://127.0.0.1:11434/v1 --model llama3.2 --no-api-key\n  hub-cli ai-config set --off\n\nSee also: hub-cli ai-config test, hub-cli help env",
    add = Ends(&[(0, "changed"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("getAiConfig")
)]
pub struct AiConfigSetArgs {
    /// Base URL of an OpenAI-compatible service, with or without /chat/completions; a private address must be in
    /// HUB_EGRESS_ALLOW
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Header of the key, for example api-key; "" for Authorization: Bearer
    #[arg(long, value_name = "NAME")]
    pub key_header: Option<String>,
    /// File whose first line is the key; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub api_key_file: Option<String>,
    /// Remove the key
    #[arg(long, conflicts_with = "api_key_file")]
    pub no_api_key: bool,
    /// Default model of channels
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Other models that channels may select, separated by commas; replaces the list
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Option<Vec<String>>,
    /// System prompt of all models; - reads stdin
    #[arg(long, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Maximum length of an answer in tokens; 0 for no limit
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// Tokens that one channel may use per day; 0 for no limit
    #[arg(long, value_name = "N")]
    pub daily_tokens: Option<u64>,
    /// Channels may use it
    #[arg(long, conflicts_with = "off")]
    pub on: bool,
    /// Channels may not use it
    #[arg(long)]
    pub off: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
