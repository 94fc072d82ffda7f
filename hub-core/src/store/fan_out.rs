//! Rows that result from stored messages: channel logs, deliveries, traces, contacts and the bots' cursors, written
//! in the same transaction.

use std::collections::{BTreeMap, HashSet};

use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection, postgres::PgArguments, sqlite::SqliteArguments};

use super::{
    conn::Conn,
    fault::classify,
    inbox::{Accept, Seqs, seq_of},
    rows::{self, Arrays, Places, or_rollback, row},
    traces::{NewTrace, insert_traces},
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, TraceId},
    model::sinks::SinkId,
    secret::Sealed,
    time::Timestamp,
};

/// Stores messages in channel logs, with this expression as sequence number, out of these rows.
macro_rules! insert_log {
    ($seq:literal, $rows:literal) => {
        concat!(
            "INSERT INTO channel_log (channel_id, seq, message_id, content)
             SELECT channel, ",
            $seq,
            ", message, content FROM ",
            $rows
        )
    };
}

/// Stores deliveries, with this expression as sequence number, out of these rows.
macro_rules! insert_deliveries {
    ($seq:literal, $rows:literal) => {
        concat!(
            "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts,
                due_at, claim, created_at)
             SELECT id, message, bot, channel, trace, sink, lane, ",
            $seq,
            ", 'pending', 0, at, claim, at FROM ",
            $rows
        )
    };
}

/// Stores the people who wrote as contacts, out of these rows. An accepted message opens the window again, and its
/// token replaces the previous one: messages are ordered by their arrival, since clocks may be set back.
macro_rules! meet {
    ($rows:literal) => {
        concat!(
            "INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
                context_token, window_opened_at, window_sends)
             SELECT bot, person, name, '', '', count, at, token, opened, 0 FROM ",
            $rows,
            " ON CONFLICT (bot_id, user_id) DO UPDATE SET
                user_name = CASE WHEN excluded.user_name <> '' THEN excluded.user_name ELSE contacts.user_name END,
                message_count = contacts.message_count + excluded.message_count,
                last_message_at = excluded.last_message_at,
                context_token = COALESCE(excluded.context_token, contacts.context_token),
                window_sends = 0, window_closed = NULL, window_opened_at = excluded.window_opened_at"
        )
    };
}

/// Stores the cursors of bots, out of these rows.
macro_rules! move_cursors {
    ($rows:literal) => {
        concat!(
            "UPDATE bots SET cursor = COALESCE(x.new_cursor, bots.cursor), last_poll_at = x.at, last_error = NULL,
                last_inbound_at = COALESCE(x.inbound, last_inbound_at)
             FROM ",
            $rows,
            " WHERE bots.id = x.bot"
        )
    };
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
}

impl<'a> Consequences<'a> {
    pub(super) fn new(batches: &[&'a Accept], inserted: &HashSet<MessageId>, seqs: &Seqs) -> Self {
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
        Self { log, deliveries, traces, contacts, cursors }
    }
}

/// The statements that store rows of [`Consequences`], out of one row of each kind on SQLite.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) log: String,
    pub(super) delivery: String,
    pub(super) trace: String,
    pub(super) contact: String,
    pub(super) cursor: String,
}

impl Texts {
    pub(super) fn new() -> Self {
        Self {
            log: or_rollback(&format!(insert_log!("seq", "{}"), rows::single::<LogRow<'_>>())),
            delivery: or_rollback(&format!(
                insert_deliveries!("seq", "{}"),
                rows::single::<DeliveryRow<'_>>()
            )),
            trace: or_rollback(&format!("INSERT INTO traces {}", rows::values::<NewTrace>())),
            // Without WHERE, `ON CONFLICT` would be read as the condition of a join.
            contact: or_rollback(&format!(meet!("{} WHERE true"), rows::single::<ContactRow<'_>>())),
            cursor: or_rollback(&format!(move_cursors!("{}"), rows::single::<CursorRow<'_>>())),
        }
    }
}

/// Stores the rows that result from inserted messages: channel logs, deliveries, traces, contacts and the bots'
/// cursors. No statement returns rows.
pub(super) async fn insert(conn: &mut Conn<'_>, consequences: &Consequences<'_>) -> Result<()> {
    let Consequences { log, deliveries, traces, contacts, cursors } = consequences;
    if cursors.is_empty() {
        return Ok(());
    }
    failpoint!("accept.rows");
    match conn {
        Conn::Sqlite(conn) => {
            insert_rows_sqlite(conn, log, deliveries, traces).await?;
            meet_sqlite(conn, contacts, cursors).await
        }
        Conn::Postgres(conn) => insert_postgres(conn, consequences).await,
    }
}

/// Channel logs, deliveries and traces: three statements at once, for so many rows of each.
async fn insert_rows_sqlite(
    conn: &mut SqliteConnection,
    log: &[LogRow<'_>],
    deliveries: &[DeliveryRow<'_>],
    traces: &[&NewTrace],
) -> Result<()> {
    let most = log.len().max(deliveries.len()).max(traces.len());
    for begin in (0..most).step_by(rows::MAX_ROWS) {
        let piece = |len: usize| begin.min(len)..(begin + rows::MAX_ROWS).min(len);
        let size = rows::size((most - begin).min(rows::MAX_ROWS));
        let mut values = Places::default();
        values.push_rows(&log[piece(log.len())], size);
        values.push_rows(&deliveries[piece(deliveries.len())], size);
        values.push_rows(&traces[piece(traces.len())], size);
        let sql = format!(
            "WITH x {log} {}; WITH x {deliveries} {}; WITH x {traces} {}",
            insert_log!("seq", "x WHERE channel IS NOT NULL"),
            insert_deliveries!("seq", "x WHERE id IS NOT NULL"),
            insert_traces!("x WHERE id IS NOT NULL"),
            log = rows::table::<LogRow<'_>>(size),
            deliveries = rows::table::<DeliveryRow<'_>>(size),
            traces = rows::table::<NewTrace>(size),
        );
        let insert = sqlx::query_with(AssertSqlSafe(sql), SqliteArguments::from(values));
        insert.execute(&mut *conn).await.map_err(classify)?;
    }
    Ok(())
}

/// Contacts and cursors: two statements at once.
async fn meet_sqlite(
    conn: &mut SqliteConnection,
    contacts: &[ContactRow<'_>],
    cursors: &[CursorRow<'_>],
) -> Result<()> {
    let most = contacts.len().max(cursors.len());
    for begin in (0..most).step_by(rows::MAX_ROWS) {
        let piece = |len: usize| begin.min(len)..(begin + rows::MAX_ROWS).min(len);
        let size = rows::size((most - begin).min(rows::MAX_ROWS));
        let mut values = Places::default();
        values.push_rows(&contacts[piece(contacts.len())], size);
        values.push_rows(&cursors[piece(cursors.len())], size);
        let sql = format!(
            "WITH x {contacts} {}; WITH x {cursors} {}",
            meet!("x WHERE bot IS NOT NULL"),
            move_cursors!("x"),
            contacts = rows::table::<ContactRow<'_>>(size),
            cursors = rows::table::<CursorRow<'_>>(size),
        );
        let meet = sqlx::query_with(AssertSqlSafe(sql), SqliteArguments::from(values));
        meet.execute(&mut *conn).await.map_err(classify)?;
    }
    Ok(())
}

/// Everything in one statement.
async fn insert_postgres(conn: &mut PgConnection, consequences: &Consequences<'_>) -> Result<()> {
    let mut values = Arrays::default();
    let parts = parts(&mut values, consequences, &Joins { numbered: "", seq: "seq", other: "" });
    let sql = format!("WITH {parts} SELECT");
    let all = sqlx::query_with(AssertSqlSafe(sql), PgArguments::from(values));
    all.execute(&mut *conn).await.map_err(classify).map(|_| ())
}

/// Joins that a statement of PostgreSQL applies to rows before it stores them.
pub(super) struct Joins<'a> {
    /// Join of rows with a sequence number of a channel's log.
    pub(super) numbered: &'a str,
    /// Expression of the sequence number.
    pub(super) seq: &'a str,
    /// Join of all other rows.
    pub(super) other: &'a str,
}

/// Parts of a `WITH` of PostgreSQL that store all rows.
pub(super) fn parts(values: &mut Arrays, consequences: &Consequences<'_>, joins: &Joins<'_>) -> String {
    let Consequences { log, deliveries, traces, contacts, cursors } = consequences;
    format!(
        concat!(
            "log AS (",
            insert_log!("{seq}", "{}{numbered}"),
            "), work AS (",
            insert_deliveries!("{seq}", "{}{numbered}"),
            "), told AS (",
            insert_traces!("{}{other}"),
            "), met AS (",
            meet!("{}{other}"),
            "), moved AS (",
            move_cursors!("{}{other}"),
            ")",
        ),
        values.push_rows(log),
        values.push_rows(deliveries),
        values.push_rows(traces),
        values.push_rows(contacts),
        values.push_rows(cursors),
        seq = joins.seq,
        numbered = joins.numbered,
        other = joins.other,
    )
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
        let mut heard = batch.messages.iter().filter(|message| message.contact.is_some());
        let heard = heard.any(|message| inserted.contains(&message.row.id));
        CursorRow {
            bot: batch.bot_id,
            cursor: batch.cursor.as_deref(),
            inbound: heard.then_some(batch.now),
            at: batch.now,
        }
    };
    batches.iter().map(row).collect()
}
