//! The bodies of requests, and the rules about them that depend on nothing else.

use serde_json::{Map, Value, json};

use super::wire::{Call, Reply, text_of};
use crate::network::ilink::field;

/// Longest text of one item in bytes.
pub(crate) const MAX_TEXT: usize = 16_384;

/// The message of `sendmessage`.
pub(crate) struct SendRequest<'a> {
    /// The message as it was sent.
    pub msg: &'a Map<String, Value>,
    /// The receiver.
    pub to: &'a str,
    /// The sender's own id; empty if it sent none.
    pub client_id: &'a str,
    /// The permission to answer; empty if it sent none.
    pub context_token: &'a str,
    /// The one item.
    pub item: Item<'a>,
    /// The id of the message that the item quotes.
    pub quoted: Option<String>,
}

/// The item of a send.
pub(crate) enum Item<'a> {
    Text(&'a str),
    /// An image, a file or a video.
    File(FileItem<'a>),
    /// A voice message, which no phone shows.
    Voice,
    /// Start or result of a tool call, which no phone shows.
    ToolCall,
}

/// An item with a file.
pub(crate) struct FileItem<'a> {
    pub kind: FileItemKind,
    /// `image_item`, `file_item` or `video_item`; `None` if it is missing.
    pub part: Option<&'a Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileItemKind {
    Image,
    File,
    Video,
}

impl FileItemKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::File => "file",
            Self::Video => "video",
        }
    }

    /// The number of `media_type`, which is not the number of the item.
    pub(crate) const fn media_type(self) -> u64 {
        match self {
            Self::Image => 1,
            Self::Video => 2,
            Self::File => 3,
        }
    }

    const fn part(self) -> &'static str {
        match self {
            Self::Image => "image_item",
            Self::File => "file_item",
            Self::Video => "video_item",
        }
    }
}

impl FileItem<'_> {
    /// A field of the CDN reference; empty if it is missing.
    pub(crate) fn reference(&self, name: &str) -> &str {
        let media = self.part.and_then(|part| part.get("media")).and_then(Value::as_object);
        media.map_or("", |media| text_of(media, name))
    }

    /// A text of the item; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.part.map_or("", |part| text_of(part, name))
    }
}

impl<'a> SendRequest<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// -3 for what is not a message of a bot with one item; -2 without an item, and for an empty or too long text.
    pub(crate) fn read(json: &'a Map<String, Value>) -> Result<Self, Reply> {
        let invalid = || Reply::refuse(-3, "invalid arguments");
        let msg = json.get("msg").and_then(Value::as_object).ok_or_else(invalid)?;
        if msg.get("message_type").and_then(Value::as_u64) != Some(2) {
            return Err(invalid());
        }
        let item = match msg.get("item_list").and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) => return Err(Reply::json(&json!({"ret": -2}))),
            Some([Value::Object(item)]) => item,
            Some(_) => return Err(invalid()),
        };
        let file = |kind: FileItemKind| {
            Item::File(FileItem { kind, part: item.get(kind.part()).and_then(Value::as_object) })
        };
        let quoted = item.get("ref_msg").and_then(field::quoted_id);
        let item = match item.get("type").and_then(Value::as_u64) {
            Some(1) => {
                let text = item.get("text_item").and_then(|text| text.get("text")).and_then(Value::as_str);
                let text = text.unwrap_or_default();
                if text.is_empty() || text.len() > MAX_TEXT {
                    return Err(Reply::json(&json!({"ret": -2})));
                }
                Item::Text(text)
            }
            Some(2) => file(FileItemKind::Image),
            Some(3) => Item::Voice,
            Some(4) => file(FileItemKind::File),
            Some(5) => file(FileItemKind::Video),
            Some(11 | 12) => Item::ToolCall,
            _ => return Err(invalid()),
        };
        let text = |name| text_of(msg, name);
        let (to, client_id, context_token) = (text("to_user_id"), text("client_id"), text("context_token"));
        Ok(Self { msg, to, client_id, context_token, item, quoted })
    }
}

/// The person of `getconfig` and `sendtyping`.
pub(super) fn user_of(call: &Call) -> Result<&str, Reply> {
    let user_id = call.text("ilink_user_id");
    if user_id.is_empty() { Err(Reply::refuse(-2, "ilink_user_id required")) } else { Ok(user_id) }
}

/// Whether the typing indicator is to be shown.
pub(super) fn typing_status(call: &Call) -> Result<bool, Reply> {
    match call.json.get("status").and_then(Value::as_u64) {
        Some(1) => Ok(true),
        Some(2) => Ok(false),
        _ => Err(Reply::refuse(-2, "invalid status")),
    }
}

/// The fields of `getuploadurl`, by type.
pub(crate) struct UploadRequest {
    /// The receiver.
    pub to_user_id: String,
    /// 1 image, 2 video, 3 file, 4 voice.
    pub media_type: u64,
    /// Plaintext bytes.
    pub raw_size: u64,
    /// Ciphertext bytes.
    pub size: u64,
    /// MD5 of the plaintext, as lower-case hex.
    pub raw_md5: String,
    /// The key, as 32 hex digits.
    pub aes_key: String,
    /// The client's name for the upload.
    pub filekey: String,
    /// The thumbnail that is uploaded too.
    pub thumb: Option<Thumbnail>,
}

/// A thumbnail to be uploaded.
pub(crate) struct Thumbnail {
    /// Plaintext bytes.
    pub raw_size: u64,
    /// Ciphertext bytes.
    pub size: u64,
    /// MD5 of the plaintext, as lower-case hex.
    pub raw_md5: String,
}

impl UploadRequest {
    /// `None` without `filekey` or `no_need_thumb`. Null is absent: published clients write it for what they leave
    /// out.
    ///
    /// # Errors
    /// -2 when a field has the wrong type or form, or one that is always needed is missing.
    pub(crate) fn read(json: &Map<String, Value>) -> Result<Option<Self>, Reply> {
        let read = Self::read_fields(json).ok_or_else(|| Reply::refuse(-2, "invalid arguments"))?;
        let (upload, is_complete) = read;
        Ok(is_complete.then_some(upload))
    }

    fn read_fields(json: &Map<String, Value>) -> Option<(Self, bool)> {
        let number = |name| json.get(name).and_then(Value::as_u64);
        let hex = |name| Some(text_of(json, name)).filter(|text| is_hex32(text)).map(str::to_ascii_lowercase);
        let filekey = match json.get("filekey") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) if !key.is_empty() => Some(key.clone()),
            Some(_) => return None,
        };
        let no_need_thumb = match json.get("no_need_thumb") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(no)) => Some(*no),
            Some(_) => return None,
        };
        let thumb = match no_need_thumb {
            Some(false) => Some(Thumbnail {
                raw_size: number("thumb_rawsize")?,
                size: number("thumb_filesize")?,
                raw_md5: hex("thumb_rawfilemd5")?,
            }),
            _ => None,
        };
        let media_type = number("media_type").filter(|kind| (1..=4).contains(kind))?;
        let to_user_id = json.get("to_user_id")?.as_str()?.to_owned();
        let (raw_size, size) = (number("rawsize")?, number("filesize")?);
        let (raw_md5, aes_key) = (hex("rawfilemd5")?, hex("aeskey")?);
        let is_complete = filekey.is_some() && no_need_thumb.is_some();
        let filekey = filekey.unwrap_or_default();
        Some((Self { to_user_id, media_type, raw_size, size, raw_md5, aes_key, filekey, thumb }, is_complete))
    }
}

fn is_hex32(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
