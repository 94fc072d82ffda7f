//! Files that people send to bots: stored on the CDN as phones do it, encrypted, and put into items
//! (`docs/ilink.md#items`).

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};
use url::form_urlencoded::byte_serialize;

use super::{
    cdn::Permit,
    world::{Env, World},
};
use crate::{
    error::{Error, Result},
    network::{
        ilink::cipher::{Key, sealed_len},
        server::text_of,
    },
};

const DOWNLOAD: &str = "/c2c/download";

/// Completes the URLs of files in JSON with the base under which the client reached the simulator.
pub(super) fn complete_urls(json: &str, base: &str) -> String {
    // Within a text of JSON the quotes would be escaped.
    let (short, begin) = (format!(r#""full_url":"{DOWNLOAD}?"#), r#""full_url":"#);
    json.replace(&short, &format!(r#"{begin}"{base}{DOWNLOAD}?"#))
}

/// Largest file that is taken, in bytes.
const MAX_FILE: usize = 200 << 20;

/// A file on the CDN that no message holds yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The CDN reference: `encrypt_query_param`.
    pub param: String,
    /// The key, as 32 hex digits.
    pub key: String,
    /// Bytes of the file.
    pub len: usize,
    /// MD5 of the file, as hex.
    pub md5: String,
}

impl StoredFile {
    /// The field `media` of an item, with the key in form B. A poll is answered with the whole URL.
    pub fn reference(&self) -> Value {
        let key = BASE64.encode(self.key.as_bytes());
        let param: String = byte_serialize(self.param.as_bytes()).collect();
        json!({
            "encrypt_query_param": self.param, "aes_key": key, "encrypt_type": 1,
            "full_url": format!("{DOWNLOAD}?encrypted_query_param={param}"),
        })
    }

    /// An image, with its key in both places.
    pub fn image(&self) -> Value {
        let size = sealed_len(self.len);
        json!({"type": 2, "image_item": {
            "media": self.reference(), "aeskey": self.key, "mid_size": size, "hd_size": size}})
    }

    /// A voice note of so many milliseconds, with the network's transcript.
    pub fn voice(&self, playtime: u64, transcript: &str) -> Value {
        json!({"type": 3, "voice_item": {
            "media": self.reference(), "encode_type": 4, "bits_per_sample": 16, "sample_rate": 16_000,
            "playtime": playtime, "size": self.len, "text": transcript}})
    }

    /// A file with a name.
    pub fn file(&self, name: &str) -> Value {
        json!({"type": 4, "file_item": {
            "media": self.reference(), "file_name": name, "md5": self.md5, "len": self.len.to_string()}})
    }

    /// A video.
    pub fn video(&self) -> Value {
        json!({"type": 5, "video_item": {
            "media": self.reference(), "video_size": sealed_len(self.len), "play_length": 18_320,
            "video_md5": self.md5}})
    }
}

impl World {
    /// Encrypts a file under a fresh key and puts it on the CDN, for a bot.
    ///
    /// # Errors
    /// `NOT_FOUND` for the bot, `INVALID_PARAMS` for a file that is too large.
    pub(super) fn store_file(&mut self, env: &Env<'_>, wx_id: &str, bytes: &[u8]) -> Result<StoredFile> {
        let owner = self.account(wx_id)?.owner.clone();
        if bytes.len() > MAX_FILE {
            return Err(Error::invalid("bytes", "must be at most 200 MiB"));
        }
        let (key, md5) = (Key::fresh(env.random), HEXLOWER.encode(&Md5::digest(bytes)));
        let sealed = Bytes::from(key.encrypt(bytes));
        let permit = Permit::of_person(wx_id, &owner, bytes.len(), sealed.len(), &md5);
        let param = self.cdn.store(env, permit, sealed);
        Ok(StoredFile { param, key: key.hex(), len: bytes.len(), md5 })
    }

    /// Items as they go on the wire: one with the field `bytes` (base64) becomes what a phone would send for that
    /// file, by its `type`.
    ///
    /// # Errors
    /// As [`store_file`](Self::store_file), and `INVALID_PARAMS` for what is no base64 or has no file.
    pub(super) fn with_files(&mut self, env: &Env<'_>, wx_id: &str, items: &mut [Value]) -> Result<()> {
        for item in items {
            let Some(given) = item.get("bytes").and_then(Value::as_str) else { continue };
            let wrong = |reason: &'static str| Error::invalid("items.bytes", reason);
            let bytes = BASE64.decode(given.as_bytes()).map_err(|_| wrong("must be base64"))?;
            let file = self.store_file(env, wx_id, &bytes)?;
            let none = Map::new();
            let fields = item.as_object().unwrap_or(&none);
            let name = Some(text_of(fields, "file_name")).filter(|name| !name.is_empty());
            *item = match fields.get("type").and_then(Value::as_u64) {
                Some(2) => file.image(),
                Some(3) => file.voice(2_380, text_of(fields, "text")),
                Some(4) => file.file(name.unwrap_or("file")),
                Some(5) => file.video(),
                _ => return Err(wrong("only items of type 2 to 5 have a file")),
            };
        }
        Ok(())
    }
}
