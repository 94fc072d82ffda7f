//! The large statement.

use std::collections::{BTreeMap, HashSet};

use sqlx::{AssertSqlSafe, PgConnection, postgres::PgArguments};

use super::StatementRound;
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId, MessageId, OutboxId},
    store::{
        app_events,
        deliveries::{Finished, count_statement, delete_statement_postgres, finish_statement},
        fan_out::{self, Consequences},
        fault::classify,
        inbox::{self, Accept, Seqs, number},
        media,
        outbox::{self, LOCK, NewOutbound},
        rows::{Arrays, row},
        sending::{
            self, Settled,
            immediate_send::{self, Candidate, PERMIT, Permit, Permits},
        },
        traces::{self, TraceUpdate, insert_traces, update_traces},
    },
    time::Timestamp,
};

struct LeaseRow {
    bot: BotId,
    fence: i64,
    rev: i64,
}

struct CountRow {
    channel: ChannelId,
    n: i64,
}

/// A reply, and the delivery that it answers.
struct Answered {
    delivery: DeliveryId,
    message: MessageId,
}

row!(LeaseRow, |row| {
    Text bot = row.bot,
    Number fence = row.fence,
    Number rev = row.rev,
});

row!(CountRow, |row| {
    Text channel = row.channel,
    Number n = row.n,
});

row!(Answered, |row| {
    Text delivery = row.delivery,
    Text message = row.message,
});

/// Rows that the statement stored.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) seqs: Seqs,
    pub(super) permits: Permits,
    /// Deliveries whose outcomes were stored.
    pub(super) finished: HashSet<DeliveryId>,
    /// Outbox items whose outcomes were stored.
    pub(super) items: Vec<OutboxId>,
}

/// Stores the messages of batches that are `inserted`, and a round of outcomes; `None`, and nothing stored, when a batch
/// has another lease or other settings.
pub(super) async fn run(
    conn: &mut PgConnection,
    batches: &[&Accept],
    inserted: &HashSet<MessageId>,
    round: &StatementRound<'_>,
) -> Result<Option<Stored>> {
    let StatementRound { finished, sends: outcomes_of_sends, .. } = round;
    // As if each channel began at 1: the statement adds what it knows.
    let mut places = Seqs::new();
    let mut values = Arrays::default();
    let mut parts = Vec::new();
    if batches.is_empty() {
        parts.push("valid AS (SELECT true AS ok)".to_owned());
    } else {
        parts.extend(messages(&mut values, batches, inserted, &mut places));
    }
    if !finished.is_empty() {
        parts.extend(outcomes(&mut values, finished));
        parts.extend(replies(&mut values, finished, batches));
    }
    if !outcomes_of_sends.is_empty() {
        parts.extend(sends(&mut values, outcomes_of_sends));
    }
    let has_replies = finished.iter().any(|one| !one.replies.is_empty());
    let wanted = [
        (!batches.is_empty(), " UNION ALL SELECT numbered_channel, base, NULL FROM numbered"),
        (has_replies, " UNION ALL SELECT delivery, window_opened_at, context_token FROM permitted"),
        (!finished.is_empty(), " UNION ALL SELECT id, 0, NULL FROM ended"),
        (!outcomes_of_sends.is_empty(), " UNION ALL SELECT id, 0, NULL FROM settled"),
    ];
    let sql = format!(
        "WITH {} SELECT 'valid', CAST(0 AS BIGINT), CAST(NULL AS TEXT) FROM valid WHERE ok{}",
        parts.join(", "),
        wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, rows)| rows).collect::<String>(),
    );
    let query = sqlx::query_as_with(AssertSqlSafe(sql), PgArguments::from(values));
    let found: Vec<(String, i64, Option<String>)> = query.fetch_all(conn).await.map_err(classify)?;
    if !found.iter().any(|(what, ..)| what == "valid") {
        return Ok(None);
    }
    let (mut bases, mut stored) = (BTreeMap::<ChannelId, i64>::new(), Stored::default());
    for (id, number, token) in found {
        match (id.parse(), id.parse(), id.parse()) {
            (Ok(channel), ..) => drop(bases.insert(channel, number)),
            (_, Ok(item), _) => stored.items.push(item),
            (.., Ok(delivery)) => match token {
                Some(token) => {
                    let window_opened_at = Timestamp::from_millis(number);
                    stored.permits.insert(delivery, Permit { context_token: token.into(), window_opened_at });
                }
                None => drop(stored.finished.insert(delivery)),
            },
            _ => {}
        }
    }
    stored.seqs =
        places.into_iter().filter_map(|(key, place)| Some((key, bases.get(&key.0)? + place))).collect();
    Ok(Some(stored))
}

/// Parts of a `WITH` that store messages and what follows from them, once all batches are `valid`; `numbered` has the last
/// numbers of channels before.
fn messages(
    values: &mut Arrays,
    batches: &[&Accept],
    inserted: &HashSet<MessageId>,
    places: &mut Seqs,
) -> Vec<String> {
    let mut counts = Vec::new();
    for (channel, messages) in inbox::taken(batches, inserted) {
        let n = i64::try_from(messages.len()).unwrap_or(0);
        number(places, channel, &messages, n);
        counts.push(CountRow { channel, n });
    }
    let leases: Vec<LeaseRow> = batches.iter().map(|batch| lease_of(batch)).collect();
    let rows = batches.iter().flat_map(|batch| &batch.messages).map(|message| &message.row);
    let rows: Vec<_> = rows.filter(|row| inserted.contains(&row.id)).collect();
    let Consequences { log, deliveries, traces, contacts, cursors, files, events } =
        Consequences::new(batches, inserted, places);
    let numbered_rows = |rows: String| format!("{rows} JOIN numbered ON numbered_channel = x.channel");
    let mut parts = vec![
        valid(&values.push_rows(&leases)),
        format!("stored AS ({})", inbox::insert_statement(&if_valid(&values.push_rows(&rows)))),
        numbered(&if_valid(&values.push_rows(&counts))),
        format!("logged AS ({})", fan_out::insert_log("base + seq", &numbered_rows(values.push_rows(&log)))),
        format!(
            "delivered AS ({})",
            fan_out::insert_deliveries("base + seq", &numbered_rows(values.push_rows(&deliveries)))
        ),
        format!("traced AS ({})", insert_traces(&if_valid(&values.push_rows(&traces)))),
        format!("contacted AS ({})", fan_out::update_contacts(&if_valid(&values.push_rows(&contacts)))),
        format!("polled AS ({})", fan_out::update_cursors(&if_valid(&values.push_rows(&cursors)))),
    ];
    if !files.is_empty() {
        parts.push(format!("files AS ({})", media::insert_inbound(&if_valid(&values.push_rows(&files)))));
    }
    if !events.is_empty() {
        let rows = values.push_rows(&events);
        parts.push(format!("events AS ({} RETURNING id)", app_events::insert(&if_valid(&rows))));
        let deliveries = app_events::insert_deliveries(&rows, "events");
        parts.push(format!("delivered_events AS ({deliveries})"));
    }
    parts
}

/// Parts of a `WITH` that store outcomes, and what traces gain by them; `ended` has the deliveries for which that was done.
fn outcomes(values: &mut Arrays, rows: &[&Finished]) -> Vec<String> {
    let (successes, others): (Vec<&Finished>, Vec<&Finished>) = rows.iter().partition(|one| one.is_success());
    let (mut parts, mut ended) = (Vec::new(), Vec::new());
    if !successes.is_empty() {
        let rows = values.push_rows(&successes);
        // Another list to delete from takes its condition as it is.
        let delete = delete_statement_postgres(&format!("{rows}, valid"));
        parts.push(format!(
            "deleted AS ({delete} AND valid.ok
                RETURNING deliveries.id, deliveries.channel_id, x.finished_at, x.place)"
        ));
        let count = count_statement(
            "(SELECT channel_id AS channel, count(*) AS n, max(finished_at) AS at FROM deleted GROUP BY channel_id) AS x",
        );
        parts.push(format!("counted AS ({count})"));
        ended.push("SELECT id, place FROM deleted".to_owned());
    }
    if !others.is_empty() {
        let changed = finish_statement(&if_valid(&values.push_rows(&others)));
        parts.push(format!("changed AS ({changed} RETURNING deliveries.id, x.place)"));
        ended.push(format!("SELECT id, place + {} FROM changed", successes.len()));
    }
    parts.push(format!("ended (id, place) AS ({})", ended.join(" UNION ALL ")));
    let traces: Vec<_> = successes.iter().chain(&others).map(|one| &one.trace).collect();
    parts.extend(gains(values, "gained", &traces, "ended"));
    parts
}

/// Parts of a `WITH` that store what traces gain by the rows of another part, each by the one at its `place`. A join of the two
/// would compare each with each, see [`among`].
fn gains(values: &mut Arrays, name: &str, traces: &[&TraceUpdate], by: &str) -> [String; 2] {
    let [short, long] = values.push_looked_up(traces, "place");
    let update = update_traces(traces::POSTGRES, &format!("(SELECT g.*, {long} FROM by_{by} AS g) AS x"));
    [format!("by_{by} AS MATERIALIZED (SELECT place, {short} FROM {by})"), format!("{name} AS ({update})")]
}

/// Parts of a `WITH` that store outcomes of sends, each of a whole message; `settled` has the items that were stored.
fn sends(values: &mut Arrays, outcomes: &[&Settled]) -> Vec<String> {
    let (traced, others): (Vec<&Settled>, Vec<&Settled>) =
        outcomes.iter().partition(|one| one.trace.is_some());
    let outcomes: Vec<&Settled> = traced.iter().chain(&others).copied().collect();
    let items = sending::settle_items(&if_valid(&values.push_rows(&outcomes)));
    let traces: Vec<_> = traced.iter().filter_map(|one| one.trace.as_ref()).collect();
    let mut parts = vec![
        format!("settled AS ({items} RETURNING outbox.id, outbox.message_id, x.network, x.place)"),
        "sent_messages AS (UPDATE messages SET network_id = COALESCE(messages.network_id, settled.network),
            status_reason = NULL, status = 'sent' FROM settled WHERE messages.id = settled.message_id)"
            .to_owned(),
    ];
    // At the place of another one there is NULL, which is no trace.
    parts.extend(gains(values, "gained_by_sends", &traces, "settled"));
    parts
}

/// Parts of a `WITH` that store the replies of outcomes that are in `ended`; `permitted` has those to send at once.
fn replies(values: &mut Arrays, finished: &[&Finished], batches: &[&Accept]) -> Vec<String> {
    let messages: Vec<&NewOutbound> = finished.iter().flat_map(|one| &one.replies).collect();
    if messages.is_empty() {
        return Vec::new();
    }
    let answered = finished.iter().flat_map(|one| one.replies.iter().map(|reply| (one.id, reply.message_id)));
    let answered: Vec<_> = answered.map(|(delivery, message)| Answered { delivery, message }).collect();
    let answered = among(&values.push_rows(&answered), "delivery", "id FROM ended");
    let rows = values.push_rows(&outbox::message_rows(&messages));
    let insert = outbox::insert_messages(&among(&rows, "id", "message FROM answered"), LOCK);
    // A statement changes each row once: replies to those who write at this moment are sent from the outbox.
    let writing: HashSet<(BotId, &str)> = batches
        .iter()
        .flat_map(|batch| &batch.messages)
        .map(|message| (message.row.bot_id, message.row.from_user_id.as_str()))
        .collect();
    let mut candidates = immediate_send::candidates(finished, &messages);
    candidates.retain(|Candidate { reply, .. }| !writing.contains(&(reply.bot_id, reply.peer.as_str())));
    let candidates = among(&values.push_rows(&candidates), "message", "id FROM sent");
    let items = values.push_rows(&outbox::part_rows(&messages, &HashSet::new()));
    let items = among(&items, "message", "id FROM sent");
    let begun = "x.part = 0 AND x.message IN (SELECT message FROM permitted)";
    let mut parts = vec![
        format!("answered AS (SELECT x.message FROM {answered})"),
        format!("sent AS ({insert} RETURNING id)"),
        format!("permitted AS ({} {PERMIT}, x.message, x.delivery)", immediate_send::count_send(&candidates)),
        format!("parts AS ({})", outbox::insert_parts(&items, begun)),
    ];
    if messages.iter().any(|message| message.has_files()) {
        parts.push(format!("taken_files AS ({})", outbox::take_files_postgres(&items)));
    }
    parts
}

/// The rows whose value of a column is among those that another part has. The planner expects ten rows of an array and one of
/// another part, and would compare each with each to join them; it looks up in a hash table what cannot be a join.
fn among(rows: &str, column: &str, of: &str) -> String {
    format!("(SELECT x.* FROM {rows} WHERE (x.{column} IN (SELECT {of})) IS TRUE) AS x")
}

fn lease_of(batch: &Accept) -> LeaseRow {
    LeaseRow { bot: batch.bot_id, fence: batch.fence, rev: batch.config_rev }
}

/// The rows, if the statement stores anything.
fn if_valid(rows: &str) -> String {
    format!("{rows} JOIN valid ON valid.ok")
}

/// Whether all batches have their leases and the channels' current settings, out of these rows. The bots are locked until
/// the commit.
fn valid(rows: &str) -> String {
    format!(
        "expected AS MATERIALIZED (SELECT * FROM {rows}),
         held AS MATERIALIZED (SELECT id, lease_fence, config_rev FROM bots WHERE id IN (SELECT bot FROM expected)
            ORDER BY id FOR UPDATE),
         valid AS MATERIALIZED (SELECT count(*) = (SELECT count(*) FROM expected) AS ok FROM held
            JOIN expected ON bot = id AND fence = lease_fence AND rev = config_rev)"
    )
}

/// Takes numbers for the messages of channels; `base` is the last number before.
fn numbered(rows: &str) -> String {
    format!(
        "numbered AS (UPDATE channels SET last_seq = last_seq + x.n FROM {rows} WHERE channels.id = x.channel
            RETURNING channels.id AS numbered_channel, last_seq - x.n AS base)"
    )
}
