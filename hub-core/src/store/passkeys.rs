//! Statements about passkeys.

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{PasskeyId, UserId},
    model::user::Passkey,
    page::PageRequest,
    time::Timestamp,
};

/// Statements about passkeys, on a lent connection.
#[derive(Debug)]
pub struct Passkeys<'c>(pub(super) Conn<'c>);

/// A passkey as it is stored.
#[derive(Debug, Clone)]
pub struct PasskeyRow {
    /// Its id.
    pub id: PasskeyId,
    /// The user.
    pub user_id: UserId,
    /// Id of the credential, in base64url; unique over all users.
    pub credential_id: String,
    /// The public key, the counter and the flags, in the library's JSON.
    pub credential: String,
    /// Name that the user gave it.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

impl Passkeys<'_> {
    /// Adds a passkey; returns whether its credential was new.
    pub async fn insert(&mut self, row: &PasskeyRow) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "INSERT INTO passkeys (id, user_id, credential_id, credential, name, created_at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (credential_id) DO NOTHING";
            row.id, row.user_id, &row.credential_id, &row.credential, &row.name, row.created_at
        )?;
        Ok(rows == 1)
    }

    /// The passkey with a credential: its id, its user and the credential as stored.
    pub async fn find(&mut self, credential_id: &str) -> Result<Option<(PasskeyId, UserId, String)>> {
        sql!(self.0, optional:
            "SELECT id, user_id, credential FROM passkeys WHERE credential_id = $1";
            credential_id
        )
    }

    /// The ids of a user's credentials, oldest first.
    pub async fn credential_ids(&mut self, user_id: UserId) -> Result<Vec<String>> {
        sql!(self.0, values:
            "SELECT credential_id FROM passkeys WHERE user_id = $1 ORDER BY id LIMIT 1000";
            user_id
        )
    }

    /// Notes a use, unless the credential has changed since `old`: of two uses with the same counter one counts. Says
    /// whether it did.
    pub async fn note_use(&mut self, id: PasskeyId, old: &str, new: &str, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE passkeys SET credential = $3, last_used_at = $4 WHERE id = $1 AND credential = $2";
            id, old, new, now
        )?;
        Ok(rows == 1)
    }

    /// Counts the passkeys of a user.
    pub async fn count(&mut self, user_id: UserId) -> Result<u32> {
        let count: i64 = sql!(self.0, value: "SELECT COUNT(*) FROM passkeys WHERE user_id = $1"; user_id)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// A user's passkeys, newest first; one more than the page holds when there are more.
    pub async fn list(&mut self, user_id: UserId, page: &PageRequest) -> Result<Vec<Passkey>> {
        sql!(self.0, all:
            "SELECT id, name, created_at, last_used_at FROM passkeys WHERE user_id = $1
            AND id < $2 ORDER BY id DESC LIMIT $3";
            user_id, page.before(PasskeyId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// Deletes one passkey of a user; returns whether it existed.
    pub async fn delete(&mut self, user_id: UserId, id: PasskeyId) -> Result<bool> {
        let rows = sql!(self.0, execute: "DELETE FROM passkeys WHERE id = $1 AND user_id = $2"; id, user_id)?;
        Ok(rows == 1)
    }
}
