//! `ai-config show`, `set` and `test`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{secret::first_line, text_or_stdin};
use crate::{
    args::{AiConfigSetArgs, ChannelsTestAiArgs, HubArgs},
    context::Context,
    document::{cell, without_nulls},
    exit::{Exit, Failure},
    printer::Printer,
};

const PATH: &str = "/api/admin/ai-config";

pub async fn show(hub: HubArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&hub).await?;
    let config = client.get(PATH).await?;
    print(config, &cx.printer)
}

pub async fn set(args: AiConfigSetArgs, cx: &Context) -> Result<(), Failure> {
    let api_key = args.api_key_file.as_deref().map(first_line).transpose()?;
    let system_prompt = args.system_prompt.clone().map(text_or_stdin).transpose()?;
    let client = cx.hub(&args.hub).await?;
    let mut config = client.get(PATH).await?;
    // A new endpoint is enabled.
    let was_on = config["enabled"] == true || config["updated_at"].is_null();
    let limit = |limit: Option<u64>| limit.map(|tokens| if tokens > 0 { json!(tokens) } else { Value::Null });
    let changes = [
        ("enabled", Some(json!(args.on || (!args.off && was_on)))),
        ("base_url", args.base_url.map(Value::from)),
        ("key_header", args.key_header.map(Value::from)),
        ("model", args.model.map(Value::from)),
        ("models", args.models.map(Value::from)),
        ("system_prompt", system_prompt.map(Value::from)),
        ("max_tokens", limit(args.max_tokens.map(u64::from))),
        ("daily_tokens", limit(args.daily_tokens)),
        // The shown key is masked, so it is not sent back; settings that are not named keep their values.
        ("api_key", Some(Value::Null)),
        ("updated_at", Some(Value::Null)),
    ];
    for (name, value) in changes {
        if let Some(value) = value {
            config[name] = value;
        }
    }
    let mut body = without_nulls(&config);
    if let Some(key) = &api_key {
        body["api_key"] = key.expose().into();
    } else if args.no_api_key {
        body["api_key"] = Value::Null;
    }
    let config = client.put(PATH, &body).await?;
    print(config, &cx.printer)
}

pub async fn test(hub: HubArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&hub).await?;
    let test = client.post(&format!("{PATH}/test"), &Value::Null).await?;
    print_test(test, cx)
}

pub async fn test_channel(args: ChannelsTestAiArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let test = client.post(&format!("{}/ai/test", place.path()), &Value::Null).await?;
    print_test(test, cx)
}

/// Prints the result of a test.
fn print_test(test: Value, cx: &Context) -> Result<(), Failure> {
    let model = cell(&test, "model");
    if test["ok"] == true {
        cx.printer.note(&format!("{model} responded after {} ms", cell(&test, "duration_ms")));
        let answer = crate::screen::clean(&cell(&test, "answer"));
        return cx.printer.one(test, &answer);
    }
    let (class, message) = (cell(&test["error"], "class"), cell(&test["error"], "message"));
    // Where none is configured, none has a name.
    let model = if model.is_empty() { "the model" } else { &model };
    let what = crate::screen::clean(&format!("{model} did not respond: {class}: {message}"));
    // A program reads the result, a person the error.
    cx.printer.one(test, "")?;
    Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what))
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
        ("key_header", or("key_header", "Authorization: Bearer")),
        ("model", cell(&config, "model")),
        ("models", models.collect::<Vec<_>>().join(", ")),
        ("system_prompt", cell(&config, "system_prompt")),
        ("max_tokens", or("max_tokens", "no limit")),
        ("daily_tokens", or("daily_tokens", "no limit")),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<14} {}", crate::screen::clean(&value));
    }
    printer.one(config, text.trim_end())
}
