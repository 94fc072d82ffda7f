//! Statements about accounts at external providers.

use super::conn::{Conn, sql};
use crate::{error::Result, id::UserId, model::user::ExternalAccount};

/// Statements about accounts at external providers, on a lent connection.
#[derive(Debug)]
pub struct ExternalAccounts<'c>(pub(super) Conn<'c>);

impl ExternalAccounts<'_> {
    /// Returns the user that an account is linked to.
    pub async fn find_user(&mut self, provider: &str, subject: &str) -> Result<Option<UserId>> {
        sql!(self.0, optional_value:
            "SELECT user_id FROM external_accounts WHERE provider = $1 AND subject = $2";
            provider, subject
        )
    }

    /// Links an account and returns whether it did: not if the account is linked already, and not if the user has one
    /// of this provider.
    pub async fn insert(&mut self, user_id: UserId, account: &ExternalAccount) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "INSERT INTO external_accounts (provider, subject, user_id, username, avatar_url, created_at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
            &account.provider, &account.subject, user_id, &account.username, &account.avatar_url,
            account.created_at
        )?;
        Ok(rows == 1)
    }

    /// A user's linked accounts, by the name of the provider.
    pub async fn list(&mut self, user_id: UserId) -> Result<Vec<ExternalAccount>> {
        sql!(self.0, all:
            "SELECT provider, subject, username, avatar_url, created_at FROM external_accounts
            WHERE user_id = $1 ORDER BY provider LIMIT 200";
            user_id
        )
    }

    /// Unlinks a user's account of a provider; returns whether there was one.
    pub async fn delete(&mut self, user_id: UserId, provider: &str) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "DELETE FROM external_accounts WHERE user_id = $1 AND provider = $2";
            user_id, provider
        )?;
        Ok(rows == 1)
    }
}
