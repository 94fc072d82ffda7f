//! Files: those that people send, fetched from their network and kept, and those that programs want sent.
//!
//! A row says that a file exists ([`store::media`](crate::store::media)), the bytes lie in the [`MediaStore`]
//! under its id. The row comes first and goes last, so that whatever is interrupted, the sweep finds it.
//! Nothing is decoded here: bytes go in and come out (reliability X7).
//!
//! Messages never wait for files (`contract.md` §4): a message is committed, shown and logged at once, with its
//! files `downloading`; the node that works for the bot fetches them. A webhook is the one exception: for a
//! message that has no text of its own it waits up to [`MediaLimits::webhook_wait`] for the files, since "an
//! image, somewhere" helps no receiver, and goes out without them then. The link to a file is in the payload
//! either way, and reading it waits for the file, too.

use std::{collections::HashMap, fmt, time::Duration};

use serde::Serialize;

use crate::{
    access::Actor,
    context::{Context, Hint},
    error::{Error, ErrorCode, Result},
    id::{BotId, MediaId, MessageId},
    network::{MessageItem, MessageKind},
    secret::Secret,
    store::media::MediaRow,
    time::Timestamp,
};

#[cfg(feature = "s3")]
mod bucket;
mod files;
mod links;
mod objects;
mod sweep;
mod upload;

#[cfg(feature = "s3")]
pub use bucket::S3Config;
#[cfg(feature = "s3")]
pub(crate) use bucket::open_bucket;
pub use files::{Files, KeptFile, NewFile};
pub(crate) use links::Links;
pub use objects::{MediaConfig, MediaRoom, MediaStore, MediaStream};
pub(crate) use sweep::sweep;
pub use upload::{NewUpload, UploadRequest, UploadTicket};

/// Limits on files; every one is a setting.
#[derive(Debug, Clone)]
pub struct MediaLimits {
    /// Largest file that is fetched from a network, in bytes.
    pub max_inbound: usize,
    /// Largest file that is taken to be sent, in bytes.
    pub max_outbound: usize,
    /// Bytes of all files of one user.
    pub max_per_owner: u64,
    /// Bytes of files in memory while they are fetched, encrypted or uploaded; more wait.
    pub max_in_memory: usize,
    /// How long a webhook waits for the files of a message that has no text.
    pub webhook_wait: Duration,
    /// How long a link to a file works, at least.
    pub link_lifetime: Duration,
    /// How long a link for an upload works.
    pub upload_lifetime: Duration,
    /// How long an uploaded file waits to be sent.
    pub unsent_lifetime: Duration,
}

impl Default for MediaLimits {
    fn default() -> Self {
        Self {
            max_inbound: 100 << 20,
            max_outbound: 50 << 20,
            max_per_owner: 10 << 30,
            max_in_memory: 256 << 20,
            webhook_wait: Duration::from_secs(5),
            link_lifetime: Duration::from_secs(24 * 3600),
            upload_lifetime: Duration::from_secs(15 * 60),
            unsent_lifetime: Duration::from_secs(24 * 3600),
        }
    }
}

/// Where a file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaState {
    /// Somebody may upload it.
    Pending,
    /// Somebody uploads it.
    Uploading,
    /// It is with the network.
    Downloading,
    /// It is in the store.
    Ready,
    /// It will not come, unless it is tried anew.
    Failed,
}

impl MediaState {
    /// The word in the store and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Uploading => "uploading",
            Self::Downloading => "downloading",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Uploading, Self::Downloading, Self::Ready, Self::Failed]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// A file of a message, as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MediaView {
    /// Id.
    pub id: MediaId,
    /// Which of the message's items it is, from 0.
    pub item: u32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// `downloading`, `ready` or `failed`.
    pub status: MediaState,
    /// Its name; empty until it has one.
    pub file_name: String,
    /// Media type, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Bytes, once they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where to read it; absent when it failed. Reading waits for a file that is still being fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<SignedUrl>,
    /// Until when that works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_expires_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A URL that is a permission: whoever has it may read the file. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SignedUrl(String);

impl SignedUrl {
    pub(crate) fn new(url: String) -> Self {
        Self(url)
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that must not be written down.
    pub(crate) fn signature(&self) -> Secret {
        Secret::new(self.0.rsplit_once("sig=").map_or("", |(_, signature)| signature))
    }
}

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedUrl(***)")
    }
}

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
    /// When it came.
    pub created_at: Timestamp,
}

/// How long reading waits for a file that is being fetched, and how often it looks.
const READ_WAIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);

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
        let until = self.ctx.clock.instant() + READ_WAIT;
        loop {
            let found = self.ctx.store.read().await?.media().find(id).await?;
            let row = found.filter(|row| row.message_id.is_some()).ok_or_else(|| Error::not_found("file"))?;
            match row.state {
                MediaState::Ready => return Ok(readable(row)),
                MediaState::Downloading if self.ctx.clock.instant() < until => {
                    self.ctx.clock.sleep(LOOK).await;
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

    /// Fetches the failed files of a message anew; says how many there are. Asking again does no harm.
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
            self.ctx.wake.hint(Hint::Media(bot_id));
        }
        Ok(retried)
    }
}

/// Whether there may be files among the parts of a message, which are JSON.
pub(crate) fn has_media(items: &str) -> bool {
    let items: Vec<MessageItem> = serde_json::from_str(items).unwrap_or_default();
    items.iter().any(MessageItem::is_file)
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

/// A name for a file that came without one: `image.jpg`.
pub(crate) fn fallback_name(kind: MessageKind, content_type: &str) -> String {
    let word = if kind == MessageKind::Other { "file" } else { kind.as_str() };
    format!("{word}.{}", crate::file_type::ending(content_type))
}

/// Rows as programs see them, by message.
pub(crate) fn views(rows: Vec<MediaRow>, links: &Links, limits: &MediaLimits, now: Timestamp) -> Views {
    let mut views: Views = HashMap::new();
    for row in rows {
        let Some(message_id) = row.message_id else { continue };
        views.entry(message_id).or_default().push(view(row, links, limits, now));
    }
    views
}

/// The files of messages.
pub type Views = HashMap<MessageId, Vec<MediaView>>;

fn view(row: MediaRow, links: &Links, limits: &MediaLimits, now: Timestamp) -> MediaView {
    let ready = row.state == MediaState::Ready;
    let (url, url_expires_at) =
        (row.state != MediaState::Failed).then(|| links.read(row.id, now, limits.link_lifetime)).unzip();
    MediaView {
        id: row.id,
        item: u32::try_from(row.item).unwrap_or(0),
        kind: row.kind,
        status: row.state,
        file_name: row.file_name,
        content_type: Some(row.content_type).filter(|_| ready),
        size: u64::try_from(row.size).ok().filter(|_| ready),
        url,
        url_expires_at,
        error: row.reason.filter(|_| row.state == MediaState::Failed),
    }
}
