//! Messages of the log as the network writes them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Program;
use crate::{
    context::Context,
    error::Result,
    id::MessageId,
    network::{MessageItem, MessageKind, Quote, ilink::cipher::sealed_len, items, server::stamp},
    store::{log::LogRow, media::MediaRow},
};

/// What the messages of a response refer to.
pub(super) struct Rendering<'a> {
    pub ctx: &'a Context,
    pub program: &'a Program,
    /// Messages that the bot sent, by their ids on the network.
    pub sent: &'a HashMap<String, MessageId>,
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
        let (kind, name, content) = match part.kind {
            MessageKind::Image => {
                let image =
                    json!({"media": media, "aeskey": key.hex(), "mid_size": sealed, "hd_size": sealed});
                (2, "image_item", image)
            }
            MessageKind::Voice => {
                let text = part.text.as_deref().unwrap_or_default();
                let voice = json!({
                    "media": media, "encode_type": 6, "bits_per_sample": 16, "sample_rate": 24_000,
                    "playtime": part.duration_ms.unwrap_or(0), "size": size, "text": text,
                });
                (3, "voice_item", voice)
            }
            MessageKind::Video => {
                let length = part.duration_ms.unwrap_or(0);
                let video = json!({
                    "media": media, "video_size": sealed, "play_length": length, "video_md5": file.md5,
                });
                (5, "video_item", video)
            }
            MessageKind::File | MessageKind::Text | MessageKind::Other => {
                let file = json!({
                    "media": media, "file_name": file.file_name, "md5": file.md5, "len": size.to_string(),
                });
                (4, "file_item", file)
            }
        };
        Map::from_iter([("type".to_owned(), json!(kind)), (name.to_owned(), content)])
    }

    /// What is quoted: a message of the bot under the id that `sendmessage` returned.
    fn reference(&self, quote: &Quote) -> Value {
        let id = quote.network_id.as_ref().map(|id| match self.sent.get(id) {
            Some(sent) => number_of(*sent).to_string(),
            None => id.clone(),
        });
        let mut item = Map::new();
        if let Some(text) = &quote.text {
            item = text_item(text);
        }
        if let Some(id) = &id {
            item.insert("msg_id".to_owned(), json!(id));
        }
        let mut reference = Map::from_iter([("message_item".to_owned(), Value::Object(item))]);
        reference.extend(id.map(|id| ("svr_id".to_owned(), json!(id))));
        Value::Object(reference)
    }
}

fn text_item(text: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(1)), ("text_item".to_owned(), json!({ "text": text }))])
}

/// The id of a message for programs of the network, whose ids are numbers above 2^53.
pub(super) fn number_of(id: MessageId) -> u64 {
    let hash: [u8; 32] = Sha256::digest(id.as_u128().to_be_bytes()).into();
    let start = hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    start >> 2 | 1 << 62
}
