//! Statements about logins by QR code.

use super::conn::{Conn, on};
use crate::{
    error::{Error, Result},
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
    /// The code that the asking screen shows.
    pub user_code: &'a str,
    /// Who asks.
    pub client: &'a ClientInfo,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

/// A stored login.
#[derive(Debug, Clone)]
pub struct QrLoginRow {
    /// Status; expiry is not stored, it follows from the time.
    pub status: QrStatus,
    /// Hash of the poll secret.
    pub poll_hash: String,
    /// The code that the asking screen shows.
    pub user_code: String,
    /// Who scanned or confirmed it.
    pub user_id: Option<UserId>,
    /// The name to show of that user.
    pub user_name: Option<String>,
    /// The ticket for the session, once it is confirmed.
    pub exchange: Option<Sealed>,
    /// Address of who asks.
    pub ip: String,
    /// Program of who asks.
    pub user_agent: String,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

#[derive(hub_macros::FromRow)]
struct Row {
    status: String,
    poll_hash: String,
    user_code: String,
    user_id: Option<String>,
    user_name: Option<String>,
    exchange: Option<String>,
    ip: String,
    user_agent: String,
    created_at: i64,
    expires_at: i64,
}

/// The statement of [`QrLogins::delete_expired`].
pub(super) const DELETE_EXPIRED: &str =
    "DELETE FROM qr_logins WHERE id IN (SELECT id FROM qr_logins WHERE expires_at <= $1 LIMIT $2)";

impl QrLogins<'_> {
    /// Notes a login unless `most` are under way, and says whether it did.
    pub async fn insert(&mut self, login: &NewQrLogin<'_>, most: u32) -> Result<bool> {
        let rows = on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO qr_logins (id, poll_hash, user_code, status, ip, user_agent, created_at, expires_at)
             SELECT $1, $2, $3, 'waiting', $4, $5, $6, $7
             WHERE (SELECT COUNT(*) FROM qr_logins WHERE expires_at > $6) < $8"
        )
        .bind(login.id)
        .bind(login.poll.as_str())
        .bind(login.user_code)
        .bind(login.client.ip_text())
        .bind(&login.client.user_agent)
        .bind(login.created_at.as_millis())
        .bind(login.expires_at.as_millis())
        .bind(i64::from(most))
        .execute(conn)
        .await
        .map(|done| done.rows_affected())
        })?;
        Ok(rows == 1)
    }

    /// A login that has not expired.
    pub async fn find(&mut self, id: &str, now: Timestamp) -> Result<Option<QrLoginRow>> {
        let row: Option<Row> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT q.status, q.poll_hash, q.user_code, q.user_id, u.display_name AS user_name, q.exchange,
                q.ip, q.user_agent, q.created_at, q.expires_at
             FROM qr_logins q LEFT JOIN users u ON u.id = q.user_id WHERE q.id = $1 AND q.expires_at > $2"
        )
        .bind(id)
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await
        })?;
        row.map(|row| {
            Ok(QrLoginRow {
                status: QrStatus::parse(&row.status)
                    .ok_or_else(|| Error::internal(format!("{} is no status of a QR login", row.status)))?,
                poll_hash: row.poll_hash,
                user_code: row.user_code,
                user_id: row.user_id.map(|id| id.parse()).transpose().map_err(Error::internal)?,
                user_name: row.user_name,
                exchange: row.exchange.map(Sealed::from),
                ip: row.ip,
                user_agent: row.user_agent,
                created_at: Timestamp::from_millis(row.created_at),
                expires_at: Timestamp::from_millis(row.expires_at),
            })
        })
        .transpose()
    }

    /// Notes that a user has opened a waiting login; says whether it was waiting.
    pub async fn scan(&mut self, id: &str, user_id: UserId, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE qr_logins SET status = 'scanned', user_id = $2
             WHERE id = $1 AND status = 'waiting' AND expires_at > $3"
        )
        .bind(id)
        .bind(user_id.to_string())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
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
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE qr_logins SET status = 'confirmed', user_id = $2, exchange = $3
             WHERE id = $1 AND expires_at > $4
             AND (status = 'waiting' OR (status = 'scanned' AND user_id = $2))"
        )
        .bind(id)
        .bind(user_id.to_string())
        .bind(exchange.as_str())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Ends an open login; says whether it was open.
    pub async fn cancel(&mut self, id: &str, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE qr_logins SET status = 'cancelled', exchange = NULL
             WHERE id = $1 AND expires_at > $2 AND status IN ('waiting', 'scanned')"
        )
        .bind(id)
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Takes a confirmed login out, once; returns the user who confirmed it.
    pub async fn take(&mut self, id: &str, now: Timestamp) -> Result<Option<UserId>> {
        let user: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "DELETE FROM qr_logins WHERE id = $1 AND status = 'confirmed' AND expires_at > $2
             RETURNING user_id"
        )
        .bind(id)
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await)?;
        user.map(|id| id.parse().map_err(Error::internal)).transpose()
    }

    /// Deletes at most `limit` logins that expired before `old` and says how many.
    pub async fn delete_expired(&mut self, old: Timestamp, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(DELETE_EXPIRED)
            .bind(old.as_millis())
            .bind(i64::from(limit))
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))
    }
}
