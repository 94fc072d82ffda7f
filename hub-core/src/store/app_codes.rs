//! Statements about codes of authorizations: of use once, and remembered for a while after.

use hub_macros::FromRow;

use super::{
    batched_delete::{self, delete_old},
    conn::{Conn, sql},
};
use crate::{
    access::AppScopes,
    error::Result,
    id::{AppId, BotId, InstallationId, UserId},
    secret::TokenHash,
    text::json,
    time::Timestamp,
};

/// Statements about codes, on a lent connection.
#[derive(Debug)]
pub struct AppCodes<'c>(pub(super) Conn<'c>);

/// A code to be stored, and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "app_codes")]
pub struct NewCode {
    /// The app that may use it.
    pub app_id: AppId,
    /// The bot that the app gets onto.
    pub bot_id: BotId,
    /// The user who allowed it.
    pub user_id: UserId,
    /// Redirect URI that received the code.
    pub redirect_uri: String,
    /// Granted scopes.
    #[row(json)]
    pub scopes: AppScopes,
    /// SHA-256 of the verifier, as PKCE writes it.
    pub challenge: String,
    /// Time of expiry.
    pub expires_at: Timestamp,
}

/// A code as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "app_codes")]
pub struct StoredCode {
    /// The app, bot, user and grant of the code.
    #[row(flatten)]
    pub code: NewCode,
    /// Whether it was used.
    pub used: bool,
    /// The installation that was created with it.
    pub installation_id: Option<InstallationId>,
    /// Hash of the token that was issued for it.
    pub token_hash: Option<TokenHash>,
}

/// The statement of [`AppCodes::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_codes", "hash", "expires_at");

impl AppCodes<'_> {
    /// Stores a code.
    pub async fn insert(&mut self, hash: &TokenHash, code: &NewCode) -> Result<()> {
        sql!(self.0, insert "app_codes":
            hash = hash, app_id = code.app_id, bot_id = code.bot_id, user_id = code.user_id,
            redirect_uri = &code.redirect_uri, scopes = json(&code.scopes), challenge = &code.challenge,
            expires_at = code.expires_at
        )
    }

    /// A code, used or not.
    pub async fn find(&mut self, hash: &TokenHash) -> Result<Option<StoredCode>> {
        sql!(self.0, optional:
            "SELECT app_id, bot_id, user_id, redirect_uri, scopes, challenge, expires_at, used_at IS NOT NULL AS used,
               installation_id, token_hash
            FROM app_codes WHERE hash = $1";
            hash
        )
    }

    /// Uses a code up; `false` if another request was faster.
    pub async fn consume(&mut self, hash: &TokenHash, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE app_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL";
            hash, now
        )?;
        Ok(rows > 0)
    }

    /// Records the result of a code, in case it is presented again.
    pub async fn note(
        &mut self,
        hash: &TokenHash,
        installation: InstallationId,
        token: &TokenHash,
    ) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_codes SET installation_id = $2, token_hash = $3 WHERE hash = $1";
            hash, installation, token
        )
    }

    /// Deletes at most `limit` codes that expired before `before`; returns how many.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        batched_delete::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
