//! Statements about passkeys.

use super::{
    conn::{Conn, on},
    stored_id,
};
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
    /// Whose it is.
    pub user_id: UserId,
    /// Id of the credential, in base64url; unique over all users.
    pub credential_id: String,
    /// The public key, the counter and the flags, in the library's JSON.
    pub credential: String,
    /// What its user calls it.
    pub name: String,
    /// Since when.
    pub created_at: Timestamp,
}

#[derive(hub_macros::FromRow)]
struct Listed {
    id: String,
    name: String,
    created_at: i64,
    last_used_at: Option<i64>,
}

impl Passkeys<'_> {
    /// Adds a passkey and says whether its credential was new.
    pub async fn insert(&mut self, row: &PasskeyRow) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "INSERT INTO passkeys (id, user_id, credential_id, credential, name, created_at)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (credential_id) DO NOTHING"
        )
        .bind(row.id.to_string())
        .bind(row.user_id.to_string())
        .bind(&row.credential_id)
        .bind(&row.credential)
        .bind(&row.name)
        .bind(row.created_at.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// The passkey with a credential: its id, its user and the credential as stored.
    pub async fn find(&mut self, credential_id: &str) -> Result<Option<(PasskeyId, UserId, String)>> {
        let row: Option<(String, String, String)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, user_id, credential FROM passkeys WHERE credential_id = $1"
        )
        .bind(credential_id)
        .fetch_optional(conn)
        .await)?;
        row.map(|(id, user_id, credential)| Ok((stored_id(&id)?, stored_id(&user_id)?, credential)))
            .transpose()
    }

    /// The ids of a user's credentials, oldest first.
    pub async fn credential_ids(&mut self, user_id: UserId) -> Result<Vec<String>> {
        on!(self.0, |conn| sqlx::query_scalar(
            "SELECT credential_id FROM passkeys WHERE user_id = $1 ORDER BY id LIMIT 1000"
        )
        .bind(user_id.to_string())
        .fetch_all(conn)
        .await)
    }

    /// Notes a use, unless the credential has changed since `old`: of two uses with the same counter one counts. Says
    /// whether it did.
    pub async fn note_use(&mut self, id: PasskeyId, old: &str, new: &str, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE passkeys SET credential = $3, last_used_at = $4 WHERE id = $1 AND credential = $2"
        )
        .bind(id.to_string())
        .bind(old)
        .bind(new)
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// How many passkeys a user has.
    pub async fn count(&mut self, user_id: UserId) -> Result<u32> {
        let count: i64 =
            on!(self.0, |conn| sqlx::query_scalar("SELECT COUNT(*) FROM passkeys WHERE user_id = $1")
                .bind(user_id.to_string())
                .fetch_one(conn)
                .await)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// A user's passkeys, newest first; one more than the page holds when there are more.
    pub async fn list(&mut self, user_id: UserId, page: &PageRequest) -> Result<Vec<Passkey>> {
        let rows: Vec<Listed> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, name, created_at, last_used_at FROM passkeys WHERE user_id = $1
             AND id < $2 ORDER BY id DESC LIMIT $3"
        )
        .bind(user_id.to_string())
        .bind(page.before(PasskeyId::MAX))
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        rows.into_iter()
            .map(|row| {
                Ok(Passkey {
                    id: stored_id(&row.id)?,
                    name: row.name,
                    created_at: Timestamp::from_millis(row.created_at),
                    last_used_at: row.last_used_at.map(Timestamp::from_millis),
                })
            })
            .collect()
    }

    /// Deletes one passkey of a user; says whether it existed.
    pub async fn delete(&mut self, user_id: UserId, id: PasskeyId) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query("DELETE FROM passkeys WHERE id = $1 AND user_id = $2")
            .bind(id.to_string())
            .bind(user_id.to_string())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }
}
