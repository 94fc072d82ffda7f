//! Statements about API keys of users.

use super::conn::{Conn, sql};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, hub_macros::FromRow)]
pub struct KeyHolder {
    /// The key.
    pub key_id: KeyId,
    /// Its user.
    pub user_id: UserId,
    /// Their role, as of now.
    pub role: Role,
    /// Stored time of the last use.
    pub last_used_at: Option<Timestamp>,
}

impl UserKeys<'_> {
    /// Adds a key of an active user while they have fewer than `most`; returns whether it did.
    pub async fn insert(
        &mut self,
        user_id: UserId,
        key: &ApiKey,
        hash: &TokenHash,
        most: u32,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "INSERT INTO user_keys (id, user_id, name, key_hash, last4, created_at, expires_at)
            SELECT $1, id, $3, $4, $5, $6, $7 FROM users WHERE id = $2 AND status = 'active'
               AND (SELECT COUNT(*) FROM user_keys WHERE user_id = $2) < $8";
            key.id, user_id, &key.name, hash, &key.last4, key.created_at, key.expires_at, i64::from(most)
        )?;
        Ok(rows == 1)
    }

    /// The user of a key, while it is valid and its user is active.
    pub async fn find_holder(&mut self, hash: &TokenHash, now: Timestamp) -> Result<Option<KeyHolder>> {
        sql!(self.0, optional:
            "SELECT k.id AS key_id, k.user_id, u.role, k.last_used_at
            FROM user_keys k JOIN users u ON u.id = k.user_id
            WHERE k.key_hash = $1 AND (k.expires_at IS NULL OR k.expires_at > $2) AND u.status = 'active'";
            hash, now
        )
    }

    /// Notes that a key was used, unless that was noted after `unless_after` already.
    pub async fn touch(&mut self, id: KeyId, now: Timestamp, unless_after: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE user_keys SET last_used_at = $2
            WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
            id, now, unless_after
        )
    }

    /// A user's keys, newest first, expired ones too; one more than the page holds when there are more.
    pub async fn page(&mut self, user_id: UserId, page: &PageRequest) -> Result<Vec<ApiKey>> {
        sql!(self.0, all:
            "SELECT id, name, last4, created_at, expires_at, last_used_at FROM user_keys
            WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
            user_id, page.before(KeyId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// Ends one key of a user and gives its name; `None` when they have no such key.
    pub async fn delete(&mut self, user_id: UserId, id: KeyId) -> Result<Option<String>> {
        sql!(self.0, optional_value:
            "DELETE FROM user_keys WHERE id = $1 AND user_id = $2 RETURNING name";
            id, user_id
        )
    }
}
