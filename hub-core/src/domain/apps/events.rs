//! Events for apps, and their log.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{AppEventKind, AppInput, AppRuntime, Apps, routing};
use crate::{
    access::Actor,
    app_status::new_event,
    error::{Error, Result},
    id::{AppId, BotId, Ids, InstallationId, MessageId, TraceId},
    media::Files,
    model::{app_event::AppEvent, media::SignedUrl},
    network::{MessageItem, MessageKind, items},
    page::{Page, PageRequest},
    store::app_events::{NewAppEvent, QueuedEvent},
    time::Timestamp,
};

impl Apps<'_> {
    /// Events of an app on a bot, delivered and pending, newest first.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the caller's and has the app.
    pub async fn events(
        &self,
        actor: &Actor,
        bot_id: BotId,
        app_id: AppId,
        page: &PageRequest,
    ) -> Result<Page<AppEvent>> {
        let mut read = self.ctx.store.read().await?;
        let found = read.installations().find(actor.scope()?, bot_id, app_id).await?;
        let installation = found.ok_or_else(|| Error::not_found("app on this bot"))?.installation;
        let rows = read.app_events().page(installation.id, page).await?;
        Ok(Page::from_rows(&Self::event_list(bot_id, app_id), page, rows, |event| event.id.to_string()))
    }

    /// The name of the list of events, for [`PageRequest::parse`].
    pub fn event_list(bot_id: BotId, app_id: AppId) -> String {
        format!("app_events:{bot_id}:{app_id}")
    }
}

/// A message in an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceMessage<'m> {
    /// The message.
    pub message_id: MessageId,
    /// Sender.
    pub from_user_id: &'m str,
    /// The sender's name; empty if unknown.
    pub user_name: &'m str,
    /// The recipient of replies.
    pub peer: &'m str,
    /// Group, or empty.
    pub group_id: &'m str,
    /// Kind of message.
    pub kind: MessageKind,
    /// Its text.
    pub text: &'m str,
    /// Its parts, as they are stored.
    pub items: &'m str,
    /// Time of sending.
    pub sent_at: Timestamp,
}

/// The events of a message for the apps on its bot, each with the trace that `trace` makes for it.
pub(crate) fn of_message(
    apps: &[AppRuntime],
    message: &SourceMessage<'_>,
    ids: &Ids,
    now: Timestamp,
    mut trace: impl FnMut(&AppRuntime) -> TraceId,
) -> Vec<QueuedEvent> {
    let input = routing::route(apps, message.kind, message.text);
    let event = |(runtime, input): (&AppRuntime, AppInput<'_>)| {
        let kind = match (&input, routing::kind_of(message.kind)) {
            (AppInput::Command { .. }, _) | (AppInput::Message(_), None) => AppEventKind::Command,
            (AppInput::Message(_), Some(kind)) => kind,
        };
        let trace_id = Some(trace(runtime));
        let message_id = Some(message.message_id);
        let data = data(runtime, &input, message);
        let of = (runtime.app.app_id, runtime.app.bot_id, runtime.app.installation_id);
        let (peer, has_webhook) = (message.peer, runtime.has_webhook);
        let mut queued = new_event(of, peer, has_webhook, kind, &data, ids, message.sent_at, now);
        queued.event = NewAppEvent { message_id, trace_id, ..queued.event };
        queued
    };
    input.into_iter().map(event).collect()
}

/// An event as it is sent, by webhook or over a socket.
///
/// # Errors
/// `INTERNAL_ERROR` for a damaged row.
pub(crate) fn envelope(
    trace_id: Option<TraceId>,
    installation_id: InstallationId,
    bot_id: BotId,
    event: &str,
) -> Result<Bytes> {
    #[derive(serde::Serialize)]
    struct Envelope<'a> {
        v: u32,
        r#type: &'static str,
        trace_id: String,
        installation_id: InstallationId,
        bot: Value,
        event: &'a RawValue,
    }
    let envelope = Envelope {
        v: 1,
        r#type: "event",
        trace_id: trace_id.map(|id| id.to_string()).unwrap_or_default(),
        installation_id,
        bot: json!({ "id": bot_id }),
        event: serde_json::from_str(event).map_err(Error::internal)?,
    };
    Ok(Bytes::from(serde_json::to_vec(&envelope).map_err(Error::internal)?))
}

/// The event of a message, as far as links to its files need it.
#[derive(Debug, Deserialize)]
struct MessageEvent {
    data: MessageData,
}

#[derive(Debug, Deserialize)]
struct MessageData {
    message_id: Option<MessageId>,
    #[serde(default)]
    items: Vec<MessageItem>,
}

/// Adds the files' links to the items of events: `items[].media.url`, and `items[].url` for older apps. Links are added
/// when an event is sent, so that they are fresh and the log of events holds none.
///
/// # Errors
/// `UNAVAILABLE` when the store cannot be read.
pub(crate) async fn add_links<'e>(
    files: Files<'_>,
    events: impl Iterator<Item = &'e mut String>,
) -> Result<()> {
    let with_files = |event: &'e mut String| {
        let read: MessageEvent = serde_json::from_str(event).ok()?;
        let has_files = read.data.items.iter().any(MessageItem::is_file);
        Some((read.data.message_id.filter(|_| has_files)?, event))
    };
    let events: Vec<_> = events.filter_map(with_files).collect();
    let ids: Vec<MessageId> = events.iter().map(|(id, _)| *id).collect();
    let files = files.of_messages(&ids).await?;
    for (id, text) in events {
        let mut event: Value = serde_json::from_str(text).map_err(Error::internal)?;
        for file in files.get(&id).into_iter().flatten() {
            let Some(item) = event["data"]["items"].get_mut(file.item as usize) else { continue };
            let mut media = serde_json::to_value(file).map_err(Error::internal)?;
            // The names that published apps read.
            media["media_type"] = file.kind.as_str().into();
            media["file_size"] = file.size.into();
            item["url"] = file.url.as_ref().map(SignedUrl::as_str).into();
            item["media"] = media;
        }
        *text = event.to_string();
    }
    Ok(())
}

fn data(runtime: &AppRuntime, input: &AppInput<'_>, message: &SourceMessage<'_>) -> Value {
    let sender = json!({ "id": message.from_user_id, "name": message.user_name, "role": "user" });
    let group = if message.group_id.is_empty() { Value::Null } else { json!({ "id": message.group_id }) };
    match input {
        AppInput::Message(text) => {
            let items = items::parsed(message.items, message.text).unwrap_or_default();
            json!({ "message_id": message.message_id, "sender": sender, "group": group, "content": text,
                "msg_type": message.kind.as_str(), "items": items })
        }
        AppInput::Command { name, text, by_handle } => {
            let mut data = json!({ "message_id": message.message_id, "command": name, "text": text, "args": {},
                "sender": sender, "group": group });
            if *by_handle {
                data["handle"] = runtime.handle.as_str().into();
            }
            data
        }
    }
}
