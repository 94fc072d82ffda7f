//! Statements about codes of authorizations: of use once, and remembered for a while after.

use hub_macros::FromRow;

use super::{
    apps::stored,
    conn::{Conn, on},
    pieces::{self, delete_old},
};
use crate::{
    access::AppScopes,
    error::{Error, Result},
    id::{AppId, BotId, InstallationId, UserId},
    secret::TokenHash,
    text::json,
    time::Timestamp,
};

/// Statements about codes, on a lent connection.
#[derive(Debug)]
pub struct AppCodes<'c>(pub(super) Conn<'c>);

/// A code to be stored, and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCode {
    /// The app that may use it.
    pub app_id: AppId,
    /// The bot that the app gets onto.
    pub bot_id: BotId,
    /// The user who allowed it.
    pub user_id: UserId,
    /// Where it was sent.
    pub redirect_uri: String,
    /// What was granted.
    pub scopes: AppScopes,
    /// SHA-256 of the verifier, as PKCE writes it.
    pub challenge: String,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// A code as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCode {
    /// What it is bound to.
    pub code: NewCode,
    /// Whether it was used.
    pub used: bool,
    /// What came of it: the installation, and the hash of the token it got.
    pub came_of_it: Option<(InstallationId, String)>,
}

#[derive(FromRow)]
struct Row {
    app_id: String,
    bot_id: String,
    user_id: String,
    redirect_uri: String,
    scopes: String,
    challenge: String,
    expires_at: i64,
    used_at: Option<i64>,
    installation_id: Option<String>,
    token_hash: Option<String>,
}

impl TryFrom<Row> for StoredCode {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        let installation = row.installation_id.map(|id| id.parse()).transpose().map_err(Error::internal)?;
        Ok(Self {
            code: NewCode {
                app_id: row.app_id.parse().map_err(Error::internal)?,
                bot_id: row.bot_id.parse().map_err(Error::internal)?,
                user_id: row.user_id.parse().map_err(Error::internal)?,
                redirect_uri: row.redirect_uri,
                scopes: stored(&row.scopes)?,
                challenge: row.challenge,
                expires_at: Timestamp::from_millis(row.expires_at),
            },
            used: row.used_at.is_some(),
            came_of_it: installation.zip(row.token_hash),
        })
    }
}

/// The statement of [`AppCodes::delete_before`].
pub(super) const DELETE_BEFORE: &str = delete_old!("app_codes", "hash", "expires_at");

impl AppCodes<'_> {
    /// Stores a code.
    pub async fn insert(&mut self, hash: &TokenHash, code: &NewCode) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO app_codes (hash, app_id, bot_id, user_id, redirect_uri, scopes, challenge, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        )
        .bind(hash.as_str())
        .bind(code.app_id.to_string())
        .bind(code.bot_id.to_string())
        .bind(code.user_id.to_string())
        .bind(&code.redirect_uri)
        .bind(json(&code.scopes))
        .bind(&code.challenge)
        .bind(code.expires_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// A code, used or not.
    pub async fn find(&mut self, hash: &TokenHash) -> Result<Option<StoredCode>> {
        let row: Option<Row> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT app_id, bot_id, user_id, redirect_uri, scopes, challenge, expires_at, used_at, installation_id,
                token_hash
             FROM app_codes WHERE hash = $1"
        )
        .bind(hash.as_str())
        .fetch_optional(conn)
        .await
        })?;
        row.map(StoredCode::try_from).transpose()
    }

    /// Uses a code up; `false` if another request was faster.
    pub async fn consume(&mut self, hash: &TokenHash, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE app_codes SET used_at = $2 WHERE hash = $1 AND used_at IS NULL"
        )
        .bind(hash.as_str())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Records the result of a code, in case it is presented again.
    pub async fn note(
        &mut self,
        hash: &TokenHash,
        installation: InstallationId,
        token: &TokenHash,
    ) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE app_codes SET installation_id = $2, token_hash = $3 WHERE hash = $1"
        )
        .bind(hash.as_str())
        .bind(installation.to_string())
        .bind(token.as_str())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Forgets at most `limit` codes whose time was over before `before`; says how many went.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        pieces::delete_before(&mut self.0, DELETE_BEFORE, before, limit).await
    }
}
