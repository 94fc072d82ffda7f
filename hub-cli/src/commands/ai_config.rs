//! `ai-config show`, `set` and `test`.

use std::fmt::Write as _;

use hub_core::{admin::ai_config::AiConfigSettings, channels::sinks::Change};
use serde_json::Value;

use super::{secret::first_line, text_or_stdin, users::cell};
use crate::{
    args::{AiConfigSetArgs, AiConfigShowArgs, AiConfigTestArgs},
    exit::{Exit, Failure},
    printer::Printer,
    reach::Reach,
};

pub const FIELDS: [&str; 9] = [
    "enabled",
    "base_url",
    "api_key",
    "model",
    "models",
    "system_prompt",
    "max_tokens",
    "daily_tokens",
    "updated_at",
];

pub const TEST_FIELDS: [&str; 6] = ["ok", "model", "duration_ms", "answer", "usage", "error"];

pub async fn show(args: AiConfigShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let config = reach.ai_config().await?;
    reach.close().await;
    print(config, printer)
}

pub async fn set(args: AiConfigSetArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let api_key = match &args.api_key_file {
        Some(path) => Change::Set(first_line(path)?),
        None if args.no_api_key => Change::Clear,
        None => Change::Keep,
    };
    let system_prompt = args.system_prompt.clone().map(text_or_stdin).transpose()?;
    let reach = Reach::open(&args.hub, local).await?;
    let mut settings = changed(&reach.ai_config().await?, args);
    if let Some(prompt) = system_prompt {
        settings.system_prompt = prompt;
    }
    let config = reach.set_ai_config(settings, api_key).await?;
    reach.close().await;
    print(config, printer)
}

/// The settings of a document, with what the arguments name.
fn changed(document: &Value, args: AiConfigSetArgs) -> AiConfigSettings {
    let text = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
    let names = |field: &str| {
        let names = document[field].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    // Who sets an endpoint for the first time wants it on.
    let was_on = document["enabled"] == true || document["updated_at"].is_null();
    let max_tokens = document["max_tokens"].as_u64().and_then(|most| u32::try_from(most).ok());
    AiConfigSettings {
        enabled: args.on || (!args.off && was_on),
        base_url: args.base_url.unwrap_or_else(|| text("base_url")),
        model: args.model.unwrap_or_else(|| text("model")),
        models: args.models.unwrap_or_else(|| names("models")),
        system_prompt: text("system_prompt"),
        max_tokens: args.max_tokens.map_or(max_tokens, |most| (most > 0).then_some(most)),
        daily_tokens: args
            .daily_tokens
            .map_or(document["daily_tokens"].as_u64(), |most| (most > 0).then_some(most)),
    }
}

pub async fn test(args: AiConfigTestArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let test = reach.test_ai_config().await?;
    reach.close().await;
    let (model, class) = (cell(&test, "model"), cell(&test["error"], "class"));
    let answered = test["ok"] == true;
    let told = if answered {
        printer.note(&format!("{model} answered after {} ms", cell(&test, "duration_ms")));
        cell(&test, "answer")
    } else {
        format!("{class}: {}", cell(&test["error"], "message"))
    };
    printer.one(test, &crate::screen::clean(&told))?;
    if answered {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", format!("{model} did not answer: {class}")))
}

fn print(config: Value, printer: &Printer) -> Result<(), Failure> {
    let or = |field: &str, none: &str| {
        let value = cell(&config, field);
        if value.is_empty() { none.to_owned() } else { value }
    };
    let models = config["models"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut text = String::new();
    for (name, value) in [
        ("enabled", if config["enabled"] == true { "yes".to_owned() } else { "no".to_owned() }),
        ("base_url", cell(&config, "base_url")),
        ("api_key", or("api_key", "none")),
        ("model", cell(&config, "model")),
        ("models", models.collect::<Vec<_>>().join(", ")),
        ("system_prompt", cell(&config, "system_prompt")),
        ("max_tokens", or("max_tokens", "no limit")),
        ("daily_tokens", or("daily_tokens", "no limit")),
    ] {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{name:<14} {}", crate::screen::clean(&value));
    }
    printer.one(config, text.trim_end())
}
