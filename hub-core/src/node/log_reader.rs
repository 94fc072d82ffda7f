//! Pages of logs, read from the store or shared.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    config::MediaLimits,
    error::{Error, Result},
    media_store::{
        MediaStore,
        views::{self, Views, has_media},
    },
    node::{
        feed::{Feed, MAX_RECENT},
        log_entry::LogEntry,
    },
    secret::Sealer,
    store::{Read, Store, log::LogRow},
};

/// Most entries of a page.
pub const PAGE: usize = 64;
/// Characters of text and items of a page; the entry that goes beyond is its last.
const PAGE_CHARS: i64 = 256 * 1024;
/// Pages read at the same time: the pool of connections serves others too.
const READS: usize = 3;

/// Reads logs for all clients of this node.
#[derive(Debug)]
pub(crate) struct LogReader {
    store: Store,
    sealer: Sealer,
    media: MediaStore,
    limits: MediaLimits,
    permits: Semaphore,
}

/// Entries that follow a position.
pub(crate) struct Page {
    pub entries: Vec<Arc<LogEntry>>,
    /// Whether they were read at the end of the log for all clients, and not for one that lags.
    pub at_the_end: bool,
}

impl LogReader {
    pub(crate) fn new(store: Store, sealer: Sealer, media: MediaStore, limits: MediaLimits) -> Self {
        Self { store, sealer, media, limits, permits: Semaphore::new(READS) }
    }

    /// Reads the entries after `position` in a log whose newest number is `newest`.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn page(&self, feed: &Feed, position: i64, newest: i64, limit: usize) -> Result<Page> {
        let mut recent = feed.recent.lock().await;
        if let Some(entries) = recent.after(position, limit, self.store.now()) {
            return Ok(Page { entries, at_the_end: true });
        }
        let kept = i64::try_from(MAX_RECENT).unwrap_or(i64::MAX);
        if position == recent.end() || newest - position <= kept {
            // A whole page also for a client that wants less: the others want the rest.
            let mut entries = self.load(feed, position, PAGE).await?;
            recent.extend(position, &entries);
            entries.truncate(limit);
            return Ok(Page { entries, at_the_end: true });
        }
        drop(recent);
        Ok(Page { entries: self.load(feed, position, limit).await?, at_the_end: false })
    }

    async fn load(&self, feed: &Feed, position: i64, limit: usize) -> Result<Vec<Arc<LogEntry>>> {
        let _permit = self.permits.acquire().await.map_err(Error::internal)?;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let mut read = self.store.read().await?;
        let rows = read.log().after(feed.channel_id, position, limit, PAGE_CHARS).await?;
        let (files, now) = (self.files(&mut read, &rows).await?, self.store.now());
        drop(read);
        let place = (feed.bot_id, feed.channel_id);
        rows.into_iter()
            .map(|row| {
                let id = row.message.message_id;
                let media = files.get(&id).map_or(&[][..], Vec::as_slice);
                LogEntry::open(row, media, place, &self.sealer, now).map(Arc::new)
            })
            .collect()
    }

    /// The files of a page; most pages have none and ask for none.
    async fn files(&self, read: &mut Read, rows: &[LogRow]) -> Result<Views> {
        let with_files = rows.iter().filter(|row| has_media(&row.message.items));
        let ids: Vec<_> = with_files.map(|row| row.message.message_id).collect();
        let rows = read.media().of_messages(&ids).await?;
        Ok(views::views(rows, self.media.links(), &self.limits, self.store.now()))
    }
}
