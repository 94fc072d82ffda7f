//! Accepting inbound messages: the messages, the work that follows from them and the network's cursor, in a
//! handful of multi-row statements for all bots that wait (`contract.md` §6.1, design rule D2).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde::Serialize;

use super::{
    conn::{Conn, Tx, on_each},
    json,
    messages::Messages,
    traces::NewTrace,
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    secret::Sealed,
    time::Timestamp,
};

/// What one answer of the network brought for one bot.
#[derive(Debug)]
pub struct Accept {
    /// The bot.
    pub bot_id: BotId,
    /// The lease under which it was polled.
    pub fence: i64,
    /// The revision of the channels' settings that the routes were computed with.
    pub config_rev: i64,
    /// Where the network goes on; `None` keeps the old cursor.
    pub cursor: Option<String>,
    /// When it came.
    pub now: Timestamp,
    /// Oldest first.
    pub messages: Vec<AcceptMessage>,
}

/// One message and where it goes.
#[derive(Debug)]
pub struct AcceptMessage {
    /// The row to be made.
    pub row: MessageRow,
    /// Set when a person wrote it: the person becomes a contact and the sending window opens.
    pub contact: Option<ContactUpdate>,
    /// One entry per channel of the bot.
    pub routes: Vec<AcceptRoute>,
}

/// Columns of a message.
#[derive(Debug, Serialize)]
pub struct MessageRow {
    /// Id.
    pub id: MessageId,
    /// Bot.
    pub bot_id: BotId,
    /// The person on the other side, or the group.
    pub peer: String,
    /// Sender.
    pub from_user_id: String,
    /// Receiver.
    pub to_user_id: String,
    /// Sender's display name.
    pub user_name: String,
    /// Conversation.
    pub session_id: String,
    /// Group, or empty.
    pub group_id: String,
    /// Kind, by its name.
    pub kind: &'static str,
    /// Text.
    pub content: String,
    /// Parts, as a JSON text.
    pub items: String,
    /// Quote, as a JSON text.
    pub quoted: Option<String>,
    /// The network's id.
    pub network_id: Option<String>,
    /// Unique per bot.
    pub dedupe_key: String,
    /// Sealed JSON text with the context token and the network's own form.
    pub private: String,
    /// Status word.
    pub status: &'static str,
    /// When it was sent.
    pub sent_at: i64,
    /// When it came.
    pub created_at: i64,
}

/// What a message changes about its sender.
#[derive(Debug)]
pub struct ContactUpdate {
    /// Sealed for the contact's row.
    pub context_token: Option<Sealed>,
    /// When the sending window opened.
    pub opened_at: Timestamp,
}

/// What one channel does with a message.
#[derive(Debug)]
pub struct AcceptRoute {
    /// The channel.
    pub channel_id: ChannelId,
    /// The trace so far.
    pub trace: NewTrace,
    /// Set when the channel takes the message.
    pub taken: Option<Taken>,
}

/// A message that a channel takes.
#[derive(Debug)]
pub struct Taken {
    /// The text, where the channel sees another than the message's (handle prefix removed).
    pub content: Option<String>,
    /// The work for the webhook sink; `None` when it is off.
    pub delivery: Option<NewDelivery>,
}

/// Work for a sink.
#[derive(Debug)]
pub struct NewDelivery {
    /// Id.
    pub id: DeliveryId,
    /// What must stay in order.
    pub lane: String,
    /// The fence of the node that holds it in memory, or 0.
    pub claim: i64,
}

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Committed. For each message, in order: `None` for a repeat, else the channels' sequence numbers, one
    /// per route (0 where the channel did not take it).
    Stored(Vec<Option<Vec<i64>>>),
    /// Another node, or another login, has taken the bot over: nothing was stored.
    Fenced,
    /// The channels' settings changed meanwhile: nothing was stored; route again.
    Stale,
}

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

/// Writes the batches of all bots that wait; answers in their order.
pub(super) async fn write(tx: &mut Tx, batches: &[Arc<Accept>]) -> Result<Vec<Accepted>> {
    let mut conn = tx.conn();
    failpoint!("accept.leases");
    let current = current_leases(&mut conn, batches).await?;
    let verdicts: Vec<Option<Accepted>> = batches
        .iter()
        .map(|batch| match current.get(&batch.bot_id.to_string()) {
            Some((fence, rev)) if *fence == batch.fence && *rev == batch.config_rev => None,
            Some((fence, _)) if *fence == batch.fence => Some(Accepted::Stale),
            _ => Some(Accepted::Fenced),
        })
        .collect();
    let valid: Vec<&Accept> = batches
        .iter()
        .zip(&verdicts)
        .filter(|(_, refused)| refused.is_none())
        .map(|(batch, _)| &**batch)
        .collect();
    failpoint!("accept.messages");
    let inserted = insert_messages(&mut conn, &valid).await?;
    failpoint!("accept.numbers");
    let seqs = number_channels(&mut conn, &valid, &inserted).await?;
    failpoint!("accept.work");
    insert_work(&mut conn, &valid, &inserted, &seqs).await?;
    let stored = |batch: &Accept| {
        Accepted::Stored(
            batch
                .messages
                .iter()
                .map(|message| {
                    inserted.contains(&message.row.id).then(|| {
                        message.routes.iter().map(|route| seq_of(&seqs, message, route)).collect::<Vec<_>>()
                    })
                })
                .collect(),
        )
    };
    Ok(batches
        .iter()
        .zip(verdicts)
        .map(|(batch, refused)| refused.unwrap_or_else(|| stored(batch)))
        .collect())
}

fn seq_of(seqs: &HashMap<(ChannelId, MessageId), i64>, message: &AcceptMessage, route: &AcceptRoute) -> i64 {
    seqs.get(&(route.channel_id, message.row.id)).copied().unwrap_or(0)
}

/// Fence and settings revision of each bot, locked until the commit.
async fn current_leases(conn: &mut Conn<'_>, batches: &[Arc<Accept>]) -> Result<HashMap<String, (i64, i64)>> {
    let ids = json(&batches.iter().map(|batch| batch.bot_id).collect::<Vec<_>>());
    let rows: Vec<(String, i64, i64)> = on_each!(
        *conn,
        "SELECT id, lease_fence, config_rev FROM bots WHERE id IN (SELECT value FROM json_each($1))",
        "SELECT id, lease_fence, config_rev FROM bots
         WHERE id IN (SELECT json_array_elements_text($1::json)) ORDER BY id FOR UPDATE",
        |conn, sql| sqlx::query_as(sql).bind(&ids).fetch_all(conn).await
    )?;
    Ok(rows.into_iter().map(|(id, fence, rev)| (id, (fence, rev))).collect())
}

async fn insert_messages(conn: &mut Conn<'_>, batches: &[&Accept]) -> Result<HashSet<MessageId>> {
    let rows: Vec<&MessageRow> =
        batches.iter().flat_map(|batch| &batch.messages).map(|message| &message.row).collect();
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = json(&rows);
    let ids: Vec<String> = on_each!(
        *conn,
        "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at)
         SELECT value->>'id', value->>'bot_id', 'inbound', value->>'peer', value->>'from_user_id',
            value->>'to_user_id', value->>'user_name', value->>'session_id', value->>'group_id', value->>'kind',
            value->>'content', value->>'items', value->>'quoted', value->>'network_id', value->>'dedupe_key',
            value->>'private', value->>'status', value->>'sent_at', value->>'created_at'
         FROM json_each($1) WHERE true
         ON CONFLICT (bot_id, dedupe_key) DO NOTHING RETURNING id",
        "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at)
         SELECT id, bot_id, 'inbound', peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at
         FROM json_to_recordset($1::json) AS x (id text, bot_id text, peer text, from_user_id text,
            to_user_id text, user_name text, session_id text, group_id text, kind text, content text, items text,
            quoted text, network_id text, dedupe_key text, private text, status text, sent_at bigint,
            created_at bigint)
         ON CONFLICT (bot_id, dedupe_key) DO NOTHING RETURNING id",
        |conn, sql| sqlx::query_scalar(sql).bind(&rows).fetch_all(conn).await
    )?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// Takes sequence numbers, gap-free per channel, for every message that a channel takes.
async fn number_channels(
    conn: &mut Conn<'_>,
    batches: &[&Accept],
    inserted: &HashSet<MessageId>,
) -> Result<HashMap<(ChannelId, MessageId), i64>> {
    #[derive(Serialize)]
    struct Count {
        channel: ChannelId,
        n: i64,
    }
    let mut taken: BTreeMap<ChannelId, Vec<MessageId>> = BTreeMap::new();
    for message in batches.iter().flat_map(|batch| &batch.messages) {
        if inserted.contains(&message.row.id) {
            for route in message.routes.iter().filter(|route| route.taken.is_some()) {
                taken.entry(route.channel_id).or_default().push(message.row.id);
            }
        }
    }
    if taken.is_empty() {
        return Ok(HashMap::new());
    }
    let counts: Vec<Count> = taken
        .iter()
        .map(|(channel, messages)| Count { channel: *channel, n: i64::try_from(messages.len()).unwrap_or(0) })
        .collect();
    let counts = json(&counts);
    let rows: Vec<(String, i64)> = on_each!(
        *conn,
        "UPDATE channels SET last_seq = last_seq + x.n
         FROM (SELECT value->>'channel' AS channel, value->>'n' AS n FROM json_each($1)) AS x
         WHERE channels.id = x.channel RETURNING id, last_seq",
        "UPDATE channels SET last_seq = last_seq + x.n
         FROM json_to_recordset($1::json) AS x (channel text, n bigint)
         WHERE channels.id = x.channel RETURNING id, last_seq",
        |conn, sql| sqlx::query_as(sql).bind(&counts).fetch_all(conn).await
    )?;
    let mut seqs = HashMap::new();
    for (channel, last) in rows {
        let Ok(channel) = channel.parse::<ChannelId>() else { continue };
        let messages = &taken[&channel];
        for (message, back) in messages.iter().rev().zip(0..) {
            seqs.insert((channel, *message), last - back);
        }
    }
    Ok(seqs)
}

/// What follows from the inserted messages and asks nothing back, in one statement: channel logs, deliveries,
/// traces, contacts and the bots' cursors.
async fn insert_work(
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

impl Messages<'_> {
    /// Texts of a bot's messages, in both directions, by the ids that the network gave them. A part of a long
    /// message has an id and a text of its own.
    pub async fn texts_by_network_id(
        &mut self,
        bot_id: BotId,
        ids: &[&str],
    ) -> Result<HashMap<String, String>> {
        let rows: Vec<(String, String)> = on_each!(
            self.0,
            "SELECT network_id, content FROM messages
             WHERE bot_id = $1 AND direction = 'inbound' AND network_id IN (SELECT value FROM json_each($2))
             UNION ALL SELECT network_id, text FROM outbox
             WHERE bot_id = $1 AND network_id IN (SELECT value FROM json_each($2))",
            "SELECT network_id, content FROM messages
             WHERE bot_id = $1 AND direction = 'inbound'
                AND network_id IN (SELECT json_array_elements_text($2::json))
             UNION ALL SELECT network_id, text FROM outbox
             WHERE bot_id = $1 AND network_id IN (SELECT json_array_elements_text($2::json))",
            |conn, sql| sqlx::query_as(sql).bind(bot_id.to_string()).bind(json(ids)).fetch_all(conn).await
        )?;
        Ok(rows.into_iter().collect())
    }
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
