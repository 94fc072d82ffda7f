//! Replies of sinks and plugins to the sender of a message, as rows of the outbox.

use std::collections::HashSet;

use super::{
    bot::BotWork,
    job::{EventJob, Job},
    stage::{Reply, ReplyContent, ReplyFile},
    work_store::WorkContext,
};
use crate::{
    id::{ChannelId, DeliveryId, TraceId},
    media::NewFile,
    model::{
        cause::Cause,
        trace::{Step, StepDetail, StepError, StepName, TraceStatus},
        window::Window,
    },
    network::TextFormat,
    store::{
        app_events::DueEvent,
        outbox::{NewOutbound, NewPart},
        sending::ItemState,
    },
    time::Timestamp,
};

/// The replies to one delivery.
pub(super) struct Replies<'a> {
    ctx: &'a WorkContext,
    bot: &'a BotWork,
    delivery: DeliveryId,
    trace_id: Option<TraceId>,
    /// The channel that replies; `None` for an app.
    channel_id: Option<ChannelId>,
    /// Whether the delivery was attempted before.
    is_retry: bool,
    peer: &'a str,
    is_group: bool,
}

impl<'a> Replies<'a> {
    /// Replies of a channel to the sender of a message.
    pub(super) fn to_message(ctx: &'a WorkContext, bot: &'a BotWork, job: &'a Job) -> Self {
        Self {
            ctx,
            bot,
            delivery: job.id,
            trace_id: Some(job.trace_id),
            channel_id: Some(job.channel_id),
            is_retry: job.attempts > 0,
            peer: &job.content.peer,
            is_group: !job.content.group_id.is_empty(),
        }
    }

    /// Replies of an app to the person of an event.
    pub(super) fn to_event(
        ctx: &'a WorkContext,
        bot: &'a BotWork,
        job: &EventJob,
        event: &'a DueEvent,
    ) -> Self {
        Self {
            ctx,
            bot,
            delivery: job.id,
            trace_id: job.trace_id,
            channel_id: None,
            is_retry: job.attempts > 0,
            peer: &event.peer,
            is_group: event.peer_is_group(),
        }
    }

    /// Builds the rows of replies; one reply is one row keyed by the delivery, so that a second run adds none.
    /// Files are stored here, before the commit that sends them. If `closed` is the reason why nothing can be sent,
    /// the replies are only added to the trace.
    pub(super) async fn rows(
        &self,
        replies: Vec<Reply>,
        closed: Option<&Cause>,
        steps: &mut Vec<Step>,
    ) -> Vec<NewOutbound> {
        let sent = self.sent_before(&replies).await;
        let mut rows = Vec::with_capacity(replies.len());
        for Reply { key, by, content } in replies {
            let dedupe_key = self.dedupe_key(&key);
            if sent.contains(&dedupe_key) {
                continue;
            }
            let now = self.ctx.store.now();
            let parts = match closed {
                Some(cause) => Err(cause.to_string()),
                None => self.parts(content).await,
            };
            match parts {
                Ok((content, parts, mut detail)) => {
                    detail.to = Some(self.peer.to_owned());
                    detail.state = Some(ItemState::Queued.as_str().to_owned());
                    steps.push(Step::new(StepName::Reply, by, TraceStatus::Pending, now, now, detail));
                    rows.push(self.row(dedupe_key, content, parts, now));
                }
                Err(reason) => {
                    let detail = StepDetail {
                        to: Some(self.peer.to_owned()),
                        error: Some(StepError::new(reason)),
                        ..StepDetail::default()
                    };
                    steps.push(Step::new(StepName::Reply, by, TraceStatus::Error, now, now, detail));
                }
            }
        }
        rows
    }

    /// Returns the reason if nothing can be sent to the group of a message. Where only people who wrote can be
    /// written to, a group never can, and a reply to it would wait until it expires.
    pub(super) fn closed_group(&self, now: Timestamp) -> Option<Cause> {
        if !self.is_group {
            return None;
        }
        let window = Window::default().check(&self.bot.network.window_rules(), now);
        window.err().map(|_| Cause::NoGroups)
    }

    /// Returns the keys of replies with files that an earlier attempt stored; their files are not stored again. If
    /// the store does not respond, they are, and the sweep deletes files without a message.
    async fn sent_before(&self, replies: &[Reply]) -> HashSet<String> {
        let files = replies.iter().filter(|reply| matches!(reply.content, ReplyContent::File(_)));
        let keys: Vec<String> = files.map(|reply| self.dedupe_key(&reply.key)).collect();
        if keys.is_empty() || !self.is_retry {
            return HashSet::new();
        }
        self.ctx
            .store
            .known_keys(self.bot.lease.bot_id, &keys)
            .await
            .unwrap_or_default()
            .into_iter()
            .collect()
    }

    /// Returns the text, the parts and the trace detail of a reply, or the reason why it cannot be sent.
    async fn parts(&self, content: ReplyContent) -> Result<(String, Vec<NewPart>, StepDetail), String> {
        match content {
            ReplyContent::Text(text) => {
                // PostgreSQL cannot hold it, and no chat shows it.
                let text = text.replace('\0', "\u{fffd}");
                if text.trim().is_empty() {
                    return Err(Cause::TextBlank.to_string());
                }
                let parts = self.text_parts(&text);
                let detail = StepDetail { parts: Some(parts.len() as u64), ..StepDetail::default() };
                Ok((text, parts, detail))
            }
            ReplyContent::File(ReplyFile { caption, file_name, content_type, bytes }) => {
                let new = NewFile {
                    owner_id: self.bot.owner_id,
                    bot_id: self.bot.lease.bot_id,
                    channel_id: self.channel_id,
                    file_name,
                    content_type,
                    bytes,
                };
                let kept = self.ctx.files().keep(new).await.map_err(|error| error.message().to_owned())?;
                let file_name = kept.file_name.clone();
                let mut parts = self.text_parts(&caption);
                let size = Some(kept.size);
                parts.push(NewPart::file(&self.ctx.ids, kept));
                let detail = StepDetail {
                    parts: Some(parts.len() as u64),
                    file: Some(file_name.clone()),
                    size,
                    ..StepDetail::default()
                };
                Ok((if caption.is_empty() { file_name } else { caption }, parts, detail))
            }
            ReplyContent::Unsendable(cause) => Err(cause.to_string()),
        }
    }

    /// Splits a text into what the network takes at a time; a blank text has no parts.
    fn text_parts(&self, text: &str) -> Vec<NewPart> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        let texts = self.bot.network.split_text(text, TextFormat::Markdown);
        texts.into_iter().map(|text| NewPart::new(&self.ctx.ids, text)).collect()
    }

    fn row(&self, dedupe_key: String, content: String, parts: Vec<NewPart>, now: Timestamp) -> NewOutbound {
        NewOutbound {
            message_id: self.ctx.ids.next(),
            bot_id: self.bot.lease.bot_id,
            peer: self.peer.to_owned(),
            dedupe_key,
            content,
            parts,
            quoted: None,
            channel_id: self.channel_id,
            trace_id: self.trace_id,
            private: None,
            expires_at: now + self.ctx.config.outbox_lifetime,
            now,
        }
    }

    fn dedupe_key(&self, key: &str) -> String {
        format!("{}:{key}", self.delivery)
    }
}
