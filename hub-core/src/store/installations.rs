//! Statements about apps on bots. A change begins with
//! [`Channels::begin_change`](super::channels::Channels::begin_change), as every change to what follows from a
//! bot's messages.

use hub_macros::FromRow;

use super::{
    apps::stored,
    conn::{Conn, on},
};
use crate::{
    access::{AppActor, AppScopes, Scope},
    error::{Error, Result},
    id::{AppId, BotId, InstallationId},
    model::app::{AppRuntime, AppTool, Installation, NewToken, Toolbox},
    page::PageRequest,
    secret::{KeyMark, Sealed, TokenHash},
    text::json,
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

/// The principal of a token.
#[derive(FromRow)]
struct HolderRow {
    id: String,
    app_id: String,
    bot_id: String,
    owner_id: String,
    is_own: bool,
    scopes: String,
    enabled: bool,
}

/// `SELECT` with the columns of [`HolderRow`] and the rest of the statement.
macro_rules! holder {
    ($rest:literal) => {
        concat!(
            "SELECT i.id, i.app_id, i.bot_id, b.owner_id, a.owner_id = b.owner_id AS is_own, i.scopes,
                i.enabled AND u.status = 'active' AND author.status = 'active' AS enabled
             FROM app_installations i JOIN apps a ON a.id = i.app_id JOIN bots b ON b.id = i.bot_id
             JOIN users u ON u.id = b.owner_id JOIN users author ON author.id = a.owner_id ",
            $rest
        )
    };
}

impl HolderRow {
    /// Who acts, and whether app, installation and users are enabled.
    fn actor(self, token: KeyMark) -> Result<(AppActor, bool)> {
        let actor = AppActor {
            installation_id: self.id.parse().map_err(Error::internal)?,
            app_id: self.app_id.parse().map_err(Error::internal)?,
            bot_id: self.bot_id.parse().map_err(Error::internal)?,
            owner_id: self.owner_id.parse().map_err(Error::internal)?,
            is_own: self.is_own,
            scopes: stored(&self.scopes)?,
            token,
        };
        Ok((actor, self.enabled))
    }
}

/// An app on a bot, with its subscriptions and scopes.
#[derive(FromRow)]
struct RuntimeRow {
    id: String,
    app_id: String,
    bot_id: String,
    owner_id: String,
    is_own: bool,
    handle: String,
    scopes: String,
    tools: String,
    app_tools: String,
    events: String,
}

impl TryFrom<RuntimeRow> for AppRuntime {
    type Error = Error;

    fn try_from(row: RuntimeRow) -> Result<Self> {
        let (tools, app_tools): (Vec<AppTool>, Vec<AppTool>) = (stored(&row.tools)?, stored(&row.app_tools)?);
        Ok(Self {
            app: AppActor {
                installation_id: row.id.parse().map_err(Error::internal)?,
                app_id: row.app_id.parse().map_err(Error::internal)?,
                bot_id: row.bot_id.parse().map_err(Error::internal)?,
                owner_id: row.owner_id.parse().map_err(Error::internal)?,
                is_own: row.is_own,
                scopes: stored(&row.scopes)?,
                token: KeyMark::default(),
            },
            handle: row.handle.parse().map_err(Error::internal)?,
            events: stored(&row.events)?,
            commands: Self::commands_of(app_tools.iter().chain(&tools)),
        })
    }
}

/// An app on a bot, with whatever models need to call it.
#[derive(FromRow)]
struct ToolboxRow {
    id: String,
    app_id: String,
    bot_id: String,
    owner_id: String,
    is_own: bool,
    scopes: String,
    app_name: String,
    webhook_url: String,
    webhook_secret: String,
    tools: String,
    app_tools: String,
}

impl TryFrom<ToolboxRow> for Toolbox {
    type Error = Error;

    fn try_from(row: ToolboxRow) -> Result<Self> {
        Ok(Self {
            app: AppActor {
                installation_id: row.id.parse().map_err(Error::internal)?,
                app_id: row.app_id.parse().map_err(Error::internal)?,
                bot_id: row.bot_id.parse().map_err(Error::internal)?,
                owner_id: row.owner_id.parse().map_err(Error::internal)?,
                is_own: row.is_own,
                scopes: stored(&row.scopes)?,
                token: KeyMark::default(),
            },
            app_name: row.app_name,
            webhook_url: row.webhook_url,
            webhook_secret: Sealed::from(row.webhook_secret),
            tools: Self::merged(stored(&row.app_tools)?, stored(&row.tools)?),
        })
    }
}

/// Reading.
impl Installations<'_> {
    /// The app behind a token that is valid at `now`, and whether it, its author and the bot's owner are switched
    /// on.
    pub async fn find_by_token(
        &mut self,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<(AppActor, bool)>> {
        let row: Option<HolderRow> = on!(self.0, |conn| sqlx::query_as(holder!(
            "WHERE i.token_hash = $1 OR (i.old_token_hash = $1 AND i.old_token_until > $2)"
        ))
        .bind(hash.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await)?;
        row.map(|row| row.actor(KeyMark::of(hash.as_str()))).transpose()
    }

    /// An installation of an app, and whether it, the app's author and the bot's owner are switched on. There is no
    /// token: the app itself acts.
    pub async fn find_of_app(
        &mut self,
        app_id: AppId,
        id: InstallationId,
    ) -> Result<Option<(AppActor, bool)>> {
        let row: Option<HolderRow> =
            on!(self.0, |conn| sqlx::query_as(holder!("WHERE i.id = $1 AND i.app_id = $2"))
                .bind(id.to_string())
                .bind(app_id.to_string())
                .fetch_optional(conn)
                .await)?;
        row.map(|row| row.actor(KeyMark::default())).transpose()
    }

    /// The apps on a bot, newest first, one more than the page has room for. The caller has checked whose bot it
    /// is.
    pub async fn page(&mut self, bot_id: BotId, page: &PageRequest) -> Result<Vec<Installation>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE i.bot_id = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3"
        ))
        .bind(bot_id.to_string())
        .bind(page.before(InstallationId::MAX))
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

    /// The enabled apps on a bot, for the workers: each can receive events by webhook or over a socket.
    pub async fn runtimes(&mut self, bot_id: BotId) -> Result<Vec<AppRuntime>> {
        let rows: Vec<RuntimeRow> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT i.id, i.app_id, i.bot_id, b.owner_id, a.owner_id = b.owner_id AS is_own, i.handle, i.scopes,
                i.tools, a.tools AS app_tools, a.events
             FROM app_installations i JOIN apps a ON a.id = i.app_id JOIN bots b ON b.id = i.bot_id
             JOIN users author ON author.id = a.owner_id
             WHERE i.bot_id = $1 AND i.enabled AND author.status = 'active'
             ORDER BY i.id"
        )
        .bind(bot_id.to_string())
        .fetch_all(conn)
        .await
        })?;
        rows.into_iter().map(AppRuntime::try_from).collect()
    }

    /// The apps on a bot that models can call: enabled, with tools and a URL, in the order of their installation.
    /// Another way to call an app than its webhook would be added here.
    pub async fn toolboxes(&mut self, bot_id: BotId) -> Result<Vec<Toolbox>> {
        let rows: Vec<ToolboxRow> = on!(self.0, |conn| {
            sqlx::query_as(
                "SELECT i.id, i.app_id, i.bot_id, b.owner_id, a.owner_id = b.owner_id AS is_own, i.scopes,
                a.name AS app_name, a.webhook_url, a.webhook_secret, i.tools, a.tools AS app_tools
             FROM app_installations i JOIN apps a ON a.id = i.app_id JOIN bots b ON b.id = i.bot_id
             JOIN users author ON author.id = a.owner_id
             WHERE i.bot_id = $1 AND i.enabled AND a.webhook_verified AND a.webhook_url IS NOT NULL
                AND author.status = 'active' AND (i.tools <> '[]' OR a.tools <> '[]')
             ORDER BY i.id",
            )
            .bind(bot_id.to_string())
            .fetch_all(conn)
            .await
        })?;
        rows.into_iter().map(Toolbox::try_from).collect()
    }

    /// Whether an app on a bot has a handle.
    pub async fn has_handle(&mut self, bot_id: BotId, handle: &str) -> Result<bool> {
        let found: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT id FROM app_installations WHERE bot_id = $1 AND handle = $2"
        )
        .bind(bot_id.to_string())
        .bind(handle)
        .fetch_optional(conn)
        .await)?;
        Ok(found.is_some())
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

    /// Revokes a token, if it is still the current one: `dead` replaces it. A token in its grace period is revoked
    /// too.
    pub async fn end_token(&mut self, id: InstallationId, token: &str, dead: &TokenHash) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE app_installations SET token_hash = $3, token_last4 = '', old_token_hash = NULL,
                old_token_until = NULL
             WHERE id = $1 AND (token_hash = $2 OR old_token_hash = $2)"
        )
        .bind(id.to_string())
        .bind(token)
        .bind(dead.as_str())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Replaces the tools that it has on this bot alone.
    pub async fn set_tools(&mut self, id: InstallationId, tools: &[AppTool], now: Timestamp) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE app_installations SET tools = $2, updated_at = $3 WHERE id = $1"
        )
        .bind(id.to_string())
        .bind(json(tools))
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
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
