//! `channels set-webhook`, `set-websocket`, `set-ai` and `set-filter`: the settings that are there, or a file's, with
//! the flags on top, checked as the HTTP API checks them.

use hub_core::{
    access::Actor,
    channels::{
        Channel,
        filter::Filter,
        sinks::{AiSettings, AiUpdate, Change, WebSocketSettings, WebhookSettings, WebhookUpdate},
    },
    delivery::ping::ping,
    traces::TraceStatus,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    channels::{document, find},
    read_file,
    secret::first_line,
    traces, waterfall,
};
use crate::{
    args::{SetAiArgs, SetFilterArgs, SetWebSocketArgs, SetWebhookArgs, SettingsFile},
    exit::{Exit, Failure},
    printer::Printer,
};

pub async fn set_webhook(args: SetWebhookArgs, printer: &Printer) -> Result<Exit, Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let is_new = channel.webhook == WebhookSettings::default();
    let mut draft = Draft::of(&channel.webhook, args.settings.file.as_deref())?;
    draft.switch(&args.settings, is_new);
    draft.put("url", args.url);
    draft.put("timeout_ms", args.timeout_ms);
    draft.put("auto_reply", args.auto_reply);
    draft.put_in("auth", "method", args.method);
    let mut update: WebhookUpdate = draft.read()?;
    if let Some(path) = &args.secret_file {
        update.auth.secret = Change::Set(first_line(path)?);
    }
    let channel = hub.channels().set_webhook(&Actor::Operator, bot.id, channel.id, update).await?;
    let trace = if args.test { Some(ping(&hub, &Actor::Operator, bot.id, channel.id).await?) } else { None };
    hub.shutdown().await;
    let state = state(channel.webhook.enabled);
    let mut text = line(&channel, &format!("webhook {state}\t{}", channel.webhook.url));
    let mut document = document(&channel);
    let mut exit = Exit::Done;
    if let Some(trace) = &trace {
        text = format!("{text}\n{}", waterfall::draw(trace, printer));
        document["test"] = traces::document(trace);
        if trace.status == TraceStatus::Error {
            exit = Exit::Failed;
        }
    }
    printer.one(document, &text)?;
    Ok(exit)
}

pub async fn set_websocket(args: SetWebSocketArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let mut draft = Draft::of(&channel.websocket, args.settings.file.as_deref())?;
    draft.switch(&args.settings, false);
    draft.put("include_outbound", args.include_outbound);
    draft.put("allowed_origins", args.allow_origin);
    let update: WebSocketSettings = draft.read()?;
    let channel = hub.channels().set_websocket(&Actor::Operator, bot.id, channel.id, &update).await?;
    hub.shutdown().await;
    print(&channel, &format!("websocket {}", state(channel.websocket.enabled)), printer)
}

pub async fn set_ai(args: SetAiArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let is_new = channel.ai == AiSettings::default();
    let mut draft = Draft::of(&channel.ai, args.settings.file.as_deref())?;
    draft.switch(&args.settings, is_new);
    draft.put("source", args.source);
    draft.put("base_url", args.base_url);
    draft.put("model", args.model);
    draft.put("system_prompt", args.system_prompt);
    let mut update: AiUpdate = draft.read()?;
    if let Some(path) = &args.api_key_file {
        update.api_key = Change::Set(first_line(path)?);
    }
    let channel = hub.channels().set_ai(&Actor::Operator, bot.id, channel.id, update).await?;
    hub.shutdown().await;
    print(&channel, &format!("ai {}\t{}", state(channel.ai.enabled), channel.ai.model), printer)
}

pub async fn set_filter(args: SetFilterArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let before = if args.clear { Filter::default() } else { channel.filter };
    let mut draft = Draft::of(&before, args.file.as_deref())?;
    draft.put("user_ids", args.user_ids);
    draft.put("keywords", args.keywords);
    draft.put("message_types", args.message_types);
    draft.put("match", args.mode);
    draft.put("expression", args.expression);
    let filter: Filter = draft.read()?;
    let channel = hub.channels().set_filter(&Actor::Operator, bot.id, channel.id, &filter).await?;
    hub.shutdown().await;
    let text = serde_json::to_string(&channel.filter).unwrap_or_default();
    print(&channel, &format!("filter {text}"), printer)
}

/// Settings on their way to be checked.
struct Draft(Map<String, Value>);

impl Draft {
    /// A file's settings, or else those that are there.
    fn of(stored: &impl Serialize, file: Option<&str>) -> Result<Self, Failure> {
        let value = match file {
            Some(path) => serde_json::from_str(&read_file(path)?)
                .map_err(|error| Failure::usage(format!("{path} is not JSON: {error}")))?,
            None => json!(stored),
        };
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Failure::usage("the settings must be a JSON object")),
        }
    }

    fn put(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), json!(value));
        }
    }

    fn put_in(&mut self, part: &str, name: &str, value: Option<String>) {
        if let Some(value) = value {
            let part = self.0.entry(part.to_owned()).or_insert_with(|| json!({}));
            part[name] = json!(value);
        }
    }

    /// On or off as the flags say; what was never set before, or comes from a file that does not say, is on.
    fn switch(&mut self, settings: &SettingsFile, is_new: bool) {
        let said = if settings.on || settings.off { Some(settings.on) } else { None };
        self.put("enabled", said.or((is_new && settings.file.is_none()).then_some(true)));
    }

    fn read<T: DeserializeOwned>(self) -> Result<T, Failure> {
        serde_json::from_value(Value::Object(self.0))
            .map_err(|error| Failure::usage(format!("these settings are not acceptable: {error}")))
    }
}

const fn state(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn print(channel: &Channel, text: &str, printer: &Printer) -> Result<(), Failure> {
    printer.one(document(channel), &line(channel, text))
}

fn line(channel: &Channel, text: &str) -> String {
    format!("{}\t{}\t{text}", channel.id, channel.name)
}
