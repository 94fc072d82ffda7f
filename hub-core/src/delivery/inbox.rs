//! From the network's answer to committed work: dedupe keys, quotes, routes, then one transaction
//! (`contract.md` §6.1). Nothing is dispatched, and no cursor moves, before that commit.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use serde_json::json;

use super::{
    job::{Content, Job, seal_private},
    node::{BotWork, Engine},
};
use crate::{
    channels::runtime::{BotChannels, ChannelRuntime, Route, RouteInput},
    channels::sinks::Ordering,
    error::{ErrorCode, Result},
    events::Event,
    id::{DeliveryId, MessageId, TraceId},
    invariants::invariant,
    network::{Batch, InboundMessage, MessageClass, MessageKind, Quote},
    secret::Secret,
    store::{
        inbox::{
            Accept, AcceptMessage, AcceptRoute, Accepted, ContactUpdate, MessageRow, NewDelivery, Taken,
        },
        traces::NewTrace,
    },
    time::Timestamp,
    traces::{Step, StepName, TraceStatus, steps_text},
};

/// Longest text kept of one message; the network's own limit is far below.
const MAX_CONTENT: usize = 256 * 1024;

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// Committed and dispatched.
    Done,
    /// The bot belongs to somebody else now: stop polling.
    Lost,
}

/// A message that was routed, kept until its commit.
struct Routed {
    content: Arc<Content>,
    /// One entry per channel; `None` where the webhook has nothing to do.
    jobs: Vec<Option<RoutedJob>>,
}

/// A delivery in the making.
struct RoutedJob {
    id: DeliveryId,
    trace_id: TraceId,
    channel: Arc<ChannelRuntime>,
    channel_text: Option<String>,
    /// Whether this node keeps it in memory.
    held: bool,
}

impl Engine {
    /// Commits a batch and hands its deliveries to the lanes. A batch that the store refuses for what it is
    /// goes in message by message, and a message that is refused alone is quarantined: whatever one message
    /// holds, the others arrive and the cursor goes on.
    pub(super) async fn take_in(&self, bot: &BotWork, batch: Batch) -> Result<Intake> {
        let refused = match self.try_take_in(bot, &batch).await {
            Err(error) if !batch.messages.is_empty() => error,
            taken => return taken,
        };
        Self::report("a batch was refused by the store; its messages go in one by one", bot, &refused);
        for message in batch.messages {
            let alone = |message| Batch { messages: vec![message], cursor: None, answered: true };
            let batch = alone(message);
            let taken = match self.try_take_in(bot, &batch).await {
                Err(error) => {
                    Self::report("a message was refused by the store and is quarantined", bot, &error);
                    let quarantined = batch.messages.into_iter().map(quarantine).next().map(alone);
                    self.try_take_in(bot, &quarantined.unwrap_or_default()).await?
                }
                Ok(taken) => taken,
            };
            if taken == Intake::Lost {
                return Ok(taken);
            }
        }
        self.try_take_in(bot, &Batch { messages: Vec::new(), cursor: batch.cursor, answered: true }).await
    }

    /// Waits and tries again as long as the store cannot read or write: the network's cursor stands still meanwhile.
    async fn try_take_in(&self, bot: &BotWork, batch: &Batch) -> Result<Intake> {
        loop {
            match self.commit_batch(bot, batch).await {
                Ok(Some(intake)) => return Ok(intake),
                Ok(None) => {}
                Err(error) if error.code() == ErrorCode::Unavailable => {
                    tracing::warn!(bot_id = %bot.lease.bot_id, "the store cannot take messages; trying again");
                    self.ctx.clock.sleep(std::time::Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
            if bot.tasks.stopping() {
                return Ok(Intake::Lost);
            }
        }
    }

    /// One transaction. `None` when the channels changed after they were loaded; they are loaded again then.
    async fn commit_batch(&self, bot: &BotWork, batch: &Batch) -> Result<Option<Intake>> {
        failpoint!("intake.before");
        let quoted = self.quoted_texts(bot, batch).await?;
        // Held over the commit: the backlog scan of this bot must not run between the decision who holds a
        // delivery and its row.
        let mut behind = bot.behind.lock().await;
        let channels = bot.channels();
        let now = self.ctx.store.now();
        let mut routed = Vec::with_capacity(batch.messages.len());
        let mut messages = Vec::with_capacity(batch.messages.len());
        for message in &batch.messages {
            let claims = |channel: &ChannelRuntime| {
                let held = !behind.is_behind(channel.id) && self.lanes().room(channel.id);
                if !held {
                    behind.add(channel.id);
                }
                held
            };
            let (row, work) = self.route(bot, &channels, message, &quoted, now, claims);
            messages.push(row);
            routed.push(work);
        }
        let accept = Accept {
            bot_id: bot.lease.bot_id,
            fence: bot.lease.fence,
            config_rev: channels.config_rev,
            cursor: batch.cursor.clone(),
            now,
            messages,
        };
        match self.ctx.store.accept(accept).await {
            Ok(Accepted::Stored(stored)) => {
                failpoint!("intake.committed", passed);
                if !self.numbers_grow(bot, &routed, &stored) {
                    // Nothing is lost: the rows are held by nobody after the next start.
                    self.stop_bot(bot, "a channel's log went backwards; see the server's log").await;
                    return Ok(Some(Intake::Lost));
                }
                let fresh = batch.messages.iter().zip(&stored).filter(|(_, seqs)| seqs.is_some());
                fresh.for_each(|(message, _)| self.ctx.counters.messages.count(status_of(message.class)));
                self.dispatch(bot, routed, &stored);
                Ok(Some(Intake::Done))
            }
            Ok(Accepted::Fenced) => Ok(Some(Intake::Lost)),
            Ok(Accepted::Stale) => {
                drop(behind);
                bot.reload_channels(&self.ctx).await?;
                Ok(None)
            }
            Err(error) => {
                if error.code() == ErrorCode::Unavailable {
                    let jobs = routed.iter().flat_map(|work| &work.jobs).flatten();
                    behind.doubt(jobs.filter(|job| job.held).map(|job| job.id));
                }
                Err(error)
            }
        }
    }

    /// Texts of the messages that this batch quotes by id alone: one query for all.
    async fn quoted_texts(&self, bot: &BotWork, batch: &Batch) -> Result<HashMap<String, String>> {
        let ids: Vec<&str> = batch
            .messages
            .iter()
            .filter_map(|message| message.quote.as_ref())
            .filter(|quote| quote.text.is_none())
            .filter_map(|quote| quote.network_id.as_deref())
            .collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        self.ctx.store.quoted_texts(bot.lease.bot_id, &ids).await
    }

    /// Decides where a message goes, without I/O.
    fn route(
        &self,
        bot: &BotWork,
        channels: &BotChannels,
        message: &InboundMessage,
        quoted: &HashMap<String, String>,
        now: Timestamp,
        mut claims: impl FnMut(&ChannelRuntime) -> bool,
    ) -> (AcceptMessage, Routed) {
        let ctx = &self.ctx;
        let id: MessageId = ctx.ids.next();
        let content = Arc::new(content_of(id, message, quoted));
        let private = seal_private(&ctx.sealer, id, message.context_token.as_ref(), &message.raw);
        let row = MessageRow {
            id,
            bot_id: bot.lease.bot_id,
            peer: content.peer.clone(),
            from_user_id: content.from_user_id.clone(),
            to_user_id: clean(&message.to_user_id),
            user_name: content.user_name.clone(),
            session_id: content.session_id.clone(),
            group_id: content.group_id.clone(),
            kind: message.kind.as_str(),
            content: content.text.clone(),
            items: content.items.clone(),
            quoted: content.quote.as_ref().map(crate::store::json),
            network_id: message.network_id.as_deref().map(clean),
            dedupe_key: clean(&message.dedupe_key),
            private: private.as_str().to_owned(),
            status: status_of(message.class),
            sent_at: message.sent_at.as_millis(),
            created_at: now.as_millis(),
        };
        let mut work = Routed { content: Arc::clone(&content), jobs: Vec::new() };
        if message.class != MessageClass::User {
            let trace =
                (message.class == MessageClass::Quarantined).then(|| self.quarantine_trace(bot, id, now));
            let routes = trace.into_iter().collect();
            return (AcceptMessage { row, contact: None, routes }, work);
        }
        let opened_at =
            if message.sent_at > now || message.sent_at.as_millis() <= 0 { now } else { message.sent_at };
        let token_place = super::outbox::token_place(bot.lease.bot_id, &content.from_user_id);
        let contact = ContactUpdate {
            context_token: message.context_token.as_ref().map(|token| ctx.sealer.seal(&token_place, token)),
            opened_at,
        };
        let mut routes = Vec::with_capacity(channels.channels.len());
        for channel in &channels.channels {
            let input = RouteInput {
                content: &content.text,
                user_id: &content.from_user_id,
                user_name: &content.user_name,
                session_id: &content.session_id,
                kind: message.kind,
                sent_at: content.sent_at,
            };
            let decided = channel.route(&input);
            let trace_id: TraceId = ctx.ids.next();
            let (taken, job) = match &decided {
                Route::Skipped { .. } => (None, None),
                Route::Passed { content: text } => {
                    let channel_text = (*text != content.text).then(|| (*text).to_owned());
                    let delivery = channel.webhook.enabled.then(|| {
                        let held = claims(channel);
                        (ctx.ids.next::<crate::id::kind::Delivery>(), held)
                    });
                    let taken = Taken {
                        content: channel_text.clone(),
                        delivery: delivery.map(|(id, held)| NewDelivery {
                            id,
                            lane: lane_of(channel, &content, id),
                            claim: if held { bot.lease.fence } else { 0 },
                        }),
                    };
                    let job = delivery.map(|(id, held)| RoutedJob {
                        id,
                        trace_id,
                        channel: Arc::clone(channel),
                        channel_text,
                        held,
                    });
                    (Some(taken), job)
                }
            };
            let trace = self.first_trace(bot, id, trace_id, channel, &decided, message, now);
            routes.push(AcceptRoute { channel_id: channel.id, trace, taken });
            work.jobs.push(job);
        }
        (AcceptMessage { row, contact: Some(contact), routes }, work)
    }

    /// The trace as it stands when the message is committed: received, filtered, and done unless a webhook has
    /// to be called.
    #[expect(clippy::too_many_arguments, reason = "the parts of one trace, named once")]
    fn first_trace(
        &self,
        bot: &BotWork,
        message_id: MessageId,
        id: TraceId,
        channel: &ChannelRuntime,
        decided: &Route<'_>,
        message: &InboundMessage,
        started: Timestamp,
    ) -> NewTrace {
        let now = self.ctx.clock.now();
        let received = json!({ "msg_type": message.kind.as_str(), "items": message.items.len() });
        let mut steps =
            vec![Step::new(StepName::Received, "inbox", TraceStatus::Ok, started, started, received)];
        let (status, summary) = match decided {
            Route::Skipped { reason } => {
                let detail = json!({ "reason": reason });
                steps.push(Step::new(StepName::Filter, "filter", TraceStatus::Skipped, started, now, detail));
                (TraceStatus::Skipped, format!("filtered: {reason}"))
            }
            Route::Passed { .. } => {
                steps.push(Step::new(StepName::Filter, "filter", TraceStatus::Ok, started, now, json!({})));
                if channel.webhook.enabled {
                    (TraceStatus::Pending, "queued for the webhook".to_owned())
                } else {
                    (TraceStatus::Ok, "in the channel's log".to_owned())
                }
            }
        };
        NewTrace {
            id,
            message_id,
            bot_id: bot.lease.bot_id,
            channel_id: Some(channel.id),
            replay_of: None,
            status: status.as_str(),
            summary,
            started_at: started.as_millis(),
            duration_ms: i64::try_from(now.since(started).as_millis()).unwrap_or(i64::MAX),
            steps: format!("[{}]", steps_text(&steps)),
        }
    }

    /// A message that could not be read is stored and visible; its batch goes on.
    fn quarantine_trace(&self, bot: &BotWork, message_id: MessageId, now: Timestamp) -> AcceptRoute {
        let detail = json!({ "reason": "the message could not be read; its original form is kept" });
        let step = Step::new(StepName::Received, "inbox", TraceStatus::Error, now, now, detail);
        let trace = NewTrace {
            id: self.ctx.ids.next(),
            message_id,
            bot_id: bot.lease.bot_id,
            channel_id: None,
            replay_of: None,
            status: TraceStatus::Error.as_str(),
            summary: "quarantined: the message could not be read".to_owned(),
            started_at: now.as_millis(),
            duration_ms: 0,
            steps: format!("[{}]", steps_text(&[step])),
        };
        AcceptRoute { channel_id: crate::id::ChannelId::from_u128(0), trace, taken: None }
    }

    /// Whether every channel's log only went on (design rule D20).
    fn numbers_grow(&self, bot: &BotWork, routed: &[Routed], stored: &[Option<Vec<i64>>]) -> bool {
        let mut last = bot.seqs.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = routed.iter().zip(stored).filter_map(|(work, seqs)| Some((work, seqs.as_ref()?)));
        numbered.flat_map(|(work, seqs)| work.jobs.iter().zip(seqs)).all(|(job, &seq)| {
            let Some(job) = job.as_ref().filter(|_| seq > 0) else { return true };
            let (channel_id, violations) = (job.channel.id, &self.ctx.violations);
            let before = last.insert(channel_id, seq).unwrap_or(0);
            invariant!(violations, before < seq, "a channel's cursor grows", %channel_id, before, seq)
        })
    }

    /// After the commit: what this node holds goes into its lanes.
    fn dispatch(&self, bot: &BotWork, routed: Vec<Routed>, stored: &[Option<Vec<i64>>]) {
        let mut pushed = false;
        for (work, seqs) in routed.into_iter().zip(stored) {
            let Some(seqs) = seqs else { continue };
            let message_id = work.content.message_id;
            self.ctx.events.tell(Event::Message { bot_id: bot.lease.bot_id, message_id });
            for (job, seq) in work.jobs.into_iter().zip(seqs) {
                let Some(RoutedJob { id, trace_id, channel, channel_text, held: true }) = job else {
                    continue;
                };
                if *seq == 0 {
                    continue;
                }
                let job = Job {
                    id,
                    trace_id,
                    bot_id: bot.lease.bot_id,
                    channel_id: channel.id,
                    fence: bot.lease.fence,
                    seq: *seq,
                    attempts: 0,
                    first_attempt_at: None,
                    target_url: None,
                    channel_text,
                    content: Arc::clone(&work.content),
                };
                let lane: Arc<str> = lane_of(&channel, &job.content, id).into();
                self.lanes().push(channel.id, &lane, super::worker::pace(&channel), job, None);
                pushed = true;
            }
        }
        if pushed {
            self.work_ready.notify_one();
        }
    }
}

/// What has to stay in order: the conversation, or nothing.
pub(super) fn lane_of(channel: &ChannelRuntime, content: &Content, id: DeliveryId) -> String {
    match channel.webhook.ordering {
        Ordering::Conversation => content.peer.clone(),
        Ordering::None => id.to_string(),
    }
}

fn content_of(id: MessageId, message: &InboundMessage, quoted: &HashMap<String, String>) -> Content {
    let peer = if message.group_id.is_empty() { &message.from_user_id } else { &message.group_id };
    let peer = clean(peer);
    let session_id = if message.session_id.is_empty() { peer.clone() } else { clean(&message.session_id) };
    let mut text = clean(&message.content);
    if text.len() > MAX_CONTENT {
        let end = text.floor_char_boundary(MAX_CONTENT);
        text.truncate(end);
    }
    Content {
        message_id: id,
        from_user_id: clean(&message.from_user_id),
        user_name: clean(&message.user_name),
        session_id,
        group_id: clean(&message.group_id),
        kind: message.kind,
        text,
        items: clean(&crate::store::json(&message.items)),
        quote: message.quote.as_ref().map(|quote| resolve(quote, quoted)),
        context_token: message.context_token.as_ref().map(|token| Secret::new(clean(token.expose()))),
        sent_at: message.sent_at,
        peer,
    }
}

/// The quote with its text, as far as it is known, cut to the part that was meant (`protocols/ilink.md` §8.3).
fn resolve(quote: &Quote, quoted: &HashMap<String, String>) -> Quote {
    let mut quote = quote.clone();
    if let Some(whole) = quote.network_id.as_ref().and_then(|id| quoted.get(id)) {
        quote.resolve(whole);
    }
    Quote {
        network_id: quote.network_id.as_deref().map(clean),
        text: quote.text.as_deref().map(clean),
        selection: None,
    }
}

/// A message with nothing in it that could be refused; its original form is kept sealed.
fn quarantine(message: InboundMessage) -> InboundMessage {
    InboundMessage {
        network_id: None,
        class: MessageClass::Quarantined,
        session_id: String::new(),
        group_id: String::new(),
        user_name: String::new(),
        kind: MessageKind::Other,
        content: String::new(),
        items: Vec::new(),
        quote: None,
        context_token: None,
        ..message
    }
}

const fn status_of(class: MessageClass) -> &'static str {
    match class {
        MessageClass::User => "received",
        MessageClass::Bot => "ignored",
        MessageClass::Recalled => "recalled",
        MessageClass::Unfinished => "unfinished",
        MessageClass::Quarantined => "quarantined",
    }
}

/// No database column of PostgreSQL takes U+0000; both store the replacement character instead.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
