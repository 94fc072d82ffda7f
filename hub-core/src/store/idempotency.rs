//! Statements about the first answers of repeated calls.

use super::conn::{Conn, sql};
use crate::{error::Result, time::Timestamp};

/// Statements about the first answers of repeated calls, on a lent connection.
#[derive(Debug)]
pub struct Idempotency<'c>(pub(super) Conn<'c>);

/// The statement of [`Idempotency::delete_expired`].
pub(super) const DELETE_EXPIRED: &str = "DELETE FROM idempotency WHERE (principal, key) IN \
        (SELECT principal, key FROM idempotency WHERE expires_at <= $1 LIMIT $2)";

impl Idempotency<'_> {
    /// Takes a key that is free or expired; `false` if it is taken. A transaction that took the same key and has not
    /// ended is waited for. Until [`Idempotency::answer`] the row has no answer, which is not visible to others: both
    /// happen in one transaction.
    pub async fn claim(
        &mut self,
        principal: &str,
        key: &str,
        body_hash: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "INSERT INTO idempotency (principal, key, body_hash, answer, expires_at) \
             VALUES ($1, $2, $3, '', $4) \
             ON CONFLICT (principal, key) DO UPDATE \
             SET body_hash = excluded.body_hash, answer = '', expires_at = excluded.expires_at \
             WHERE idempotency.expires_at <= $5";
            principal, key, body_hash, expires_at, now
        )?;
        Ok(rows == 1)
    }

    /// Writes the answer of a claimed key.
    pub async fn answer(&mut self, principal: &str, key: &str, answer: &str) -> Result<()> {
        failpoint!("idempotency.store");
        sql!(self.0, run:
            "UPDATE idempotency SET answer = $3 WHERE principal = $1 AND key = $2";
            principal, key, answer
        )
    }

    /// Body hash and answer of a key that has not expired.
    pub async fn find(
        &mut self,
        principal: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(String, String)>> {
        sql!(self.0, optional:
            "SELECT body_hash, answer FROM idempotency WHERE principal = $1 AND key = $2 AND expires_at > $3";
            principal, key, now
        )
    }

    /// Deletes at most `limit` expired keys and says how many.
    pub async fn delete_expired(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_EXPIRED; now, i64::from(limit))
    }
}
