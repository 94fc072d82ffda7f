//! Fetching the files of messages from their network: after the commit, in the background, with retries, within a
//! budget of memory. A message never waits for it; a file that cannot be fetched fails alone
//! (`docs/ilink.md#download`).

use std::{sync::Arc, time::Duration};

use data_encoding::HEXLOWER;
use futures_util::StreamExt;
use md5::{Digest, Md5};

use super::{bot::BotWork, job::Job, queue::Queue, work_store::WorkContext};
use crate::{
    error::{Error, ErrorCode, Result},
    events::Event,
    file_type,
    id::{MediaId, MessageId},
    media::MediaRoom,
    model::{
        cause::Cause,
        media::{MediaState, MediaView},
    },
    network::{FetchedMedia, MediaError, MessageKind},
    secret::Secret,
    store::{
        due,
        media::{MediaRow, SettledMedia, StoredBytes},
    },
    time::Instant,
};

/// Pauses after attempts that may succeed later; then the file has failed until it is requested again.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];
/// Files of one bot that are fetched at a time.
const MAX_CONCURRENT_FETCHES: usize = 2;
/// Bytes by which a file may exceed its announced size, and the size that any file may have.
const SIZE_MARGIN: usize = 64 * 1024;
const MIN_LIMIT: usize = 4 << 20;
/// Files read in one round.
const MAX_PER_ROUND: u32 = 32;
/// Pause after a round in which the store did not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Returns the place that the network's reference to a file is sealed for.
pub(crate) fn source_place(id: MediaId) -> String {
    format!("media.source:{id}")
}

/// Fetches the files of one bot.
pub(super) struct MediaFetcher {
    ctx: WorkContext,
    queue: Arc<Queue>,
    bot: Arc<BotWork>,
}

impl MediaFetcher {
    pub(super) fn new(ctx: &WorkContext, queue: &Arc<Queue>, bot: &Arc<BotWork>) -> Self {
        Self { ctx: ctx.clone(), queue: Arc::clone(queue), bot: Arc::clone(bot) }
    }

    pub(super) async fn run(&self) {
        let (stop, bot) = (self.bot.tasks.stop_token().clone(), &self.bot);
        let mut next = None;
        loop {
            let timer = async {
                match next {
                    Some(at) => Box::pin(self.ctx.clock.sleep_until(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = bot.media_ready.notified() => {}
                () = timer => {}
            }
            // Cancelled when the hub stops: files that were not settled are fetched again.
            next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                round = Box::pin(self.fetch_round()) => match round {
                    Ok(next) => next,
                    Err(error) => {
                        self.bot.report("files could not be looked for", &error);
                        Some(self.ctx.clock.instant() + RETRY_PAUSE)
                    }
                },
            };
        }
    }

    /// Fetches every due file. Returns the time at which the next one is due.
    async fn fetch_round(&self) -> Result<Option<Instant>> {
        loop {
            let now = self.ctx.store.now();
            let open = self.ctx.store.downloading(self.bot.lease.bot_id, MAX_PER_ROUND).await?;
            let (due, later): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|row| due::wait(row.due_at, now).is_zero());
            if due.is_empty() {
                // Due times are by the database's clock; the wait is by this node's clock.
                let next = later.first().map(|row| self.ctx.clock.instant() + due::wait(row.due_at, now));
                return Ok(next);
            }
            futures_util::stream::iter(due)
                .for_each_concurrent(MAX_CONCURRENT_FETCHES, |row| async move {
                    if let Err(error) = self.fetch_one(row).await {
                        self.bot.report("a file's state could not be stored", &error);
                        self.ctx.clock.sleep(RETRY_PAUSE).await;
                    }
                })
                .await;
        }
    }

    async fn fetch_one(&self, row: MediaRow) -> Result<()> {
        let fetched = match self.check_room(&row).await {
            Ok(()) => self.fetch(&row).await,
            Err(error) => Err(error),
        };
        let now = self.ctx.store.now();
        let attempts = row.attempts + 1;
        let mut settled = SettledMedia {
            id: row.id,
            state: MediaState::Ready,
            reason: None,
            attempts,
            due_at: now,
            stored: None,
        };
        match fetched {
            Ok(stored) => settled.stored = Some(stored),
            Err(error @ (MediaError::Unavailable(_) | MediaError::TooLarge(_))) => {
                let reason = error.to_string();
                (settled.state, settled.reason) = (MediaState::Failed, Some(reason));
            }
            Err(MediaError::Later(reason) | MediaError::LoginExpired(reason)) => {
                let tries = usize::try_from(row.attempts).unwrap_or(usize::MAX);
                settled.reason = Some(reason);
                match RETRY_PAUSES.get(tries) {
                    Some(pause) => (settled.state, settled.due_at) = (MediaState::Downloading, now + *pause),
                    None => settled.state = MediaState::Failed,
                }
            }
        }
        let (state, reason) = (settled.state, settled.reason.clone());
        if let Some(reason) = &reason {
            tracing::info!(media_id = %row.id, state = state.as_str(), reason, "a file could not be fetched");
        }
        let counted = if state == MediaState::Downloading { "retried" } else { state.as_str() };
        self.ctx.node.counters.media.count(counted);
        if !self.ctx.store.settle_media(settled).await? {
            return self.forget_if_gone(row.id).await;
        }
        if let (true, Some(message_id)) = (state != MediaState::Downloading, row.message_id) {
            self.ctx.node.events.notify(Event::Media { bot_id: self.bot.lease.bot_id, message_id });
            self.queue.release(message_id);
        }
        Ok(())
    }

    /// Removes the bytes of a file whose message was deleted during the download: the sweep may have run before
    /// they were stored.
    async fn forget_if_gone(&self, id: MediaId) -> Result<()> {
        let row = self.ctx.store.find_media(id).await?;
        if row.is_none_or(|row| row.message_id.is_none()) {
            self.ctx.media.remove(id).await?;
        }
        Ok(())
    }

    async fn check_room(&self, row: &MediaRow) -> Result<(), MediaError> {
        let checked = self.ctx.files().check_storage(row.owner_id, 0).await;
        checked.map_err(|error| match error.code() {
            ErrorCode::Conflict => MediaError::Unavailable(error.message().to_owned()),
            _ => MediaError::Later(error.message().to_owned()),
        })
    }

    /// Fetches, opens and stores the bytes of a file.
    async fn fetch(&self, row: &MediaRow) -> Result<StoredBytes, MediaError> {
        let unreadable = |_: Error| MediaError::Unavailable(Cause::FileReferenceSealed.to_string());
        let sealer = &self.ctx.sealer;
        let source = row
            .source
            .as_ref()
            .ok_or_else(|| MediaError::Unavailable(Cause::FileWithoutReference.to_string()))?;
        let reference = sealer.open(&source_place(row.id), source).map_err(unreadable)?;
        let later = |error: Error| MediaError::Later(error.message().to_owned());
        let earlier = match row.md5.as_str() {
            "" => Vec::new(),
            md5 => self.ctx.store.opened_with_md5(self.bot.lease.bot_id, md5).await.map_err(later)?,
        };
        let earlier: Vec<Secret> =
            earlier.iter().filter_map(|(id, source)| sealer.open(&source_place(*id), source).ok()).collect();
        let limit = self.ctx.config.media.max_inbound;
        // The size in the message may be wrong: then the file is fetched again with the largest limit.
        let expected = usize::try_from(row.size).unwrap_or(limit).saturating_add(SIZE_MARGIN);
        let first = expected.max(MIN_LIMIT).min(limit);
        let fetched = match self.fetch_within(&reference, &earlier, first).await {
            Err(MediaError::TooLarge(_)) if first < limit => {
                self.fetch_within(&reference, &earlier, limit).await
            }
            fetched => fetched,
        };
        let (FetchedMedia { bytes, reference }, _room) = fetched?;
        let stored = StoredBytes {
            size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            md5: HEXLOWER.encode(&Md5::digest(&bytes)),
            content_type: content_type(row, &bytes).to_owned(),
            file_name: file_name(row, &bytes),
            source: Some(sealer.seal(&source_place(row.id), &reference)),
        };
        self.ctx.media.put(row.id, bytes).await.map_err(later)?;
        Ok(stored)
    }

    /// Fetches a file of at most `limit` bytes, once there is room for it in memory.
    async fn fetch_within(
        &self,
        reference: &Secret,
        earlier: &[Secret],
        limit: usize,
    ) -> Result<(FetchedMedia, MediaRoom), MediaError> {
        // Sealed and opened bytes are in memory together for a moment.
        let room = self.ctx.media.room(limit * 2).await;
        Ok((self.bot.connection.fetch_media(reference, earlier, limit).await?, room))
    }
}

/// The files of a job's message, for its receiver; `Err` with the time until which to wait for them. Only a message
/// without a text of its own waits, and only its first attempt.
pub(super) async fn of_job(ctx: &WorkContext, job: &Job) -> Result<Result<Vec<MediaView>, Instant>> {
    if !job.content.has_media {
        return Ok(Ok(Vec::new()));
    }
    let message_id = job.content.message_id;
    let media = ctx.files().of_message(message_id).await?;
    let waits = job.attempts == 0 && job.content.kind != MessageKind::Text;
    // A message from the future was accepted before the clock was set back; it has waited long enough.
    let (made_at, now) = (message_id.made_at(), ctx.clock.now());
    let limit = ctx.config.media.webhook_wait;
    let left = if made_at > now { Duration::ZERO } else { limit.saturating_sub(now.since(made_at)) };
    let missing = media.iter().any(|file| file.status == MediaState::Downloading);
    Ok(if waits && missing && !left.is_zero() { Err(ctx.clock.instant() + left) } else { Ok(media) })
}

/// Whether no file of a message is still being downloaded, or the store does not respond.
pub(super) async fn is_complete(ctx: &WorkContext, message_id: MessageId) -> bool {
    let files = ctx.files().of_message(message_id).await.unwrap_or_default();
    files.iter().all(|file| file.status != MediaState::Downloading)
}

fn content_type(row: &MediaRow, bytes: &[u8]) -> &'static str {
    let found = file_type::of_bytes(bytes);
    match row.kind {
        // A container is a better guess than the ending for everything but files people named themselves.
        MessageKind::File => file_type::of_name(&row.file_name).or(found),
        MessageKind::Video => found.or(Some("video/mp4")),
        _ => found,
    }
    .unwrap_or(file_type::UNKNOWN)
}

fn file_name(row: &MediaRow, bytes: &[u8]) -> String {
    let fallback = crate::media_store::views::fallback_name(row.kind, content_type(row, bytes));
    file_type::clean_name(&row.file_name, &fallback)
}
