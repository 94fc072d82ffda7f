//! Files of programs, under the encryption of the network. The hub keeps plaintext: an upload is decrypted with the key
//! that was announced, a download is encrypted with a key that is derived for the program and the file.
//!
//! References are not stored: each contains what it permits and a keyed hash, or is sealed.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use http::{StatusCode, Uri};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use super::{Gateway, Program, clients::is_open, refusal};
use crate::{
    error::{ErrorCode, Result},
    file_type,
    id::{IlinkClientId, MediaId},
    media::{Media, NewFile},
    network::{
        MessageKind,
        ilink::cipher::{Key, sealed_len},
        server::{Answer, FileItem, FileItemKind, Reply, UploadRequest, parse_query, stamp},
    },
    secret::{Sealed, Secret},
    time::Timestamp,
};

/// Time for which an upload is permitted.
const PERMIT_LIFE: Duration = Duration::from_secs(15 * 60);
/// Place that permits are sealed for.
const PERMIT_PLACE: &str = "upload of an iLink client";

/// A permitted upload; sealed in the reference that the program uploads to. It is used once there is a file with its id.
#[derive(Serialize, Deserialize)]
struct Permit {
    id: MediaId,
    client: IlinkClientId,
    to: String,
    filekey: String,
    media_type: u64,
    raw_size: u64,
    size: u64,
    raw_md5: String,
    aes_key: String,
    until: Timestamp,
}

impl Program {
    /// The reference to a file of the log, and the key under which this program downloads it.
    pub(super) fn file_reference(&self, id: MediaId) -> (String, Key) {
        (self.reference("download", id, ""), self.file_key(id))
    }

    fn file_key(&self, id: MediaId) -> Key {
        let mark = stamp::mark(&self.key, &[b"file key", id.to_string().as_bytes()]);
        let mut key = [0; 16];
        key.copy_from_slice(&mark[..16]);
        Key::from_bytes(key)
    }

    /// Builds the reference `<client>.<file>.<hash>`. The hash also covers the purpose and the receiver.
    fn reference(&self, what: &str, id: MediaId, to: &str) -> String {
        let name = format!("{}.{id}", self.id);
        let mark = stamp::mark(&self.key, &[what.as_bytes(), name.as_bytes(), to.as_bytes()]);
        format!("{name}.{}", HEXLOWER.encode(&mark))
    }
}

impl Gateway<'_> {
    /// Permits an upload of a file for a person.
    pub(super) async fn permit_upload(
        &self,
        program: &Program,
        base: &str,
        upload: &UploadRequest,
    ) -> Answer {
        if !self.knows(program, &upload.to_user_id).await.map_err(|error| refusal(&error))? {
            return Err(Reply::refuse(-1, "unknown user"));
        }
        let fits = usize::try_from(upload.raw_size).is_ok_and(|size| {
            size <= self.ctx.config.media.max_outbound && sealed_len(size) as u64 == upload.size
        });
        if !fits {
            return Err(Reply::refuse(-2, "invalid filesize"));
        }
        let permit = Permit {
            id: self.ctx.ids.next(),
            client: program.id,
            to: upload.to_user_id.clone(),
            filekey: upload.filekey.clone(),
            media_type: upload.media_type,
            raw_size: upload.raw_size,
            size: upload.size,
            raw_md5: upload.raw_md5.clone(),
            aes_key: upload.aes_key.clone(),
            until: self.ctx.store.now() + PERMIT_LIFE,
        };
        let sealed = self.ctx.sealer.seal(PERMIT_PLACE, &Secret::new(crate::text::json(&permit)));
        let param = BASE64URL_NOPAD.encode(sealed.as_str().as_bytes());
        let filekey: String = byte_serialize(upload.filekey.as_bytes()).collect();
        let url = format!("{base}/c2c/upload?encrypted_query_param={param}&filekey={filekey}");
        Ok(Reply::json(&json!({"ret": 0, "upload_full_url": url, "upload_param": param})))
    }

    fn permit(self, param: &str) -> Option<Permit> {
        let sealed = String::from_utf8(BASE64URL_NOPAD.decode(param.as_bytes()).ok()?).ok()?;
        let text = self.ctx.sealer.open(PERMIT_PLACE, &Sealed::from(sealed)).ok()?;
        let permit: Permit = serde_json::from_str(text.expose()).ok()?;
        Some(permit).filter(|permit| self.ctx.store.now() < permit.until)
    }

    /// Bytes that the upload of a request may have; `None` unless it was permitted.
    pub(super) fn permitted_upload(self, uri: &Uri) -> Option<u64> {
        let query = parse_query(uri.query());
        let param = query.iter().find(|(name, _)| name == "encrypted_query_param")?;
        self.permit(&param.1).map(|permit| permit.size)
    }

    /// Takes the ciphertext of a permitted file, and keeps the file. A permit is good for one file.
    pub(super) async fn take_upload(&self, param: &str, filekey: &str, sealed: &Bytes) -> Answer {
        let permit = self.permit(param).ok_or_else(|| bad_upload("unknown upload parameter"))?;
        if filekey != permit.filekey {
            return Err(bad_upload("filekey does not fit"));
        }
        if u64::try_from(sealed.len()) != Ok(permit.size) {
            return Err(bad_upload("length is not filesize"));
        }
        if self.is_used(&permit).await.map_err(|error| refusal(&error))? {
            return Err(used());
        }
        let program = self.open_program(permit.client).await.map_err(|error| refusal(&error))?;
        let program = program.ok_or_else(|| bad_upload("unknown upload parameter"))?;
        let plain = Key::from_hex(&permit.aes_key).and_then(|key| key.decrypt(sealed));
        let plain = plain.filter(|plain| {
            plain.len() as u64 == permit.raw_size && HEXLOWER.encode(&Md5::digest(plain)) == permit.raw_md5
        });
        let plain = plain.ok_or_else(|| bad_upload("the bytes are not the announced file"))?;
        let files = self.ctx.files();
        let kept = files.keep_as(
            permit.id,
            NewFile {
                owner_id: program.client.owner_id,
                bot_id: program.client.bot_id,
                channel_id: Some(program.client.channel_id),
                file_name: String::new(),
                content_type: None,
                bytes: plain.into(),
            },
        );
        let kept = match kept.await {
            Ok(kept) => kept,
            Err(error) if matches!(error.code(), ErrorCode::Unavailable | ErrorCode::Internal) => {
                return Err(refusal(&error));
            }
            // Its owner's storage is full, or another upload with the permit was faster.
            Err(_) if self.is_used(&permit).await.is_ok_and(|is_used| is_used) => return Err(used()),
            Err(_) => return Err(bad_upload("the file was refused")),
        };
        let reference = program.reference(&media_type(permit.media_type), kept.id, &permit.to);
        Ok(Reply::bytes(Bytes::new()).with_header("x-encrypted-param", &reference))
    }

    async fn is_used(self, permit: &Permit) -> Result<bool> {
        Ok(self.ctx.store.read().await?.media().find(permit.id).await?.is_some())
    }

    /// The uploaded file of an item; `None` unless this program uploaded it as such for this person.
    pub(super) async fn sent_upload(
        &self,
        program: &Program,
        to: &str,
        item: &FileItem<'_>,
    ) -> Result<Option<MediaId>> {
        let reference = item.reference("encrypt_query_param");
        let Some(id) = file_of(reference) else { return Ok(None) };
        let issued = program.reference(&media_type(item.kind.media_type()), id, to);
        if !stamp::is_same(reference.as_bytes(), issued.as_bytes()) {
            return Ok(None);
        }
        let kind = match item.kind {
            FileItemKind::Image => MessageKind::Image,
            FileItemKind::Video => MessageKind::Video,
            FileItemKind::File => MessageKind::File,
        };
        let Some(row) = self.ctx.store.read().await?.media().find(id).await? else { return Ok(None) };
        let name = file_type::clean_name(item.text("file_name"), &row.file_name);
        if row.message_id.is_none() && (row.kind != kind || row.file_name != name) {
            let rename = self
                .ctx
                .store
                .write(move |tx| Box::pin(async move { tx.media().rename_unsent(id, &name, kind).await }));
            rename.await?;
        }
        Ok(Some(id))
    }

    /// The ciphertext of a file that was given to a program. A file that is still being fetched is waited for.
    pub(super) async fn download(&self, reference: &str) -> Answer {
        let unknown =
            || Reply::text(StatusCode::NOT_FOUND, "").with_header("x-error-message", "unknown parameter");
        let client = reference.split('.').next().and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
        let id = file_of(reference).ok_or_else(unknown)?;
        let program = self.open_program(client).await.map_err(|error| refusal(&error))?;
        let program = program.filter(|program| {
            stamp::is_same(reference.as_bytes(), program.reference("download", id, "").as_bytes())
        });
        let program = program.ok_or_else(unknown)?;
        let limits = &self.ctx.config.media;
        let max = limits.max_inbound.max(limits.max_outbound);
        let ready = Media::new(self.ctx).wait_ready(id).await;
        let size = ready
            .map_err(|error| if error.code() == ErrorCode::NotFound { unknown() } else { refusal(&error) })?;
        let size = usize::try_from(size).ok().filter(|size| *size <= max).ok_or_else(unknown)?;
        // The file and its ciphertext.
        let _room = self.ctx.media.room(2 * size).await;
        let plain = self.ctx.files().read(id, max).await.map_err(|error| refusal(&error))?;
        let key = program.file_key(id);
        let sealed =
            self.ctx.computations.run(move || key.encrypt(&plain)).await.map_err(|error| refusal(&error))?;
        Ok(Reply::bytes(sealed.into()))
    }

    /// A program by its id, if its login is valid.
    async fn open_program(&self, id: IlinkClientId) -> Result<Option<Program>> {
        let found = self.ctx.store.read().await?.ilink().client(id).await?;
        Ok(found.filter(|row| is_open(row, self.ctx.store.now())).as_ref().map(Program::new))
    }
}

/// The file of a reference.
fn file_of(reference: &str) -> Option<MediaId> {
    reference.split('.').nth(1)?.parse().ok()
}

/// Returns the purpose of a reference to an upload of this type.
fn media_type(number: u64) -> String {
    format!("upload {number}")
}

fn used() -> Reply {
    bad_upload("the upload parameter was used already")
}

fn bad_upload(why: &'static str) -> Reply {
    Reply::text(StatusCode::BAD_REQUEST, "").with_header("x-error-message", why)
}
