//! Statements about one-time things: setup tokens, invitations, links that reset a password.

use super::{super::conn::on, Accounts};
use crate::{error::Result, secret::TokenHash, time::Timestamp};

/// What a one-time thing is for; a hash is worth nothing for another purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Lets the first user of a server bound wide become admin.
    Setup,
    /// Permits a registration.
    Invite,
    /// Lets a user set a new password.
    Reset,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Invite => "invite",
            Self::Reset => "reset",
        }
    }
}

/// The statement of [`Accounts::delete_expired_one_time`].
pub(in crate::store) const DELETE_EXPIRED_ONE_TIME: &str =
    "DELETE FROM one_time WHERE hash IN (SELECT hash FROM one_time WHERE expires_at <= $1 LIMIT $2)";

impl Accounts<'_> {
    /// Stores a one-time token; `subject` is what it is bound to and may be empty.
    pub async fn insert_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        subject: &str,
        expires_at: Timestamp,
    ) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO one_time (hash, purpose, subject, expires_at) VALUES ($1, $2, $3, $4)"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(subject)
        .bind(expires_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// The subject of a one-time thing that can still be used, and is left so.
    pub async fn find_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        on!(self.0, |conn| {
            sqlx::query_scalar(
            "SELECT subject FROM one_time WHERE hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await
        })
    }

    /// Uses a one-time thing and returns its subject; `None` when it is unknown, used, expired, or for
    /// another purpose.
    pub async fn use_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        on!(self.0, |conn| sqlx::query_scalar(
            "UPDATE one_time SET used_at = $3 WHERE hash = $1 AND purpose = $2 \
             AND used_at IS NULL AND expires_at > $3 RETURNING subject"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await)
    }

    /// Forgets every one-time thing of a purpose and subject.
    pub async fn delete_one_time(&mut self, purpose: Purpose, subject: &str) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM one_time WHERE purpose = $1 AND subject = $2")
            .bind(purpose.as_str())
            .bind(subject)
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// Deletes at most `limit` expired one-time things and says how many.
    pub async fn delete_expired_one_time(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(DELETE_EXPIRED_ONE_TIME)
            .bind(now.as_millis())
            .bind(i64::from(limit))
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))
    }
}
