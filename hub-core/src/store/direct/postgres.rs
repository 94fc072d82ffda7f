//! PostgreSQL: the whole transaction is one statement. It takes for granted that the leases are held, the channels' settings
//! are the same and no message is a repeat. If that is not so it stores nothing.

use std::collections::{BTreeMap, HashSet};

use sqlx::{AssertSqlSafe, PgConnection, postgres::PgArguments};

use super::{Plain, Written};
use crate::{
    error::Result,
    id::{BotId, ChannelId, DeliveryId},
    store::{
        deliveries::{Finished, count_statement, delete_statement_postgres, finish_statement},
        fan_out::{self, Consequences, Joins},
        fault::classify,
        inbox::{self, Accept, Seqs, number},
        rows::{Arrays, row},
        traces::{TraceUpdate, update_traces},
    },
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

/// What a trace gains by the outcome of a delivery.
struct Gain<'a> {
    delivery: DeliveryId,
    trace: &'a TraceUpdate,
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

row!(Gain<'_>, |row| {
    Text delivery = row.delivery,
    Text trace = row.trace.id,
    Text status = row.trace.status.map(crate::model::trace::TraceStatus::as_str),
    Number ended = row.trace.ended,
    Text summary = row.trace.summary.as_deref(),
    Number attempts = row.trace.attempts,
    Number ended_at = row.trace.ended_at,
    Text steps = row.trace.steps.as_str(),
});

/// Writes commands; `None`, and nothing stored, when something is not as it was taken for granted.
pub(super) async fn commit(conn: &mut PgConnection, plain: &Plain) -> Result<Option<Written>> {
    let Plain { accepts, finished, .. } = plain;
    let mut traces = HashSet::new();
    if !finished.iter().all(|one| traces.insert(one.trace.id)) {
        // A statement changes each row once.
        return Ok(None);
    }
    let batches: Vec<&Accept> = accepts.iter().map(|batch| &**batch).collect();
    let messages = || batches.iter().flat_map(|batch| &batch.messages);
    let inserted = messages().map(|message| message.row.id).collect();
    // As if each channel began at 1: the statement adds what it knows.
    let mut places = Seqs::new();
    let taken = inbox::taken(&batches, &inserted);
    let mut counts = Vec::with_capacity(taken.len());
    for (channel, messages) in taken {
        let n = i64::try_from(messages.len()).unwrap_or(0);
        number(&mut places, channel, &messages, n);
        counts.push(CountRow { channel, n });
    }
    let mut values = Arrays::default();
    let mut parts = Vec::new();
    if batches.is_empty() {
        parts.push("valid AS (SELECT true AS ok)".to_owned());
    } else {
        let leases: Vec<LeaseRow> = batches.iter().map(|batch| lease_of(batch)).collect();
        let rows: Vec<_> = messages().map(|message| &message.row).collect();
        let follows = Consequences::new(&batches, &inserted, &places);
        parts.push(valid(&values.push_rows(&leases)));
        parts.push(format!("stored AS ({})", inbox::insert_statement(&if_valid(&values.push_rows(&rows)))));
        parts.push(numbered(&if_valid(&values.push_rows(&counts))));
        let numbered = " JOIN numbered ON numbered_channel = x.channel";
        let joins = Joins { numbered, seq: "base + seq", other: " JOIN valid ON valid.ok" };
        parts.push(fan_out::parts(&mut values, &follows, &joins));
    }
    if !finished.is_empty() {
        let rows: Vec<&Finished> = finished.iter().map(|one| &**one).collect();
        let gains: Vec<Gain<'_>> =
            rows.iter().map(|one| Gain { delivery: one.id, trace: &one.trace }).collect();
        parts.extend(outcomes(&mut values, &rows));
        let gains = format!("{} JOIN ended ON ended.id = x.delivery", values.push_rows(&gains));
        parts.push(format!("gained AS ({})", update_traces("GREATEST", &gains)));
    }
    let numbers =
        if batches.is_empty() { "" } else { " UNION ALL SELECT numbered_channel, base FROM numbered" };
    let sql = format!(
        "WITH {} SELECT CAST(NULL AS TEXT), CAST(0 AS BIGINT) FROM valid WHERE ok{numbers}",
        parts.join(", ")
    );
    let query = sqlx::query_as_with(AssertSqlSafe(sql), PgArguments::from(values));
    let found: Vec<(Option<ChannelId>, i64)> = query.fetch_all(conn).await.map_err(classify)?;
    if !found.iter().any(|(channel, _)| channel.is_none()) {
        return Ok(None);
    }
    let bases: BTreeMap<_, _> =
        found.into_iter().filter_map(|(channel, base)| Some((channel?, base))).collect();
    let seqs: Seqs =
        places.into_iter().filter_map(|(key, place)| Some((key, bases.get(&key.0)? + place))).collect();
    let accepted = batches.iter().map(|batch| inbox::stored(batch, &inserted, &seqs)).collect();
    Ok(Some(Written { accepted, ..Written::default() }))
}

/// Parts of a `WITH` that store outcomes; `ended` has the deliveries for which that was done.
fn outcomes(values: &mut Arrays, rows: &[&Finished]) -> Vec<String> {
    let (successes, others): (Vec<&Finished>, Vec<&Finished>) = rows.iter().partition(|one| one.is_success());
    let (mut parts, mut ended) = (Vec::new(), Vec::new());
    if !successes.is_empty() {
        let rows = values.push_rows(&successes);
        // Another list to delete from takes its condition as it is.
        let delete = delete_statement_postgres(&format!("{rows}, valid"));
        parts.push(format!(
            "deleted AS ({delete} AND valid.ok
                RETURNING deliveries.id, deliveries.channel_id, x.finished_at)"
        ));
        let count = count_statement(
            "(SELECT channel_id AS channel, count(*) AS n, max(finished_at) AS at FROM deleted GROUP BY channel_id) AS x",
        );
        parts.push(format!("counted AS ({count})"));
        ended.push("SELECT id FROM deleted");
    }
    if !others.is_empty() {
        let changed = finish_statement(&if_valid(&values.push_rows(&others)));
        parts.push(format!("changed AS ({changed} RETURNING deliveries.id)"));
        ended.push("SELECT id FROM changed");
    }
    parts.push(format!("ended AS ({})", ended.join(" UNION ALL ")));
    parts
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
