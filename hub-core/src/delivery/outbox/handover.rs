//! The file of an item on its way out: it is handed over to the network before the item is sent. A crash in
//! between costs a second upload and nothing else.

use std::{sync::PoisonError, time::Duration};

use tracing::Instrument;

use super::{Go, Outbox};
use crate::{
    error::{ErrorCode, Result},
    id::{MediaId, OutboxId},
    network::{MediaError, MediaFile, UploadedMedia},
    spans,
    store::sending::{ItemState, OpenItem},
    time::Instant,
};

/// How long a file that was handed over may be sent without handing it over again.
const UPLOAD_VALIDITY: Duration = Duration::from_secs(600);
/// Files remembered as handed over; beyond that all are handed over again.
const MAX_REMEMBERED: usize = 256;
/// First pause after a file could not be handed over; doubles.
const PAUSE: Duration = Duration::from_secs(30);
/// Rounds until it is given up. Each has several tries.
const ROUNDS: u32 = 5;

/// A file that the network has.
pub(super) struct Handed {
    media: UploadedMedia,
    at: Instant,
}

/// What came of handing an item's file over.
pub(super) enum Handover {
    /// The item has none.
    Nothing,
    /// It can be sent.
    Done(UploadedMedia),
    /// It cannot be sent now, or ever.
    Not(Go),
}

impl Outbox {
    /// Hands an item's file over to the network, unless that was done a moment ago.
    pub(super) async fn hand_over(&self, item: &OpenItem, was_unknown: bool) -> Result<Handover> {
        let Some(id) = item.media_id else { return Ok(Handover::Nothing) };
        let started = self.engine.ctx.clock.instant();
        if let Some(media) = self.handed(item.id, started) {
            return Ok(Handover::Done(media));
        }
        let span = spans::outbox_send(self.bot.lease.bot_id, item.message_id, item.trace_id);
        let uploaded = tokio::select! {
            biased;
            () = self.bot.tasks.stop_token().cancelled() => return Ok(Handover::Not(Go::Wait)),
            uploaded = self.upload(id, &item.peer).instrument(span) => uploaded?,
        };
        failpoint!("outbox.handed");
        match uploaded {
            Ok(media) => {
                self.remember(item, &media);
                Ok(Handover::Done(media))
            }
            Err(error) => self.not_handed(item, was_unknown, error).await.map(Handover::Not),
        }
    }

    async fn upload(&self, id: MediaId, peer: &str) -> Result<Result<UploadedMedia, MediaError>> {
        let ctx = &self.engine.ctx;
        let gone = || Ok(Err(MediaError::Unavailable("the file is gone".to_owned())));
        let Some(row) = ctx.store.find_media(id).await? else { return gone() };
        let max = ctx.config.media.max_inbound.max(ctx.config.media.max_outbound);
        let size = usize::try_from(row.size).unwrap_or(max);
        // Plain and sealed lie there together.
        let _room = ctx.media.room(size.saturating_mul(2)).await;
        let bytes = match ctx.media.read(id, max).await {
            Ok(bytes) => bytes,
            Err(error) if error.code() == ErrorCode::Unavailable => return Err(error),
            Err(_) => return gone(),
        };
        let file = MediaFile { kind: row.kind, file_name: row.file_name, bytes };
        Ok(self.bot.connection.upload_media(peer, &file).await)
    }

    /// What cannot be handed over fails alone: the texts before it went, and what follows goes on.
    async fn not_handed(&self, item: &OpenItem, was_unknown: bool, error: MediaError) -> Result<Go> {
        let now = self.engine.ctx.store.now();
        let reason = format!("the file was not sent: {error}");
        let round = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let round = state.failures.entry(item.id).or_default();
            *round += 1;
            *round
        };
        if matches!(error, MediaError::LoginExpired(_)) {
            self.bot.poke.notify_one();
        }
        let lasting = matches!(error, MediaError::Unavailable(_) | MediaError::TooLarge(_));
        if lasting || round >= ROUNDS {
            self.settle(item, now, ItemState::Failed, now, Some(&reason), |s| s.attempts = item.attempts)
                .await?;
            return Ok(Go::On);
        }
        self.later(item, now, PAUSE * 2_u32.pow(round - 1), &reason, |s| {
            s.attempts = item.attempts;
            // An earlier attempt with an unknown outcome stays counted.
            s.unknown = was_unknown;
        })
        .await
    }

    fn handed(&self, item: OutboxId, now: Instant) -> Option<UploadedMedia> {
        let state = self.state();
        state
            .handed
            .get(&item)
            .filter(|handed| now.since(handed.at) < UPLOAD_VALIDITY)
            .map(|handed| handed.media.clone())
    }

    fn remember(&self, item: &OpenItem, media: &UploadedMedia) {
        let at = self.engine.ctx.clock.instant();
        let mut state = self.state();
        state.failures.remove(&item.id);
        if state.handed.len() >= MAX_REMEMBERED {
            state.handed.clear();
        }
        state.handed.insert(item.id, Handed { media: media.clone(), at });
    }

    /// The item is concluded.
    pub(super) fn forget_file(&self, item: &OpenItem) {
        let mut state = self.state();
        state.handed.remove(&item.id);
        state.failures.remove(&item.id);
    }
}
