//! Statements about sessions.

use super::{super::conn::sql, Accounts};
use crate::{
    access::Role,
    error::Result,
    id::{SessionId, UserId},
    model::session::{ClientInfo, Session},
    page::PageRequest,
    secret::{Secret, TokenHash},
    time::Timestamp,
};

/// A session as it is stored.
#[derive(Debug)]
pub struct SessionRow<'a> {
    /// Its id.
    pub id: SessionId,
    /// The signed-in user.
    pub user_id: UserId,
    /// Hash of the cookie's value.
    pub token_hash: &'a TokenHash,
    /// Time at which it was opened.
    pub created_at: Timestamp,
    /// Latest end, however often it is used.
    pub expires_at: Timestamp,
    /// Address and program of the client.
    pub client: &'a ClientInfo,
}

/// The limits of a living session at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    /// Now.
    pub now: Timestamp,
    /// Sessions last used at or before this instant have ended.
    pub idle_since: Timestamp,
}

/// The user of a session token.
#[derive(Debug, Clone, Copy, hub_macros::FromRow)]
pub struct SessionUser {
    /// The session.
    pub session_id: SessionId,
    /// Its user.
    pub user_id: UserId,
    /// Their role, as of now.
    pub role: Role,
    /// Stored time of the last use.
    pub last_seen_at: Timestamp,
}

/// The statement of [`Accounts::delete_ended_sessions`].
pub(in crate::store) const DELETE_ENDED_SESSIONS: &str = "DELETE FROM sessions WHERE id IN \
        (SELECT id FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2 LIMIT $3)";

impl Accounts<'_> {
    /// Opens a session of an active user; returns whether it did. With `password_hash`, only while the user still has
    /// this hash: a password that changes during a login leaves no session behind.
    pub async fn insert_session(
        &mut self,
        session: &SessionRow<'_>,
        password_hash: Option<&Secret>,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "INSERT INTO sessions \
             (id, user_id, token_hash, created_at, last_seen_at, expires_at, ip, user_agent) \
             SELECT $1, id, $3, $4, $4, $5, $6, $7 FROM users WHERE id = $2 AND status = 'active' \
             AND (CAST($8 AS TEXT) IS NULL OR password_hash = $8)";
            session.id, session.user_id, session.token_hash, session.created_at, session.expires_at,
            session.client.ip_text(), &session.client.user_agent, password_hash.map(Secret::expose)
        )?;
        Ok(rows == 1)
    }

    /// Ends a user's oldest sessions beyond `keep`.
    pub async fn trim_sessions(&mut self, user_id: UserId, keep: u32) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM sessions WHERE id IN \
             (SELECT id FROM sessions WHERE user_id = $1 ORDER BY id DESC LIMIT 1000 OFFSET $2)";
            user_id, i64::from(keep)
        )
    }

    /// The user of a session token, if the session is valid and its user is active.
    pub async fn find_holder(&mut self, token_hash: &TokenHash, alive: Alive) -> Result<Option<SessionUser>> {
        sql!(self.0, optional:
            "SELECT s.id AS session_id, s.user_id, u.role, s.last_seen_at FROM sessions s JOIN users u ON u.id = s.user_id \
             WHERE s.token_hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3 AND u.status = 'active'";
            token_hash, alive.now, alive.idle_since
        )
    }

    /// Notes that a session was used, unless that was noted after `unless_after` already.
    pub async fn touch_session(
        &mut self,
        id: SessionId,
        now: Timestamp,
        unless_after: Timestamp,
    ) -> Result<()> {
        sql!(self.0, run:
            "UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at <= $3";
            id, now, unless_after
        )
    }

    /// A user's living sessions, newest first; one more than the page holds when there are more.
    pub async fn list_sessions(
        &mut self,
        user_id: UserId,
        alive: Alive,
        page: &PageRequest,
    ) -> Result<Vec<Session>> {
        sql!(self.0, all:
            "SELECT id, created_at, last_seen_at, ip, user_agent FROM sessions \
             WHERE user_id = $1 AND expires_at > $2 AND last_seen_at > $3 \
             AND id < $4 ORDER BY id DESC LIMIT $5";
            user_id, alive.now, alive.idle_since, page.before(SessionId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// Ends one session of a user; returns whether it existed.
    pub async fn delete_session(&mut self, user_id: UserId, id: SessionId) -> Result<bool> {
        let rows = sql!(self.0, execute: "DELETE FROM sessions WHERE id = $1 AND user_id = $2"; id, user_id)?;
        Ok(rows == 1)
    }

    /// Ends every session of a user but `keep` and says how many.
    pub async fn end_other_sessions(&mut self, user_id: UserId, keep: Option<SessionId>) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM sessions WHERE user_id = $1 AND id <> $2";
            user_id, keep.map(|id| id.to_string()).unwrap_or_default()
        )
    }

    /// Replaces the secret of a session; returns whether it exists.
    pub async fn renew_session(&mut self, id: SessionId, token_hash: &TokenHash) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE sessions SET token_hash = $2 WHERE id = $1";
            id, token_hash
        )?;
        Ok(rows == 1)
    }

    /// Deletes at most `limit` sessions that have ended; returns how many.
    pub async fn delete_ended_sessions(&mut self, alive: Alive, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_ENDED_SESSIONS; alive.now, alive.idle_since, i64::from(limit))
    }

    /// Returns the time at which a session was opened.
    pub async fn session_opened_at(&mut self, id: SessionId) -> Result<Option<Timestamp>> {
        sql!(self.0, optional_value: "SELECT created_at FROM sessions WHERE id = $1"; id)
    }
}
