//! Replies of sinks and plugins to the sender of a message, as rows of the outbox.

use std::collections::HashSet;

use super::{
    bot::BotWork,
    job::Job,
    stage::{Reply, ReplyContent, ReplyFile},
    work_store::WorkContext,
};
use crate::{
    delivery::channels::ChannelRuntime,
    media::NewFile,
    model::{
        trace::{Step, StepDetail, StepError, StepName, TraceStatus},
        window::Window,
    },
    network::TextFormat,
    store::{
        outbox::{NewOutbound, NewPart},
        sending::ItemState,
    },
    time::Timestamp,
};

/// The replies to one delivery.
pub(super) struct Replies<'a> {
    pub(super) ctx: &'a WorkContext,
    pub(super) bot: &'a BotWork,
    pub(super) channel: &'a ChannelRuntime,
    pub(super) job: &'a Job,
}

impl Replies<'_> {
    /// Builds the rows of replies; one reply is one row keyed by the delivery, so that a second run adds none.
    /// Files are stored here, before the commit that sends them. If `closed` is the reason why nothing can be sent,
    /// the replies are only added to the trace.
    pub(super) async fn rows(
        &self,
        replies: Vec<Reply>,
        closed: Option<&'static str>,
        steps: &mut Vec<Step>,
    ) -> Vec<NewOutbound> {
        let job = self.job;
        let sent = self.sent_before(&replies).await;
        let mut rows = Vec::with_capacity(replies.len());
        for Reply { key, by, content } in replies {
            let dedupe_key = dedupe_key(job, &key);
            if sent.contains(&dedupe_key) {
                continue;
            }
            let now = self.ctx.store.now();
            let parts = match closed {
                Some(reason) => Err(reason.to_owned()),
                None => self.parts(content).await,
            };
            match parts {
                Ok((content, parts, mut detail)) => {
                    detail.to = Some(job.content.peer.clone());
                    detail.state = Some(ItemState::Queued.as_str().to_owned());
                    steps.push(Step::new(StepName::Reply, by, TraceStatus::Pending, now, now, detail));
                    rows.push(self.row(dedupe_key, content, parts, now));
                }
                Err(reason) => {
                    let detail = StepDetail {
                        to: Some(job.content.peer.clone()),
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
    pub(super) fn closed_group(&self, now: Timestamp) -> Option<&'static str> {
        if self.job.content.group_id.is_empty() {
            return None;
        }
        let window = Window::default().check(&self.bot.network.window_rules(), now);
        window.err().map(|_| "the chat network does not accept messages to groups")
    }

    /// Returns the keys of replies with files that an earlier attempt stored; their files are not stored again. If
    /// the store does not respond, they are, and the sweep deletes files without a message.
    async fn sent_before(&self, replies: &[Reply]) -> HashSet<String> {
        let job = self.job;
        let files = replies.iter().filter(|reply| matches!(reply.content, ReplyContent::File(_)));
        let keys: Vec<String> = files.map(|reply| dedupe_key(job, &reply.key)).collect();
        if keys.is_empty() || job.attempts == 0 {
            return HashSet::new();
        }
        self.ctx.store.known_keys(job.bot_id, &keys).await.unwrap_or_default().into_iter().collect()
    }

    /// Returns the text, the parts and the trace detail of a reply, or the reason why it cannot be sent.
    async fn parts(&self, content: ReplyContent) -> Result<(String, Vec<NewPart>, StepDetail), String> {
        match content {
            ReplyContent::Text(text) => {
                // PostgreSQL cannot hold it, and no chat shows it.
                let text = text.replace('\0', "\u{fffd}");
                if text.trim().is_empty() {
                    return Err("the text is blank".to_owned());
                }
                let texts = self.bot.network.split_text(&text, TextFormat::Markdown);
                let parts: Vec<NewPart> =
                    texts.into_iter().map(|text| NewPart::new(&self.ctx.ids, text)).collect();
                let detail = StepDetail { parts: Some(parts.len() as u64), ..StepDetail::default() };
                Ok((text, parts, detail))
            }
            ReplyContent::File(ReplyFile { file_name, content_type, bytes }) => {
                let new = NewFile {
                    owner_id: self.bot.owner_id,
                    bot_id: self.job.bot_id,
                    channel_id: Some(self.channel.id),
                    file_name,
                    content_type,
                    bytes,
                };
                let kept = self.ctx.files().keep(new).await.map_err(|error| error.message().to_owned())?;
                let detail = StepDetail {
                    parts: Some(1),
                    file: Some(kept.file_name.clone()),
                    size: Some(kept.size),
                    ..StepDetail::default()
                };
                Ok((kept.file_name.clone(), vec![NewPart::file(&self.ctx.ids, kept)], detail))
            }
            ReplyContent::Unsendable(reason) => Err(reason.to_owned()),
        }
    }

    fn row(&self, dedupe_key: String, content: String, parts: Vec<NewPart>, now: Timestamp) -> NewOutbound {
        let job = self.job;
        NewOutbound {
            message_id: self.ctx.ids.next(),
            bot_id: job.bot_id,
            peer: job.content.peer.clone(),
            dedupe_key,
            content,
            parts,
            quoted: None,
            channel_id: Some(self.channel.id),
            trace_id: Some(job.trace_id),
            private: None,
            expires_at: now + self.ctx.config.outbox_lifetime,
            now,
        }
    }
}

fn dedupe_key(job: &Job, key: &str) -> String {
    format!("{}:{key}", job.id)
}
