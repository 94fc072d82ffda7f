//! Media (`docs/ilink.md#files`): `getuploadurl`, the CDN, and whether the receiver of a media item can open it.
//!
//! Blobs are kept as they were uploaded; whether a key opens one is checked when it is sent.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use http::StatusCode;
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};
use url::form_urlencoded::byte_serialize;

use super::{
    config::UploadUrls,
    outbound::{Content, Outbound, OutboundMedia},
    violation::ViolationKind,
    world::{Env, World},
};
use crate::{
    network::{
        ilink::cipher::Key,
        server::{Answer, Call, FileItem, FileItemKind, Reply, UploadRequest},
    },
    time::Timestamp,
};

/// Permissions to upload, and what was uploaded.
#[derive(Default)]
pub(super) struct Cdn {
    permits: HashMap<String, Permit>,
    permit_order: VecDeque<String>,
    blobs: HashMap<String, Blob>,
    blob_order: VecDeque<String>,
    bytes: usize,
}

/// The parameters of `getuploadurl` for one upload.
#[derive(Clone)]
pub(super) struct Permit {
    wx_id: String,
    to_user_id: String,
    filekey: String,
    media_type: u64,
    raw_size: u64,
    size: u64,
    /// MD5 of the plaintext, as hex.
    raw_md5: String,
}

impl Permit {
    /// Creates the permit for the upload of a person, which is not announced.
    pub(super) fn of_person(wx_id: &str, owner: &str, raw_size: usize, size: usize, raw_md5: &str) -> Self {
        Self {
            wx_id: wx_id.to_owned(),
            to_user_id: owner.to_owned(),
            filekey: String::new(),
            media_type: 0,
            raw_size: raw_size as u64,
            size: size as u64,
            raw_md5: raw_md5.to_owned(),
        }
    }
}

struct Blob {
    permit: Permit,
    bytes: Bytes,
    at: Timestamp,
}

impl Cdn {
    fn permit(&mut self, env: &Env<'_>, permit: Permit) -> String {
        let param = new_param(env);
        if self.permit_order.len() >= env.config.caps.uploads {
            self.permit_order.pop_front().and_then(|oldest| self.permits.remove(&oldest));
        }
        self.permit_order.push_back(param.clone());
        self.permits.insert(param.clone(), permit);
        param
    }

    pub(super) fn store(&mut self, env: &Env<'_>, permit: Permit, bytes: Bytes) -> String {
        self.bytes += bytes.len();
        let param = new_param(env);
        self.blobs.insert(param.clone(), Blob { permit, bytes, at: env.now });
        self.blob_order.push_back(param.clone());
        while self.bytes > env.config.caps.media_bytes && self.blob_order.len() > 1 {
            let oldest = self.blob_order.pop_front().and_then(|oldest| self.blobs.remove(&oldest));
            self.bytes -= oldest.map_or(0, |blob| blob.bytes.len());
        }
        param
    }

    /// A blob whose reference still lives.
    fn find(&self, env: &Env<'_>, param: &str) -> Option<&Blob> {
        self.blobs.get(param).filter(|blob| env.now.since(blob.at) < env.config.cdn_life)
    }

    /// The account behind a CDN parameter, for the match of faults.
    pub(super) fn account_of(&self, param: &str) -> Option<(&str, &str)> {
        let permit = self.permits.get(param).or_else(|| self.blobs.get(param).map(|blob| &blob.permit))?;
        Some((&permit.wx_id, &permit.to_user_id))
    }
}

impl World {
    pub(super) fn get_upload_url(
        &mut self,
        env: &Env<'_>,
        wx_id: &str,
        call: &Call,
        request: &UploadRequest,
    ) -> Answer {
        if !self.accounts.get(wx_id).is_some_and(|account| account.knows(&request.to_user_id)) {
            return Err(Reply::refuse(-1, "unknown user"));
        }
        let filekey = &request.filekey;
        let permit = |raw_size, size, raw_md5: &str| Permit {
            wx_id: wx_id.to_owned(),
            to_user_id: request.to_user_id.clone(),
            filekey: filekey.clone(),
            media_type: request.media_type,
            raw_size,
            size,
            raw_md5: raw_md5.to_owned(),
        };
        let param = self.cdn.permit(env, permit(request.raw_size, request.size, &request.raw_md5));
        let mut answer = Map::from_iter([("ret".to_owned(), json!(0))]);
        if env.config.upload_urls != UploadUrls::Param {
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let (param, filekey) = (encode(&param), encode(filekey));
            let url = format!("{}/c2c/upload?encrypted_query_param={param}&filekey={filekey}", call.base);
            answer.insert("upload_full_url".to_owned(), json!(url));
        }
        if env.config.upload_urls != UploadUrls::Full {
            answer.insert("upload_param".to_owned(), json!(param));
        }
        if let Some(thumb) = &request.thumb {
            let param = self.cdn.permit(env, permit(thumb.raw_size, thumb.size, &thumb.raw_md5));
            answer.insert("thumb_upload_param".to_owned(), json!(param));
        }
        Ok(Reply::json(&Value::Object(answer)))
    }

    pub(super) fn cdn_upload(&mut self, env: &Env<'_>, call: &Call, param: &str, filekey: &str) -> Answer {
        let refused = |why| Reply::text(StatusCode::BAD_REQUEST, "").with_header("x-error-message", why);
        let permit = self.cdn.permits.get(param);
        let permit = permit.ok_or_else(|| refused("unknown upload parameter"))?.clone();
        if filekey != permit.filekey {
            return Err(refused("filekey does not fit"));
        }
        if u64::try_from(call.body.len()) != Ok(permit.size) {
            return Err(refused("length is not filesize"));
        }
        let param = self.cdn.store(env, permit, call.body.clone());
        Ok(Reply::bytes(Bytes::new()).with_header("x-encrypted-param", &param))
    }

    pub(super) fn cdn_download(&self, env: &Env<'_>, param: &str) -> Reply {
        self.cdn.find(env, param).map_or_else(
            || Reply::text(StatusCode::NOT_FOUND, "").with_header("x-error-message", "unknown parameter"),
            |blob| Reply::bytes(blob.bytes.clone()),
        )
    }

    /// Reads a media item of a send. Media that the receiver cannot open is accepted and marked, as in reality; the
    /// strict switch refuses it with -2.
    pub(super) fn read_media(
        &mut self,
        env: &Env<'_>,
        wx_id: &str,
        to: &str,
        item: &FileItem<'_>,
    ) -> Result<Content, Reply> {
        let param = item.reference("encrypt_query_param");
        let problem = match self.cdn.find(env, param) {
            None => Some("cannot be opened: unknown reference"),
            Some(blob) if blob.permit.wx_id != wx_id => Some("cannot be opened: upload of another bot"),
            Some(blob) if blob.permit.to_user_id != to => Some("cannot be opened: upload for another user"),
            Some(blob) => blob.problem(item),
        };
        let key = item.reference("aes_key");
        let problem = problem.or_else(|| key_problem(key)).or_else(|| {
            let blob = self.cdn.find(env, param)?;
            blob.open(key).is_none().then_some("cannot be opened: the key or the bytes are wrong")
        });
        let raw_key = BASE64.decode(key.as_bytes()).is_ok_and(|key| key.len() == 16);
        if raw_key {
            let detail = "aes_key is base64 of the raw key";
            self.violations.record(env, Some(wx_id), ViolationKind::RawMediaKey, detail);
        }
        if problem.is_some() && env.config.strict_media {
            return Err(Reply::json(&json!({"ret": -2})));
        }
        Ok(Content {
            text: String::new(),
            media: Some(OutboundMedia {
                kind: item.kind.as_str(),
                encrypt_query_param: param.to_owned(),
                file_name: Some(item.text("file_name")).filter(|name| !name.is_empty()).map(str::to_owned),
            }),
            opened: Some(problem.is_none()),
            shown: true,
            note: problem,
        })
    }
}

impl World {
    /// The plaintext of the file of a message that a bot sent.
    pub(super) fn open_sent(&self, env: &Env<'_>, sent: &Outbound) -> Option<Bytes> {
        let media = sent.media.as_ref()?;
        let item = sent.raw["item_list"][0].as_object()?;
        let part = item.values().find_map(|part| part.get("media"))?;
        self.cdn.find(env, &media.encrypt_query_param)?.open(part["aes_key"].as_str()?)
    }
}

impl Blob {
    /// The plaintext that was announced, when the key opens it.
    fn open(&self, key: &str) -> Option<Bytes> {
        let plain = Key::from_reference(key)?.decrypt(&self.bytes)?;
        let fits = plain.len() as u64 == self.permit.raw_size
            && HEXLOWER.encode(&Md5::digest(&plain)) == self.permit.raw_md5;
        fits.then(|| plain.into())
    }

    /// Returns the problem of an item with this blob, as far as its sizes and types show it.
    fn problem(&self, item: &FileItem<'_>) -> Option<&'static str> {
        let size = |name| item.part.and_then(|part| part.get(name)).and_then(Value::as_u64);
        let sized = match item.kind {
            FileItemKind::Image => size("mid_size") == Some(self.permit.size),
            FileItemKind::Video => size("video_size") == Some(self.permit.size),
            FileItemKind::File => item.text("len").parse() == Ok(self.permit.raw_size),
        };
        if self.permit.media_type != item.kind.media_type() {
            Some("cannot be opened: uploaded as another media_type")
        } else if self.permit.size != (self.permit.raw_size / 16 + 1) * 16 {
            Some("cannot be opened: filesize does not fit rawsize")
        } else if !sized {
            Some("cannot be opened: size does not fit the upload")
        } else {
            None
        }
    }
}

/// Returns the problem of a key's form: only base64 of 32 hex digits can be opened.
fn key_problem(key: &str) -> Option<&'static str> {
    let digits = BASE64.decode(key.as_bytes()).unwrap_or_default();
    (!is_hex32(&digits)).then_some("cannot be opened: aes_key is not base64 of 32 hex digits")
}

fn is_hex32(text: &[u8]) -> bool {
    text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit)
}

/// A CDN parameter: URL-safe, or with every character that has to be percent-encoded.
fn new_param(env: &Env<'_>) -> String {
    let bytes: [u8; 40] = env.random.bytes();
    if env.config.awkward_cdn_params {
        format!("+/{}=", BASE64.encode(&bytes))
    } else {
        BASE64URL_NOPAD.encode(&bytes)
    }
}

#[cfg(test)]
mod tests;
