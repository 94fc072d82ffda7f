//! Reading one message (`docs/ilink.md#messages`). Nothing here fails: what cannot be read becomes a quarantined
//! message with its raw form, so that the rest of its batch arrives.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    field::{self, Fields},
    media,
};
use crate::{
    network::{InboundMedia, InboundMessage, MessageClass, MessageItem, MessageKind, Quote, Selection},
    secret::Secret,
    time::Timestamp,
};

/// Longest dedupe key; longer ones are hashed, since ids of the network are not bounded.
const MAX_KEY: usize = 200;
/// Most files of one message; the network puts one into a message.
const MAX_MEDIA: usize = 16;
/// `message_type` of people's messages.
const FROM_USER: i64 = 1;
/// `message_state` of a message that is still being written.
const GENERATING: i64 = 1;

/// A message that was read, and whether its dedupe key is its content: equal messages without any id are
/// distinguished by their batch.
pub(super) struct Parsed {
    pub(super) message: InboundMessage,
    pub(super) keyed_by_content: bool,
}

/// Reads one message; `now` replaces a missing time.
pub(super) fn parse(raw: &str, now: Timestamp) -> Parsed {
    let fields = Fields::parse(raw);
    let readable = fields.is_some();
    let fields = fields.unwrap_or_default();
    let items = read_items(&fields);
    let from_user_id = fields.id("from_user_id").unwrap_or_default();
    let class = match &items {
        Some(_) if readable && !from_user_id.is_empty() => class(&fields),
        _ => MessageClass::Quarantined,
    };
    let wire_items = items.unwrap_or_default();
    let id = identity(&fields, &wire_items, &from_user_id);
    let dedupe_key = match &id {
        Some(id) => id.clone(),
        None if readable => content_key(&fields, &wire_items, &from_user_id),
        None => format!("hash:{}", sha256(raw)),
    };
    let items: Vec<MessageItem> = wire_items.iter().map(read_item).collect();
    let media = wire_items.iter().enumerate().filter_map(|(index, item)| read_media(index, item));
    let sent_at = Some(fields.integer("create_time_ms")).filter(|at| *at > 0);
    let kind = kind(&items);
    let is_known = |kind| kind != MessageKind::Other;
    let is_whole =
        class != MessageClass::Quarantined && is_known(kind) && items.iter().all(|item| is_known(item.kind));
    let message = InboundMessage {
        dedupe_key: bounded(&with_class(dedupe_key, class)),
        network_id: fields.id("message_id").or_else(|| first_item_id(&wire_items)),
        class,
        from_user_id,
        to_user_id: fields.id("to_user_id").unwrap_or_default(),
        user_name: String::new(),
        session_id: fields.text("session_id"),
        group_id: fields.text("group_id"),
        kind,
        content: content(&items),
        media: media.take(MAX_MEDIA).collect(),
        quote: wire_items.iter().find_map(|item| read_quote(&item["ref_msg"])),
        items,
        context_token: Some(fields.text("context_token")).filter(|token| !token.is_empty()).map(Secret::new),
        sent_at: sent_at.map_or(now, Timestamp::from_millis),
        raw: Secret::new(if is_whole { "" } else { raw }),
    };
    Parsed { message, keyed_by_content: id.is_none() }
}

/// The items; `None` when they are there and cannot be read.
fn read_items(fields: &Fields<'_>) -> Option<Vec<Value>> {
    fields.raw("item_list").map_or(Some(Vec::new()), |raw| serde_json::from_str(raw).ok())
}

fn class(fields: &Fields<'_>) -> MessageClass {
    if fields.integer("delete_time_ms") > 0 {
        MessageClass::Recalled
    } else if fields.integer("message_type") != FROM_USER {
        MessageClass::Bot
    } else if fields.integer("message_state") == GENERATING {
        MessageClass::Unfinished
    } else {
        MessageClass::User
    }
}

/// The first name the message has.
fn identity(fields: &Fields<'_>, items: &[Value], sender: &str) -> Option<String> {
    let own = fields.id("message_id").map(|id| InboundMessage::key_of(&id));
    own.or_else(|| first_item_id(items).map(|id| format!("item:{id}")))
        .or_else(|| fields.id("client_id").map(|id| format!("client:{sender}:{id}")))
        .or_else(|| fields.id("seq").map(|seq| format!("seq:{sender}:{seq}")))
}

fn first_item_id(items: &[Value]) -> Option<String> {
    items.iter().find_map(|item| field::id(&item["msg_id"]))
}

fn content_key(fields: &Fields<'_>, items: &[Value], sender: &str) -> String {
    let mut text = format!("{sender}\n{}\n", fields.integer("create_time_ms"));
    for item in items {
        write_canonical(item, &mut text);
    }
    format!("hash:{}", sha256(&text))
}

/// Writes JSON with sorted keys, so that equal content gives equal text.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(values) => {
            out.push('[');
            for value in values {
                write_canonical(value, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in entries {
                let _ = write!(out, "{name:?}:");
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// A message and its taking back share an id, and so do a draft and the message it becomes; they must not
/// hide one another.
fn with_class(key: String, class: MessageClass) -> String {
    match class {
        MessageClass::Recalled => key + "~recalled",
        MessageClass::Unfinished => key + "~unfinished",
        _ => key,
    }
}

fn bounded(key: &str) -> String {
    if key.len() > MAX_KEY { format!("long:{}", sha256(key)) } else { key.to_owned() }
}

fn sha256(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

/// The kind of an item, and the object that holds its content. A type that is unknown, or whose object is missing, is
/// [`MessageKind::Other`].
fn kind_and_body(item: &Value) -> (MessageKind, Option<&Map<String, Value>>) {
    let (kind, name) = match field::integer(&item["type"]) {
        Some(1) => (MessageKind::Text, "text_item"),
        Some(2) => (MessageKind::Image, "image_item"),
        Some(3) => (MessageKind::Voice, "voice_item"),
        Some(4) => (MessageKind::File, "file_item"),
        Some(5) => (MessageKind::Video, "video_item"),
        _ => return (MessageKind::Other, None),
    };
    match item[name].as_object() {
        Some(body) => (kind, Some(body)),
        None => (MessageKind::Other, None),
    }
}

fn read_item(item: &Value) -> MessageItem {
    let (kind, body) = kind_and_body(item);
    let get = |name: &str| body.and_then(|body| body.get(name)).unwrap_or(&Value::Null);
    let (size, duration_ms) = match kind {
        MessageKind::Image => {
            (field::amount(get("mid_size")).or_else(|| field::amount(get("hd_size"))), None)
        }
        MessageKind::Voice => (field::amount(get("size")), field::amount(get("playtime"))),
        MessageKind::File => (field::amount(get("len")), None),
        MessageKind::Video => (field::amount(get("video_size")), field::amount(get("play_length"))),
        MessageKind::Text | MessageKind::Other => (None, None),
    };
    MessageItem {
        kind,
        text: field::text(get("text")),
        file_name: field::text(get("file_name")),
        size,
        duration_ms,
    }
}

/// The file of an item.
fn read_media(index: usize, item: &Value) -> Option<InboundMedia> {
    match kind_and_body(item) {
        (MessageKind::Text | MessageKind::Other, _) | (_, None) => None,
        (kind, Some(body)) => media::read(index, kind, read_item(item).size, body),
    }
}

/// The kind of the first part that is known.
fn kind(items: &[MessageItem]) -> MessageKind {
    items.iter().map(|item| item.kind).find(|kind| *kind != MessageKind::Other).unwrap_or(MessageKind::Other)
}

fn content(items: &[MessageItem]) -> String {
    let texts = |wanted: fn(MessageKind) -> bool| {
        let parts = items.iter().filter(|item| wanted(item.kind)).filter_map(|item| item.text.as_deref());
        parts.collect::<Vec<_>>().join("\n")
    };
    let file_name = || items.iter().find_map(|item| item.file_name.clone()).unwrap_or_default();
    let choices = [texts(|kind| kind == MessageKind::Text), texts(|kind| kind == MessageKind::Voice)];
    choices.into_iter().find(|text| !text.is_empty()).unwrap_or_else(file_name)
}

/// Reads the `ref_msg` of an item.
fn read_quote(reference: &Value) -> Option<Quote> {
    if !reference.is_object() {
        return None;
    }
    let part = read_item(&reference["message_item"]);
    Some(Quote {
        message_id: None,
        network_id: field::quoted_id(reference),
        kind: Some(part.kind).filter(|kind| *kind != MessageKind::Other),
        text: part.text,
        partial_text: read_selection(&reference["partial_text"]),
        title: field::text(&reference["title"]),
        file_name: part.file_name,
    })
}

fn read_selection(partial: &Value) -> Option<Selection> {
    let index = |name: &str| field::amount(&partial[name]).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    Some(Selection {
        start: field::text(&partial["start"])?,
        end: field::text(&partial["end"])?,
        start_index: index("startindex"),
        end_index: index("endindex"),
        md5: field::text(&partial["quotemd5"]),
    })
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
