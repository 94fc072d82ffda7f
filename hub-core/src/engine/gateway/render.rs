//! Messages of the log as the network writes them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Program;
use crate::{
    context::Context,
    error::Result,
    id::MessageId,
    model::message::{Direction, QuotedMessage},
    network::{MessageItem, MessageKind, Quote, ilink::cipher::sealed_len, items, server::stamp},
    store::{log::LogRow, media::MediaRow},
};

/// Data that the messages of a response refer to.
pub(super) struct Rendering<'a> {
    pub ctx: &'a Context,
    pub program: &'a Program,
    /// Messages that are quoted, by their ids on the network.
    pub quoted: &'a HashMap<String, QuotedMessage>,
    /// Files of messages, those of quoted messages included.
    pub files: &'a HashMap<MessageId, Vec<MediaRow>>,
}

impl Rendering<'_> {
    /// A message of a person, with its text as the channel sees it.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for a corrupt row.
    pub(super) fn message(&self, row: &LogRow, quote: Option<&Quote>) -> Result<Value> {
        let message = &row.message;
        let parts = items::parsed(&message.items, &message.content)?;
        let id = row.network_id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let id = id.unwrap_or_else(|| number_of(message.message_id));
        let at = message.sent_at.as_millis();
        let files = self.files.get(&message.message_id).map_or(&[][..], Vec::as_slice);
        let mut text = row.channel_content.as_deref();
        let mut items: Vec<Map<String, Value>> = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let file = files.iter().find(|file| usize::try_from(file.item) == Ok(index));
            let mut item = match (part.kind, file) {
                // The text of the channel is that of all parts, without the mention of its handle.
                (MessageKind::Text, _) if row.channel_content.is_some() => match text.take() {
                    Some(text) => text_item(text),
                    None => continue,
                },
                (MessageKind::Text, _) => text_item(part.text.as_deref().unwrap_or_default()),
                (_, Some(file)) if part.is_file() => self.file_item(part, file),
                _ => continue,
            };
            for (name, value) in [
                ("create_time_ms", json!(at)),
                ("update_time_ms", json!(at)),
                ("is_completed", json!(true)),
                ("msg_id", json!(id.to_string())),
            ] {
                item.insert(name.to_owned(), value);
            }
            items.push(item);
        }
        if let (Some(first), Some(quote)) = (items.first_mut(), quote) {
            first.insert("ref_msg".to_owned(), self.reference(quote));
        }
        let (key, from, random) = (&self.program.key, &message.from_user_id, &self.ctx.random);
        let context = stamp::context_token(key, &self.program.wx_id, from, random);
        Ok(json!({
            "seq": row.seq,
            "message_id": id,
            "from_user_id": from,
            "to_user_id": self.program.wx_id,
            "client_id": message.message_id.to_string(),
            "session_id": message.session_id,
            "group_id": message.group_id,
            "create_time_ms": at,
            "update_time_ms": at,
            "delete_time_ms": 0,
            "message_type": 1,
            "message_state": 2,
            "context_token": context,
            "item_list": items,
        }))
    }

    fn file_item(&self, part: &MessageItem, file: &MediaRow) -> Map<String, Value> {
        let (param, key) = self.program.file_reference(file.id);
        let mut url = self.ctx.config.address("/c2c/download");
        url.query_pairs_mut().append_pair("encrypted_query_param", &param);
        let media = json!({
            "encrypt_query_param": param, "aes_key": key.reference(), "encrypt_type": 1, "full_url": url.as_str(),
        });
        let size = u64::try_from(file.size).unwrap_or(0);
        let sealed = sealed_len(usize::try_from(file.size).unwrap_or(0));
        let content = match part.kind {
            MessageKind::Image => {
                json!({"media": media, "aeskey": key.hex(), "mid_size": sealed, "hd_size": sealed})
            }
            MessageKind::Voice => json!({
                "media": media, "encode_type": 6, "bits_per_sample": 16, "sample_rate": 24_000,
                "playtime": part.duration_ms.unwrap_or(0), "size": size,
                "text": part.text.as_deref().unwrap_or_default(),
            }),
            MessageKind::Video => json!({
                "media": media, "video_size": sealed, "play_length": part.duration_ms.unwrap_or(0),
                "video_md5": file.md5,
            }),
            MessageKind::File | MessageKind::Text | MessageKind::Other => {
                let content = json!({
                    "media": media, "file_name": file.file_name, "md5": file.md5, "len": size.to_string(),
                });
                return item(MessageKind::File, content);
            }
        };
        item(part.kind, content)
    }

    /// The reference to a quoted message. The program knows a message of the bot by the id that `sendmessage` returned.
    fn reference(&self, quote: &Quote) -> Value {
        let found = quote.network_id.as_ref().and_then(|id| self.quoted.get(id));
        let id = match found {
            Some(sent) if sent.direction == Direction::Outbound => {
                Some(number_of(sent.message_id).to_string())
            }
            _ => quote.network_id.clone(),
        };
        let mut item = self.quoted_item(quote, found);
        if let Some(id) = &id {
            item.insert("msg_id".to_owned(), json!(id));
        }
        let mut reference = Map::from_iter([("message_item".to_owned(), Value::Object(item))]);
        for (name, value) in [
            ("svr_id", id.map(Value::String)),
            ("title", quote.title.as_ref().map(|title| json!(title))),
            ("partial_text", quote.partial_text.as_ref().map(|part| json!(part))),
        ] {
            reference.extend(value.map(|value| (name.to_owned(), value)));
        }
        Value::Object(reference)
    }

    /// The quoted item: with its file if the hub has the message, otherwise what the quote says about it.
    fn quoted_item(&self, quote: &Quote, found: Option<&QuotedMessage>) -> Map<String, Value> {
        let text = quote.text.as_deref();
        let files = found.filter(|message| message.kind != MessageKind::Text);
        if let Some(file) = files.and_then(|message| self.files.get(&message.message_id)?.first()) {
            let part = MessageItem { kind: file.kind, ..MessageItem::text(text.unwrap_or_default()) };
            return self.file_item(&part, file);
        }
        match quote.kind {
            None | Some(MessageKind::Text | MessageKind::Other) => text.map(text_item).unwrap_or_default(),
            Some(kind) => {
                let known = [("text", text), ("file_name", quote.file_name.as_deref())];
                let known =
                    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
                item(kind, Value::Object(known.collect()))
            }
        }
    }
}

/// An item with its content.
fn item(kind: MessageKind, content: Value) -> Map<String, Value> {
    let (number, name) = match kind {
        MessageKind::Text | MessageKind::Other => (1, "text_item"),
        MessageKind::Image => (2, "image_item"),
        MessageKind::Voice => (3, "voice_item"),
        MessageKind::File => (4, "file_item"),
        MessageKind::Video => (5, "video_item"),
    };
    Map::from_iter([("type".to_owned(), json!(number)), (name.to_owned(), content)])
}

fn text_item(text: &str) -> Map<String, Value> {
    item(MessageKind::Text, json!({ "text": text }))
}

/// The id of a message for programs of the network, whose ids are numbers above 2^53.
pub(super) fn number_of(id: MessageId) -> u64 {
    let hash: [u8; 32] = Sha256::digest(id.as_u128().to_be_bytes()).into();
    let start = hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    start >> 2 | 1 << 62
}
