//! Statements about apps on bots. A change begins with
//! [`Channels::begin_change`](super::channels::Channels::begin_change), as every change to what follows from a
//! bot's messages.

use sqlx::FromRow;

use super::{
    apps::stored,
    conn::{Conn, on},
    json,
};
use crate::{
    access::Scope,
    apps::{AppScopes, Installation, NewToken},
    error::{Error, Result},
    id::{AppId, BotId, InstallationId},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about installations, on a lent connection.
#[derive(Debug)]
pub struct Installations<'c>(pub(super) Conn<'c>);

#[derive(FromRow)]
struct Row {
    id: String,
    app_id: String,
    app_name: String,
    app_slug: String,
    bot_id: String,
    handle: String,
    scopes: String,
    tools: String,
    enabled: bool,
    token_last4: String,
    created_at: i64,
}

impl TryFrom<Row> for Installation {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            app_id: row.app_id.parse().map_err(Error::internal)?,
            app_name: row.app_name,
            app_slug: row.app_slug,
            bot_id: row.bot_id.parse().map_err(Error::internal)?,
            handle: row.handle,
            scopes: stored(&row.scopes)?,
            tools: stored(&row.tools)?,
            enabled: row.enabled,
            token_last4: row.token_last4,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// `SELECT` with the columns of [`Row`] and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT i.id, i.app_id, a.name AS app_name, a.slug AS app_slug, i.bot_id, i.handle, i.scopes, i.tools,
                i.enabled, i.token_last4, i.created_at
             FROM app_installations i JOIN apps a ON a.id = i.app_id ",
            $rest
        )
    };
}

/// Reading.
impl Installations<'_> {
    /// The apps on a bot, newest first, one more than the page has room for. The caller has checked whose bot it
    /// is.
    pub async fn page(&mut self, bot_id: BotId, page: &PageRequest) -> Result<Vec<Installation>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE i.bot_id = $1 AND (CAST($2 AS TEXT) IS NULL OR i.id < $2) ORDER BY i.id DESC LIMIT $3"
        ))
        .bind(bot_id.to_string())
        .bind(page.after())
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        rows.into_iter().map(Installation::try_from).collect()
    }

    /// An app on a bot within the scope.
    pub async fn find(&mut self, scope: Scope, bot_id: BotId, app_id: AppId) -> Result<Option<Installation>> {
        let row: Option<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "JOIN bots b ON b.id = i.bot_id
             WHERE i.bot_id = $1 AND i.app_id = $2 AND (CAST($3 AS TEXT) IS NULL OR b.owner_id = $3)"
        ))
        .bind(bot_id.to_string())
        .bind(app_id.to_string())
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)?;
        row.map(Installation::try_from).transpose()
    }

    /// How many apps a bot has.
    pub async fn count(&mut self, bot_id: BotId) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar("SELECT count(*) FROM app_installations WHERE bot_id = $1")
            .bind(bot_id.to_string())
            .fetch_one(conn)
            .await)
    }
}

/// Writing.
impl Installations<'_> {
    /// Puts an app onto a bot.
    ///
    /// # Errors
    /// A constraint error when it is there already, or another one has the handle.
    pub async fn insert(&mut self, new: &Installation, token: &NewToken) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO app_installations (id, app_id, bot_id, handle, scopes, tools, enabled, token_hash,
                token_last4, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)"
        )
        .bind(new.id.to_string())
        .bind(new.app_id.to_string())
        .bind(new.bot_id.to_string())
        .bind(&new.handle)
        .bind(json(&new.scopes))
        .bind(json(&new.tools))
        .bind(new.enabled)
        .bind(token.hash.as_str())
        .bind(&token.last4)
        .bind(new.created_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Changes what the bot's owner may change.
    ///
    /// # Errors
    /// A constraint error when another app on the bot has the handle.
    pub async fn update(
        &mut self,
        id: InstallationId,
        handle: &str,
        scopes: AppScopes,
        enabled: bool,
        now: Timestamp,
    ) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "UPDATE app_installations SET handle = $2, scopes = $3, enabled = $4, updated_at = $5 WHERE id = $1"
        )
        .bind(id.to_string())
        .bind(handle)
        .bind(json(&scopes))
        .bind(enabled)
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Puts a new token in the place of the current one, which stays valid until `token.old_until` or ends now.
    /// One statement, so that of parallel calls each ends the token of the one before.
    pub async fn replace_token(&mut self, id: InstallationId, token: &NewToken) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "UPDATE app_installations SET token_hash = $2, token_last4 = $3, old_token_until = $4, updated_at = $5,
                old_token_hash = CASE WHEN CAST($4 AS BIGINT) IS NULL THEN NULL ELSE token_hash END
             WHERE id = $1"
        )
        .bind(id.to_string())
        .bind(token.hash.as_str())
        .bind(&token.last4)
        .bind(token.old_until.map(Timestamp::as_millis))
        .bind(token.at.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Takes an app off its bot.
    pub async fn delete(&mut self, id: InstallationId) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM app_installations WHERE id = $1")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))
    }
}
