//! Outcomes of deliveries, and everything that follows from them, in one transaction.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::super::{
    ai::AiUsage,
    conn::{Conn, sql},
    due::{Stamp, Step},
    outbox::NewOutbound,
    rows::{self, row},
    sending::{SendAtOnce, at_once::Permits},
    traces::TraceUpdate,
};
use crate::{
    error::Result,
    id::{ChannelId, DeliveryId, kind},
    model::trace::DeliveryState,
    store::views::Tx,
    time::Timestamp,
};

/// The outcome of one attempt, to be stored together with everything that follows from it.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The delivery.
    pub id: DeliveryId,
    /// Its channel.
    pub channel: ChannelId,
    /// The lease under which it was attempted; nothing is stored when another node holds the bot.
    pub fence: i64,
    /// New state.
    pub state: DeliveryState,
    /// Attempts made.
    pub attempts: i64,
    /// Time of the next attempt.
    pub due_at: Timestamp,
    /// Time of the first attempt.
    pub first_attempt_at: Timestamp,
    /// Whether this node keeps it in memory.
    pub keep: bool,
    /// Error of the attempt.
    pub last_error: Option<String>,
    /// Time of the outcome, and the clock that determined its times.
    pub stamp: Stamp,
    /// Whether the next delivery of its lane waits for the commit.
    pub is_followed: bool,
    /// Change of the trace.
    pub trace: TraceUpdate,
    /// Replies to people.
    pub replies: Vec<NewOutbound>,
    /// Whether the first of them may be sent as soon as it is stored.
    pub send_at_once: Option<SendAtOnce>,
    /// Effect on the health of the channel's webhook.
    pub health: Option<SinkHealth>,
    /// Tokens that the model used.
    pub usage: Option<AiUsage>,
}

impl Finished {
    /// Whether it changes its delivery and its trace alone, apart from replies.
    pub(in crate::store) fn is_plain(&self) -> bool {
        self.health.is_none() && self.usage.is_none()
    }

    /// Whether nothing is left to do or to show: the row is deleted.
    pub(in crate::store) fn is_success(&self) -> bool {
        self.state == DeliveryState::Done
    }

    /// Moves its times along with a step of the clock by which they were determined.
    pub(crate) fn follow(&mut self, step: Step) {
        let follow = |at: &mut Timestamp| *at = step.moved(*at);
        follow(&mut self.due_at);
        follow(&mut self.first_attempt_at);
        follow(&mut self.stamp.read.wall);
        for reply in &mut self.replies {
            follow(&mut reply.now);
            follow(&mut reply.expires_at);
        }
    }
}

/// Result of an attempt for the health of a channel's webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkHealth {
    /// The channel.
    pub channel: ChannelId,
    /// Result of the attempt.
    pub report: HealthReport,
}

/// See [`SinkHealth`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthReport {
    /// It took a message.
    Works,
    /// It failed; switched off when it has done nothing else since before `give_up_before`.
    Fails {
        /// Time of the failure.
        now: Timestamp,
        /// A webhook that has failed without interruption since before this time is switched off.
        give_up_before: Timestamp,
    },
    /// It asked to be switched off.
    Gone,
}

row!(Finished, |one| {
    Text delivery = one.id,
    Number fence = one.fence,
    Text state = one.state.as_str(),
    Number attempts = one.attempts,
    Number due_at = one.due_at,
    Number first_attempt_at = one.first_attempt_at,
    Number claim = if one.keep { one.fence } else { 0 },
    Text last_error = one.last_error.as_deref(),
    Number finished_at =
        (!matches!(one.state, DeliveryState::Pending | DeliveryState::Parked)).then_some(one.stamp.read.wall),
});

/// Successful deliveries of a channel.
pub(in crate::store) struct Successes {
    channel: ChannelId,
    n: i64,
    at: Timestamp,
}

row!(Successes, |row| {
    Text channel = row.channel,
    Number n = row.n,
    Number at = row.at,
});

impl Successes {
    /// Those among stored outcomes.
    pub(in crate::store) fn of<'f>(stored: impl Iterator<Item = &'f Finished>) -> Vec<Self> {
        let mut channels = BTreeMap::new();
        for one in stored.filter(|one| one.is_success()) {
            let at = one.stamp.read.wall;
            let channel = channels.entry(one.channel).or_insert(Self { channel: one.channel, n: 0, at });
            channel.n += 1;
            channel.at = channel.at.max(at);
        }
        channels.into_values().collect()
    }
}

/// Stores outcomes; returns the replies to send at once. An attempt under a lost lease stores nothing: the next
/// holder attempts again. An outcome is stored once: if it arrives again because its commit was not acknowledged, the
/// row may have changed since.
pub(in crate::store) async fn finish(tx: &mut Tx, finished: &[Arc<Finished>]) -> Result<Permits> {
    failpoint!("finish.state");
    let mut conn = tx.conn();
    let rows: Vec<&Finished> = finished.iter().map(|one| &**one).collect();
    let stored: HashSet<DeliveryId> = finish_rows(&mut conn, &rows).await?.into_iter().collect();
    let stored: Vec<&Finished> = rows.into_iter().filter(|one| stored.contains(&one.id)).collect();
    failpoint!("finish.traces");
    crate::store::traces::update(&mut conn, &stored.iter().map(|one| &one.trace).collect::<Vec<_>>()).await?;
    let permits = tx.outbox().enqueue_replies(&stored).await?;
    failpoint!("finish.health");
    note_health(&mut tx.conn(), &stored.iter().filter_map(|one| one.health.as_ref()).collect::<Vec<_>>())
        .await?;
    let usage: Vec<_> = stored.iter().filter_map(|one| one.usage.as_ref()).collect();
    crate::store::ai::add_usage(&mut tx.conn(), &usage).await?;
    Ok(permits)
}

/// Deletes deliveries that ended well, out of these rows, on SQLite.
pub(in crate::store) fn delete_statement(rows: &str) -> String {
    format!(
        "DELETE FROM deliveries WHERE id IN (
            SELECT d.id FROM {rows} JOIN deliveries d ON d.id = x.delivery AND d.attempts = x.attempts - 1
            JOIN bots b ON b.id = d.bot_id AND b.lease_fence = x.fence)"
    )
}

/// As [`delete_statement`], on PostgreSQL: the row is checked again when another transaction changed it meanwhile.
pub(in crate::store) fn delete_statement_postgres(rows: &str) -> String {
    format!(
        "DELETE FROM deliveries USING {rows} WHERE deliveries.id = x.delivery AND deliveries.attempts = x.attempts - 1
           AND (SELECT lease_fence FROM bots WHERE bots.id = deliveries.bot_id) = x.fence"
    )
}

/// Counts deliveries that ended well, out of these rows.
pub(in crate::store) fn count_statement(rows: &str) -> String {
    format!(
        "UPDATE successes SET count = successes.count + x.n, last_at = x.at FROM {rows}
         WHERE successes.channel_id = x.channel"
    )
}

/// Stores the states of deliveries that did not end well, out of these rows.
pub(in crate::store) fn finish_statement(rows: &str) -> String {
    format!(
        "UPDATE deliveries SET state = x.state, attempts = x.attempts, due_at = x.due_at,
            first_attempt_at = x.first_attempt_at, claim = x.claim, last_error = x.last_error,
            finished_at = x.finished_at
         FROM {rows} WHERE deliveries.id = x.delivery AND deliveries.attempts = x.attempts - 1
           AND (SELECT lease_fence FROM bots WHERE bots.id = deliveries.bot_id) = x.fence"
    )
}

/// Stores the states of deliveries, or deletes them; returns for which that was done.
async fn finish_rows(conn: &mut Conn<'_>, rows: &[&Finished]) -> Result<Vec<DeliveryId>> {
    let (ended, others): (Vec<&Finished>, Vec<&Finished>) = rows.iter().partition(|one| one.is_success());
    let delete = match conn {
        Conn::Sqlite(_) => delete_statement,
        Conn::Postgres(_) => delete_statement_postgres,
    };
    let mut stored: Vec<DeliveryId> =
        rows::returning(conn, &ended, |rows| format!("{} RETURNING deliveries.id", delete(rows))).await?;
    let deleted: HashSet<DeliveryId> = stored.iter().copied().collect();
    let successes = Successes::of(ended.into_iter().filter(|one| deleted.contains(&one.id)));
    rows::run(conn, &successes, count_statement).await?;
    let changed = |rows: &str| format!("{} RETURNING deliveries.id", finish_statement(rows));
    stored.extend(rows::returning::<_, kind::Delivery>(conn, &others, changed).await?);
    Ok(stored)
}

/// Writes the few reports of a batch. A webhook that is switched off raises its bot's settings revision, so
/// that no batch is routed to it any more.
async fn note_health(conn: &mut Conn<'_>, health: &[&SinkHealth]) -> Result<()> {
    for SinkHealth { channel, report } in health {
        let switched_off: u64 = match report {
            HealthReport::Works => {
                sql!(*conn, run:
                    "UPDATE channels SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL";
                    channel
                )?;
                0
            }
            HealthReport::Fails { now, give_up_before } => {
                sql!(*conn, run:
                    "UPDATE channels SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL";
                    channel, now
                )?;
                sql!(*conn, execute:
                    "UPDATE channels SET webhook_disabled = 'every delivery failed for days'
                    WHERE id = $1 AND failing_since <= $2 AND webhook_disabled IS NULL";
                    channel, give_up_before
                )?
            }
            HealthReport::Gone => sql!(*conn, execute:
                "UPDATE channels SET webhook_disabled = 'the receiver answered 410 Gone'
                WHERE id = $1 AND webhook_disabled IS NULL";
                channel
            )?,
        };
        if switched_off > 0 {
            sql!(*conn, run:
                "UPDATE bots SET config_rev = config_rev + 1
                WHERE id = (SELECT bot_id FROM channels WHERE id = $1)";
                channel
            )?;
        }
    }
    Ok(())
}
