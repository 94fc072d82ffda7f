//! Files for other modules: keeping a file to be sent, and reading a received one.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use md5::{Digest, Md5};

use super::{Links, MediaStore};
use crate::{
    config::HubConfig,
    context::Context,
    error::{Error, ErrorCode, Result},
    file_type,
    id::{BotId, ChannelId, Ids, MediaId, MessageId, UserId},
    media_store::views::{Views, views},
    model::media::{KeptFile, MediaState, MediaView},
    network::MessageKind,
    store::{Store, media::MediaRow},
    time::Timestamp,
};

/// Files, for other modules: the caller has checked the owner.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    store: &'a dyn FileStore,
    media: &'a MediaStore,
    ids: &'a Ids,
    config: &'a HubConfig,
}

/// A file to be kept until it is sent.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// User whose storage quota it counts against.
    pub owner_id: UserId,
    /// The bot that may send it.
    pub bot_id: BotId,
    /// The channel that uploaded it, if one did: no other channel may send it.
    pub channel_id: Option<ChannelId>,
    /// A name; may be empty.
    pub file_name: String,
    /// A media type, if known; otherwise derived from the bytes and the name.
    pub content_type: Option<String>,
    /// The bytes.
    pub bytes: Bytes,
}

/// Returns the kind that a file of this type is sent as. Sound is sent as a file, since phones do not show voice
/// messages of bots.
pub(crate) fn kind_of(content_type: &str) -> MessageKind {
    match content_type.split('/').next() {
        Some("image") => MessageKind::Image,
        Some("video") => MessageKind::Video,
        _ => MessageKind::File,
    }
}

/// Operations of a store that [`Files`] needs.
#[async_trait]
#[expect(missing_docs, reason = "each call is documented where its statement is")]
pub trait FileStore: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    async fn bytes_of(&self, owner_id: UserId) -> Result<i64>;
    async fn find_media(&self, id: MediaId) -> Result<Option<MediaRow>>;
    async fn media_of(&self, messages: &[MessageId]) -> Result<Vec<MediaRow>>;
    async fn insert_media(&self, row: MediaRow) -> Result<()>;
}

#[async_trait]
impl FileStore for Store {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    async fn bytes_of(&self, owner_id: UserId) -> Result<i64> {
        self.read().await?.media().bytes_of(owner_id).await
    }

    async fn find_media(&self, id: MediaId) -> Result<Option<MediaRow>> {
        self.read().await?.media().find(id).await
    }

    async fn media_of(&self, messages: &[MessageId]) -> Result<Vec<MediaRow>> {
        self.read().await?.media().of_messages(messages).await
    }

    async fn insert_media(&self, row: MediaRow) -> Result<()> {
        self.write(move |tx| async move { tx.media().insert(&row).await }.boxed()).await
    }
}

impl<S> Context<S> {
    /// Files in a store.
    pub(crate) fn files_in<'a>(&'a self, store: &'a dyn FileStore) -> Files<'a> {
        Files { store, media: &self.media, ids: &self.ids, config: &self.config }
    }
}

impl Context {
    pub(crate) fn files(&self) -> Files<'_> {
        self.files_in(&self.store)
    }
}

impl Files<'_> {
    /// Keeps a file to be sent; its bytes are stored when this returns. It is removed unless a message holds it
    /// within [`unsent_lifetime`](super::MediaLimits::unsent_lifetime).
    ///
    /// # Errors
    /// `INVALID_PARAMS` for an empty file, `PAYLOAD_TOO_LARGE` over the limit, `CONFLICT` when the owner's
    /// storage is full, `UNAVAILABLE` when the store does not take it.
    pub async fn keep(&self, new: NewFile) -> Result<KeptFile> {
        self.keep_as(self.ids.next(), new).await
    }

    /// As [`Files::keep`], under an id that was chosen before.
    ///
    /// # Errors
    /// As [`Files::keep`]; `CONFLICT` when there is a file with the id.
    pub async fn keep_as(&self, id: MediaId, new: NewFile) -> Result<KeptFile> {
        let max = self.config.media.max_outbound;
        if new.bytes.is_empty() {
            return Err(Error::invalid("file", "is empty"));
        }
        if new.bytes.len() > max {
            return Err(Error::new(ErrorCode::PayloadTooLarge, format!("a file may have {max} bytes")));
        }
        self.check_storage(new.owner_id, new.bytes.len() as u64).await?;
        let said = new.content_type.as_deref().and_then(file_type::essence);
        // The content decides: a name and a declared type count only where the bytes can be that.
        let named =
            || file_type::of_name(&new.file_name).filter(|named| file_type::may_be(&new.bytes, named));
        let content_type = match said {
            Some(said) if said != file_type::UNKNOWN && file_type::may_be(&new.bytes, &said) => said,
            _ => file_type::of_bytes(&new.bytes).or_else(named).unwrap_or(file_type::UNKNOWN).to_owned(),
        };
        let kind = kind_of(&content_type);
        let fallback = super::fallback_name(kind, &content_type);
        let now = self.store.now();
        let row = MediaRow {
            id,
            owner_id: new.owner_id,
            bot_id: new.bot_id,
            channel_id: new.channel_id,
            message_id: None,
            item: 0,
            kind,
            file_name: file_type::clean_name(&new.file_name, &fallback),
            content_type,
            size: i64::try_from(new.bytes.len()).unwrap_or(i64::MAX),
            md5: HEXLOWER.encode(&Md5::digest(&new.bytes)),
            state: MediaState::Ready,
            reason: None,
            source: None,
            attempts: 0,
            due_at: now,
            expires_at: now + self.config.media.unsent_lifetime,
            created_at: now,
        };
        let kept = kept(&row);
        // The row first: bytes without one would never be found again. The id is unknown before the response.
        self.store.insert_media(row).await?;
        self.media.put(kept.id, new.bytes).await?;
        Ok(kept)
    }

    /// Forwards a file: keeps a copy of one that is ready, to be sent by its bot.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is there and ready; else as [`keep`](Self::keep).
    pub async fn copy(&self, of: MediaId) -> Result<KeptFile> {
        let found = self.store.find_media(of).await?.filter(|row| row.state == MediaState::Ready);
        let original = found.ok_or_else(|| Error::not_found("file"))?;
        self.check_storage(original.owner_id, u64::try_from(original.size).unwrap_or(0)).await?;
        let now = self.store.now();
        let kind = kind_of(&original.content_type);
        let fallback = super::fallback_name(kind, &original.content_type);
        let row = MediaRow {
            id: self.ids.next(),
            channel_id: None,
            message_id: None,
            item: 0,
            kind,
            file_name: file_type::clean_name(&original.file_name, &fallback),
            source: None,
            attempts: 0,
            expires_at: now + self.config.media.unsent_lifetime,
            created_at: now,
            ..original
        };
        let kept = kept(&row);
        self.store.insert_media(row).await?;
        self.media.copy(of, kept.id).await?;
        Ok(kept)
    }

    /// Returns the files of one message, in the order of its items: ids, states and media types. [`read`](Self::read)
    /// returns the bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of_message(&self, id: MessageId) -> Result<Vec<MediaView>> {
        Ok(self.of_messages(&[id]).await?.remove(&id).unwrap_or_default())
    }

    /// Returns the files of many messages with one query.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of_messages(&self, ids: &[MessageId]) -> Result<Views> {
        if ids.is_empty() {
            return Ok(Views::new());
        }
        let rows = self.store.media_of(ids).await?;
        Ok(views(rows, self.links(), &self.config.media, self.store.now()))
    }

    /// Returns the bytes of a file that is ready, at most `max` of them. They do not count against the memory limit,
    /// so `max` must be small.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is there, `PAYLOAD_TOO_LARGE` over `max`, `UNAVAILABLE`.
    pub async fn read(&self, id: MediaId, max: usize) -> Result<Bytes> {
        self.media.read(id, max).await
    }

    /// Checks that an owner's storage has room for so many more bytes.
    pub(crate) async fn check_storage(&self, owner: UserId, more: u64) -> Result<()> {
        let max = self.config.media.max_per_owner;
        let used = u64::try_from(self.store.bytes_of(owner).await?).unwrap_or(0);
        if used.saturating_add(more) > max {
            let message = format!("the storage for files is full: {used} of {max} bytes are used");
            return Err(Error::conflict(message).with_hint("delete a bot, or wait until old messages go"));
        }
        Ok(())
    }

    fn links(&self) -> &Links {
        self.media.links()
    }

    /// Returns the time at which a file without a message expires.
    pub(crate) fn unsent_until(&self) -> Timestamp {
        self.store.now() + self.config.media.unsent_lifetime
    }
}

fn kept(row: &MediaRow) -> KeptFile {
    KeptFile {
        id: row.id,
        kind: row.kind,
        file_name: row.file_name.clone(),
        size: u64::try_from(row.size).unwrap_or(0),
    }
}
