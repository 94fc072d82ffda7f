//! `ai-config show`, `set` and `test`.

use std::fmt::Write as _;

use hub_core::{
    access::Actor,
    admin::ai_config::{AiConfig, AiConfigUpdate},
    channels::sinks::Change,
    secret::Secret,
};
use serde_json::json;

use super::{read_file, text_or_stdin};
use crate::{
    args::{AiConfigSetArgs, AiConfigShowArgs, AiConfigTestArgs},
    exit::{Exit, Failure},
    local::{self, Open},
    printer::Printer,
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

pub async fn show(args: AiConfigShowArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let config = hub.ai_config().get(&Actor::Operator).await?;
    hub.shutdown().await;
    print(&config, printer)
}

pub async fn set(args: AiConfigSetArgs, printer: &Printer) -> Result<(), Failure> {
    let api_key = match args.api_key_file {
        Some(path) => {
            let content = Secret::new(read_file(&path)?);
            Change::Set(Secret::new(content.expose().lines().next().unwrap_or_default()))
        }
        None if args.no_api_key => Change::Clear,
        None => Change::Keep,
    };
    let system_prompt = args.system_prompt.map(text_or_stdin).transpose()?;
    let hub = local::open(&args.local, Open::Existing).await?;
    let AiConfig { settings, updated_at, .. } = hub.ai_config().get(&Actor::Operator).await?;
    // Who sets an endpoint for the first time wants it on.
    let enabled = args.on || (!args.off && (settings.enabled || updated_at.is_none()));
    let update = AiConfigUpdate {
        enabled,
        base_url: args.base_url.unwrap_or(settings.base_url),
        api_key,
        model: args.model.unwrap_or(settings.model),
        models: args.models.unwrap_or(settings.models),
        system_prompt: system_prompt.unwrap_or(settings.system_prompt),
        max_tokens: args.max_tokens.map_or(settings.max_tokens, |most| (most > 0).then_some(most)),
        daily_tokens: args.daily_tokens.map_or(settings.daily_tokens, |most| (most > 0).then_some(most)),
    };
    let config = hub.ai_config().set(&Actor::Operator, update).await?;
    hub.shutdown().await;
    print(&config, printer)
}

pub async fn test(args: AiConfigTestArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let test = hub.ai_config().test(&Actor::Operator).await?;
    hub.shutdown().await;
    let (answer, error) = match &test.outcome {
        Ok(answer) => (Some(answer), None),
        Err(error) => (None, Some(error)),
    };
    let document = json!({
        "ok": error.is_none(),
        "model": test.model,
        "duration_ms": u64::try_from(test.took.as_millis()).unwrap_or(u64::MAX),
        "answer": answer.map(|answer| &answer.text),
        "usage": answer.and_then(|answer| answer.usage),
        "error": error.map(|(class, message)| json!({ "class": class, "message": message })),
    });
    let told = match &test.outcome {
        Ok(answer) => {
            printer.note(&format!("{} answered after {} ms", test.model, test.took.as_millis()));
            answer.text.clone()
        }
        Err((class, message)) => format!("{class}: {message}"),
    };
    printer.one(document, &told)?;
    match test.outcome {
        Ok(_) => Ok(()),
        Err((class, _)) => Err(Failure::new(
            Exit::Failed,
            "UPSTREAM_ERROR",
            format!("{} did not answer: {class}", test.model),
        )),
    }
}

fn print(config: &AiConfig, printer: &Printer) -> Result<(), Failure> {
    let settings = &config.settings;
    let document = json!({
        "enabled": settings.enabled,
        "base_url": settings.base_url,
        "api_key": config.api_key,
        "model": settings.model,
        "models": settings.models,
        "system_prompt": settings.system_prompt,
        "max_tokens": settings.max_tokens,
        "daily_tokens": settings.daily_tokens,
        "updated_at": config.updated_at,
    });
    let limit = |most: Option<u64>| most.map_or_else(|| "no limit".to_owned(), |most| most.to_string());
    let mut text = String::new();
    for (name, value) in [
        ("enabled", if settings.enabled { "yes".to_owned() } else { "no".to_owned() }),
        ("base_url", settings.base_url.clone()),
        ("api_key", config.api_key.clone().unwrap_or_else(|| "none".to_owned())),
        ("model", settings.model.clone()),
        ("models", settings.models.join(", ")),
        ("system_prompt", settings.system_prompt.clone()),
        ("max_tokens", limit(settings.max_tokens.map(u64::from))),
        ("daily_tokens", limit(settings.daily_tokens)),
    ] {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{name:<14} {}", crate::screen::clean(&value));
    }
    printer.one(document, text.trim_end())
}
