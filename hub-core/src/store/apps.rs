//! Statements about apps. What a user may see of others' apps is decided in the `WHERE`: their own, listed ones, and
//! those that are installed on their bots.

use hub_macros::FromRow;
use sqlx::AssertSqlSafe;

use super::conn::{Conn, sql};
use crate::{
    access::Scope,
    error::Result,
    id::{AppId, BotId, UserId},
    model::app::{App, AppView},
    page::PageRequest,
    secret::Sealed,
    text::json,
};

/// Statements about apps, on a lent connection.
#[derive(Debug)]
pub struct Apps<'c>(pub(super) Conn<'c>);

/// The secrets of an app as they are stored.
#[derive(Debug, Clone, FromRow)]
#[row(table = "apps")]
pub struct AppSecrets {
    /// Hash of its client secret, in hex.
    pub client_secret_hash: String,
    /// Signing secret of its events.
    pub webhook_secret: Sealed,
}

/// `SELECT` with the columns of an [`App`] and the rest of the statement.
macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT a.id, a.owner_id, u.username AS owner_name, a.name, a.slug, a.description, a.icon_url, a.homepage,
                a.redirect_uris, a.setup_url, a.webhook_url, a.webhook_verified, a.events, a.scopes, a.tools, a.listing,
                a.listing_reason, a.created_at, a.updated_at,
                (SELECT count(*) FROM app_installations n WHERE n.app_id = a.id) AS installs
             FROM apps a JOIN users u ON u.id = a.owner_id ",
            $($rest),*
        )
    };
}

/// Whether the app is installed on a bot of the user `$1`.
macro_rules! installed {
    () => {
        "EXISTS (SELECT 1 FROM app_installations i JOIN bots b ON b.id = i.bot_id
            WHERE i.app_id = a.id AND (CAST($1 AS TEXT) IS NULL OR b.owner_id = $1))"
    };
}

/// Whether the user `$1` may see the app.
macro_rules! visible {
    () => {
        concat!("(CAST($1 AS TEXT) IS NULL OR a.owner_id = $1 OR a.listing = 'listed' OR ", installed!(), ")")
    };
}

/// The newest ids of a page of the apps with this condition.
macro_rules! newest_ids {
    ($condition:literal) => {
        concat!(
            "SELECT id FROM (SELECT id FROM apps WHERE ",
            $condition,
            " AND id < $2 ORDER BY id DESC LIMIT $3) AS newest"
        )
    };
}

/// Ids of the apps on bots of the user `$1`: as many as the bots have.
const ON_BOTS: &str =
    "SELECT i.app_id FROM bots b JOIN app_installations i ON i.bot_id = b.id WHERE b.owner_id = $1";

/// The condition for the apps of a view, each part with an index. An operator sees everything.
fn condition(view: AppView, is_of_user: bool) -> String {
    match view {
        AppView::Public => " AND a.listing = 'listed'".to_owned(),
        AppView::Own if is_of_user => " AND a.owner_id = $1".to_owned(),
        AppView::Installed if is_of_user => format!(" AND a.id IN ({ON_BOTS})"),
        AppView::All if is_of_user => format!(
            " AND a.id IN ({} UNION {} UNION {ON_BOTS})",
            newest_ids!("owner_id = $1"),
            newest_ids!("listing = 'listed'")
        ),
        AppView::Installed => concat!(" AND ", installed!()).to_owned(),
        AppView::Own | AppView::All => String::new(),
    }
}

/// Reading.
impl Apps<'_> {
    /// Apps that a scope may see, newest first, one more than the page has room for.
    pub async fn page(&mut self, scope: Scope, view: AppView, page: &PageRequest) -> Result<Vec<App>> {
        let condition = condition(view, scope.owner().is_some());
        let sql = format!("{}{condition} ORDER BY a.id DESC LIMIT $3", select!("WHERE a.id < $2"));
        sql!(self.0, all:
            AssertSqlSafe(sql);
            scope.owner(), page.before(AppId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// Apps that wait for an administrator, newest first, one more than the page has room for.
    pub async fn pending(&mut self, page: &PageRequest) -> Result<Vec<App>> {
        sql!(self.0, all:
            select!("WHERE a.listing = 'pending' AND a.id < $1 ORDER BY a.id DESC LIMIT $2");
            page.before(AppId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// One app that a scope may see.
    pub async fn find(&mut self, scope: Scope, id: AppId) -> Result<Option<App>> {
        sql!(self.0, optional: select!("WHERE a.id = $2 AND ", visible!()); scope.owner(), id)
    }

    /// One app that a scope may change: its author's.
    pub async fn find_own(&mut self, scope: Scope, id: AppId) -> Result<Option<App>> {
        sql!(self.0, optional:
            select!("WHERE a.id = $1 AND (CAST($2 AS TEXT) IS NULL OR a.owner_id = $2)");
            id, scope.owner()
        )
    }

    /// Reads the secrets of an app. The caller has authorized the request.
    pub async fn secrets(&mut self, id: AppId) -> Result<Option<AppSecrets>> {
        sql!(self.0, optional: "SELECT client_secret_hash, webhook_secret FROM apps WHERE id = $1"; id)
    }

    /// Counts the apps of a user.
    pub async fn count_of(&mut self, owner: UserId) -> Result<i64> {
        sql!(self.0, value: "SELECT count(*) FROM apps WHERE owner_id = $1"; owner)
    }

    /// Whether a short name is taken.
    pub async fn has_slug(&mut self, slug: &str) -> Result<bool> {
        let found: Option<AppId> = sql!(self.0, optional_value: "SELECT id FROM apps WHERE slug = $1"; slug)?;
        Ok(found.is_some())
    }
}

/// Writing.
impl Apps<'_> {
    /// Adds an app.
    ///
    /// # Errors
    /// A constraint error when the short name is taken.
    pub async fn insert(&mut self, app: &App, secrets: &AppSecrets) -> Result<()> {
        sql!(self.0, insert "apps":
            id = app.id, owner_id = app.owner_id, name = &app.name, slug = &app.slug, description = &app.description,
            icon_url = &app.icon_url, homepage = &app.homepage, redirect_uris = json(&app.redirect_uris),
            setup_url = &app.setup_url, webhook_url = &app.webhook_url, webhook_verified = app.webhook_verified,
            events = json(&app.events), scopes = json(&app.scopes), tools = json(&app.tools), listing = app.listing,
            listing_reason = &app.listing_reason, created_at = app.created_at, updated_at = app.updated_at,
            client_secret_hash = &secrets.client_secret_hash, webhook_secret = &secrets.webhook_secret
        )
    }

    /// Writes everything about an app that can change.
    pub async fn update(&mut self, app: &App) -> Result<()> {
        sql!(self.0, update "apps":
            name = &app.name, description = &app.description, icon_url = &app.icon_url, homepage = &app.homepage,
            redirect_uris = json(&app.redirect_uris), setup_url = &app.setup_url, webhook_url = &app.webhook_url,
            webhook_verified = app.webhook_verified, events = json(&app.events), scopes = json(&app.scopes),
            tools = json(&app.tools), listing = app.listing, listing_reason = &app.listing_reason,
            updated_at = app.updated_at;
            " WHERE id = $1"; app.id
        )
    }

    /// Increments `config_rev` of every bot with the app, because the rules for their messages change; returns these
    /// bots.
    pub async fn begin_change(&mut self, id: AppId) -> Result<Vec<BotId>> {
        sql!(self.0, values:
            "UPDATE bots SET config_rev = config_rev + 1
            WHERE id IN (SELECT bot_id FROM app_installations WHERE app_id = $1) RETURNING id";
            id
        )
    }

    /// Notes whether the URL has echoed a challenge, unless it is another one meanwhile.
    pub async fn set_verified(&mut self, id: AppId, url: &str, verified: bool) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE apps SET webhook_verified = $3 WHERE id = $1 AND webhook_url = $2";
            id, url, verified
        )?;
        Ok(rows > 0)
    }

    /// Deletes an app with its installations.
    pub async fn delete(&mut self, id: AppId) -> Result<()> {
        sql!(self.0, run: "DELETE FROM apps WHERE id = $1"; id)
    }
}
