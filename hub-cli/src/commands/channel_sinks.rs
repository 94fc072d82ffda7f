//! `channels set-webhook`, `set-websocket`, `set-ai` and `set-filter`: the current settings, or those of a file,
//! overridden by the flags.

use hub_core::{time::Clock, traces::TraceStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{channels::state, read_file, secret::first_line, waterfall};
use crate::{
    args::{
        FilterFlags, SetAiArgs, SetFilterArgs, SetIlinkArgs, SetWebSocketArgs, SetWebhookArgs, SettingsFile,
        TestFilterArgs, Which,
    },
    client::{ChannelRef, Client, TraceDocument},
    context::Context,
    document::{cell, cells},
    exit::{Exit, Failure},
    printer::{List, Printer},
};

pub async fn set_webhook(args: SetWebhookArgs, cx: &Context) -> Result<Exit, Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let is_new = cell(&channel["webhook"], "url").is_empty();
    let mut draft = Draft::of(&channel, Part::Webhook, args.settings.file.as_deref())?;
    draft.switch(&args.settings, is_new);
    draft.put("url", args.url);
    draft.put("timeout_ms", args.timeout_ms);
    draft.put("auto_reply", args.auto_reply);
    draft.put_in("auth", "method", args.method);
    if let Some(path) = &args.secret_file {
        draft.put_in("auth", "secret", Some(first_line(path)?.expose().to_owned()));
    }
    let mut channel = draft.store(&client, place).await?;
    let trace = if args.test { Some(TraceDocument::read(ping(&client, place).await?)?) } else { None };
    let webhook = &channel["webhook"];
    let mut text = line(&channel, &format!("webhook {}\t{}", state(webhook), cell(webhook, "url")));
    if let Some(secret) = webhook["auth"]["secret"].as_str() {
        text = format!("{text}\nsecret  {secret}  (generated; shown only now)");
    }
    let mut exit = Exit::Done;
    if let Some(TraceDocument { trace, document }) = trace {
        text = format!("{text}\n{}", waterfall::draw(&trace, Clock::system().now(), &cx.printer));
        channel["test"] = document;
        if trace.status == TraceStatus::Error {
            exit = Exit::Failed;
        }
    }
    cx.printer.one(channel, &text)?;
    Ok(exit)
}

pub async fn set_websocket(args: SetWebSocketArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let mut draft = Draft::of(&channel, Part::WebSocket, args.settings.file.as_deref())?;
    draft.switch(&args.settings, false);
    draft.put("include_outbound", args.include_outbound);
    draft.put("allowed_origins", args.allow_origin);
    let channel = draft.store(&client, place).await?;
    let text = format!("websocket {}", state(&channel["websocket"]));
    print(channel, &text, &cx.printer)
}

pub async fn set_ilink(args: SetIlinkArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let mut draft = Draft::of(&channel, Part::Ilink, args.settings.file.as_deref())?;
    draft.switch(&args.settings, false);
    draft.put("max_clients", args.max_clients);
    draft.put("idle_days", args.idle_days);
    let channel = draft.store(&client, place).await?;
    let text = format!("ilink {}", state(&channel["ilink"]));
    print(channel, &text, &cx.printer)
}

pub async fn set_ai(args: SetAiArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let ai = &channel["ai"];
    let is_unset = |field: &str| cell(ai, field).is_empty();
    let is_new = ai["enabled"] == false && ["base_url", "model", "system_prompt"].into_iter().all(is_unset);
    let mut draft = Draft::of(&channel, Part::Ai, args.settings.file.as_deref())?;
    draft.switch(&args.settings, is_new);
    draft.put("source", args.source);
    draft.put("base_url", args.base_url);
    draft.put("key_header", args.key_header);
    draft.put("model", args.model);
    draft.put("system_prompt", args.system_prompt);
    draft.put("error_reply", args.error_reply);
    if let Some(path) = &args.api_key_file {
        draft.put("api_key", Some(first_line(path)?.expose()));
    }
    let channel = draft.store(&client, place).await?;
    if let Some(warning) = channel["ai"]["warning"].as_str() {
        cx.printer.note(&format!("warning: {warning} (hub-cli ai-config set)"));
    }
    let text = format!("ai {}\t{}", state(&channel["ai"]), cell(&channel["ai"], "model"));
    print(channel, &text, &cx.printer)
}

pub async fn set_filter(args: SetFilterArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let draft = args.filter.draft(channel)?;
    let channel = draft.store(&client, place).await?;
    let text = format!("filter {}", channel["filter"]);
    print(channel, &text, &cx.printer)
}

pub async fn test_filter(args: TestFilterArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (place, channel) = find(&client, &args.which).await?;
    let filter = args.filter.draft(channel)?.settings;
    let body = json!({ "filter": filter, "last": args.last });
    let mut tested = client.post(&format!("{}/filter/test", place.path()), &body).await?;
    let count = tested["messages"].as_array().map_or(0, Vec::len);
    cx.printer.note(&format!("{} of {count} messages pass", cell(&tested, "passed")));
    let page = json!({ "items": tested["messages"].take() });
    let row = |message: &Value| {
        cells(message, ["message_id", "created_at", "from_user_id", "reason", "excerpt"]).to_vec()
    };
    let columns = &["MESSAGE ID", "AT", "FROM", "RESULT", "TEXT"];
    cx.printer.list(List::of(page, columns, row, "the bot has received no messages"))
}

impl FilterFlags {
    /// The filter of the flags, based on the current one unless the flags say otherwise.
    fn draft(self, channel: Value) -> Result<Draft, Failure> {
        let before = if self.clear { json!({ "filter": {} }) } else { channel };
        let mut draft = Draft::of(&before, Part::Filter, self.file.as_deref())?;
        draft.put("user_ids", self.user_ids);
        draft.put("keywords", self.keywords);
        draft.put("message_types", self.message_types);
        draft.put("match", self.mode);
        draft.put("expression", self.expression);
        Ok(draft)
    }
}

async fn find(client: &Client, which: &Which) -> Result<(ChannelRef, Value), Failure> {
    let place = client.channel_ref(&which.bot, &which.channel).await?;
    Ok((place, client.get(&place.path()).await?))
}

/// Sends a signed ping to the webhook of a channel; returns its trace.
async fn ping(client: &Client, place: ChannelRef) -> Result<Value, Failure> {
    client.post(&format!("{}/webhook/test", place.path()), &Value::Null).await
}

/// A part of a channel with settings that are replaced as a whole.
#[derive(Debug, Clone, Copy)]
enum Part {
    Webhook,
    WebSocket,
    Ilink,
    Ai,
    Filter,
}

impl Part {
    /// Its name in the document of a channel, and in paths.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::WebSocket => "websocket",
            Self::Ilink => "ilink",
            Self::Ai => "ai",
            Self::Filter => "filter",
        }
    }
}

/// Settings of a part that are not stored yet.
struct Draft {
    part: Part,
    settings: Map<String, Value>,
}

impl Draft {
    /// The settings of a file, or the current ones.
    fn of(channel: &Value, part: Part, file: Option<&str>) -> Result<Self, Failure> {
        let value = match file {
            Some(path) => serde_json::from_str(&read_file(path)?)
                .map_err(|error| Failure::usage(format!("{path} is not JSON: {error}")))?,
            None => settable(channel[part.as_str()].clone()),
        };
        match value {
            Value::Object(settings) => Ok(Self { part, settings }),
            _ => Err(Failure::usage("the settings must be a JSON object")),
        }
    }

    /// Stores them; returns the channel.
    async fn store(self, client: &Client, place: ChannelRef) -> Result<Value, Failure> {
        let path = format!("{}/{}", place.path(), self.part.as_str());
        client.put(&path, &Value::Object(self.settings)).await
    }

    fn put(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.settings.insert(name.to_owned(), json!(value));
        }
    }

    fn put_in(&mut self, part: &str, name: &str, value: Option<String>) {
        if let Some(value) = value {
            let part = self.settings.entry(part.to_owned()).or_insert_with(|| json!({}));
            part[name] = json!(value);
        }
    }

    /// Enabled as the flags say; by default if it is new, or from a file without the field.
    fn switch(&mut self, settings: &SettingsFile, is_new: bool) {
        let said = if settings.on || settings.off { Some(settings.on) } else { None };
        self.put("enabled", said.or((is_new && settings.file.is_none()).then_some(true)));
    }
}

/// Settings from a server, without read-only fields.
fn settable(mut settings: Value) -> Value {
    if let Some(fields) = settings.as_object_mut() {
        fields.remove("has_api_key");
        fields.remove("warning");
        if let Some(auth) = fields.get_mut("auth").and_then(Value::as_object_mut) {
            auth.retain(|name, _| !matches!(name.as_str(), "has_secret" | "old_secret_expires_at"));
        }
    }
    settings
}

fn print(channel: Value, text: &str, printer: &Printer) -> Result<(), Failure> {
    let text = line(&channel, text);
    printer.one(channel, &text)
}

fn line(channel: &Value, text: &str) -> String {
    format!("{}\t{}\t{text}", cell(channel, "id"), cell(channel, "name"))
}
