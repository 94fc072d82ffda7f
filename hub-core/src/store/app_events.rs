//! Statements about events for apps. An event is stored in the transaction of its cause, together with the delivery to
//! its app, and stays readable after that has ended.

use std::borrow::Cow;

use hub_macros::FromRow;
use serde_json::Value;

use super::{
    batched_delete::{self, delete_old},
    conn::{Conn, sql},
    rows::{self, row},
};
use crate::{
    access::AppScopes,
    error::Result,
    id::{AppEventId, AppId, BotId, DeliveryId, InstallationId, MessageId, TraceId, UserId},
    model::{
        app::SocketScope,
        app_event::{AppEvent, AppEventState},
    },
    page::PageRequest,
    secret::Sealed,
    time::Timestamp,
};

/// Statements about events, on a lent connection.
#[derive(Debug)]
pub struct AppEvents<'c>(pub(super) Conn<'c>);

/// An event to store.
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
    /// Time of creation.
    pub now: Timestamp,
}

/// An event with its delivery to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedEvent {
    /// The event.
    pub event: NewAppEvent,
    /// Id of the delivery; `None` if the app has no webhook, so that the event waits for a socket.
    pub delivery: Option<DeliveryId>,
    /// The fence of the node that holds it in memory, or 0.
    pub claim: i64,
}

impl QueuedEvent {
    /// Creates an event that no node holds in memory.
    pub const fn new(event: NewAppEvent, delivery: Option<DeliveryId>) -> Self {
        Self { event, delivery, claim: 0 }
    }

    /// Ordering key: deliveries to an installation with the same key keep their order. It is the conversation, or the
    /// installation for an event about no person.
    pub fn lane(&self) -> Cow<'_, str> {
        match &*self.event.peer {
            "" => Cow::Owned(self.event.installation_id.to_string()),
            peer => Cow::Borrowed(peer),
        }
    }
}

row!(QueuedEvent, |row| {
    Text id = row.event.id,
    Text app_id = row.event.app_id,
    Text bot_id = row.event.bot_id,
    Text installation_id = row.event.installation_id,
    Text message_id = row.event.message_id,
    Text trace_id = row.event.trace_id,
    Text kind = row.event.kind.as_str(),
    Text peer = row.event.peer.as_str(),
    Text event = row.event.event.as_str(),
    Text delivery = row.delivery,
    Number claim = row.claim,
    Number created_at = row.event.now,
});

/// Stores events, out of these rows; those of an app or a bot that is gone are left out.
pub(super) fn insert(rows: &str) -> String {
    format!(
        "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
            state, attempts, response_body, duration_ms, created_at)
         SELECT x.id, a.id, b.id, x.installation_id, x.message_id, x.trace_id, x.kind, x.peer, x.event,
            'pending', 0, '', 0, x.created_at
         FROM {rows} JOIN apps a ON a.id = x.app_id JOIN bots b ON b.id = x.bot_id
         WHERE x.id IS NOT NULL"
    )
}

/// The lane of an event of this table, as [`QueuedEvent::lane`] has it.
macro_rules! lane {
    ($event:literal) => {
        concat!(
            "CASE WHEN ",
            $event,
            ".peer = '' THEN ",
            $event,
            ".installation_id ELSE ",
            $event,
            ".peer END"
        )
    };
}

/// Stores the deliveries of the events that were stored out of these rows; `stored` has the ids of those.
pub(super) fn insert_deliveries(rows: &str, stored: &str) -> String {
    format!(
        "INSERT INTO deliveries (id, message_id, bot_id, trace_id, event_id, sink, lane, seq, state, attempts, due_at,
            claim, created_at)
         SELECT x.delivery, x.message_id, x.bot_id, x.trace_id, x.id, 'app', {}, 1, 'pending', 0, x.created_at,
            x.claim, x.created_at
         FROM {rows} JOIN {stored} AS stored ON stored.id = x.id WHERE x.delivery IS NOT NULL",
        lane!("x")
    )
}

/// Creates deliveries, due at `$2`, of pending events without one; each has the number of its event as its id.
macro_rules! queue {
    ($($which:literal),+) => {
        concat!(
            "INSERT INTO deliveries (id, message_id, bot_id, trace_id, event_id, sink, lane, seq, state, attempts, due_at,
                claim, created_at)
             SELECT 'dlv_' || substr(e.id, 5), m.id, e.bot_id, e.trace_id, e.id, 'app', ",
            lane!("e"),
            ", 1, 'pending', 0, $2, 0, e.created_at
             FROM app_events e LEFT JOIN messages m ON m.id = e.message_id
             WHERE e.state = 'pending' AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event_id = e.id) AND ",
            $($which),+
        )
    };
}

/// An event with what an attempt to deliver it needs.
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
    /// Whether it was delivered or has failed.
    pub state: AppEventState,
    /// Attempts made.
    #[row(number)]
    pub attempts: u32,
    /// The URL for events, once it is verified.
    pub webhook_url: Option<String>,
    /// Signing secret.
    pub webhook_secret: Sealed,
    /// Time of creation.
    pub created_at: Timestamp,
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
            "SELECT id, trace_id, kind, event, state, attempts, (SELECT MIN(d.due_at) FROM deliveries d
                WHERE d.event_id = app_events.id) AS next_attempt_at, response_status, response_body, error,
                duration_ms, written_at, created_at
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

    /// An event with what an attempt to deliver it needs; `None` if it, its app or its bot is gone.
    pub async fn due(&mut self, id: AppEventId) -> Result<Option<DueEvent>> {
        sql!(self.0, optional:
            "SELECT e.id, e.app_id, e.bot_id, b.owner_id, e.installation_id, i.scopes, e.kind, e.trace_id, e.peer,
                e.event, e.state, e.attempts, CASE WHEN a.webhook_verified AND u.status = 'active' THEN a.webhook_url
                END AS webhook_url, a.webhook_secret, e.created_at
             FROM app_events e JOIN apps a ON a.id = e.app_id JOIN users u ON u.id = a.owner_id
             JOIN bots b ON b.id = e.bot_id
             LEFT JOIN app_installations i ON i.id = e.installation_id AND i.enabled
             WHERE e.id = $1";
            id
        )
    }
}

/// Writing.
impl AppEvents<'_> {
    /// Stores events and their deliveries; those of an app or a bot that is gone are left out.
    pub async fn insert(&mut self, events: &[&QueuedEvent]) -> Result<()> {
        rows::run(&mut self.0, events, insert).await?;
        rows::run(&mut self.0, events, |rows| insert_deliveries(rows, "app_events")).await
    }

    /// Records an event that was delivered directly, with its outcome: no node takes it. One that exists was
    /// delivered again. One of a deleted app or bot is ignored.
    pub async fn note(&mut self, event: &NewAppEvent, attempt: &EventAttempt) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO app_events (id, app_id, bot_id, installation_id, message_id, trace_id, kind, peer, event,
               state, attempts, response_status, response_body, error, duration_ms, socket_due, created_at)
            SELECT $1, a.id, b.id, $4, $5, $6, $7, $8, $9, $11, 1, $12, $13, $14, $15, FALSE, $10
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

    /// Makes the waiting events of an app due, on one bot or on all: its webhook has just responded, or it was taken
    /// off the bot.
    pub async fn hasten(&mut self, scope: SocketScope, now: Timestamp) -> Result<()> {
        macro_rules! hasten {
            ($id:expr, $column:literal) => {{
                sql!(self.0, run:
                    concat!(
                        "UPDATE deliveries SET due_at = $2 WHERE state = 'parked' AND due_at > $2 AND event_id IN (
                            SELECT id FROM app_events WHERE ", $column, " = $1 AND state = 'pending')"
                    );
                    $id, now
                )?;
                sql!(self.0, run: queue!("e.", $column, " = $1"); $id, now)
            }};
        }
        match scope {
            SocketScope::App(id) => hasten!(id, "app_id"),
            SocketScope::Installation(id) => hasten!(id, "installation_id"),
        }
    }

    /// Makes up to `limit` events due that no socket has got since `before`, so that an attempt ends them. Returns
    /// how many there were.
    pub async fn expire(&mut self, before: Timestamp, now: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: queue!("e.created_at < $1 ORDER BY e.created_at LIMIT $3"); before, now, i64::from(limit))
    }

    /// Records the outcome of an attempt at `now`. An event that the webhook accepted is still written to an open
    /// socket; one that it never accepted counts as delivered if a socket received it.
    pub async fn settle(&mut self, attempt: &EventAttempt, now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_events SET
               state = CASE WHEN $2 = 'failed' AND written_at IS NOT NULL THEN 'delivered' ELSE $2 END,
               response_status = $4, response_body = $5, error = $6, duration_ms = $7, attempts = attempts + 1,
               socket_due = socket_due AND ($2 = 'pending' OR ($2 = 'delivered' AND EXISTS (
                   SELECT 1 FROM app_sockets s WHERE s.until > $3 AND (s.installation_id = app_events.installation_id
                       OR (s.app_id = app_events.app_id AND s.installation_id IS NULL)))))
            WHERE id = $1 AND state = 'pending'";
            attempt.id, attempt.state, now, attempt.response_status.map(i64::from), &attempt.response_body,
            &attempt.error, i64::try_from(attempt.duration_ms).unwrap_or(i64::MAX)
        )
    }

    /// Deletes up to `limit` events that ended or began before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        batched_delete::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
