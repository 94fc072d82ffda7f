//! A delivery in memory: a message on its way to one sink.

use std::sync::Arc;

use super::lanes::Queued;
use crate::{
    error::{Error, Result},
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    media_store::views::has_media,
    model::{
        media::MediaView,
        private,
        sinks::{SinkId, SinkKey},
    },
    network::{MessageKind, Quote},
    secret::{Sealer, Secret},
    store::deliveries::{JobMessage, JobRow},
    time::{Clock, Instant, Timestamp},
};

/// What a sink needs of a message; shared by the jobs of all channels.
#[derive(Debug)]
pub struct Content {
    pub message_id: MessageId,
    pub from_user_id: String,
    pub user_name: String,
    /// The person on the other side; replies go there.
    pub peer: String,
    pub session_id: String,
    /// Empty outside of groups.
    pub group_id: String,
    pub kind: MessageKind,
    pub text: String,
    /// Parts, as JSON.
    pub items: String,
    pub has_media: bool,
    pub quote: Option<Quote>,
    /// The network's permission to reply.
    pub context_token: Option<Secret>,
    pub sent_at: Timestamp,
}

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

    /// Whose queue it waits in.
    pub const fn key(&self) -> SinkKey {
        SinkKey { channel: self.channel_id, sink: self.sink }
    }
}

impl Queued for Job {
    fn is_retry(&self) -> bool {
        self.attempts > 0
    }
}

impl Content {
    /// Reads a stored message.
    pub(crate) fn open(row: JobMessage, sealer: &Sealer) -> Result<Self> {
        let message_id = row.message_id;
        let context_token = private::context_token(sealer, message_id, row.private.as_ref())?;
        Ok(Self {
            message_id,
            from_user_id: row.from_user_id,
            user_name: row.user_name,
            peer: row.peer,
            session_id: row.session_id,
            group_id: row.group_id,
            kind: row.kind,
            has_media: has_media(&row.items),
            text: row.content,
            items: row.items,
            quote: row.quoted.map(|text| serde_json::from_str(&text)).transpose().map_err(Error::internal)?,
            context_token,
            sent_at: row.sent_at,
        })
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
        content: Arc::new(Content::open(row.message, sealer)?),
        media: Vec::new(),
    })
}
