//! Statements about events for apps. A row is both queue and log: it is stored in the transaction of its cause, taken
//! by one node at a time, and stays readable after delivery.

use std::time::Duration;

use hub_macros::FromRow;
use serde_json::Value;

use super::{
    app_sockets::has_webhook,
    batched_delete::{self, delete_old},
    conn::{Conn, sql},
    due::LONGEST_WAIT,
    rows::{self, row},
};
use crate::{
    access::AppScopes,
    error::Result,
    id::{AppEventId, AppId, BotId, InstallationId, MessageId, TraceId, UserId},
    model::app_event::{AppEvent, AppEventState},
    page::PageRequest,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about events, on a lent connection.
#[derive(Debug)]
pub struct AppEvents<'c>(pub(super) Conn<'c>);

/// An event to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAppEvent {
    /// Id.
    pub id: AppEventId,
    /// The app.
    pub app_id: AppId,
    /// The bot.
    pub bot_id: BotId,
    /// The installation.
    pub installation_id: InstallationId,
    /// The message that caused it.
    pub message_id: Option<MessageId>,
    /// The message's trace.
    pub trace_id: Option<TraceId>,
    /// Word of its kind.
    pub kind: String,
    /// The recipient of a reply; empty if there is none.
    pub peer: String,
    /// The event as JSON.
    pub event: String,
    /// Time of creation; the event is due immediately.
    pub now: Timestamp,
}

row!(NewAppEvent, |row| {
    Text id = row.id,
    Text app_id = row.app_id,
    Text bot_id = row.bot_id,
    Text installation_id = row.installation_id,
    Text message_id = row.message_id,
    Text trace_id = row.trace_id,
    Text kind = row.kind.as_str(),
    Text peer = row.peer.as_str(),
    Text event = row.event.as_str(),
    Number created_at = row.now,
});

/// Stores events, out of these rows; those of an app or a bot that is gone are left out.
pub(super) fn insert(rows: &str) -> String {
    format!(
        "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
            state, attempts, due_at, claimed_until, response_body, duration_ms, created_at)
         SELECT x.id, a.id, b.id, x.installation_id, x.message_id, x.trace_id, x.kind, x.peer, x.event,
            'pending', 0, x.created_at, 0, '', 0, x.created_at
         FROM {rows} JOIN apps a ON a.id = x.app_id JOIN bots b ON b.id = x.bot_id
         WHERE x.id IS NOT NULL"
    )
}

/// An event claimed by a node, with what its delivery needs.
#[derive(Debug, Clone, FromRow)]
#[row(table = "app_events")]
pub struct DueEvent {
    /// Id.
    pub id: AppEventId,
    /// The app.
    pub app_id: AppId,
    /// The bot.
    pub bot_id: BotId,
    /// The bot's owner.
    pub owner_id: UserId,
    /// The installation.
    pub installation_id: InstallationId,
    /// Scopes of the installation; `None` when it is gone.
    #[row(json)]
    pub scopes: Option<AppScopes>,
    /// Word of its kind.
    pub kind: String,
    /// The trace of the event's cause.
    pub trace_id: Option<TraceId>,
    /// The recipient of a reply.
    pub peer: String,
    /// The event as JSON.
    pub event: String,
    /// Attempts made.
    #[row(number)]
    pub attempts: u32,
    /// The URL for events, once it is verified.
    pub webhook_url: Option<String>,
    /// Signing secret.
    pub webhook_secret: Sealed,
}

impl DueEvent {
    /// Whether the peer of the event is a group.
    pub fn peer_is_group(&self) -> bool {
        let event: Value = serde_json::from_str(&self.event).unwrap_or_default();
        event["data"]["group"]["id"] == self.peer.as_str()
    }
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAttempt {
    /// The event.
    pub id: AppEventId,
    /// Status.
    pub state: AppEventState,
    /// Time of the next attempt.
    pub due_at: Timestamp,
    /// HTTP status of the response.
    pub response_status: Option<u16>,
    /// Beginning of the response body.
    pub response_body: String,
    /// Error of the attempt.
    pub error: Option<String>,
    /// Duration of the attempt, in milliseconds.
    pub duration_ms: u64,
}

/// `SELECT` with the columns of an [`AppEvent`] and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, trace_id, kind, event, state, attempts, CASE WHEN state = 'pending' THEN due_at END
                AS next_attempt_at, response_status, response_body, error, duration_ms, written_at, created_at
             FROM app_events ",
            $rest
        )
    };
}

/// The statement of [`AppEvents::page`].
const PAGE: &str = select!("WHERE installation_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");

/// The statement of [`AppEvents::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_events", "id", "created_at");

/// Reading.
impl AppEvents<'_> {
    /// The events of an installation, newest first, one more than the page has room for.
    pub async fn page(&mut self, installation: InstallationId, page: &PageRequest) -> Result<Vec<AppEvent>> {
        sql!(self.0, all: PAGE; installation, page.before(AppEventId::MAX), i64::from(page.limit()) + 1)
    }

    /// An event of any app.
    pub async fn find(&mut self, id: AppEventId) -> Result<Option<AppEvent>> {
        sql!(self.0, optional: select!("WHERE id = $1"); id)
    }

    /// Whether anything is due that no node works on.
    pub async fn has_due(&mut self, now: Timestamp) -> Result<bool> {
        let found: Option<i32> = sql!(self.0, optional_value:
            "SELECT 1 FROM app_events WHERE state = 'pending' AND (due_at <= $1 OR due_at > $2)
            AND (claimed_until <= $1 OR claimed_until > $2) LIMIT 1";
            now, now + LONGEST_WAIT
        )?;
        Ok(found.is_some())
    }
}

/// Writing.
impl AppEvents<'_> {
    /// Stores events; those of an app or a bot that is gone are left out.
    pub async fn insert(&mut self, events: &[&NewAppEvent]) -> Result<()> {
        rows::run(&mut self.0, events, insert).await
    }

    /// Records an event that was delivered directly, with its outcome: no node takes it. One that exists was
    /// delivered again. One of a deleted app or bot is ignored.
    pub async fn note(&mut self, event: &NewAppEvent, attempt: &EventAttempt) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
               state, attempts, due_at, claimed_until, response_status, response_body, error, duration_ms, socket_due,
               created_at)
            SELECT $1, a.id, b.id, $4, $5, $6, $7, $8, $9, $11, 1, $10, 0, $12, $13, $14, $15, FALSE, $10
            FROM apps a JOIN bots b ON b.id = $3 WHERE a.id = $2
            ON CONFLICT (id) DO UPDATE SET state = excluded.state, response_status = excluded.response_status,
               response_body = excluded.response_body, error = excluded.error,
               duration_ms = excluded.duration_ms, attempts = app_events.attempts + 1";
            event.id, event.app_id, event.bot_id, event.installation_id, event.message_id, event.trace_id,
            &event.kind, &event.peer, &event.event, event.now, attempt.state,
            attempt.response_status.map(i64::from), &attempt.response_body, &attempt.error,
            i64::try_from(attempt.duration_ms).unwrap_or(i64::MAX)
        )
    }

    /// Takes due events that no node works on, until `until`: at most `limit`, and of one app at most `per_app`, so
    /// that many events of one never keep another's waiting.
    pub async fn claim(
        &mut self,
        now: Timestamp,
        until: Timestamp,
        per_app: u32,
        limit: u32,
    ) -> Result<Vec<DueEvent>> {
        let ids: Vec<AppEventId> = sql!(self.0, values:
            "UPDATE app_events SET claimed_until = $2 WHERE state = 'pending'
               AND (claimed_until <= $1 OR claimed_until > $5) AND id IN (
               SELECT id FROM (
                   SELECT e.id, e.due_at, row_number() OVER (PARTITION BY e.app_id ORDER BY e.due_at, e.id) +
                       (SELECT count(*) FROM app_events w WHERE w.app_id = e.app_id AND w.state = 'pending'
                           AND w.claimed_until > $1 AND w.claimed_until <= $5) AS place
                   FROM app_events e
                   WHERE e.state = 'pending' AND (e.due_at <= $1 OR e.due_at > $5)
                       AND (e.claimed_until <= $1 OR e.claimed_until > $5)) AS due
               WHERE place <= $3 ORDER BY due_at, id LIMIT $4)
            RETURNING id";
            now, until, i64::from(per_app), i64::from(limit), now + LONGEST_WAIT
        )?;
        sql!(self.0, all:
            ["SELECT e.id, e.app_id, e.bot_id, b.owner_id, e.installation_id, i.scopes, e.kind, e.trace_id, e.peer,
                e.event, e.attempts, CASE WHEN a.webhook_verified AND u.status = 'active' THEN a.webhook_url END
                AS webhook_url, a.webhook_secret
             FROM app_events e JOIN apps a ON a.id = e.app_id JOIN users u ON u.id = a.owner_id
             JOIN bots b ON b.id = e.bot_id
             LEFT JOIN app_installations i ON i.id = e.installation_id AND i.enabled
             WHERE e.id", in 1, " ORDER BY e.id"];
            json(&ids)
        )
    }

    /// Delays due events of apps without a webhook, so that they wait for a socket until `wait` after their creation.
    pub async fn park(&mut self, now: Timestamp, wait: Duration) -> Result<()> {
        sql!(self.0, run:
            concat!(
                "UPDATE app_events SET due_at = created_at + $2
                 WHERE state = 'pending' AND due_at <= $1 AND claimed_until <= $1 AND due_at < created_at + $2
                    AND NOT ",
                has_webhook!()
            );
            now, i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)
        )
    }

    /// Makes all pending events of an app due: its webhook has just responded.
    pub async fn hasten(&mut self, app: AppId, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_events SET due_at = $2 WHERE app_id = $1 AND state = 'pending' AND due_at > $2";
            app, now
        )
    }

    /// Records the outcome of an attempt, and releases the event. An event that the webhook accepted is still written
    /// to an open socket; one that it never accepted counts as delivered if a socket received it.
    pub async fn settle(&mut self, attempt: &EventAttempt) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_events SET
               state = CASE WHEN $2 = 'failed' AND written_at IS NOT NULL THEN 'delivered' ELSE $2 END,
               due_at = $3, response_status = $4, response_body = $5, error = $6,
               duration_ms = $7, attempts = attempts + 1, claimed_until = 0,
               socket_due = socket_due AND ($2 = 'pending' OR ($2 = 'delivered' AND EXISTS (
                   SELECT 1 FROM app_sockets s WHERE s.until > $3 AND (s.installation_id = app_events.installation_id
                       OR (s.app_id = app_events.app_id AND s.installation_id IS NULL)))))
            WHERE id = $1 AND state = 'pending'";
            attempt.id, attempt.state, attempt.due_at, attempt.response_status.map(i64::from), &attempt.response_body,
            &attempt.error, i64::try_from(attempt.duration_ms).unwrap_or(i64::MAX)
        )
    }

    /// Fails the pending events of an installation.
    pub async fn give_up(&mut self, installation: InstallationId, why: &str) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_events SET state = 'failed', error = $2, socket_due = FALSE
            WHERE installation_id = $1 AND state = 'pending'";
            installation, why
        )
    }

    /// Deletes up to `limit` events that ended or began before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        batched_delete::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
