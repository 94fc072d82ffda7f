//! Statements about one-time things: setup tokens, invitations, links that reset a password.

use super::{super::conn::sql, Accounts};
use crate::{error::Result, secret::TokenHash, time::Timestamp, words::words};

words! {
    /// What a one-time thing is for; a hash is worth nothing for another purpose.
    pub enum Purpose {
        /// Lets the first user of a server bound wide become admin.
        Setup = "setup",
        /// Permits a registration.
        Invite = "invite",
        /// Lets a user set a new password.
        Reset = "reset",
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
        sql!(self.0, run:
            "INSERT INTO one_time (hash, purpose, subject, expires_at) VALUES ($1, $2, $3, $4)";
            hash, purpose, subject, expires_at
        )
    }

    /// The subject of a one-time thing that can still be used, and is left so.
    pub async fn find_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        sql!(self.0, optional_value:
            "SELECT subject FROM one_time WHERE hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3";
            hash, purpose, now
        )
    }

    /// Uses a one-time thing and returns its subject; `None` when it is unknown, used, expired, or for
    /// another purpose.
    pub async fn use_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        sql!(self.0, optional_value:
            "UPDATE one_time SET used_at = $3 WHERE hash = $1 AND purpose = $2 \
             AND used_at IS NULL AND expires_at > $3 RETURNING subject";
            hash, purpose, now
        )
    }

    /// Forgets every one-time thing of a purpose and subject.
    pub async fn delete_one_time(&mut self, purpose: Purpose, subject: &str) -> Result<()> {
        sql!(self.0, run: "DELETE FROM one_time WHERE purpose = $1 AND subject = $2"; purpose, subject)
    }

    /// Deletes at most `limit` expired one-time things and says how many.
    pub async fn delete_expired_one_time(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_EXPIRED_ONE_TIME; now, i64::from(limit))
    }
}
