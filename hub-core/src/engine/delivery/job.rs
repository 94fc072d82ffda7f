//! Deliveries in memory: a message on its way to a sink of a channel, or an event on its way to an app.

use std::sync::Arc;

use super::{channels::ChannelRuntime, lanes::Queued};
use crate::{
    error::Result,
    id::{AppEventId, BotId, ChannelId, DeliveryId, InstallationId, MessageId, TraceId},
    model::{
        media::MediaView,
        sinks::{SinkId, SinkKey},
        trace::DeliveryState,
    },
    payload::{Content, Payload},
    redact::Redactor,
    secret::{Sealer, Secret},
    store::deliveries::{EventJobRow, JobRow},
    time::{Clock, Instant, Timestamp},
};

/// A delivery in its lane.
#[derive(Debug)]
pub enum Delivery {
    /// A message to a sink of a channel.
    Message(Job),
    /// An event to an app.
    Event(EventJob),
}

impl Delivery {
    pub const fn id(&self) -> DeliveryId {
        match self {
            Self::Message(job) => job.id,
            Self::Event(job) => job.id,
        }
    }

    pub const fn trace_id(&self) -> Option<TraceId> {
        match self {
            Self::Message(job) => Some(job.trace_id),
            Self::Event(job) => job.trace_id,
        }
    }

    pub const fn bot_id(&self) -> BotId {
        match self {
            Self::Message(job) => job.bot_id,
            Self::Event(job) => job.bot_id,
        }
    }

    /// The lease under which it is held.
    pub const fn fence(&self) -> i64 {
        match self {
            Self::Message(job) => job.fence,
            Self::Event(job) => job.fence,
        }
    }

    /// Attempts made.
    pub const fn attempts(&self) -> u32 {
        match self {
            Self::Message(job) => job.attempts,
            Self::Event(job) => job.attempts,
        }
    }

    /// The sink in whose queue it waits.
    pub const fn key(&self) -> SinkKey {
        match self {
            Self::Message(job) => job.key(),
            Self::Event(job) => SinkKey::App(job.installation_id),
        }
    }

    /// Whether it waits for the files of this message.
    pub fn waits_for_files_of(&self, message: MessageId) -> bool {
        matches!(self, Self::Message(job) if job.attempts == 0 && job.content.message_id == message)
    }
}

impl Queued for Delivery {
    fn is_retry(&self) -> bool {
        self.attempts() > 0
    }
}

/// The delivery of an event to an app. The event itself is read when it is sent.
#[derive(Debug)]
pub struct EventJob {
    pub id: DeliveryId,
    /// The trace of the event's cause.
    pub trace_id: Option<TraceId>,
    pub bot_id: BotId,
    pub installation_id: InstallationId,
    pub event_id: AppEventId,
    /// The lease under which it is held.
    pub fence: i64,
    /// Whether it is the only one of its lane, and keeps none waiting: it was parked.
    pub is_alone: bool,
    /// Attempts made, including those that ended without a request.
    pub attempts: u32,
    pub first_attempt: Option<Instant>,
}

impl EventJob {
    /// Opens a stored delivery at `now` of the store's clock.
    pub(crate) fn open(row: &EventJobRow, bot_id: BotId, fence: i64, clock: &Clock, now: Timestamp) -> Self {
        let instant = clock.instant();
        Self {
            id: row.id,
            trace_id: row.trace_id,
            bot_id,
            installation_id: row.installation_id,
            event_id: row.event_id,
            fence,
            is_alone: row.state == DeliveryState::Parked,
            attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
            first_attempt: row.first_attempt_at.map(|at| instant - now.since(at)),
        }
    }
}

/// The delivery of a message to a sink of a channel.
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
    /// Whether it is the only one of its lane, and keeps none waiting: it was parked, or is a replay.
    pub is_alone: bool,
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
        SinkKey::Channel(self.channel_id, self.sink)
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
        is_alone: row.state == DeliveryState::Parked || row.seq == 0,
        attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        first_attempt: row.first_attempt_at.map(|at| instant - now.since(at)),
        is_followed: false,
        target_url: row.target_url,
        channel_text: row.channel_content,
        content: Arc::new(Content::open(row.message, bot_id, sealer)?),
        media: Vec::new(),
    })
}
