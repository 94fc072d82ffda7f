//! Files through the network's CDN (`docs/ilink.md#files`): fetched and decrypted, encrypted and uploaded. URLs,
//! parameters and keys are secrets and stay out of every message.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, StatusCode};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::{Url, form_urlencoded::byte_serialize};

use super::{
    cipher::{Key, sealed_len},
    field,
    hosts::{self, Hosts},
    reply::Reply,
    transport::Transport,
};
use crate::{
    egress::{Answer, EgressError, EgressFault},
    file_type::looks_like_image,
    network::{FetchedMedia, InboundMedia, MediaError, MediaFile, MessageKind, UploadedMedia},
    secret::Secret,
};

/// Uploads that are tried before giving up for now.
pub(super) const UPLOADS: u32 = 3;
/// Pause between two of them.
pub(super) const UPLOAD_PAUSE: Duration = Duration::from_secs(2);
/// Longest name and MD5 that are kept of a file.
const MAX_NAME: usize = 255;
/// Largest answer to an upload; its body is empty.
const MAX_UPLOAD_ANSWER: usize = 64 * 1024;

/// Reference to a file: its place on the CDN, its keys, and the item's data about the bytes.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Reference {
    kind: String,
    param: String,
    full_url: String,
    aeskey: String,
    aes_key: String,
    md5: String,
    len: Option<u64>,
}

/// The file of an item, if it has one.
pub(super) fn read(
    index: usize,
    kind: MessageKind,
    size: Option<u64>,
    body: &Map<String, Value>,
) -> Option<InboundMedia> {
    let get = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let text = |value: &Value| field::text(value).unwrap_or_default();
    let media = get("media").as_object().map(|_| get("media"))?;
    let md5 = match kind {
        MessageKind::File => text(get("md5")),
        MessageKind::Video => text(get("video_md5")),
        _ => String::new(),
    };
    let md5 = Some(md5.trim().to_ascii_lowercase()).filter(|md5| is_md5(md5));
    let reference = Reference {
        kind: kind.as_str().to_owned(),
        param: text(&media["encrypt_query_param"]),
        full_url: text(&media["full_url"]),
        aeskey: text(get("aeskey")),
        aes_key: text(&media["aes_key"]),
        md5: md5.clone().unwrap_or_default(),
        len: (kind == MessageKind::File).then(|| field::amount(get("len"))).flatten(),
    };
    if reference.param.is_empty() && reference.full_url.is_empty() {
        return None;
    }
    let mut file_name = text(get("file_name"));
    file_name.truncate(file_name.floor_char_boundary(MAX_NAME));
    Some(InboundMedia { item: index, kind, file_name, size, md5, reference: reference.seal() })
}

fn is_md5(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Reference {
    fn seal(&self) -> Secret {
        Secret::new(serde_json::to_string(self).expect("plain fields always serialise"))
    }

    fn open(notes: &Secret) -> Option<Self> {
        serde_json::from_str(notes.expose()).ok()
    }

    /// The key of an image is next to the reference, and is correct even if the other one is not.
    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::from_iter(Key::from_hex(&self.aeskey));
        keys.extend(Key::from_reference(&self.aes_key).filter(|key| !keys.contains(key)));
        keys
    }

    fn has_key(&self) -> bool {
        !self.aeskey.is_empty() || !self.aes_key.is_empty()
    }

    /// Returns the URL of the file: the full URL if it may be called, otherwise the one of the parameter.
    fn url(&self, hosts: &Hosts, cdn: &Url) -> Option<Url> {
        let by_param = || {
            let param: String = byte_serialize(self.param.as_bytes()).collect();
            let mut url = hosts::join(cdn, "download");
            url.set_query(Some(&format!("encrypted_query_param={param}")));
            url
        };
        hosts.check_media(&self.full_url).or_else(|| (!self.param.is_empty()).then(by_param))
    }

    /// Whether these can be the sender's bytes.
    fn fits(&self, plain: &[u8]) -> bool {
        self.len.is_none_or(|len| len == plain.len() as u64)
            && (self.md5.is_empty() || self.md5 == md5_hex(plain))
    }
}

fn md5_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Md5::digest(bytes))
}

/// Fetches and decrypts a file.
pub(super) async fn fetch(
    transport: &Transport,
    hosts: &Hosts,
    notes: &Secret,
    earlier: &[Secret],
    limit: usize,
) -> Result<FetchedMedia, MediaError> {
    let unavailable = |reason: &str| MediaError::Unavailable(reason.to_owned());
    let reference = Reference::open(notes).ok_or_else(|| unavailable("the reference cannot be read"))?;
    if reference.len.is_some_and(|len| len > limit as u64) {
        return Err(MediaError::TooLarge(limit));
    }
    let url = reference.url(hosts, &transport.config().cdn_base_url);
    let url = url.ok_or_else(|| unavailable("the reference names no host that may be called"))?;
    let deadline = transport.config().timeouts.cdn;
    let max = sealed_len(limit);
    let answer = transport.cdn(Method::GET, url, HeaderMap::new(), Bytes::new(), deadline, max).await;
    let sealed = downloaded(answer, limit)?;
    let earlier: Vec<Reference> = earlier.iter().filter_map(Reference::open).collect();
    open(reference, earlier, sealed, limit).await
}

fn downloaded(answer: Result<Answer, EgressError>, limit: usize) -> Result<Bytes, MediaError> {
    let answer = answer.map_err(|error| match error.fault {
        EgressFault::TooLarge => MediaError::TooLarge(limit),
        EgressFault::BlockedAddress => MediaError::Unavailable(format!("the CDN: {}", error.message)),
        fault => MediaError::Later(format!("no response from the CDN ({})", fault.as_str())),
    })?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(MediaError::Later(format!("the CDN answered HTTP {}", status.as_u16())))
        }
        status => Err(MediaError::Unavailable(format!("the CDN answered HTTP {}", status.as_u16()))),
    }
}

/// Decrypts, off the async threads: the largest files take a tenth of a second.
async fn open(
    mut reference: Reference,
    earlier: Vec<Reference>,
    sealed: Bytes,
    limit: usize,
) -> Result<FetchedMedia, MediaError> {
    let opened = tokio::task::spawn_blocking(move || {
        if !reference.has_key() {
            let is_plain = reference.kind == MessageKind::Image.as_str() && looks_like_image(&sealed);
            return is_plain.then(|| (sealed, reference.seal()));
        }
        // The CDN keeps the first blob of a file that is sent again, under the first key.
        let keys = reference.keys().into_iter().chain(earlier.iter().flat_map(Reference::keys));
        let opens =
            |key: Key| key.decrypt(&sealed).filter(|plain| reference.fits(plain)).map(|plain| (key, plain));
        let (key, plain) = keys.take(MAX_KEYS).find_map(opens)?;
        (reference.aeskey, reference.aes_key) = (key.hex(), key.reference());
        Some((Bytes::from(plain), reference.seal()))
    });
    let opened = opened.await.map_err(|_| MediaError::Later("decrypting was interrupted".to_owned()))?;
    let (bytes, reference) = opened.ok_or_else(|| MediaError::Unavailable("no key opens it".to_owned()))?;
    if bytes.len() > limit {
        return Err(MediaError::TooLarge(limit));
    }
    Ok(FetchedMedia { bytes, reference })
}

/// Keys that are tried on one file.
const MAX_KEYS: usize = 8;

/// A file that is ready for the CDN.
pub(super) struct Upload {
    kind: MessageKind,
    file_name: String,
    plain_len: usize,
    plain_md5: String,
    key: Key,
    file_key: String,
    sealed: Bytes,
}

impl Upload {
    /// Encrypts a file under a fresh key.
    pub(super) async fn prepare(transport: &Transport, file: &MediaFile) -> Result<Self, MediaError> {
        let (key, file_key) =
            (Key::fresh(transport.random()), HEXLOWER.encode(&transport.random().bytes::<16>()));
        let bytes = file.bytes.clone();
        let sealed = tokio::task::spawn_blocking(move || (key.encrypt(&bytes), md5_hex(&bytes)));
        let (sealed, plain_md5) =
            sealed.await.map_err(|_| MediaError::Later("encrypting was interrupted".to_owned()))?;
        let kind = match file.kind {
            kind @ (MessageKind::Image | MessageKind::Video) => kind,
            _ => MessageKind::File,
        };
        let file_name = if file.file_name.is_empty() { "file".to_owned() } else { file.file_name.clone() };
        Ok(Self {
            kind,
            file_name,
            plain_len: file.bytes.len(),
            plain_md5,
            key,
            file_key,
            sealed: sealed.into(),
        })
    }

    /// The body of `getuploadurl`, without `base_info`.
    pub(super) fn request(&self, to_user_id: &str) -> Value {
        json!({
            "filekey": self.file_key,
            "media_type": match self.kind { MessageKind::Image => 1, MessageKind::Video => 2, _ => 3 },
            "to_user_id": to_user_id,
            "rawsize": self.plain_len,
            "rawfilemd5": self.plain_md5,
            "filesize": self.sealed.len(),
            "aeskey": self.key.hex(),
            "no_need_thumb": true,
        })
    }

    /// Returns the upload URL from the answer of `getuploadurl`: the full URL if there is one that may be called.
    pub(super) fn target(&self, hosts: &Hosts, cdn: &Url, permit: &Reply) -> Result<Url, MediaError> {
        let fields = permit.accept()?;
        if let Some(url) = hosts.check_media(&fields.text("upload_full_url")) {
            return Ok(url);
        }
        let param = fields.text("upload_param");
        if param.is_empty() {
            return Err(MediaError::Unavailable("the network gave no place for the file".to_owned()));
        }
        let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let mut url = hosts::join(cdn, "upload");
        url.set_query(Some(&format!(
            "encrypted_query_param={}&filekey={}",
            encode(&param),
            encode(&self.file_key)
        )));
        Ok(url)
    }

    /// The outgoing item: this shape and nothing else.
    fn item(&self, param: &str) -> UploadedMedia {
        let media =
            json!({ "encrypt_query_param": param, "aes_key": self.key.reference(), "encrypt_type": 1 });
        let sealed = self.sealed.len();
        let item = match self.kind {
            MessageKind::Image => json!({ "type": 2, "image_item": { "media": media, "mid_size": sealed } }),
            MessageKind::Video => {
                json!({ "type": 5, "video_item": { "media": media, "video_size": sealed } })
            }
            _ => json!({ "type": 4, "file_item": {
                "media": media, "file_name": self.file_name, "len": self.plain_len.to_string() } }),
        };
        UploadedMedia(Secret::new(item.to_string()))
    }
}

/// Uploads a file once. Returns the reference under which the file can be sent.
pub(super) async fn put(
    transport: &Transport,
    url: Url,
    upload: &Upload,
) -> Result<UploadedMedia, MediaError> {
    let body = upload.sealed.clone();
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/octet-stream"));
    let deadline = transport.config().timeouts.cdn;
    let answer = transport.cdn(Method::POST, url, headers, body, deadline, MAX_UPLOAD_ANSWER).await;
    let answer = answer.map_err(|error| {
        MediaError::Later(format!("the upload to the CDN failed ({})", error.fault.as_str()))
    })?;
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
    match answer.status {
        StatusCode::OK => header("x-encrypted-param")
            .filter(|param| !param.is_empty())
            .map(|param| upload.item(param))
            .ok_or_else(|| MediaError::Later("the CDN accepted the upload without a reference".to_owned())),
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
            let why = super::reply::printable(header("x-error-message").unwrap_or("no reason given"));
            Err(MediaError::Unavailable(format!(
                "the CDN refused the file: {why} (HTTP {})",
                status.as_u16()
            )))
        }
        status => Err(MediaError::Later(format!("the CDN answered HTTP {}", status.as_u16()))),
    }
}
