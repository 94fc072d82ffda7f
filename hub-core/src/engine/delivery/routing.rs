//! Routing of a message: the channels and apps that get it, their deliveries, and the first steps of the traces.
//! Decided without I/O, from the settings as they were loaded; the [inbox](super::inbox) commits it.

use std::{collections::HashMap, sync::Arc};

use super::{bot::BotWork, job::EventJob, media::source_place, work_store::WorkStore};
use crate::{
    apps::{SourceMessage, of_message},
    delivery::channels::{BotChannels, ChannelRuntime, Route, RouteInput},
    id::{ChannelId, DeliveryId, Ids, MessageId, TraceId},
    model::{
        cause::Cause,
        message::{Direction, MessageStatus, QuotedMessage},
        private,
        sinks::{Ordering, SinkId, SinkKey},
        trace::{PackedSteps, Step, StepDetail, StepKind, StepName, TraceStatus},
    },
    network::{InboundMedia, InboundMessage, MessageClass, Quote, items},
    node::ChannelListeners,
    payload::Content,
    secret::{Sealed, Sealer, Secret},
    store::{
        app_events::QueuedEvent,
        deliveries::JobMessage,
        inbox::{AcceptMessage, AcceptRoute, ContactUpdate, MessageRow, NewDelivery, Taken},
        log::LogRow,
        media::NewInboundMedia,
        traces::NewTrace,
    },
    text::json,
    time::Timestamp,
};

/// Longest text kept of one message; the network's own limit is far below.
const MAX_CONTENT: usize = 256 * 1024;

/// Stored data that the messages of a batch refer to.
pub(super) struct BatchContext {
    /// Messages that are quoted, by the network's ids.
    pub quoted: HashMap<String, QuotedMessage>,
    /// Names of senders, by their ids.
    pub names: HashMap<String, String>,
}

impl BatchContext {
    /// Adds a message of the batch, which later ones may quote.
    pub fn add(&mut self, message: &InboundMessage, content: &Content) {
        let Some(id) = &message.network_id else { return };
        self.quoted.entry(id.clone()).or_insert_with(|| QuotedMessage {
            message_id: content.message_id,
            direction: Direction::Inbound,
            kind: content.kind,
            content: content.text.clone(),
        });
    }
}

/// A message that was routed, kept until its commit.
pub(super) struct Routed {
    pub content: Arc<Content>,
    /// Whether an app gets an event for it.
    pub notifies_apps: bool,
    /// The deliveries of its events to the webhooks of apps.
    pub events: Vec<RoutedEvent>,
    /// Channels that the message was routed to, whether they took it or not.
    pub channels: Vec<RoutedChannel>,
}

impl Routed {
    /// The deliveries that this node keeps in memory.
    pub(super) fn held(&self) -> impl Iterator<Item = DeliveryId> {
        let deliveries = self.channels.iter().flat_map(|channel| &channel.deliveries);
        let deliveries = deliveries.filter(|delivery| delivery.held).map(|delivery| delivery.id);
        deliveries.chain(self.events.iter().filter(|event| event.held).map(|event| event.job.id))
    }
}

/// A message in a channel, with the deliveries to its sinks.
pub(super) struct RoutedChannel {
    pub trace_id: TraceId,
    pub channel: Arc<ChannelRuntime>,
    /// The text as the channel sees it, where that differs.
    pub text: Option<String>,
    pub deliveries: Vec<RoutedDelivery>,
}

/// A delivery that is not committed yet.
pub(super) struct RoutedDelivery {
    pub id: DeliveryId,
    pub sink: SinkId,
    /// Whether this node keeps it in memory.
    pub held: bool,
}

/// An event for an app, with its delivery, that is not committed yet.
pub(super) struct RoutedEvent {
    pub job: EventJob,
    pub lane: String,
    /// Whether this node keeps it in memory.
    pub held: bool,
}

/// Decides where messages go.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) ids: Ids,
    pub(super) store: Arc<dyn WorkStore>,
    pub(super) sealer: Sealer,
    /// The clients that are connected to channels of this node.
    pub(super) listeners: ChannelListeners,
}

impl Router {
    /// Decides where a message goes, without I/O.
    pub(super) fn route(
        &self,
        bot: &BotWork,
        channels: &BotChannels,
        message: &InboundMessage,
        known: &BatchContext,
        now: Timestamp,
        mut claims: impl FnMut(SinkKey) -> bool,
    ) -> (AcceptMessage, Routed) {
        let id: MessageId = self.ids.next();
        let content = Arc::new(content_of(id, message, known));
        let token_place = private::token_place(bot.lease.bot_id, &content.from_user_id);
        let token = content.context_token.as_ref();
        let context_token = token.map(|token| self.sealer.seal(&token_place, token));
        let private = if message.raw.expose().is_empty() {
            context_token.as_ref().map(Sealed::of_contact)
        } else {
            Some(private::seal(&self.sealer, id, token, &message.raw))
        };
        let row = MessageRow {
            id,
            bot_id: bot.lease.bot_id,
            peer: content.peer.clone(),
            from_user_id: content.from_user_id.clone(),
            to_user_id: clean(&message.to_user_id),
            user_name: content.user_name.clone(),
            session_id: content.session_id.clone(),
            group_id: content.group_id.clone(),
            kind: message.kind,
            content: content.text.clone(),
            items: content.items.clone(),
            quoted: content.quote.as_ref().map(json),
            network_id: message.network_id.as_deref().map(clean),
            dedupe_key: clean(&message.dedupe_key),
            private,
            status: status_of(message.class),
            sent_at: message.sent_at,
            created_at: now,
        };
        let mut routed = Routed {
            content: Arc::clone(&content),
            notifies_apps: false,
            events: Vec::new(),
            channels: Vec::new(),
        };
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
        let contact = ContactUpdate { context_token, opened_at, network_name: clean(&message.user_name) };
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
            let trace_id: TraceId = self.ids.next();
            let mut work =
                RoutedChannel { trace_id, channel: Arc::clone(channel), text: None, deliveries: Vec::new() };
            let taken = match &decided {
                Route::Skipped { .. } => None,
                Route::Passed { content: text } => {
                    work.text = (*text != content.text).then(|| (*text).to_owned());
                    let delivery = |sink| RoutedDelivery {
                        id: self.ids.next(),
                        sink,
                        held: claims(SinkKey::Channel(channel.id, sink)),
                    };
                    work.deliveries.extend(channel.sinks().map(delivery));
                    let new = |one: &RoutedDelivery| NewDelivery {
                        id: one.id,
                        sink: one.sink,
                        lane: lane_of(channel, &content, one.sink, one.id),
                        claim: if one.held { bot.lease.fence } else { 0 },
                    };
                    let deliveries = work.deliveries.iter().map(new).collect();
                    Some(Taken { content: work.text.clone(), deliveries })
                }
            };
            let trace = self.first_trace(bot, id, trace_id, channel, &decided, message, now);
            routes.push(AcceptRoute { channel_id: channel.id, trace, taken });
            routed.channels.push(work);
        }
        // Traces of apps have no channel, and follow those of the channels.
        let (mut apps, traces) = self.notify_apps(bot, channels, &content, now);
        routed.events.extend(apps.iter_mut().filter_map(|event| routed_event(bot, event, &mut claims)));
        routed.notifies_apps = !apps.is_empty();
        routes.extend(traces.into_iter().map(without_channel));
        let media = self.files_of(message);
        (AcceptMessage { row, contact: Some(contact), routes, media, apps }, routed)
    }

    /// The events of a message for the apps on the bot, and the first steps of their traces.
    fn notify_apps(
        &self,
        bot: &BotWork,
        channels: &BotChannels,
        content: &Content,
        now: Timestamp,
    ) -> (Vec<QueuedEvent>, Vec<NewTrace>) {
        let source = SourceMessage {
            message_id: content.message_id,
            from_user_id: &content.from_user_id,
            user_name: &content.user_name,
            peer: &content.peer,
            group_id: &content.group_id,
            kind: content.kind,
            text: &content.text,
            items: &content.items,
            sent_at: content.sent_at,
        };
        let mut traces = Vec::new();
        let events = of_message(&channels.apps, &source, &self.ids, now, |runtime| {
            let detail = StepDetail {
                app: Some(runtime.app.app_id),
                handle: Some(runtime.handle.as_str().to_owned()),
                ..StepDetail::default()
            };
            let step = Step::new(StepName::Received, StepKind::Inbox, TraceStatus::Ok, now, now, detail);
            let id: TraceId = self.ids.next();
            traces.push(NewTrace {
                id,
                message_id: content.message_id,
                bot_id: bot.lease.bot_id,
                channel_id: None,
                replay_of: None,
                status: TraceStatus::Pending,
                open_sinks: 1,
                summary: Cause::QueuedForApp { app: runtime.handle.to_string() }.to_string(),
                started_at: now,
                duration_ms: 0,
                steps: PackedSteps::new(id, &[step]),
            });
            id
        });
        (events, traces)
    }

    /// Builds rows for the files of a message. The files are fetched only if the message is new.
    fn files_of(&self, message: &InboundMessage) -> Vec<NewInboundMedia> {
        let row = |file: &InboundMedia| {
            let id = self.ids.next();
            NewInboundMedia {
                id,
                item: i64::try_from(file.item).unwrap_or(i64::MAX),
                kind: file.kind,
                file_name: clean(&file.file_name),
                size: file.size.and_then(|size| i64::try_from(size).ok()).unwrap_or(0),
                md5: file.md5.clone().unwrap_or_default(),
                source: self.sealer.seal(&source_place(id), &file.reference),
            }
        };
        message.media.iter().map(row).collect()
    }

    /// The trace when the message is committed: received, filtered, and done unless a sink has to get it.
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
        let now = self.store.now();
        let received = StepDetail {
            msg_type: Some(message.kind.as_str().to_owned()),
            items: Some(message.items.len() as u64),
            ..StepDetail::default()
        };
        let mut steps =
            vec![Step::new(StepName::Received, StepKind::Inbox, TraceStatus::Ok, started, started, received)];
        let filter = |status, reason| {
            let detail = StepDetail { reason, ..StepDetail::default() };
            Step::new(StepName::Filter, StepKind::Filter, status, started, now, detail)
        };
        let mut open_sinks = 0;
        let (status, summary) = match decided {
            Route::Skipped { cause } => {
                steps.push(filter(TraceStatus::Skipped, Some(cause.to_string())));
                (TraceStatus::Skipped, Cause::Filtered { cause: Box::new(cause.clone()) })
            }
            Route::Passed { .. } => {
                steps.push(filter(TraceStatus::Ok, None));
                let clients = if channel.websocket.enabled { self.listeners.sockets(channel.id) } else { 0 };
                if clients > 0 {
                    let detail = StepDetail { clients: Some(clients as u64), ..StepDetail::default() };
                    steps.push(Step::new(
                        StepName::Websocket,
                        StepKind::Log,
                        TraceStatus::Ok,
                        now,
                        now,
                        detail,
                    ));
                }
                open_sinks = i64::try_from(channel.sinks().count()).unwrap_or(0);
                match channel.sinks().next().map(|sink| sink.to_string()) {
                    None => (TraceStatus::Ok, Cause::InLog),
                    Some(sink) if open_sinks > 1 => (TraceStatus::Pending, Cause::QueuedForMore { sink }),
                    Some(sink) => (TraceStatus::Pending, Cause::QueuedForSink { sink }),
                }
            }
        };
        NewTrace {
            id,
            message_id,
            bot_id: bot.lease.bot_id,
            channel_id: Some(channel.id),
            replay_of: None,
            status,
            open_sinks,
            summary: summary.to_string(),
            started_at: started,
            duration_ms: i64::try_from(now.since(started).as_millis()).unwrap_or(i64::MAX),
            steps: PackedSteps::new(id, &steps),
        }
    }

    /// Builds the trace of a message that could not be read. The message is stored and visible, and its batch
    /// continues.
    fn quarantine_trace(&self, bot: &BotWork, message_id: MessageId, now: Timestamp) -> AcceptRoute {
        let detail = StepDetail { reason: Some(Cause::Unreadable.to_string()), ..StepDetail::default() };
        let step = Step::new(StepName::Received, StepKind::Inbox, TraceStatus::Error, now, now, detail);
        let id = self.ids.next();
        let trace = NewTrace {
            id,
            message_id,
            bot_id: bot.lease.bot_id,
            channel_id: None,
            replay_of: None,
            status: TraceStatus::Error,
            open_sinks: 0,
            summary: Cause::Quarantined.to_string(),
            started_at: now,
            duration_ms: 0,
            steps: PackedSteps::new(id, &[step]),
        };
        without_channel(trace)
    }
}

/// The delivery of an event; `None` if the event waits for a socket.
fn routed_event(
    bot: &BotWork,
    queued: &mut QueuedEvent,
    claims: &mut impl FnMut(SinkKey) -> bool,
) -> Option<RoutedEvent> {
    let id = queued.delivery?;
    let held = claims(SinkKey::App(queued.event.installation_id));
    queued.claim = if held { bot.lease.fence } else { 0 };
    let event = &queued.event;
    let job = EventJob {
        id,
        trace_id: event.trace_id,
        bot_id: event.bot_id,
        installation_id: event.installation_id,
        event_id: event.id,
        fence: bot.lease.fence,
        is_alone: false,
        attempts: 0,
        first_attempt: None,
    };
    Some(RoutedEvent { job, lane: queued.lane().into_owned(), held })
}

/// A trace that belongs to no channel, on its way into the store.
fn without_channel(trace: NewTrace) -> AcceptRoute {
    AcceptRoute { channel_id: ChannelId::from_u128(0), trace, taken: None }
}

/// Returns a message as its channel's log has it, without sealed data; `None` if it has files, whose state only the
/// store knows.
pub(super) fn log_row(
    content: &Content,
    message: &InboundMessage,
    channel_content: Option<String>,
    seq: i64,
) -> Option<LogRow> {
    (!content.has_media).then(|| LogRow {
        seq,
        channel_content,
        direction: Direction::Inbound,
        to_user_id: clean(&message.to_user_id),
        network_id: message.network_id.as_deref().map(clean),
        message: JobMessage {
            message_id: content.message_id,
            from_user_id: content.from_user_id.clone(),
            user_name: content.user_name.clone(),
            peer: content.peer.clone(),
            session_id: content.session_id.clone(),
            group_id: content.group_id.clone(),
            kind: content.kind,
            content: content.text.clone(),
            items: content.items.clone(),
            quoted: content.quote.as_ref().map(json),
            private: None,
            sent_at: content.sent_at,
        },
    })
}

/// Returns the lane of a delivery: the conversation, or the delivery alone where order does not matter. A model
/// always answers in order.
pub(super) fn lane_of(channel: &ChannelRuntime, content: &Content, sink: SinkId, id: DeliveryId) -> String {
    match (sink, channel.webhook.ordering) {
        (SinkId::Webhook, Ordering::None) => id.to_string(),
        (SinkId::Webhook, Ordering::Conversation) | (SinkId::Ai, _) => content.peer.clone(),
    }
}

fn content_of(id: MessageId, message: &InboundMessage, known: &BatchContext) -> Content {
    let peer = if message.group_id.is_empty() { &message.from_user_id } else { &message.group_id };
    let peer = clean(peer);
    let session_id = if message.session_id.is_empty() { peer.clone() } else { clean(&message.session_id) };
    let name = match known.names.get(&message.from_user_id) {
        Some(name) if message.user_name.is_empty() => name,
        _ => &message.user_name,
    };
    let mut text = clean(&message.content);
    if text.len() > MAX_CONTENT {
        let end = text.floor_char_boundary(MAX_CONTENT);
        text.truncate(end);
    }
    Content {
        message_id: id,
        items: clean(&items::stored(&message.items, &text)),
        from_user_id: clean(&message.from_user_id),
        user_name: clean(name),
        session_id,
        group_id: clean(&message.group_id),
        kind: message.kind,
        has_media: !message.media.is_empty(),
        text,
        quote: message.quote.as_ref().map(|quote| resolve(quote, &known.quoted)),
        context_token: message.context_token.as_ref().map(|token| Secret::new(clean(token.expose()))),
        sent_at: message.sent_at,
        peer,
    }
}

/// The quote with what is stored of the quoted message.
fn resolve(quote: &Quote, quoted: &HashMap<String, QuotedMessage>) -> Quote {
    let mut quote = quote.clone();
    if let Some(message) = quote.network_id.as_ref().and_then(|id| quoted.get(id)) {
        quote.resolve(message.message_id, message.kind, &message.content);
    }
    for text in [&mut quote.network_id, &mut quote.text, &mut quote.title, &mut quote.file_name] {
        *text = text.as_deref().map(|text| clean(&text[..text.floor_char_boundary(MAX_CONTENT)]));
    }
    quote
}

/// Maps the class of a message to its status.
pub(super) const fn status_of(class: MessageClass) -> MessageStatus {
    match class {
        MessageClass::User => MessageStatus::Received,
        MessageClass::Bot => MessageStatus::Ignored,
        MessageClass::Recalled => MessageStatus::Recalled,
        MessageClass::Unfinished => MessageStatus::Unfinished,
        MessageClass::Quarantined => MessageStatus::Quarantined,
    }
}

/// Replaces U+0000, which no column of PostgreSQL takes, with the replacement character, on both databases.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
