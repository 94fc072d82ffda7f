//! What follows from stored messages: channel logs, deliveries, traces, contacts and the bots' cursors, written
//! with them.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::{
    conn::{Conn, on_each},
    inbox::{Accept, seq_of},
    json,
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    secret::Sealed,
};

#[derive(Serialize)]
struct LogRow<'a> {
    channel: ChannelId,
    seq: i64,
    message: MessageId,
    content: Option<&'a str>,
}

#[derive(Serialize)]
struct DeliveryRow<'a> {
    id: DeliveryId,
    message: MessageId,
    bot: BotId,
    channel: ChannelId,
    trace: TraceId,
    lane: &'a str,
    seq: i64,
    claim: i64,
    at: i64,
}

#[derive(Serialize)]
struct ContactRow<'a> {
    bot: BotId,
    user: &'a str,
    name: &'a str,
    count: i64,
    at: i64,
    token: Option<&'a str>,
    opened: i64,
}

#[derive(Serialize)]
struct CursorRow<'a> {
    bot: BotId,
    cursor: Option<&'a str>,
    inbound: Option<i64>,
    at: i64,
}

/// What follows from the inserted messages and asks nothing back, in one statement: channel logs, deliveries,
/// traces, contacts and the bots' cursors.
pub(super) async fn insert(
    conn: &mut Conn<'_>,
    batches: &[&Accept],
    inserted: &HashSet<MessageId>,
    seqs: &HashMap<(ChannelId, MessageId), i64>,
) -> Result<()> {
    if batches.is_empty() {
        return Ok(());
    }
    let (mut log, mut deliveries, mut traces) = (Vec::new(), Vec::new(), Vec::new());
    for batch in batches {
        for message in batch.messages.iter().filter(|message| inserted.contains(&message.row.id)) {
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
                    if let Some(delivery) = &taken.delivery {
                        deliveries.push(DeliveryRow {
                            id: delivery.id,
                            message: message.row.id,
                            bot: batch.bot_id,
                            channel: route.channel_id,
                            trace: route.trace.id,
                            lane: &delivery.lane,
                            seq,
                            claim: delivery.claim,
                            at: batch.now.as_millis(),
                        });
                    }
                }
                traces.push(&route.trace);
            }
        }
    }
    failpoint!("accept.rows");
    let (contacts, cursors) = (contact_rows(batches, inserted), cursor_rows(batches, inserted));
    on_each!(*conn, WORK_SQLITE, WORK_POSTGRES, |conn, sql| sqlx::query(sql)
        .bind(json(&log))
        .bind(json(&deliveries))
        .bind(json(&traces))
        .bind(json(&contacts))
        .bind(json(&cursors))
        .execute(conn)
        .await
        .map(|_| ()))
}

/// One row per person who wrote: the newest token wins, and their window opens anew.
fn contact_rows<'a>(batches: &[&'a Accept], inserted: &HashSet<MessageId>) -> Vec<ContactRow<'a>> {
    let mut rows: BTreeMap<(BotId, &str), ContactRow<'_>> = BTreeMap::new();
    for batch in batches {
        for message in batch.messages.iter().filter(|message| inserted.contains(&message.row.id)) {
            let Some(contact) = &message.contact else { continue };
            let user = message.row.from_user_id.as_str();
            let row = rows.entry((batch.bot_id, user)).or_insert(ContactRow {
                bot: batch.bot_id,
                user,
                name: "",
                count: 0,
                at: 0,
                token: None,
                opened: 0,
            });
            row.count += 1;
            row.at = batch.now.as_millis();
            if !message.row.user_name.is_empty() {
                row.name = &message.row.user_name;
            }
            // Messages may come out of order; an older permission never replaces a newer one (ilink §9).
            if contact.opened_at.as_millis() >= row.opened {
                row.opened = contact.opened_at.as_millis();
                row.token = contact.context_token.as_ref().map(Sealed::as_str).or(row.token);
            }
        }
    }
    rows.into_values().collect()
}

/// Where each bot's network goes on, and when the bot was last heard of.
fn cursor_rows<'a>(batches: &[&'a Accept], inserted: &HashSet<MessageId>) -> Vec<CursorRow<'a>> {
    let row = |batch: &&'a Accept| {
        let mut heard = batch.messages.iter().filter(|message| message.contact.is_some());
        let heard = heard.any(|message| inserted.contains(&message.row.id));
        CursorRow {
            bot: batch.bot_id,
            cursor: batch.cursor.as_deref(),
            inbound: heard.then_some(batch.now.as_millis()),
            at: batch.now.as_millis(),
        }
    };
    batches.iter().map(row).collect()
}

const WORK_SQLITE: &str = "
    INSERT INTO channel_log (channel_id, seq, message_id, content)
    SELECT value->>'channel', value->>'seq', value->>'message', value->>'content' FROM json_each($1);
    INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at,
        claim, created_at)
    SELECT value->>'id', value->>'message', value->>'bot', value->>'channel', value->>'trace', value->>'lane',
        value->>'seq', 'pending', 0, value->>'at', value->>'claim', value->>'at'
    FROM json_each($2);
    INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, summary, attempts, started_at,
        duration_ms, steps)
    SELECT value->>'id', value->>'message_id', value->>'bot_id', value->>'channel_id', value->>'replay_of',
        value->>'status', value->>'summary', 0, value->>'started_at', value->>'duration_ms', value->>'steps'
    FROM json_each($3);
    INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
        context_token, window_opened_at, window_sends)
    SELECT value->>'bot', value->>'user', value->>'name', '', '', value->>'count', value->>'at',
        value->>'token', value->>'opened', 0
    FROM json_each($4) WHERE true
    ON CONFLICT (bot_id, user_id) DO UPDATE SET
        user_name = CASE WHEN excluded.user_name <> '' THEN excluded.user_name ELSE contacts.user_name END,
        message_count = contacts.message_count + excluded.message_count,
        last_message_at = excluded.last_message_at,
        context_token = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
            THEN COALESCE(excluded.context_token, contacts.context_token) ELSE contacts.context_token END,
        window_sends = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
            THEN 0 ELSE contacts.window_sends END,
        window_closed = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
            THEN NULL ELSE contacts.window_closed END,
        window_opened_at = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
            THEN excluded.window_opened_at ELSE contacts.window_opened_at END;
    UPDATE bots SET cursor = COALESCE(x.new_cursor, cursor), last_poll_at = x.at, last_error = NULL,
        last_inbound_at = COALESCE(x.inbound, last_inbound_at)
    FROM (SELECT value->>'bot' AS bot, value->>'cursor' AS new_cursor, value->>'inbound' AS inbound,
        value->>'at' AS at FROM json_each($5)) AS x
    WHERE bots.id = x.bot";

const WORK_POSTGRES: &str = "
    WITH log AS (
        INSERT INTO channel_log (channel_id, seq, message_id, content)
        SELECT channel, seq, message, content
        FROM json_to_recordset($1::json) AS x (channel text, seq bigint, message text, content text)
    ), work AS (
        INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts, due_at,
            claim, created_at)
        SELECT id, message, bot, channel, trace, lane, seq, 'pending', 0, at, claim, at
        FROM json_to_recordset($2::json) AS x (id text, message text, bot text, channel text, trace text,
            lane text, seq bigint, claim bigint, at bigint)
    ), told AS (
        INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, summary, attempts, started_at,
            duration_ms, steps)
        SELECT id, message_id, bot_id, channel_id, replay_of, status, summary, 0, started_at, duration_ms, steps
        FROM json_to_recordset($3::json) AS x (id text, message_id text, bot_id text, channel_id text,
            replay_of text, status text, summary text, started_at bigint, duration_ms bigint, steps text)
    ), met AS (
        INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
            context_token, window_opened_at, window_sends)
        SELECT bot, \"user\", name, '', '', count, at, token, opened, 0
        FROM json_to_recordset($4::json) AS x (bot text, \"user\" text, name text, count bigint, at bigint,
            token text, opened bigint)
        ON CONFLICT (bot_id, user_id) DO UPDATE SET
            user_name = CASE WHEN excluded.user_name <> '' THEN excluded.user_name ELSE contacts.user_name END,
            message_count = contacts.message_count + excluded.message_count,
            last_message_at = excluded.last_message_at,
            context_token = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
                THEN COALESCE(excluded.context_token, contacts.context_token) ELSE contacts.context_token END,
            window_sends = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
                THEN 0 ELSE contacts.window_sends END,
            window_closed = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
                THEN NULL ELSE contacts.window_closed END,
            window_opened_at = CASE WHEN excluded.window_opened_at >= COALESCE(contacts.window_opened_at, 0)
                THEN excluded.window_opened_at ELSE contacts.window_opened_at END
    )
    UPDATE bots SET cursor = COALESCE(x.new_cursor, bots.cursor), last_poll_at = x.at, last_error = NULL,
        last_inbound_at = COALESCE(x.inbound, last_inbound_at)
    FROM (SELECT bot, cursor AS new_cursor, inbound, at
        FROM json_to_recordset($5::json) AS r (bot text, cursor text, inbound bigint, at bigint)) AS x
    WHERE bots.id = x.bot";
