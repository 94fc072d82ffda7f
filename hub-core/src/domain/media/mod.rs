//! Files that people send, fetched from their network and kept, and files that programs send.
//!
//! A row says that a file exists ([`store::media`](crate::store::media)); the bytes are in the [`MediaStore`] under
//! its id. The row is inserted before the bytes are stored and deleted after them, so that the sweep finds the rest
//! of whatever was interrupted. Files are not decoded here.
//!
//! Messages never wait for files. A message is committed, shown and logged immediately, with its files `downloading`;
//! the node that works for the bot fetches them. A webhook is the exception: a delivery of a message without text
//! waits up to [`MediaLimits::webhook_wait`] for the files, and is sent without them after that. The link to a file
//! is in the payload in both cases, and reading it waits for the file too.

use std::time::Duration;

use crate::{
    access::Actor,
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{BotId, MediaId, MessageId},
    media_store::views::fallback_name,
    store::media::MediaRow,
    time::Timestamp,
    wake::Hint,
};

mod files;
mod sweep;
mod upload;

#[cfg(feature = "s3")]
pub use crate::media_store::bucket::S3Config;
#[cfg(feature = "s3")]
pub(crate) use crate::media_store::bucket::open_bucket;
pub(crate) use crate::media_store::links::Links;
pub use crate::{
    config::MediaLimits,
    media_store::{MediaConfig, MediaRoom, MediaStore, MediaStream, views::Views},
    model::media::{KeptFile, MediaState, MediaView, SignedUrl},
};
pub use files::{FileStore, Files, NewFile};
pub(crate) use sweep::sweep;
pub use upload::{NewUpload, UploadRequest, UploadTicket};

/// A file behind a link, ready to be read.
#[derive(Debug, Clone)]
pub struct ReadableFile {
    /// Id.
    pub id: MediaId,
    /// Its name; never empty.
    pub file_name: String,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Longest wait of a read for a file that is being fetched, and the interval of its checks.
const READ_WAIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Files, as callers of the API see them.
#[derive(Debug, Clone, Copy)]
pub struct Media<'h> {
    ctx: &'h Context,
}

impl<'h> Media<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Finds the file of a link. The signature is the permission. A file that is still being fetched is waited
    /// for, up to 20 seconds.
    ///
    /// # Errors
    /// `INVALID_TOKEN` for a link that was changed or has expired; `NOT_FOUND` when the file is gone or could not
    /// be fetched; `UNAVAILABLE` when it is not there yet.
    pub async fn open_link(&self, id: &str, expires: &str, signature: &str) -> Result<ReadableFile> {
        let now = self.ctx.store.now();
        let id = self.ctx.media.links().check_read(id, expires, signature, now)?;
        Ok(readable(self.ready_row(id).await?))
    }

    /// Waits for a file that is being fetched, up to 20 seconds, and returns its size in bytes. The caller has
    /// authorized the request.
    ///
    /// # Errors
    /// `NOT_FOUND` when the file is gone or could not be fetched; `UNAVAILABLE` when it is not there yet.
    pub(crate) async fn wait_ready(&self, id: MediaId) -> Result<u64> {
        Ok(readable(self.ready_row(id).await?).size)
    }

    async fn ready_row(&self, id: MediaId) -> Result<MediaRow> {
        let until = self.ctx.clock.instant() + READ_WAIT;
        loop {
            let found = self.ctx.store.read().await?.media().find(id).await?;
            let row = found.filter(|row| row.message_id.is_some()).ok_or_else(|| Error::not_found("file"))?;
            match row.state {
                MediaState::Ready => return Ok(row),
                MediaState::Downloading if self.ctx.clock.instant() < until => {
                    self.ctx.clock.sleep(POLL_INTERVAL).await;
                }
                MediaState::Downloading => {
                    return Err(Error::new(ErrorCode::Unavailable, "the file is still being fetched")
                        .with_retry_after(Duration::from_secs(10)));
                }
                MediaState::Failed | MediaState::Pending | MediaState::Uploading => {
                    let why = row.reason.unwrap_or_else(|| "it is not there".to_owned());
                    return Err(Error::new(
                        ErrorCode::NotFound,
                        format!("the file could not be fetched: {why}"),
                    ));
                }
            }
        }
    }

    /// The bytes of a file, from the first to before the last of a range.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is gone, `UNAVAILABLE` when the store does not answer.
    pub async fn stream(&self, id: MediaId, range: std::ops::Range<u64>) -> Result<MediaStream> {
        self.ctx.media.stream(id, range).await
    }

    /// Waits for room in memory for so many bytes of files ([`MediaLimits::max_in_memory`]); the room is given
    /// back when it is dropped.
    pub async fn room(&self, bytes: usize) -> MediaRoom {
        self.ctx.media.room(bytes).await
    }

    /// Downloads the failed files of a message again; returns how many there are. Repeating the call does no harm.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's and the message the bot's.
    pub async fn retry(&self, actor: &Actor, bot_id: BotId, message_id: MessageId) -> Result<u64> {
        let owner = actor.scope()?.owner();
        let mut read = self.ctx.store.read().await?;
        if read.bots().find(owner, bot_id).await?.is_none() {
            return Err(Error::not_found("bot"));
        }
        if !read.messages().exists(bot_id, message_id).await? {
            return Err(Error::not_found("message"));
        }
        drop(read);
        let now = self.ctx.store.now();
        let retried = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.media().retry(message_id, now).await }))
            .await?;
        if retried > 0 {
            self.ctx.node.wake.hint(Hint::Media(bot_id));
        }
        Ok(retried)
    }
}

fn readable(row: MediaRow) -> ReadableFile {
    let fallback = fallback_name(row.kind, &row.content_type);
    ReadableFile {
        id: row.id,
        file_name: crate::file_type::clean_name(&row.file_name, &fallback),
        content_type: row.content_type,
        size: u64::try_from(row.size).unwrap_or(0),
        created_at: row.created_at,
    }
}
