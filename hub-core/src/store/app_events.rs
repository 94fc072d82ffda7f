//! Statements about events for apps. A row is both queue and log: it is stored in the transaction of its cause, taken
//! by one node at a time, and stays readable after delivery.

use std::time::Duration;

use hub_macros::FromRow;
use serde_json::Value;

use super::{
    app_sockets::has_webhook,
    conn::{Conn, on, on_each},
    due::LONGEST_WAIT,
    pieces::{self, delete_old},
    rows::{self, Column, Row, Values},
};
use crate::{
    error::{Error, Result},
    id::{AppEventId, AppId, BotId, InstallationId, MessageId, TraceId},
    model::app_event::{AppEvent, AppEventState},
    page::PageRequest,
    secret::Sealed,
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
    /// The message it tells of.
    pub message_id: Option<MessageId>,
    /// The trace of that.
    pub trace_id: Option<TraceId>,
    /// Word of its kind.
    pub kind: String,
    /// The recipient of a reply; empty if there is none.
    pub peer: String,
    /// The event as JSON.
    pub event: String,
    /// When; due at once.
    pub now: Timestamp,
}

impl Row for NewAppEvent {
    const COLUMNS: &'static [Column] = &[
        Column::Text("id"),
        Column::Text("app_id"),
        Column::Text("bot_id"),
        Column::Text("installation_id"),
        Column::Text("message_id"),
        Column::Text("trace_id"),
        Column::Text("kind"),
        Column::Text("peer"),
        Column::Text("event"),
        Column::Number("created_at"),
    ];

    fn write<'v>(&'v self, values: &mut impl Values<'v>) {
        values.push(self.id.to_string());
        values.push(self.app_id.to_string());
        values.push(self.bot_id.to_string());
        values.push(self.installation_id.to_string());
        values.push(self.message_id.map(|id| id.to_string()));
        values.push(self.trace_id.map(|id| id.to_string()));
        values.push(self.kind.as_str());
        values.push(self.peer.as_str());
        values.push(self.event.as_str());
        values.push(self.now.as_millis());
    }
}

/// An event that a node took, and whatever it needs to tell it.
#[derive(Debug, Clone, FromRow)]
pub struct DueEvent {
    /// Id.
    pub id: String,
    /// The app.
    pub app_id: String,
    /// The bot.
    pub bot_id: String,
    /// The bot's owner.
    pub owner_id: String,
    /// The installation.
    pub installation_id: String,
    /// What it may, as JSON; `None` when it is gone.
    pub scopes: Option<String>,
    /// Word of its kind.
    pub kind: String,
    /// The trace of what it tells of.
    pub trace_id: Option<String>,
    /// The recipient of a reply.
    pub peer: String,
    /// The event as JSON.
    pub event: String,
    /// Attempts made.
    pub attempts: i64,
    /// The URL for events, once it is verified.
    pub webhook_url: Option<String>,
    /// What it is signed with.
    pub webhook_secret: String,
}

impl DueEvent {
    /// Whether an answer goes to a group.
    pub fn peer_is_group(&self) -> bool {
        let event: Value = serde_json::from_str(&self.event).unwrap_or_default();
        event["data"]["group"]["id"] == self.peer.as_str()
    }

    /// The sealed secret.
    pub fn sealed_secret(&self) -> Sealed {
        Sealed::from(self.webhook_secret.clone())
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEvent {
    /// The event.
    pub id: AppEventId,
    /// Status.
    pub state: AppEventState,
    /// When it is tried again.
    pub due_at: Timestamp,
    /// Status of the answer.
    pub response_status: Option<u16>,
    /// Beginning of the answer.
    pub response_body: String,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

#[derive(FromRow)]
struct Stored {
    id: String,
    trace_id: Option<String>,
    kind: String,
    event: String,
    state: String,
    attempts: i64,
    due_at: i64,
    response_status: Option<i64>,
    response_body: String,
    error: Option<String>,
    duration_ms: i64,
    written_at: Option<i64>,
    created_at: i64,
}

impl TryFrom<Stored> for AppEvent {
    type Error = Error;

    fn try_from(row: Stored) -> Result<Self> {
        let state = AppEventState::parse(&row.state).ok_or_else(|| Error::internal("an unknown state"))?;
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            trace_id: row.trace_id.map(|id| id.parse()).transpose().map_err(Error::internal)?,
            kind: row.kind,
            event: row.event,
            state,
            attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
            next_attempt_at: (state == AppEventState::Pending).then(|| Timestamp::from_millis(row.due_at)),
            response_status: row.response_status.and_then(|status| u16::try_from(status).ok()),
            response_body: row.response_body,
            error: row.error,
            duration_ms: u64::try_from(row.duration_ms).unwrap_or(0),
            written_at: row.written_at.map(Timestamp::from_millis),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// What a node needs to tell events whose ids follow.
macro_rules! due {
    () => {
        "SELECT e.id, e.app_id, e.bot_id, b.owner_id, e.installation_id, i.scopes, e.kind, e.trace_id, e.peer,
            e.event, e.attempts, CASE WHEN a.webhook_verified AND u.status = 'active' THEN a.webhook_url END
            AS webhook_url, a.webhook_secret
         FROM app_events e JOIN apps a ON a.id = e.app_id JOIN users u ON u.id = a.owner_id
         JOIN bots b ON b.id = e.bot_id
         LEFT JOIN app_installations i ON i.id = e.installation_id AND i.enabled
         WHERE e.id IN "
    };
}

/// The statement of [`AppEvents::page`].
pub(super) const PAGE: &str =
    "SELECT id, trace_id, kind, event, state, attempts, due_at, response_status, response_body,
        error, duration_ms, written_at, created_at
     FROM app_events WHERE installation_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

/// The statement of [`AppEvents::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_events", "id", "created_at");

/// Reading.
impl AppEvents<'_> {
    /// The events of an installation, newest first, one more than the page has room for.
    pub async fn page(&mut self, installation: InstallationId, page: &PageRequest) -> Result<Vec<AppEvent>> {
        let rows: Vec<Stored> = on!(self.0, |conn| {
            sqlx::query_as(PAGE)
                .bind(installation.to_string())
                .bind(page.before(AppEventId::MAX))
                .bind(i64::from(page.limit()) + 1)
                .fetch_all(conn)
                .await
        })?;
        rows.into_iter().map(AppEvent::try_from).collect()
    }

    /// An event of any app.
    pub async fn find(&mut self, id: AppEventId) -> Result<Option<AppEvent>> {
        let row: Option<Stored> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT id, trace_id, kind, event, state, attempts, due_at, response_status, response_body, error,
                duration_ms, written_at, created_at
             FROM app_events WHERE id = $1"
        )
        .bind(id.to_string())
        .fetch_optional(conn)
        .await
        })?;
        row.map(AppEvent::try_from).transpose()
    }

    /// Whether anything is due that no node works on.
    pub async fn has_due(&mut self, now: Timestamp) -> Result<bool> {
        let found: Option<i32> = on!(self.0, |conn| {
            sqlx::query_scalar(
                "SELECT 1 FROM app_events WHERE state = 'pending' AND (due_at <= $1 OR due_at > $2)
                AND (claimed_until <= $1 OR claimed_until > $2) LIMIT 1",
            )
            .bind(now.as_millis())
            .bind((now + LONGEST_WAIT).as_millis())
            .fetch_optional(conn)
            .await
        })?;
        Ok(found.is_some())
    }
}

/// Writing.
impl AppEvents<'_> {
    /// Stores events; those of an app or a bot that is gone are left out.
    pub async fn insert(&mut self, events: &[&NewAppEvent]) -> Result<()> {
        rows::run(&mut self.0, events, |rows| {
            format!(
                "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
                    state, attempts, due_at, claimed_until, response_body, duration_ms, created_at)
                 SELECT x.id, a.id, b.id, x.installation_id, x.message_id, x.trace_id, x.kind, x.peer, x.event,
                    'pending', 0, x.created_at, 0, '', 0, x.created_at
                 FROM {rows} JOIN apps a ON a.id = x.app_id JOIN bots b ON b.id = x.bot_id
                 WHERE x.id IS NOT NULL"
            )
        })
        .await
        .map(drop)
    }

    /// Records an event that was delivered directly, with its outcome: no node takes it. One that exists was
    /// delivered again. One of a deleted app or bot is ignored.
    pub async fn note(&mut self, event: &NewAppEvent, told: &ToldEvent) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
                state, attempts, due_at, claimed_until, response_status, response_body, error, duration_ms, socket_due,
                created_at)
             SELECT $1, a.id, b.id, $4, $5, $6, $7, $8, $9, $11, 1, $10, 0, $12, $13, $14, $15, FALSE, $10
             FROM apps a JOIN bots b ON b.id = $3 WHERE a.id = $2
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, response_status = excluded.response_status,
                response_body = excluded.response_body, error = excluded.error,
                duration_ms = excluded.duration_ms, attempts = app_events.attempts + 1"
        )
        .bind(event.id.to_string())
        .bind(event.app_id.to_string())
        .bind(event.bot_id.to_string())
        .bind(event.installation_id.to_string())
        .bind(event.message_id.map(|id| id.to_string()))
        .bind(event.trace_id.map(|id| id.to_string()))
        .bind(&event.kind)
        .bind(&event.peer)
        .bind(&event.event)
        .bind(event.now.as_millis())
        .bind(told.state.as_str())
        .bind(told.response_status.map(i64::from))
        .bind(&told.response_body)
        .bind(&told.error)
        .bind(i64::try_from(told.duration_ms).unwrap_or(i64::MAX))
        .execute(conn)
        .await
        .map(|_| ())
        })
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
        let ids: Vec<String> = on!(self.0, |conn| {
            sqlx::query_scalar(
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
             RETURNING id",
            )
            .bind(now.as_millis())
            .bind(until.as_millis())
            .bind(i64::from(per_app))
            .bind(i64::from(limit))
            .bind((now + LONGEST_WAIT).as_millis())
            .fetch_all(conn)
            .await
        })?;
        on_each!(
            self.0,
            concat!(due!(), "(SELECT value FROM json_each($1)) ORDER BY e.id"),
            concat!(due!(), "(SELECT json_array_elements_text($1::json)) ORDER BY e.id"),
            |conn, sql| sqlx::query_as(sql).bind(crate::text::json(&ids)).fetch_all(conn).await
        )
    }

    /// Lets what is due wait for a socket until `wait` after it happened, where the app has no webhook.
    pub async fn park(&mut self, now: Timestamp, wait: Duration) -> Result<()> {
        on!(self.0, |conn| sqlx::query(concat!(
            "UPDATE app_events SET due_at = created_at + $2
             WHERE state = 'pending' AND due_at <= $1 AND claimed_until <= $1 AND due_at < created_at + $2
                AND NOT ",
            has_webhook!()
        ))
        .bind(now.as_millis())
        .bind(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Makes all pending events of an app due: its webhook has just responded.
    pub async fn hasten(&mut self, app: AppId, now: Timestamp) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE app_events SET due_at = $2 WHERE app_id = $1 AND state = 'pending' AND due_at > $2"
        )
        .bind(app.to_string())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Records the outcome of an attempt, and releases the event. An event that the webhook accepted is still written
    /// to an open socket; one that it never accepted counts as delivered if a socket received it.
    pub async fn settle(&mut self, told: &ToldEvent) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "UPDATE app_events SET
                state = CASE WHEN $2 = 'failed' AND written_at IS NOT NULL THEN 'delivered' ELSE $2 END,
                due_at = $3, response_status = $4, response_body = $5, error = $6,
                duration_ms = $7, attempts = attempts + 1, claimed_until = 0,
                socket_due = socket_due AND ($2 = 'pending' OR ($2 = 'delivered' AND EXISTS (
                    SELECT 1 FROM app_sockets s WHERE s.until > $3 AND (s.installation_id = app_events.installation_id
                        OR (s.app_id = app_events.app_id AND s.installation_id IS NULL)))))
             WHERE id = $1 AND state = 'pending'"
        )
        .bind(told.id.to_string())
        .bind(told.state.as_str())
        .bind(told.due_at.as_millis())
        .bind(told.response_status.map(i64::from))
        .bind(&told.response_body)
        .bind(&told.error)
        .bind(i64::try_from(told.duration_ms).unwrap_or(i64::MAX))
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Fails the pending events of an installation.
    pub async fn give_up(&mut self, installation: InstallationId, why: &str) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
                "UPDATE app_events SET state = 'failed', error = $2, socket_due = FALSE
             WHERE installation_id = $1 AND state = 'pending'",
            )
            .bind(installation.to_string())
            .bind(why)
            .execute(conn)
            .await
            .map(|_| ())
        })
    }

    /// Deletes up to `limit` events that ended or began before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        pieces::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
