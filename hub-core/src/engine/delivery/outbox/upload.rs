//! The upload of an item's file to the network, before the item is sent. A crash in between costs a second upload and
//! nothing else.

use std::{sync::PoisonError, time::Duration};

use tracing::Instrument;

use super::{Next, Outbox};
use crate::{
    error::{ErrorCode, Result},
    id::{MediaId, OutboxId},
    model::cause::Cause,
    network::{MediaError, MediaFile, UploadedMedia},
    spans,
    store::sending::{ItemState, OpenItem},
    time::Instant,
};

/// Time for which an uploaded file may be sent without another upload.
const UPLOAD_VALIDITY: Duration = Duration::from_secs(600);
/// Uploads kept in memory; beyond that all files are uploaded again.
const MAX_CACHED: usize = 256;
/// First pause after a failed upload; doubles.
const RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Rounds until an upload is abandoned. Each has several attempts.
const MAX_ROUNDS: u32 = 5;

/// A file that the network has.
#[derive(Debug)]
pub(super) struct CachedUpload {
    media: UploadedMedia,
    at: Instant,
}

/// Result of the upload of an item's file.
pub(super) enum Upload {
    NoFile,
    Done(UploadedMedia),
    /// The item cannot be sent now, or ever.
    NotDone(Next),
}

impl Outbox {
    /// Uploads an item's file, unless that was done a moment ago.
    pub(super) async fn upload_file(&self, item: &OpenItem, was_unknown: bool) -> Result<Upload> {
        let Some(id) = item.media_id else { return Ok(Upload::NoFile) };
        let started = self.ctx.clock.instant();
        if let Some(media) = self.cached_upload(item.id, started) {
            return Ok(Upload::Done(media));
        }
        let span = spans::outbox_send(self.bot.lease.bot_id, item.message_id, item.trace_id);
        let uploaded = tokio::select! {
            biased;
            () = self.bot.tasks.stop_token().cancelled() => return Ok(Upload::NotDone(Next::Wait)),
            uploaded = self.read_and_upload(id, &item.peer).instrument(span) => uploaded?,
        };
        match uploaded {
            Ok(media) => {
                self.cache_upload(item, &media);
                Ok(Upload::Done(media))
            }
            Err(error) => self.record_failure(item, was_unknown, error).await.map(Upload::NotDone),
        }
    }

    async fn read_and_upload(&self, id: MediaId, peer: &str) -> Result<Result<UploadedMedia, MediaError>> {
        let ctx = &self.ctx;
        let gone = || Ok(Err(MediaError::Unavailable(Cause::FileGone.to_string())));
        let Some(row) = ctx.store.find_media(id).await? else { return gone() };
        let max = ctx.config.media.max_inbound.max(ctx.config.media.max_outbound);
        let size = usize::try_from(row.size).unwrap_or(max);
        // The plain and the sealed bytes are in memory together.
        let _room = ctx.media.room(size.saturating_mul(2)).await;
        let bytes = match ctx.media.read(id, max).await {
            Ok(bytes) => bytes,
            Err(error) if error.code() == ErrorCode::Unavailable => return Err(error),
            Err(_) => return gone(),
        };
        let file = MediaFile { kind: row.kind, file_name: row.file_name, bytes };
        Ok(self.bot.connection.upload_media(peer, &file).await)
    }

    /// Postpones the item, or fails it. Only the file fails: the texts before it were sent, and the items after it
    /// are sent.
    async fn record_failure(&self, item: &OpenItem, was_unknown: bool, error: MediaError) -> Result<Next> {
        let now = self.ctx.store.now();
        let cause = Box::new(Cause::read(&error.to_string()));
        let reason = Cause::FileNotSent { cause }.to_string();
        let round = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let round = state.failures.entry(item.id).or_default();
            *round += 1;
            *round
        };
        if matches!(error, MediaError::LoginExpired(_)) {
            self.bot.poll_now.notify_one();
        }
        let lasting = matches!(error, MediaError::Unavailable(_) | MediaError::TooLarge(_));
        if lasting || round >= MAX_ROUNDS {
            self.settle(item, now, ItemState::Failed, now, Some(&reason), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Next::Continue);
        }
        self.postpone(item, now, RETRY_PAUSE * 2_u32.pow(round - 1), &reason, |s| {
            s.attempts = item.attempts;
            // An earlier attempt with an unknown outcome stays counted.
            s.unknown = was_unknown;
        })
        .await
    }

    fn cached_upload(&self, item: OutboxId, now: Instant) -> Option<UploadedMedia> {
        let state = self.state();
        let upload = state.uploads.get(&item).filter(|upload| now.since(upload.at) < UPLOAD_VALIDITY);
        upload.map(|upload| upload.media.clone())
    }

    fn cache_upload(&self, item: &OpenItem, media: &UploadedMedia) {
        let at = self.ctx.clock.instant();
        let mut state = self.state();
        state.failures.remove(&item.id);
        if state.uploads.len() >= MAX_CACHED {
            state.uploads.clear();
        }
        state.uploads.insert(item.id, CachedUpload { media: media.clone(), at });
    }

    /// Removes the cached upload of an item that is concluded.
    pub(super) fn forget_upload(&self, item: &OpenItem) {
        let mut state = self.state();
        state.uploads.remove(&item.id);
        state.failures.remove(&item.id);
    }
}
