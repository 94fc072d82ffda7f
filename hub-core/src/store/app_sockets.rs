//! Statements about sockets of apps: the sockets open on each node, the events to be written to them, and whether a
//! socket may stay open.
//!
//! An event is written to one socket: the newest of its installation, or else the newest of its app. The statement
//! that reads the events selects that socket, so nodes do not have to coordinate.

use hub_macros::FromRow;
use serde::Serialize;

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{AppEventId, AppId, BotId, InstallationId, SocketId, TraceId, UserId},
    model::app::SocketScope,
    text::json,
    time::Timestamp,
};

/// Statements about sockets of apps, on a lent connection.
#[derive(Debug)]
pub struct AppSockets<'c>(pub(super) Conn<'c>);

/// An open socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenSocket {
    /// Id; a newer socket's is greater.
    pub id: SocketId,
    /// The app.
    pub app_id: AppId,
    /// The one installation it serves; `None` when it serves all.
    pub installation_id: Option<InstallationId>,
}

/// State of an installation or app that a socket keeps up to date.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PulseRow {
    /// The installation, or the app.
    pub id: String,
    /// The app's name.
    pub name: String,
    /// Its short name.
    pub slug: String,
    /// The installation's bot.
    pub bot_id: Option<BotId>,
    /// The author of the app.
    pub author_id: UserId,
    /// Hash of the installation's token, or the app's sealed secret.
    pub credential: String,
    /// Hash of the previous token.
    pub old_credential: Option<String>,
    /// End of the previous token's validity.
    pub old_until: Option<Timestamp>,
    /// Whether the installation is enabled, and the app's author and the bot's owner are active.
    pub open: bool,
    /// Whether events wait for a socket.
    pub has_due: bool,
}

/// An event to be written to a socket.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SocketEvent {
    /// Id.
    pub id: AppEventId,
    /// The bot.
    pub bot_id: BotId,
    /// The installation.
    pub installation_id: InstallationId,
    /// The trace of its cause.
    pub trace_id: Option<TraceId>,
    /// The event as JSON.
    pub event: String,
}

/// An event that was written to a socket.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct WrittenEvent {
    /// Id.
    pub id: AppEventId,
    /// The trace of its cause.
    pub trace_id: Option<TraceId>,
    /// Whether the socket is the only receiver: the app has no webhook.
    pub is_over: bool,
}

/// Whether the app of an event has a webhook that may be used.
macro_rules! has_webhook {
    () => {
        "EXISTS (SELECT 1 FROM apps a JOIN users u ON u.id = a.owner_id WHERE a.id = app_events.app_id
            AND a.webhook_verified AND a.webhook_url IS NOT NULL AND u.status = 'active')"
    };
}

/// Whether a newer socket of the same place is open: `$2` is the own one, `$3` is now.
macro_rules! no_newer {
    ($place:literal) => {
        concat!("NOT EXISTS (SELECT 1 FROM app_sockets s WHERE ", $place, " AND s.id > $2 AND s.until > $3)")
    };
}

/// Columns of a [`SocketEvent`], without those of `$4`: at most `$5`, and no further one once they have `$6` characters.
macro_rules! following {
    ($ids:literal, $($rest:expr),*) => {
        concat!(
            "SELECT id, bot_id, installation_id, trace_id, event FROM (
                SELECT p.*, SUM(LENGTH(p.event)) OVER (ORDER BY p.id) - LENGTH(p.event) AS chars_before FROM (
                    SELECT e.id, e.bot_id, e.installation_id, e.trace_id, e.event FROM app_events e
                    WHERE e.socket_due AND e.id NOT IN (", $ids, ") AND ", $($rest,)* " ORDER BY e.id LIMIT $5
                ) AS p
             ) AS page
             WHERE chars_before < $6 ORDER BY id"
        )
    };
}

macro_rules! of_installation {
    ($ids:literal) => {
        following!($ids, "e.installation_id = $1 AND ", no_newer!("s.installation_id = $1"))
    };
}

// Whether an installation is open is a value and no `EXISTS`, for which PostgreSQL may read all installations first.
macro_rules! of_app {
    ($ids:literal) => {
        following!(
            $ids,
            "e.app_id = $1 AND ",
            no_newer!("s.app_id = $1 AND s.installation_id IS NULL"),
            " AND NOT EXISTS (SELECT 1 FROM app_sockets s
                WHERE s.installation_id = e.installation_id AND s.until > $3)
              AND (e.kind = 'app.uninstalled' OR (SELECT i.enabled AND u.status = 'active' FROM app_installations i
                JOIN bots b ON b.id = i.bot_id JOIN users u ON u.id = b.owner_id WHERE i.id = e.installation_id))"
        )
    };
}

/// Reading.
impl AppSockets<'_> {
    /// Reads the state of installations; those that do not exist are left out.
    pub async fn installations(&mut self, ids: &[InstallationId]) -> Result<Vec<PulseRow>> {
        sql!(self.0, all:
            ["SELECT i.id, a.name, a.slug, i.bot_id, a.owner_id AS author_id, i.token_hash AS credential,
                i.old_token_hash AS old_credential, i.old_token_until AS old_until,
                i.enabled AND u.status = 'active' AND author.status = 'active' AS open,
                EXISTS (SELECT 1 FROM app_events e WHERE e.installation_id = i.id AND e.socket_due) AS has_due
             FROM app_installations i JOIN apps a ON a.id = i.app_id JOIN bots b ON b.id = i.bot_id
             JOIN users u ON u.id = b.owner_id JOIN users author ON author.id = a.owner_id
             WHERE i.id", in 1];
            json(ids)
        )
    }

    /// Reads the state of apps; those that do not exist are left out.
    pub async fn apps(&mut self, ids: &[AppId]) -> Result<Vec<PulseRow>> {
        sql!(self.0, all:
            ["SELECT a.id, a.name, a.slug, CAST(NULL AS TEXT) AS bot_id, a.owner_id AS author_id,
                a.webhook_secret AS credential, CAST(NULL AS TEXT) AS old_credential,
                CAST(NULL AS BIGINT) AS old_until, author.status = 'active' AS open,
                EXISTS (SELECT 1 FROM app_events e WHERE e.app_id = a.id AND e.socket_due) AS has_due
             FROM apps a JOIN users author ON author.id = a.owner_id WHERE a.id", in 1];
            json(ids)
        )
    }

    /// Returns the ids of those installations and apps that have events waiting for a socket.
    pub async fn due(&mut self, installations: &[InstallationId], apps: &[AppId]) -> Result<Vec<String>> {
        sql!(self.0, values:
            "SELECT x.value FROM json_each($1) AS x
            WHERE EXISTS (SELECT 1 FROM app_events e WHERE e.installation_id = x.value AND e.socket_due)
            UNION ALL SELECT x.value FROM json_each($2) AS x
            WHERE EXISTS (SELECT 1 FROM app_events e WHERE e.app_id = x.value AND e.socket_due)",
            "SELECT x.value FROM json_array_elements_text($1::json) AS x (value)
            WHERE EXISTS (SELECT 1 FROM app_events e WHERE e.installation_id = x.value AND e.socket_due)
            UNION ALL SELECT x.value FROM json_array_elements_text($2::json) AS x (value)
            WHERE EXISTS (SELECT 1 FROM app_events e WHERE e.app_id = x.value AND e.socket_due)";
            json(installations), json(apps)
        )
    }

    /// Reads the next events for a socket, oldest first, without those in `given`. A socket gets nothing while a
    /// newer socket of the same installation or app is open. A socket of a whole app gets no events of installations
    /// that have their own socket. Returns at most `limit` events, and no further one once they have `max_chars`
    /// characters.
    pub async fn following(
        &mut self,
        scope: SocketScope,
        socket: SocketId,
        given: &[AppEventId],
        (limit, max_chars): (u32, i64),
        now: Timestamp,
    ) -> Result<Vec<SocketEvent>> {
        macro_rules! fetch {
            ($id:expr, $of:ident) => {
                sql!(self.0, all:
                    $of!("SELECT value FROM json_each($4)"), $of!("SELECT json_array_elements_text($4::json)");
                    $id, socket, now, json(given), i64::from(limit), max_chars
                )
            };
        }
        match scope {
            SocketScope::Installation(id) => fetch!(id, of_installation),
            SocketScope::App(id) => fetch!(id, of_app),
        }
    }
}

/// Writing.
impl AppSockets<'_> {
    /// Records that sockets are open until a time, and deletes sockets of all nodes that have expired.
    pub async fn announce(&mut self, open: &[OpenSocket], now: Timestamp, until: Timestamp) -> Result<()> {
        sql!(self.0, run: "DELETE FROM app_sockets WHERE until <= $1"; now)?;
        sql!(self.0, run:
            "INSERT INTO app_sockets (id, app_id, installation_id, until)
            SELECT value->>'id', value->>'app_id', value->>'installation_id', $2 FROM json_each($1) WHERE true
            ON CONFLICT (id) DO UPDATE SET until = excluded.until",
            "INSERT INTO app_sockets (id, app_id, installation_id, until)
            SELECT id, app_id, installation_id, $2
            FROM json_to_recordset($1::json) AS x (id text, app_id text, installation_id text)
            ON CONFLICT (id) DO UPDATE SET until = excluded.until";
            json(open), until
        )
    }

    /// Deletes a socket that was closed.
    pub async fn close(&mut self, id: SocketId) -> Result<()> {
        sql!(self.0, run: "DELETE FROM app_sockets WHERE id = $1"; id)
    }

    /// Deletes all sockets: the process that had them is gone.
    pub async fn close_all(&mut self) -> Result<()> {
        sql!(self.0, run: "DELETE FROM app_sockets")
    }

    /// Notes that events were written to a socket. Those of an app without a webhook are then delivered, and nothing
    /// waits for a webhook any more.
    pub async fn written(&mut self, ids: &[AppEventId], now: Timestamp) -> Result<Vec<WrittenEvent>> {
        let written: Vec<WrittenEvent> = sql!(self.0, all:
            [
                "UPDATE app_events SET socket_due = FALSE, written_at = $2,
                    attempts = CASE WHEN state = 'pending' AND NOT ",
                has_webhook!(),
                " THEN attempts + 1 ELSE attempts END, error = CASE WHEN state = 'pending' AND NOT ",
                has_webhook!(),
                " THEN NULL ELSE error END, response_status = CASE WHEN state = 'pending' AND NOT ",
                has_webhook!(),
                " THEN NULL ELSE response_status END, state = CASE WHEN state = 'pending' AND NOT ",
                has_webhook!(),
                " THEN 'delivered' ELSE state END WHERE socket_due AND id", in 1,
                " RETURNING id, trace_id, (state = 'delivered' AND response_status IS NULL) AS is_over"
            ];
            json(ids), now
        )?;
        let over: Vec<_> = written.iter().filter(|event| event.is_over).map(|event| event.id).collect();
        if !over.is_empty() {
            sql!(self.0, run: ["DELETE FROM deliveries WHERE event_id", in 1]; json(&over))?;
        }
        Ok(written)
    }
}
