//! Rows that result from stored messages and are written in the same transaction: channel logs, deliveries, traces,
//! contacts, the bots' cursors, files and events for apps.

use std::collections::{BTreeMap, HashSet};

use super::{
    app_events::QueuedEvent,
    inbox::{Accept, Seqs, seq_of},
    media::InboundRow,
    rows::row,
    traces::NewTrace,
};
use crate::{
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    model::sinks::SinkId,
    secret::Sealed,
    time::Timestamp,
};

/// Stores messages in channel logs, with this expression as sequence number, out of these rows.
pub(super) fn insert_log(seq: &str, rows: &str) -> String {
    format!(
        "INSERT INTO channel_log (channel_id, seq, message_id, content)
         SELECT channel, {seq}, message, content FROM {rows}"
    )
}

/// Stores deliveries, with this expression as sequence number, out of these rows.
pub(super) fn insert_deliveries(seq: &str, rows: &str) -> String {
    format!(
        "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts,
            due_at, claim, created_at)
         SELECT id, message, bot, channel, trace, sink, lane, {seq}, 'pending', 0, at, claim, at FROM {rows}"
    )
}

/// Stores the people who wrote as contacts, out of these rows. An accepted message opens the window again, and its
/// token replaces the previous one: messages are ordered by their arrival, since clocks may be set back.
pub(super) fn update_contacts(rows: &str) -> String {
    // Without WHERE, SQLite would read `ON CONFLICT` as the condition of a join.
    format!(
        "INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
            context_token, window_opened_at, window_sends)
         SELECT bot, person, name, '', '', count, at, token, opened, 0 FROM {rows} WHERE true
         ON CONFLICT (bot_id, user_id) DO UPDATE SET
            user_name = CASE WHEN excluded.user_name <> '' THEN excluded.user_name ELSE contacts.user_name END,
            message_count = contacts.message_count + excluded.message_count,
            last_message_at = excluded.last_message_at,
            context_token = COALESCE(excluded.context_token, contacts.context_token),
            window_sends = 0, window_closed = NULL, window_opened_at = excluded.window_opened_at"
    )
}

/// Stores the cursors of bots, out of these rows.
pub(super) fn update_cursors(rows: &str) -> String {
    format!(
        "UPDATE bots SET cursor = COALESCE(x.new_cursor, bots.cursor), last_poll_at = x.at, last_error = NULL,
            last_inbound_at = COALESCE(x.inbound, last_inbound_at)
         FROM {rows} WHERE bots.id = x.bot"
    )
}

pub(super) struct LogRow<'a> {
    channel: ChannelId,
    seq: i64,
    message: MessageId,
    content: Option<&'a str>,
}

pub(super) struct DeliveryRow<'a> {
    id: DeliveryId,
    message: MessageId,
    bot: BotId,
    channel: ChannelId,
    trace: TraceId,
    sink: SinkId,
    lane: &'a str,
    seq: i64,
    claim: i64,
    at: Timestamp,
}

pub(super) struct ContactRow<'a> {
    bot: BotId,
    person: &'a str,
    name: &'a str,
    count: i64,
    at: Timestamp,
    token: Option<&'a str>,
    opened: Timestamp,
}

pub(super) struct CursorRow<'a> {
    bot: BotId,
    cursor: Option<&'a str>,
    inbound: Option<Timestamp>,
    at: Timestamp,
}

row!(LogRow<'_>, |row| {
    Text channel = row.channel,
    Number seq = row.seq,
    Text message = row.message,
    Text content = row.content,
});

row!(DeliveryRow<'_>, |row| {
    Text id = row.id,
    Text message = row.message,
    Text bot = row.bot,
    Text channel = row.channel,
    Text trace = row.trace,
    Text sink = row.sink.as_str(),
    Text lane = row.lane,
    Number seq = row.seq,
    Number claim = row.claim,
    Number at = row.at,
});

row!(ContactRow<'_>, |row| {
    Text bot = row.bot,
    Text person = row.person,
    Text name = row.name,
    Number count = row.count,
    Number at = row.at,
    Text token = row.token,
    Number opened = row.opened,
});

row!(CursorRow<'_>, |row| {
    Text bot = row.bot,
    Text new_cursor = row.cursor,
    Number inbound = row.inbound,
    Number at = row.at,
});

/// The rows that follow from inserted messages.
pub(super) struct Consequences<'a> {
    pub(super) log: Vec<LogRow<'a>>,
    pub(super) deliveries: Vec<DeliveryRow<'a>>,
    pub(super) traces: Vec<&'a NewTrace>,
    pub(super) contacts: Vec<ContactRow<'a>>,
    /// One for each batch.
    pub(super) cursors: Vec<CursorRow<'a>>,
    pub(super) files: Vec<InboundRow<'a>>,
    pub(super) events: Vec<&'a QueuedEvent>,
}

impl<'a> Consequences<'a> {
    pub(super) fn new(batches: &[&'a Accept], inserted: &HashSet<MessageId>, seqs: &Seqs) -> Self {
        let (mut log, mut deliveries, mut traces) = (Vec::new(), Vec::new(), Vec::new());
        let (mut files, mut events) = (Vec::new(), Vec::new());
        for batch in batches {
            for message in batch.messages.iter().filter(|message| inserted.contains(&message.row.id)) {
                let file =
                    |file| InboundRow { bot: batch.bot_id, message: message.row.id, at: batch.now, file };
                files.extend(message.media.iter().map(file));
                events.extend(&message.apps);
                for route in &message.routes {
                    // A channel deleted in this very moment has no number: nothing refers to it any more.
                    let seq = seq_of(seqs, message, route);
                    if let Some(taken) = &route.taken {
                        if seq == 0 {
                            continue;
                        }
                        log.push(LogRow {
                            channel: route.channel_id,
                            seq,
                            message: message.row.id,
                            content: taken.content.as_deref(),
                        });
                        deliveries.extend(taken.deliveries.iter().map(|delivery| DeliveryRow {
                            id: delivery.id,
                            message: message.row.id,
                            bot: batch.bot_id,
                            channel: route.channel_id,
                            trace: route.trace.id,
                            sink: delivery.sink,
                            lane: &delivery.lane,
                            seq,
                            claim: delivery.claim,
                            at: batch.now,
                        }));
                    }
                    traces.push(&route.trace);
                }
            }
        }
        let (contacts, cursors) = (contact_rows(batches, inserted), cursor_rows(batches, inserted));
        Self { log, deliveries, traces, contacts, cursors, files, events }
    }
}

/// One row per person who wrote: the token that arrived last wins, and their window opens again.
fn contact_rows<'a>(batches: &[&'a Accept], inserted: &HashSet<MessageId>) -> Vec<ContactRow<'a>> {
    let mut rows: BTreeMap<(BotId, &str), ContactRow<'_>> = BTreeMap::new();
    for batch in batches {
        for message in batch.messages.iter().filter(|message| inserted.contains(&message.row.id)) {
            let Some(contact) = &message.contact else { continue };
            let person = message.row.from_user_id.as_str();
            let row = rows.entry((batch.bot_id, person)).or_insert(ContactRow {
                bot: batch.bot_id,
                person,
                name: "",
                count: 0,
                at: batch.now,
                token: None,
                opened: Timestamp::MIN,
            });
            row.count += 1;
            row.at = batch.now;
            if !contact.network_name.is_empty() {
                row.name = &contact.network_name;
            }
            row.opened = contact.opened_at;
            row.token = contact.context_token.as_ref().map(Sealed::as_str).or(row.token);
        }
    }
    rows.into_values().collect()
}

/// Builds the cursor of each bot, with the time of its last inbound message.
fn cursor_rows<'a>(batches: &[&'a Accept], inserted: &HashSet<MessageId>) -> Vec<CursorRow<'a>> {
    let row = |batch: &&'a Accept| {
        let mut inbound = batch.messages.iter().filter(|message| message.contact.is_some());
        let has_inbound = inbound.any(|message| inserted.contains(&message.row.id));
        CursorRow {
            bot: batch.bot_id,
            cursor: batch.cursor.as_deref(),
            inbound: has_inbound.then_some(batch.now),
            at: batch.now,
        }
    };
    batches.iter().map(row).collect()
}
