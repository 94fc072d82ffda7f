//! A delivery in memory: a message on its way to one sink.

use std::sync::Arc;

use super::{channels::ChannelRuntime, lanes::Queued};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, TraceId},
    model::{
        media::MediaView,
        sinks::{SinkId, SinkKey},
    },
    payload::{Content, Payload},
    redact::Redactor,
    secret::{Sealer, Secret},
    store::deliveries::JobRow,
    time::{Clock, Instant, Timestamp},
};

/// One delivery.
#[derive(Debug)]
pub struct Job {
    /// The `webhook-id` of every attempt.
    pub id: DeliveryId,
    pub trace_id: TraceId,
    pub bot_id: BotId,
    pub channel_id: ChannelId,
    pub sink: SinkId,
    /// The lease under which it is held.
    pub fence: i64,
    /// Place in the channel's log; 0 for a replay.
    pub seq: i64,
    /// Attempts made.
    pub attempts: u32,
    pub first_attempt: Option<Instant>,
    /// Whether another delivery waited in its lane when the sink answered.
    pub is_followed: bool,
    /// The target of a replay to another URL.
    pub target_url: Option<String>,
    /// The text as the channel sees it, where that differs.
    pub channel_text: Option<String>,
    pub content: Arc<Content>,
    /// The files of the message at the last attempt.
    pub media: Vec<MediaView>,
}

impl Job {
    /// The text as the channel sees it.
    pub fn text(&self) -> &str {
        self.channel_text.as_deref().unwrap_or(&self.content.text)
    }

    /// Returns a redactor that masks the channel's secrets, the permission to answer, and the signatures of links
    /// to files.
    pub fn redactor(&self, channel: &ChannelRuntime) -> Redactor {
        let links: Vec<Secret> =
            self.media.iter().filter_map(|file| Some(file.url.as_ref()?.signature())).collect();
        channel.redactor.with(self.content.context_token.iter().chain(&links))
    }

    /// Its payload.
    pub fn payload(&self) -> Payload<'_> {
        Payload::new(&self.content, self.text(), (self.bot_id, self.channel_id), &self.media)
    }

    /// Returns the sink whose queue the delivery waits in.
    pub const fn key(&self) -> SinkKey {
        SinkKey { channel: self.channel_id, sink: self.sink }
    }
}

impl Queued for Job {
    fn is_retry(&self) -> bool {
        self.attempts > 0
    }
}

/// Reads a stored delivery at `now` of the store's clock; the lane and the due time belong to the queue.
pub(crate) fn open_job(
    row: JobRow,
    bot_id: BotId,
    fence: i64,
    sealer: &Sealer,
    clock: &Clock,
    now: Timestamp,
) -> Result<Job> {
    let instant = clock.instant();
    Ok(Job {
        id: row.id,
        trace_id: row.trace_id,
        bot_id,
        channel_id: row.channel_id,
        sink: row.sink,
        fence,
        seq: row.seq,
        attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        first_attempt: row.first_attempt_at.map(|at| instant - now.since(at)),
        is_followed: false,
        target_url: row.target_url,
        channel_text: row.channel_content,
        content: Arc::new(Content::open(row.message, bot_id, sealer)?),
        media: Vec::new(),
    })
}
