//! Statements about what was ended lately.

use super::{
    conn::{Conn, on},
    pieces::{self, delete_old},
};
use crate::{
    error::{Error, Result},
    id::RevocationId,
    model::revocation::Revocation,
    time::Timestamp,
};

/// Statements about revocations, on a lent connection.
#[derive(Debug)]
pub struct Revocations<'c>(pub(super) Conn<'c>);

/// The statement of [`Revocations::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("revocations", "id", "at");

impl Revocations<'_> {
    /// Notes that something is ended by this transaction.
    pub async fn add(&mut self, revocation: &Revocation) -> Result<()> {
        on!(self.0, |conn| sqlx::query("INSERT INTO revocations (id, subject, at) VALUES ($1, $2, $3)")
            .bind(revocation.id.to_string())
            .bind(revocation.revoked.to_string())
            .bind(revocation.at.as_millis())
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// What was noted after an instant, with what it names as text: another version may name what this one does
    /// not know.
    pub async fn since(&mut self, after: Timestamp) -> Result<Vec<(RevocationId, String, Timestamp)>> {
        let rows: Vec<(String, String, i64)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, subject, at FROM revocations WHERE at > $1 ORDER BY at"
        )
        .bind(after.as_millis())
        .fetch_all(conn)
        .await)?;
        rows.into_iter()
            .map(|(id, subject, at)| {
                Ok((id.parse().map_err(Error::internal)?, subject, Timestamp::from_millis(at)))
            })
            .collect()
    }

    /// Forgets at most `limit` rows from before an instant and says how many.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        pieces::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
