//! Statements about logins by QR code.

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::UserId,
    model::session::{ClientInfo, QrStatus},
    secret::{Sealed, TokenHash},
    time::Timestamp,
};

/// Statements about logins by QR code, on a lent connection.
#[derive(Debug)]
pub struct QrLogins<'c>(pub(super) Conn<'c>);

/// A login as it begins.
#[derive(Debug)]
pub struct NewQrLogin<'a> {
    /// Its public id.
    pub id: &'a str,
    /// Hash of the secret with which its outcome is collected.
    pub poll: &'a TokenHash,
    /// Code shown on the requesting screen.
    pub user_code: &'a str,
    /// Address and program of the requesting client.
    pub client: &'a ClientInfo,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

/// A stored login.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "qr_logins")]
pub struct QrLoginRow {
    /// Status; expiry is not stored, it follows from the time.
    pub status: QrStatus,
    /// Hash of the poll secret.
    pub poll_hash: TokenHash,
    /// Code shown on the requesting screen.
    pub user_code: String,
    /// The user who scanned or confirmed it.
    pub user_id: Option<UserId>,
    /// The name to show of that user.
    pub user_name: Option<String>,
    /// The ticket for the session, once it is confirmed.
    pub exchange: Option<Sealed>,
    /// Address of the requesting client.
    pub ip: String,
    /// Program of the requesting client.
    pub user_agent: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

/// The statement of [`QrLogins::delete_expired`].
pub(super) const DELETE_EXPIRED: &str =
    "DELETE FROM qr_logins WHERE id IN (SELECT id FROM qr_logins WHERE expires_at <= $1 LIMIT $2)";

impl QrLogins<'_> {
    /// Adds a login.
    pub async fn insert(&mut self, login: &NewQrLogin<'_>) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO qr_logins (id, poll_hash, user_code, status, ip, user_agent, created_at, expires_at)
            VALUES ($1, $2, $3, 'waiting', $4, $5, $6, $7)";
            login.id, login.poll, login.user_code, login.client.ip_text(), &login.client.user_agent,
            login.created_at, login.expires_at
        )
    }

    /// Deletes the oldest logins that no user has opened, beyond `keep`; at most 1,000. Returns how many.
    pub async fn trim(&mut self, now: Timestamp, keep: u32) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM qr_logins WHERE id IN (SELECT id FROM qr_logins WHERE status = 'waiting' AND expires_at > $1
            ORDER BY expires_at DESC LIMIT 1000 OFFSET $2)";
            now, i64::from(keep)
        )
    }

    /// A login that has not expired.
    pub async fn find(&mut self, id: &str, now: Timestamp) -> Result<Option<QrLoginRow>> {
        sql!(self.0, optional:
            "SELECT q.status, q.poll_hash, q.user_code, q.user_id, u.display_name AS user_name, q.exchange,
               q.ip, q.user_agent, q.created_at, q.expires_at
            FROM qr_logins q LEFT JOIN users u ON u.id = q.user_id WHERE q.id = $1 AND q.expires_at > $2";
            id, now
        )
    }

    /// Marks a waiting login as opened by a user; returns whether it was waiting.
    pub async fn scan(&mut self, id: &str, user_id: UserId, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE qr_logins SET status = 'scanned', user_id = $2
            WHERE id = $1 AND status = 'waiting' AND expires_at > $3";
            id, user_id, now
        )?;
        Ok(rows == 1)
    }

    /// Confirms an open login for a user, with the ticket for the session; returns whether it was open, and not
    /// opened by another user.
    pub async fn confirm(
        &mut self,
        id: &str,
        user_id: UserId,
        exchange: &Sealed,
        now: Timestamp,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE qr_logins SET status = 'confirmed', user_id = $2, exchange = $3
            WHERE id = $1 AND expires_at > $4
            AND (status = 'waiting' OR (status = 'scanned' AND user_id = $2))";
            id, user_id, exchange, now
        )?;
        Ok(rows == 1)
    }

    /// Ends an open login; returns whether it was open.
    pub async fn cancel(&mut self, id: &str, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE qr_logins SET status = 'cancelled', exchange = NULL
            WHERE id = $1 AND expires_at > $2 AND status IN ('waiting', 'scanned')";
            id, now
        )?;
        Ok(rows == 1)
    }

    /// Takes a confirmed login out, once; returns the user who confirmed it.
    pub async fn take(&mut self, id: &str, now: Timestamp) -> Result<Option<UserId>> {
        sql!(self.0, optional_value:
            "DELETE FROM qr_logins WHERE id = $1 AND status = 'confirmed' AND expires_at > $2
            RETURNING user_id";
            id, now
        )
    }

    /// Deletes at most `limit` logins that expired before `old` and says how many.
    pub async fn delete_expired(&mut self, old: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_EXPIRED; old, i64::from(limit))
    }
}
