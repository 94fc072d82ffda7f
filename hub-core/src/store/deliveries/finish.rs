//! Outcomes of deliveries, and everything that follows from them, in one transaction.

use std::collections::BTreeMap;

use super::super::{
    ai::AiUsage,
    due::{Stamp, Step},
    outbox::NewOutbound,
    rows::row,
    sending::SendAtOnce,
    traces::TraceUpdate,
};
use crate::{
    id::{ChannelId, DeliveryId},
    model::trace::DeliveryState,
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

impl HealthReport {
    const fn word(&self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Fails { .. } => "fails",
            Self::Gone => "gone",
        }
    }

    const fn failed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Fails { now, .. } => Some(*now),
            Self::Works | Self::Gone => None,
        }
    }

    const fn give_up_before(&self) -> Option<Timestamp> {
        match self {
            Self::Fails { give_up_before, .. } => Some(*give_up_before),
            Self::Works | Self::Gone => None,
        }
    }
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

row!(SinkHealth, |row| {
    Text channel = row.channel,
    Text report = row.report.word(),
    Number now = row.report.failed_at(),
    Number give_up = row.report.give_up_before(),
});

/// Condition that a row switches off the webhook of a channel `c`.
const IS_SWITCHED_OFF: &str = "c.webhook_disabled IS NULL AND (x.report = 'gone'
    OR x.report = 'fails' AND COALESCE(c.failing_since, x.now) <= x.give_up)";

/// Raises the settings revisions of bots one of whose webhooks is about to be switched off by these rows, so that no
/// batch is routed to it any more.
pub(in crate::store) fn raise_revisions(rows: &str) -> String {
    format!(
        "UPDATE bots SET config_rev = config_rev + 1
         WHERE id IN (SELECT c.bot_id FROM {rows} JOIN channels c ON c.id = x.channel WHERE {IS_SWITCHED_OFF})"
    )
}

/// Stores what attempts showed of webhooks, out of these rows.
pub(in crate::store) fn note_health(rows: &str) -> String {
    format!(
        "UPDATE channels AS c SET failing_since = CASE x.report WHEN 'works' THEN NULL
                WHEN 'fails' THEN COALESCE(c.failing_since, x.now) ELSE c.failing_since END,
            webhook_disabled = CASE WHEN NOT ({IS_SWITCHED_OFF}) THEN c.webhook_disabled
                WHEN x.report = 'gone' THEN 'the receiver answered 410 Gone'
                ELSE 'every delivery failed for days' END
         FROM {rows} WHERE c.id = x.channel"
    )
}
