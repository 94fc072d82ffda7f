//! Statements about API keys of users.

use super::{
    conn::{Conn, on},
    stored_id,
};
use crate::{
    access::Role,
    error::Result,
    id::{KeyId, UserId},
    model::user::ApiKey,
    page::PageRequest,
    secret::TokenHash,
    time::Timestamp,
};

/// Statements about API keys of users, on a lent connection.
#[derive(Debug)]
pub struct UserKeys<'c>(pub(super) Conn<'c>);

/// The user of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// The key.
    pub key_id: KeyId,
    /// Its user.
    pub user_id: UserId,
    /// Their role, as of now.
    pub role: Role,
    /// When the key was last noted as used.
    pub last_used_at: Option<Timestamp>,
}

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    name: String,
    last4: String,
    created_at: i64,
    expires_at: Option<i64>,
    last_used_at: Option<i64>,
}

impl UserKeys<'_> {
    /// Adds a key of an active user while they have fewer than `most`; says whether it did.
    pub async fn insert(
        &mut self,
        user_id: UserId,
        key: &ApiKey,
        hash: &TokenHash,
        most: u32,
    ) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "INSERT INTO user_keys (id, user_id, name, key_hash, last4, created_at, expires_at)
             SELECT $1, id, $3, $4, $5, $6, $7 FROM users WHERE id = $2 AND status = 'active'
                AND (SELECT COUNT(*) FROM user_keys WHERE user_id = $2) < $8"
        )
        .bind(key.id.to_string())
        .bind(user_id.to_string())
        .bind(&key.name)
        .bind(hash.as_str())
        .bind(&key.last4)
        .bind(key.created_at.as_millis())
        .bind(key.expires_at.map(Timestamp::as_millis))
        .bind(i64::from(most))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// The user of a key, while it is valid and its user is active.
    pub async fn find_holder(&mut self, hash: &TokenHash, now: Timestamp) -> Result<Option<KeyHolder>> {
        let row: Option<(String, String, String, Option<i64>)> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT k.id, k.user_id, u.role, k.last_used_at FROM user_keys k JOIN users u ON u.id = k.user_id
             WHERE k.key_hash = $1 AND (k.expires_at IS NULL OR k.expires_at > $2) AND u.status = 'active'"
        )
        .bind(hash.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await
        })?;
        row.map(|(key_id, user_id, role, last_used_at)| {
            Ok(KeyHolder {
                key_id: stored_id(&key_id)?,
                user_id: stored_id(&user_id)?,
                role: super::accounts::role(&role),
                last_used_at: last_used_at.map(Timestamp::from_millis),
            })
        })
        .transpose()
    }

    /// Notes that a key was used, unless that was noted after `unless_after` already.
    pub async fn touch(&mut self, id: KeyId, now: Timestamp, unless_after: Timestamp) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE user_keys SET last_used_at = $2
             WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)"
        )
        .bind(id.to_string())
        .bind(now.as_millis())
        .bind(unless_after.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// A user's keys, newest first, expired ones too; one more than the page holds when there are more.
    pub async fn page(&mut self, user_id: UserId, page: &PageRequest) -> Result<Vec<ApiKey>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, name, last4, created_at, expires_at, last_used_at FROM user_keys
             WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        )
        .bind(user_id.to_string())
        .bind(page.before(KeyId::MAX))
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        rows.into_iter()
            .map(|row| {
                Ok(ApiKey {
                    id: stored_id(&row.id)?,
                    name: row.name,
                    last4: row.last4,
                    created_at: Timestamp::from_millis(row.created_at),
                    expires_at: row.expires_at.map(Timestamp::from_millis),
                    last_used_at: row.last_used_at.map(Timestamp::from_millis),
                })
            })
            .collect()
    }

    /// Ends one key of a user and gives its name; `None` when they have no such key.
    pub async fn delete(&mut self, user_id: UserId, id: KeyId) -> Result<Option<String>> {
        on!(self.0, |conn| sqlx::query_scalar(
            "DELETE FROM user_keys WHERE id = $1 AND user_id = $2 RETURNING name"
        )
        .bind(id.to_string())
        .bind(user_id.to_string())
        .fetch_optional(conn)
        .await)
    }
}
