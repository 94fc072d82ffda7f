//! Statements about accounts at external providers.

use super::{
    conn::{Conn, on},
    stored_id,
};
use crate::{error::Result, id::UserId, model::user::ExternalAccount, time::Timestamp};

/// Statements about accounts at external providers, on a lent connection.
#[derive(Debug)]
pub struct ExternalAccounts<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
struct Row {
    provider: String,
    subject: String,
    username: String,
    avatar_url: String,
    created_at: i64,
}

impl ExternalAccounts<'_> {
    /// Whose an account is.
    pub async fn find_user(&mut self, provider: &str, subject: &str) -> Result<Option<UserId>> {
        let id: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT user_id FROM external_accounts WHERE provider = $1 AND subject = $2"
        )
        .bind(provider)
        .bind(subject)
        .fetch_optional(conn)
        .await)?;
        id.map(|id| stored_id(&id)).transpose()
    }

    /// Links an account and returns whether it did: not if the account is linked already, and not if the user has one
    /// of this provider.
    pub async fn insert(&mut self, user_id: UserId, account: &ExternalAccount) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "INSERT INTO external_accounts (provider, subject, user_id, username, avatar_url, created_at)
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
        )
        .bind(&account.provider)
        .bind(&account.subject)
        .bind(user_id.to_string())
        .bind(&account.username)
        .bind(&account.avatar_url)
        .bind(account.created_at.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// A user's linked accounts, by the name of the provider.
    pub async fn list(&mut self, user_id: UserId) -> Result<Vec<ExternalAccount>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(
            "SELECT provider, subject, username, avatar_url, created_at FROM external_accounts
             WHERE user_id = $1 ORDER BY provider LIMIT 200"
        )
        .bind(user_id.to_string())
        .fetch_all(conn)
        .await)?;
        let account = |row: Row| ExternalAccount {
            provider: row.provider,
            subject: row.subject,
            username: row.username,
            avatar_url: row.avatar_url,
            created_at: Timestamp::from_millis(row.created_at),
        };
        Ok(rows.into_iter().map(account).collect())
    }

    /// Unlinks a user's account of a provider; says whether there was one.
    pub async fn delete(&mut self, user_id: UserId, provider: &str) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "DELETE FROM external_accounts WHERE user_id = $1 AND provider = $2"
        )
        .bind(user_id.to_string())
        .bind(provider)
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }
}
