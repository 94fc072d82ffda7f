//! From the network's answer to committed work: dedupe keys, quotes, routes, then one transaction
//! (`contract.md` §6.1). Nothing is dispatched, and no cursor moves, before that commit.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use serde_json::json;

use super::{
    job::{Content, Job},
    media::source_place,
    node::{BotWork, Engine},
};
use crate::{
    apps::{Heard, of_message},
    bots::private,
    channels::{
        runtime::{BotChannels, ChannelRuntime, Route, RouteInput},
        sinks::{Ordering, SinkId, SinkKey},
    },
    context::Hint,
    error::{ErrorCode, Result},
    events::Event,
    id::{ChannelId, DeliveryId, MessageId, TraceId},
    invariants::invariant,
    network::{Batch, InboundMedia, InboundMessage, MessageClass, MessageKind, Quote},
    secret::Secret,
    store::{
        app_events::NewAppEvent,
        inbox::{
            Accept, AcceptMessage, AcceptRoute, Accepted, ContactUpdate, MessageRow, NewDelivery, Taken,
        },
        media::NewInboundMedia,
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
    /// Where it was routed, whether taken or not.
    channels: Vec<ChannelId>,
    /// One entry per channel; `None` where no sink has anything to do.
    work: Vec<Option<RoutedWork>>,
}

/// What a channel's sinks have to do.
struct RoutedWork {
    trace_id: TraceId,
    channel: Arc<ChannelRuntime>,
    channel_text: Option<String>,
    deliveries: Vec<RoutedDelivery>,
}

/// A delivery in the making.
struct RoutedDelivery {
    id: DeliveryId,
    sink: SinkId,
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
            let claims = |key: SinkKey| {
                let held = !behind.is_behind(key) && self.lanes(key.sink).room(key);
                if !held {
                    behind.add(key);
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
                if batch.messages.iter().any(|message| !message.media.is_empty()) {
                    bot.media_ready.notify_one();
                }
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
                    let work = routed.iter().flat_map(|routed| &routed.work).flatten();
                    let deliveries = work.flat_map(|work| &work.deliveries);
                    behind.doubt(deliveries.filter(|one| one.held).map(|one| one.id));
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
        mut claims: impl FnMut(SinkKey) -> bool,
    ) -> (AcceptMessage, Routed) {
        let ctx = &self.ctx;
        let id: MessageId = ctx.ids.next();
        let content = Arc::new(content_of(id, message, quoted));
        let private = private::seal(&ctx.sealer, id, message.context_token.as_ref(), &message.raw);
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
        let mut routed = Routed { content: Arc::clone(&content), channels: Vec::new(), work: Vec::new() };
        if message.class != MessageClass::User {
            let trace =
                (message.class == MessageClass::Quarantined).then(|| self.quarantine_trace(bot, id, now));
            let routes = trace.into_iter().collect();
            return (
                AcceptMessage { row, contact: None, routes, media: Vec::new(), apps: Vec::new() },
                routed,
            );
        }
        let opened_at =
            if message.sent_at > now || message.sent_at.as_millis() <= 0 { now } else { message.sent_at };
        let token_place = private::token_place(bot.lease.bot_id, &content.from_user_id);
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
            let (taken, work) = match &decided {
                Route::Skipped { .. } => (None, None),
                Route::Passed { content: text } => {
                    let channel_text = (*text != content.text).then(|| (*text).to_owned());
                    let delivery = |sink| RoutedDelivery {
                        id: ctx.ids.next(),
                        sink,
                        held: claims(SinkKey { channel: channel.id, sink }),
                    };
                    let deliveries: Vec<_> = channel.sinks().map(delivery).collect();
                    let new = |one: &RoutedDelivery| NewDelivery {
                        id: one.id,
                        sink: one.sink,
                        lane: lane_of(channel, &content, one.sink, one.id),
                        claim: if one.held { bot.lease.fence } else { 0 },
                    };
                    let taken = Taken {
                        content: channel_text.clone(),
                        deliveries: deliveries.iter().map(new).collect(),
                    };
                    let work =
                        RoutedWork { trace_id, channel: Arc::clone(channel), channel_text, deliveries };
                    (Some(taken), Some(work).filter(|work| !work.deliveries.is_empty()))
                }
            };
            let trace = self.first_trace(bot, id, trace_id, channel, &decided, message, now);
            routes.push(AcceptRoute { channel_id: channel.id, trace, taken });
            routed.channels.push(channel.id);
            routed.work.push(work);
        }
        // Traces of apps have no channel, and follow those of the channels.
        let (apps, traces) = self.tell_apps(bot, channels, &content, now);
        routes.extend(traces.into_iter().map(without_channel));
        let media = self.files_of(message);
        (AcceptMessage { row, contact: Some(contact), routes, media, apps }, routed)
    }

    /// What the apps on the bot are told of a message, and the beginnings of their traces.
    fn tell_apps(
        &self,
        bot: &BotWork,
        channels: &BotChannels,
        content: &Content,
        now: Timestamp,
    ) -> (Vec<NewAppEvent>, Vec<NewTrace>) {
        let heard = Heard {
            message_id: content.message_id,
            from_user_id: &content.from_user_id,
            peer: &content.peer,
            group_id: &content.group_id,
            kind: content.kind,
            text: &content.text,
            items: &content.items,
            sent_at: content.sent_at,
        };
        let mut traces = Vec::new();
        let events = of_message(&channels.apps, &heard, &self.ctx.ids, now, |runtime| {
            let detail = json!({ "app": runtime.app.app_id, "handle": runtime.handle.as_str() });
            let step = Step::new(StepName::Received, "inbox", TraceStatus::Ok, now, now, detail);
            let id: TraceId = self.ctx.ids.next();
            traces.push(NewTrace {
                id,
                message_id: content.message_id,
                bot_id: bot.lease.bot_id,
                channel_id: None,
                replay_of: None,
                status: TraceStatus::Pending.as_str(),
                open_sinks: 1,
                summary: format!("queued for the app {}", runtime.handle),
                started_at: now.as_millis(),
                duration_ms: 0,
                steps: format!("[{}]", steps_text(&[step])),
            });
            id
        });
        (events, traces)
    }

    /// Rows for the files of a message; what is fetched is decided by whether the message is new.
    fn files_of(&self, message: &InboundMessage) -> Vec<NewInboundMedia> {
        let row = |file: &InboundMedia| {
            let id = self.ctx.ids.next();
            NewInboundMedia {
                id,
                item: i64::try_from(file.item).unwrap_or(i64::MAX),
                kind: file.kind,
                file_name: clean(&file.file_name),
                size: file.size.and_then(|size| i64::try_from(size).ok()).unwrap_or(0),
                md5: file.md5.clone().unwrap_or_default(),
                source: self.ctx.sealer.seal(&source_place(id), &file.reference),
            }
        };
        message.media.iter().map(row).collect()
    }

    /// The trace as it stands when the message is committed: received, filtered, and done unless a sink has to
    /// get it.
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
        let mut open_sinks = 0;
        let (status, summary) = match decided {
            Route::Skipped { reason } => {
                let detail = json!({ "reason": reason });
                steps.push(Step::new(StepName::Filter, "filter", TraceStatus::Skipped, started, now, detail));
                (TraceStatus::Skipped, format!("filtered: {reason}"))
            }
            Route::Passed { .. } => {
                steps.push(Step::new(StepName::Filter, "filter", TraceStatus::Ok, started, now, json!({})));
                let clients = if channel.websocket.enabled { self.ctx.live.sockets(channel.id) } else { 0 };
                if clients > 0 {
                    let detail = json!({ "clients": clients });
                    steps.push(Step::new(StepName::Websocket, "log", TraceStatus::Ok, now, now, detail));
                }
                open_sinks = i64::try_from(channel.sinks().count()).unwrap_or(0);
                if let Some(sink) = channel.sinks().next() {
                    let more = if open_sinks > 1 { " and other sinks" } else { "" };
                    (TraceStatus::Pending, format!("queued for the {}{more}", sink.text()))
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
            open_sinks,
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
            open_sinks: 0,
            summary: "quarantined: the message could not be read".to_owned(),
            started_at: now.as_millis(),
            duration_ms: 0,
            steps: format!("[{}]", steps_text(&[step])),
        };
        without_channel(trace)
    }

    /// Whether every channel's log only went on (design rule D20).
    fn numbers_grow(&self, bot: &BotWork, routed: &[Routed], stored: &[Option<Vec<i64>>]) -> bool {
        let mut last = bot.seqs.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = routed.iter().zip(stored).filter_map(|(routed, seqs)| Some((routed, seqs.as_ref()?)));
        numbered.flat_map(|(routed, seqs)| routed.work.iter().zip(seqs)).all(|(work, &seq)| {
            let Some(work) = work.as_ref().filter(|_| seq > 0) else { return true };
            let (channel_id, violations) = (work.channel.id, &self.ctx.violations);
            let before = last.insert(channel_id, seq).unwrap_or(0);
            invariant!(violations, before < seq, "a channel's cursor grows", %channel_id, before, seq)
        })
    }

    /// After the commit: what this node holds goes into its lanes.
    fn dispatch(&self, bot: &BotWork, routed: Vec<Routed>, stored: &[Option<Vec<i64>>]) {
        let mut pushed = false;
        self.ctx.wake.hint(Hint::AppEvents);
        for (routed, seqs) in routed.into_iter().zip(stored) {
            let Some(seqs) = seqs else { continue };
            let message_id = routed.content.message_id;
            self.ctx.events.tell(Event::Message { bot_id: bot.lease.bot_id, message_id });
            for (channel_id, seq) in routed.channels.iter().zip(seqs).filter(|(_, seq)| **seq > 0) {
                if self.ctx.live.committed(*channel_id, *seq) {
                    self.ctx.wake.hint(Hint::Log(*channel_id));
                }
            }
            for (work, seq) in routed.work.into_iter().zip(seqs) {
                let Some(RoutedWork { trace_id, channel, channel_text, deliveries }) = work else { continue };
                if *seq == 0 {
                    continue;
                }
                for RoutedDelivery { id, sink, .. } in deliveries.into_iter().filter(|one| one.held) {
                    let job = Job {
                        id,
                        trace_id,
                        bot_id: bot.lease.bot_id,
                        channel_id: channel.id,
                        sink,
                        fence: bot.lease.fence,
                        seq: *seq,
                        attempts: 0,
                        first_attempt_at: None,
                        target_url: None,
                        channel_text: channel_text.clone(),
                        content: Arc::clone(&routed.content),
                        media: Vec::new(),
                    };
                    let lane: Arc<str> = lane_of(&channel, &job.content, sink, id).into();
                    self.lanes(sink).push(job.key(), &lane, super::worker::pace(&channel, sink), job, None);
                    pushed = true;
                }
            }
        }
        if pushed {
            self.work_ready.notify_one();
        }
    }
}

/// A trace that belongs to no channel, on its way into the store.
fn without_channel(trace: NewTrace) -> AcceptRoute {
    AcceptRoute { channel_id: ChannelId::from_u128(0), trace, taken: None }
}

/// What has to stay in order: the conversation, or nothing. A model always answers in order.
pub(super) fn lane_of(channel: &ChannelRuntime, content: &Content, sink: SinkId, id: DeliveryId) -> String {
    match (sink, channel.webhook.ordering) {
        (SinkId::Webhook, Ordering::None) => id.to_string(),
        (SinkId::Webhook, Ordering::Conversation) | (SinkId::Ai, _) => content.peer.clone(),
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
        has_media: !message.media.is_empty(),
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
        media: Vec::new(),
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
