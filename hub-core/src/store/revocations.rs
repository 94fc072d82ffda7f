//! Statements about recent revocations.

use super::{
    batched_delete::{self, delete_old},
    conn::{Conn, sql},
};
use crate::{error::Result, id::RevocationId, model::revocation::Revocation, time::Timestamp};

/// Statements about revocations, on a lent connection.
#[derive(Debug)]
pub struct Revocations<'c>(pub(super) Conn<'c>);

/// The statement of [`Revocations::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("revocations", "id", "at");

impl Revocations<'_> {
    /// Records a revocation in this transaction.
    pub async fn add(&mut self, revocation: &Revocation) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO revocations (id, subject, at) VALUES ($1, $2, $3)";
            revocation.id, revocation.revoked.to_string(), revocation.at
        )
    }

    /// Reads the revocations after an instant, with the subject as text: another version may have subjects that this
    /// one does not know.
    pub async fn since(&mut self, after: Timestamp) -> Result<Vec<(RevocationId, String, Timestamp)>> {
        sql!(self.0, all: "SELECT id, subject, at FROM revocations WHERE at > $1 ORDER BY at"; after)
    }

    /// Deletes at most `limit` rows from before an instant; returns how many.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        batched_delete::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
