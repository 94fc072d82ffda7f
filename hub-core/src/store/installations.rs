//! Statements about apps on bots. A change begins with
//! [`Channels::begin_change`](super::channels::Channels::begin_change), as every change to what follows from a
//! bot's messages.

use hub_macros::FromRow;

use super::conn::{Conn, sql};
use crate::{
    access::{AppActor, AppScopes, Scope},
    error::Result,
    id::{AppId, BotId, InstallationId},
    model::{
        app::{AppRuntime, AppTool, Installation, InstallationRecord, NewToken, Toolbox},
        app_event::AppEventKind,
        handle::Handle,
    },
    page::PageRequest,
    secret::{KeyMark, Sealed, TokenHash},
    text::json,
    time::Timestamp,
};

/// Statements about installations, on a lent connection.
#[derive(Debug)]
pub struct Installations<'c>(pub(super) Conn<'c>);

/// `SELECT` with the columns of an [`InstallationRecord`] and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT i.id, i.app_id, a.name AS app_name, a.slug AS app_slug, i.bot_id, i.handle, i.scopes, i.tools,
                i.config, i.enabled, i.token_last4, i.created_at
             FROM app_installations i JOIN apps a ON a.id = i.app_id ",
            $rest
        )
    };
}

/// `SELECT` with the columns of an [`AppActor`], further ones, and the rest of the statement.
macro_rules! actors {
    ($columns:literal, $($rest:expr),*) => {
        concat!(
            "SELECT i.id AS installation_id, i.app_id, i.bot_id, b.owner_id, a.owner_id = b.owner_id AS is_own,
                i.scopes, ",
            $columns,
            " FROM app_installations i JOIN apps a ON a.id = i.app_id JOIN bots b ON b.id = i.bot_id
             JOIN users author ON author.id = a.owner_id ",
            $($rest),*
        )
    };
}

/// The acting app, and whether app, installation and users are enabled.
#[derive(FromRow)]
struct HolderRow {
    #[row(flatten)]
    actor: AppActor,
    enabled: bool,
}

/// `SELECT` with the columns of [`HolderRow`] and the rest of the statement.
macro_rules! holder {
    ($rest:literal) => {
        actors!(
            "i.enabled AND u.status = 'active' AND author.status = 'active' AS enabled",
            "JOIN users u ON u.id = b.owner_id ",
            $rest
        )
    };
}

/// The tools of an app on a bot.
#[derive(FromRow)]
struct ToolsRow {
    #[row(json)]
    tools: Vec<AppTool>,
    #[row(json)]
    app_tools: Vec<AppTool>,
}

/// An app on a bot, with its subscriptions and scopes.
#[derive(FromRow)]
struct RuntimeRow {
    #[row(flatten)]
    app: AppActor,
    handle: Handle,
    #[row(json)]
    events: Vec<AppEventKind>,
    #[row(flatten)]
    tools: ToolsRow,
    has_webhook: bool,
}

impl From<RuntimeRow> for AppRuntime {
    fn from(row: RuntimeRow) -> Self {
        let commands = Self::commands_of(row.tools.app_tools.iter().chain(&row.tools.tools));
        let RuntimeRow { app, handle, events, has_webhook, .. } = row;
        Self { app, handle, events, commands, has_webhook }
    }
}

/// An app on a bot, with whatever models need to call it.
#[derive(FromRow)]
struct ToolboxRow {
    #[row(flatten)]
    app: AppActor,
    app_name: String,
    webhook_url: String,
    webhook_secret: Sealed,
    #[row(flatten)]
    tools: ToolsRow,
}

impl From<ToolboxRow> for Toolbox {
    fn from(row: ToolboxRow) -> Self {
        Self {
            app: row.app,
            app_name: row.app_name,
            webhook_url: row.webhook_url,
            webhook_secret: row.webhook_secret,
            tools: Self::merged(row.tools.app_tools, row.tools.tools),
        }
    }
}

/// Reading.
impl Installations<'_> {
    /// Finds the app with a token that is valid at `now`, and whether it, its author and the bot's owner are enabled.
    pub async fn find_by_token(
        &mut self,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<(AppActor, bool)>> {
        let row: Option<HolderRow> = sql!(self.0, optional:
            holder!("WHERE i.token_hash = $1 OR (i.old_token_hash = $1 AND i.old_token_until > $2)");
            hash, now
        )?;
        let token = KeyMark::of(hash.as_str());
        Ok(row.map(|row| (AppActor { token, ..row.actor }, row.enabled)))
    }

    /// An installation of an app, and whether it, the app's author and the bot's owner are switched on. There is no
    /// token: the app itself acts.
    pub async fn find_of_app(
        &mut self,
        app_id: AppId,
        id: InstallationId,
    ) -> Result<Option<(AppActor, bool)>> {
        let row: Option<HolderRow> = sql!(self.0, optional:
            holder!("WHERE i.id = $1 AND i.app_id = $2");
            id, app_id
        )?;
        Ok(row.map(|row| (row.actor, row.enabled)))
    }

    /// Reads the apps on a bot, newest first, with one more row if another page follows. The caller has authorized
    /// the request.
    pub async fn page(&mut self, bot_id: BotId, page: &PageRequest) -> Result<Vec<InstallationRecord>> {
        sql!(self.0, all:
            select!("WHERE i.bot_id = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3");
            bot_id, page.before(InstallationId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// An app on a bot within the scope.
    pub async fn find(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        app_id: AppId,
    ) -> Result<Option<InstallationRecord>> {
        sql!(self.0, optional:
            select!("JOIN bots b ON b.id = i.bot_id
            WHERE i.bot_id = $1 AND i.app_id = $2 AND (CAST($3 AS TEXT) IS NULL OR b.owner_id = $3)");
            bot_id, app_id, scope.owner()
        )
    }

    /// The configuration of an installation; `None` without configuration.
    pub async fn config(&mut self, id: InstallationId) -> Result<Option<Sealed>> {
        sql!(self.0, optional_value:
            "SELECT config FROM app_installations WHERE id = $1 AND config IS NOT NULL";
            id
        )
    }

    /// The enabled apps on a bot, for the workers: each can receive events by webhook or over a socket.
    pub async fn runtimes(&mut self, bot_id: BotId) -> Result<Vec<AppRuntime>> {
        let rows: Vec<RuntimeRow> = sql!(self.0, all:
            actors!(
                "i.handle, i.tools, a.tools AS app_tools, a.events,
                    a.webhook_verified AND a.webhook_url IS NOT NULL AS has_webhook",
                "WHERE i.bot_id = $1 AND i.enabled AND author.status = 'active' ORDER BY i.id"
            );
            bot_id
        )?;
        Ok(rows.into_iter().map(AppRuntime::from).collect())
    }

    /// The apps on a bot that models can call: enabled, with tools and a URL, in the order of their installation.
    /// Another way to call an app than its webhook would be added here.
    pub async fn toolboxes(&mut self, bot_id: BotId) -> Result<Vec<Toolbox>> {
        let rows: Vec<ToolboxRow> = sql!(self.0, all:
            actors!(
                "a.name AS app_name, a.webhook_url, a.webhook_secret, i.tools, a.tools AS app_tools",
                "WHERE i.bot_id = $1 AND i.enabled AND a.webhook_verified AND a.webhook_url IS NOT NULL
                    AND author.status = 'active' AND (i.tools <> '[]' OR a.tools <> '[]')
                 ORDER BY i.id"
            );
            bot_id
        )?;
        Ok(rows.into_iter().map(Toolbox::from).collect())
    }

    /// Whether an app on a bot has a handle.
    pub async fn has_handle(&mut self, bot_id: BotId, handle: &str) -> Result<bool> {
        let found: Option<InstallationId> = sql!(self.0, optional_value:
            "SELECT id FROM app_installations WHERE bot_id = $1 AND handle = $2";
            bot_id, handle
        )?;
        Ok(found.is_some())
    }

    /// Counts the apps on a bot.
    pub async fn count(&mut self, bot_id: BotId) -> Result<i64> {
        sql!(self.0, value: "SELECT count(*) FROM app_installations WHERE bot_id = $1"; bot_id)
    }
}

/// Writing.
impl Installations<'_> {
    /// Puts an app onto a bot.
    ///
    /// # Errors
    /// A constraint error when it is there already, or another one has the handle.
    pub async fn insert(&mut self, new: &Installation, token: &NewToken) -> Result<()> {
        sql!(self.0, insert "app_installations":
            id = new.id, app_id = new.app_id, bot_id = new.bot_id, handle = &new.handle, scopes = json(&new.scopes),
            tools = json(&new.tools), enabled = new.enabled, token_hash = &token.hash, token_last4 = &token.last4,
            created_at = new.created_at, updated_at = new.created_at
        )
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
        sql!(self.0, run:
            "UPDATE app_installations SET handle = $2, scopes = $3, enabled = $4, updated_at = $5 WHERE id = $1";
            id, handle, json(&scopes), enabled, now
        )
    }

    /// Puts a new token in the place of the current one, which stays valid until `token.old_until` or ends now.
    /// One statement, so that of parallel calls each ends the token of the one before.
    pub async fn replace_token(&mut self, id: InstallationId, token: &NewToken) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_installations SET token_hash = $2, token_last4 = $3, old_token_until = $4, updated_at = $5,
               old_token_hash = CASE WHEN CAST($4 AS BIGINT) IS NULL THEN NULL ELSE token_hash END
            WHERE id = $1";
            id, &token.hash, &token.last4, token.old_until, token.at
        )
    }

    /// Revokes a token, if it is still the current one: `dead` replaces it. A token in its grace period is revoked
    /// too.
    pub async fn end_token(
        &mut self,
        id: InstallationId,
        token: &TokenHash,
        dead: &TokenHash,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE app_installations SET token_hash = $3, token_last4 = '', old_token_hash = NULL,
               old_token_until = NULL
            WHERE id = $1 AND (token_hash = $2 OR old_token_hash = $2)";
            id, token, dead
        )?;
        Ok(rows > 0)
    }

    /// Replaces the tools that it has on this bot alone.
    pub async fn set_tools(&mut self, id: InstallationId, tools: &[AppTool], now: Timestamp) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_installations SET tools = $2, updated_at = $3 WHERE id = $1";
            id, json(tools), now
        )
    }

    /// Replaces the configuration of an installation; `None` removes it.
    pub async fn set_config(
        &mut self,
        id: InstallationId,
        config: Option<&Sealed>,
        now: Timestamp,
    ) -> Result<()> {
        sql!(self.0, run:
            "UPDATE app_installations SET config = $2, updated_at = $3 WHERE id = $1";
            id, config, now
        )
    }

    /// Takes an app off its bot.
    pub async fn delete(&mut self, id: InstallationId) -> Result<()> {
        sql!(self.0, run: "DELETE FROM app_installations WHERE id = $1"; id)
    }
}
