//! Announced uploads: the hub returns a link, and accepts one PUT to it, of exactly the announced size and type.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::{Stream, StreamExt};
use md5::{Digest, Md5};

use super::{Media, files::kind_of};
use crate::{
    access::Actor,
    error::{Error, ErrorCode, Problems, Result},
    file_type,
    id::MediaId,
    media_store::Writing,
    model::media::{MediaState, SignedUrl},
    store::media::{MediaRow, StoredBytes},
    text,
    time::Timestamp,
};

/// Bytes that are looked at to see whether a file can be what it was announced as.
const HEAD: usize = 64;

/// A file to upload.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// Its name, 1 to 200 characters; folders in it are left out.
    pub file_name: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes.
    pub size: u64,
}

/// Permission to upload one file, once.
#[derive(Debug, Clone)]
pub struct UploadTicket {
    /// Id of the file, for sending it afterwards.
    pub upload_id: MediaId,
    /// URL for the PUT of the bytes.
    pub url: SignedUrl,
    /// `Content-Type` that the PUT must have.
    pub content_type: String,
    /// Number of bytes that the PUT must have.
    pub size: u64,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

/// A PUT to a link.
#[derive(Debug, Clone, Copy)]
pub struct UploadRequest<'r> {
    /// The file in the path.
    pub id: &'r str,
    /// `expires` of the link.
    pub expires: &'r str,
    /// `sig` of the link.
    pub signature: &'r str,
    /// `Content-Type`.
    pub content_type: Option<&'r str>,
    /// `Content-Length`.
    pub length: Option<u64>,
}

impl Media<'_> {
    /// Gives out a link for one upload. What is uploaded can be sent by this channel alone.
    ///
    /// # Errors
    /// `FORBIDDEN` for who is no channel client; `INVALID_PARAMS` on bad input; `PAYLOAD_TOO_LARGE` over the
    /// limit; `CONFLICT` when the owner's storage is full.
    pub async fn start_upload(&self, actor: &Actor, new: NewUpload) -> Result<UploadTicket> {
        let Actor::Channel(channel) = actor else {
            return Err(Error::new(ErrorCode::Forbidden, "only a channel uploads files"));
        };
        let limits = &self.ctx.config.media;
        let content_type = check(&new)?;
        if new.size > limits.max_outbound as u64 {
            let message = format!("a file may have {} bytes", limits.max_outbound);
            return Err(Error::new(ErrorCode::PayloadTooLarge, message));
        }
        self.ctx.files().check_storage(channel.owner_id, new.size).await?;
        let now = self.ctx.store.now();
        let expires_at = now + limits.upload_lifetime;
        let kind = kind_of(&content_type);
        let fallback = super::fallback_name(kind, &content_type);
        let row = MediaRow {
            id: self.ctx.ids.next(),
            owner_id: channel.owner_id,
            bot_id: channel.bot_id,
            channel_id: Some(channel.channel_id),
            message_id: None,
            item: 0,
            kind,
            file_name: file_type::clean_name(&new.file_name, &fallback),
            content_type: content_type.clone(),
            size: i64::try_from(new.size).unwrap_or(i64::MAX),
            md5: String::new(),
            state: MediaState::Pending,
            reason: None,
            source: None,
            attempts: 0,
            due_at: now,
            expires_at,
            created_at: now,
        };
        let url = self.ctx.media.links().upload(row.id, expires_at, &announced(&row));
        let upload_id = row.id;
        self.ctx.store.write(move |tx| Box::pin(async move { tx.media().insert(&row).await })).await?;
        Ok(UploadTicket { upload_id, url, content_type, size: new.size, expires_at })
    }

    /// Takes an upload. The link's signature is the permission; it is used up by the first PUT with the announced
    /// size and type, whatever its outcome.
    ///
    /// # Errors
    /// `INVALID_TOKEN` for a link that was changed, has expired or was used; `UNSUPPORTED_MEDIA_TYPE` for another
    /// type than announced; `PAYLOAD_TOO_LARGE` for more bytes, `INVALID_PARAMS` for fewer; the body's own error;
    /// `UNAVAILABLE` when the store does not take it.
    pub async fn receive_upload(
        &self,
        request: UploadRequest<'_>,
        mut body: impl Stream<Item = Result<Bytes>> + Unpin + Send,
    ) -> Result<MediaId> {
        let row = self.check_upload(request).await?;
        let (id, now) = (row.id, self.ctx.store.now());
        let store = &self.ctx.store;
        let taken =
            store.write(move |tx| Box::pin(async move { tx.media().begin_upload(id, now).await })).await?;
        if !taken {
            return Err(used());
        }
        let stored = match self.store_upload(&row, &mut body).await {
            Ok(stored) => Ok((stored, self.ctx.files().unsent_until())),
            Err(error) => Err(error),
        };
        let outcome = stored.as_ref().ok().cloned();
        let ended = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.media().end_upload(id, outcome).await }))
            .await?;
        stored?;
        if !ended {
            // It took so long that the row is gone.
            self.ctx.media.remove(id).await?;
            return Err(Error::new(ErrorCode::InvalidToken, "the link has expired"));
        }
        Ok(id)
    }

    async fn check_upload(&self, request: UploadRequest<'_>) -> Result<MediaRow> {
        let invalid = || Error::new(ErrorCode::InvalidToken, "the link is not valid");
        let id: MediaId = request.id.parse().map_err(|_| invalid())?;
        let row = self.ctx.store.read().await?.media().find(id).await?.ok_or_else(invalid)?;
        let (links, now) = (self.ctx.media.links(), self.ctx.store.now());
        links.check_upload(id, request.expires, request.signature, &announced(&row), now)?;
        if row.state != MediaState::Pending {
            return Err(used());
        }
        let given = request.content_type.and_then(file_type::essence);
        if given.as_deref() != Some(row.content_type.as_str()) {
            let message = format!("Content-Type must be {}, as announced", row.content_type);
            return Err(Error::new(ErrorCode::UnsupportedMediaType, message));
        }
        match request.length.map(|length| length.cmp(&size_of(&row))) {
            Some(std::cmp::Ordering::Greater) => Err(longer(&row)),
            Some(std::cmp::Ordering::Less) => Err(shorter(&row)),
            Some(std::cmp::Ordering::Equal) | None => Ok(row),
        }
    }

    /// Counts the bytes while they go into the store; nothing is there unless they are what was announced.
    async fn store_upload(
        &self,
        row: &MediaRow,
        body: &mut (impl Stream<Item = Result<Bytes>> + Unpin + Send),
    ) -> Result<StoredBytes> {
        let mut writing = self.ctx.media.write(row.id).await?;
        match copy_announced(row, body, &mut writing).await {
            Ok(md5) => {
                writing.finish().await?;
                Ok(StoredBytes {
                    size: row.size,
                    md5,
                    content_type: row.content_type.clone(),
                    file_name: row.file_name.clone(),
                    source: None,
                })
            }
            Err(error) => {
                writing.abort().await;
                Err(error)
            }
        }
    }
}

async fn copy_announced(
    row: &MediaRow,
    body: &mut (impl Stream<Item = Result<Bytes>> + Unpin + Send),
    writing: &mut Writing,
) -> Result<String> {
    let (mut count, mut head, mut md5) = (0_u64, Vec::with_capacity(HEAD), Md5::new());
    while let Some(piece) = body.next().await {
        let piece = piece?;
        count += piece.len() as u64;
        if count > size_of(row) {
            return Err(longer(row));
        }
        let missing = HEAD.saturating_sub(head.len());
        head.extend(piece.iter().take(missing));
        if head.len() >= HEAD.min(usize::try_from(size_of(row)).unwrap_or(HEAD))
            && !file_type::may_be(&head, &row.content_type)
        {
            let message = format!("the bytes do not begin like {}", row.content_type);
            return Err(Error::new(ErrorCode::UnsupportedMediaType, message));
        }
        md5.update(&piece);
        writing.add(piece).await?;
    }
    if count < size_of(row) {
        return Err(shorter(row));
    }
    Ok(HEXLOWER.encode(&md5.finalize()))
}

/// Returns the data that the signature of a link covers in addition to the file.
fn announced(row: &MediaRow) -> String {
    let channel = row.channel_id.map(|id| id.to_string()).unwrap_or_default();
    format!("{}\n{}\n{channel}", row.content_type, row.size)
}

fn size_of(row: &MediaRow) -> u64 {
    u64::try_from(row.size).unwrap_or(0)
}

fn used() -> Error {
    Error::new(ErrorCode::InvalidToken, "the link was used already; ask for another one")
}

fn longer(row: &MediaRow) -> Error {
    Error::new(
        ErrorCode::PayloadTooLarge,
        format!("the body is longer than the {} bytes announced", row.size),
    )
}

fn shorter(row: &MediaRow) -> Error {
    Error::new(ErrorCode::InvalidParams, format!("the body is shorter than the {} bytes announced", row.size))
}

fn check(new: &NewUpload) -> Result<String> {
    let mut problems = Problems::default();
    text::check_name(&mut problems, "filename", &new.file_name, 1..=file_type::MAX_NAME);
    let content_type = file_type::essence(&new.content_type);
    problems.check(content_type.is_some(), "content_type", "must be a media type like image/png");
    problems.check(new.size > 0, "size", "must be at least 1");
    problems.finish()?;
    Ok(content_type.unwrap_or_default())
}
