//! Statements about apps. What a user may see of others' apps is decided in the `WHERE`: their own, listed ones, and
//! those that are installed on their bots.

use hub_macros::FromRow;

use super::conn::{Conn, on};
use crate::{
    access::Scope,
    error::{Error, Result},
    id::{AppId, BotId, UserId},
    model::app::{App, AppView, Listing},
    page::PageRequest,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements about apps, on a lent connection.
#[derive(Debug)]
pub struct Apps<'c>(pub(super) Conn<'c>);

/// The secrets of an app as they are stored.
#[derive(Debug, Clone)]
pub struct AppSecrets {
    /// Hash of its client secret, in hex.
    pub client_secret_hash: String,
    /// What its events are signed with.
    pub webhook_secret: Sealed,
}

#[derive(FromRow)]
struct Row {
    id: String,
    owner_id: String,
    owner_name: String,
    name: String,
    slug: String,
    description: String,
    icon_url: String,
    homepage: String,
    redirect_uris: String,
    setup_url: Option<String>,
    webhook_url: Option<String>,
    webhook_verified: bool,
    events: String,
    scopes: String,
    tools: String,
    listing: String,
    listing_reason: Option<String>,
    installs: i64,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for App {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: row.id.parse().map_err(Error::internal)?,
            owner_id: row.owner_id.parse().map_err(Error::internal)?,
            owner_name: row.owner_name,
            name: row.name,
            slug: row.slug,
            description: row.description,
            icon_url: row.icon_url,
            homepage: row.homepage,
            redirect_uris: stored(&row.redirect_uris)?,
            setup_url: row.setup_url,
            webhook_url: row.webhook_url,
            webhook_verified: row.webhook_verified,
            events: stored(&row.events)?,
            scopes: stored(&row.scopes)?,
            tools: stored(&row.tools)?,
            listing: Listing::parse(&row.listing).ok_or_else(|| Error::internal("an unknown listing"))?,
            listing_reason: row.listing_reason,
            installs: u64::try_from(row.installs).unwrap_or(0),
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        })
    }
}

/// JSON that the hub wrote itself.
pub(super) fn stored<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}

fn apps(rows: Vec<Row>) -> Result<Vec<App>> {
    rows.into_iter().map(App::try_from).collect()
}

/// `SELECT` with the columns of [`Row`] and the rest of the statement.
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

/// Reading.
impl Apps<'_> {
    /// Apps that a scope may see, newest first, one more than the page has room for.
    pub async fn page(&mut self, scope: Scope, view: AppView, page: &PageRequest) -> Result<Vec<App>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE a.id < $2 AND CASE CAST($3 AS TEXT)
                WHEN 'own' THEN CAST($1 AS TEXT) IS NULL OR a.owner_id = $1
                WHEN 'public' THEN a.listing = 'listed'
                WHEN 'installed' THEN ",
            installed!(),
            " ELSE ",
            visible!(),
            " END ORDER BY a.id DESC LIMIT $4"
        ))
        .bind(scope.owner())
        .bind(page.before(AppId::MAX))
        .bind(view.as_str())
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        apps(rows)
    }

    /// Apps that wait for an administrator, newest first, one more than the page has room for.
    pub async fn pending(&mut self, page: &PageRequest) -> Result<Vec<App>> {
        let rows: Vec<Row> = on!(self.0, |conn| {
            sqlx::query_as(select!("WHERE a.listing = 'pending' AND a.id < $1 ORDER BY a.id DESC LIMIT $2"))
                .bind(page.before(AppId::MAX))
                .bind(i64::from(page.limit()) + 1)
                .fetch_all(conn)
                .await
        })?;
        apps(rows)
    }

    /// One app that a scope may see.
    pub async fn find(&mut self, scope: Scope, id: AppId) -> Result<Option<App>> {
        let row: Option<Row> =
            on!(self.0, |conn| sqlx::query_as(select!("WHERE a.id = $2 AND ", visible!()))
                .bind(scope.owner())
                .bind(id.to_string())
                .fetch_optional(conn)
                .await)?;
        row.map(App::try_from).transpose()
    }

    /// One app that a scope may change: its author's.
    pub async fn find_own(&mut self, scope: Scope, id: AppId) -> Result<Option<App>> {
        let row: Option<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE a.id = $1 AND (CAST($2 AS TEXT) IS NULL OR a.owner_id = $2)"
        ))
        .bind(id.to_string())
        .bind(scope.owner())
        .fetch_optional(conn)
        .await)?;
        row.map(App::try_from).transpose()
    }

    /// Its secrets. The caller has checked who asks.
    pub async fn secrets(&mut self, id: AppId) -> Result<Option<AppSecrets>> {
        let row: Option<(String, String)> = on!(self.0, |conn| sqlx::query_as(
            "SELECT client_secret_hash, webhook_secret FROM apps WHERE id = $1"
        )
        .bind(id.to_string())
        .fetch_optional(conn)
        .await)?;
        Ok(row.map(|(client_secret_hash, webhook)| AppSecrets {
            client_secret_hash,
            webhook_secret: Sealed::from(webhook),
        }))
    }

    /// How many apps a user has.
    pub async fn count_of(&mut self, owner: UserId) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar("SELECT count(*) FROM apps WHERE owner_id = $1")
            .bind(owner.to_string())
            .fetch_one(conn)
            .await)
    }

    /// Whether a short name is taken.
    pub async fn has_slug(&mut self, slug: &str) -> Result<bool> {
        let found: Option<String> =
            on!(self.0, |conn| sqlx::query_scalar("SELECT id FROM apps WHERE slug = $1")
                .bind(slug)
                .fetch_optional(conn)
                .await)?;
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
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO apps (id, owner_id, name, slug, description, icon_url, homepage, redirect_uris, setup_url,
                webhook_url, webhook_verified, events, scopes, tools, listing, listing_reason, created_at, updated_at,
                client_secret_hash, webhook_secret)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
        )
        .bind(app.id.to_string())
        .bind(app.owner_id.to_string())
        .bind(&app.name)
        .bind(&app.slug)
        .bind(&app.description)
        .bind(&app.icon_url)
        .bind(&app.homepage)
        .bind(json(&app.redirect_uris))
        .bind(&app.setup_url)
        .bind(&app.webhook_url)
        .bind(app.webhook_verified)
        .bind(json(&app.events))
        .bind(json(&app.scopes))
        .bind(json(&app.tools))
        .bind(app.listing.as_str())
        .bind(&app.listing_reason)
        .bind(app.created_at.as_millis())
        .bind(app.updated_at.as_millis())
        .bind(&secrets.client_secret_hash)
        .bind(secrets.webhook_secret.as_str())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Writes everything about an app that can change.
    pub async fn update(&mut self, app: &App) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "UPDATE apps SET name = $2, description = $3, icon_url = $4, homepage = $5, redirect_uris = $6,
                setup_url = $7, webhook_url = $8, webhook_verified = $9, events = $10, scopes = $11, tools = $12,
                listing = $13, listing_reason = $14, updated_at = $15
             WHERE id = $1"
        )
        .bind(app.id.to_string())
        .bind(&app.name)
        .bind(&app.description)
        .bind(&app.icon_url)
        .bind(&app.homepage)
        .bind(json(&app.redirect_uris))
        .bind(&app.setup_url)
        .bind(&app.webhook_url)
        .bind(app.webhook_verified)
        .bind(json(&app.events))
        .bind(json(&app.scopes))
        .bind(json(&app.tools))
        .bind(app.listing.as_str())
        .bind(&app.listing_reason)
        .bind(app.updated_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Raises the revision of the rules of every bot that has the app, and tells which these are: what follows
    /// from their messages changes with it.
    pub async fn begin_change(&mut self, id: AppId) -> Result<Vec<BotId>> {
        let rows: Vec<String> = on!(self.0, |conn| sqlx::query_scalar(
            "UPDATE bots SET config_rev = config_rev + 1
             WHERE id IN (SELECT bot_id FROM app_installations WHERE app_id = $1) RETURNING id"
        )
        .bind(id.to_string())
        .fetch_all(conn)
        .await)?;
        rows.into_iter().map(|id| id.parse().map_err(Error::internal)).collect()
    }

    /// Notes whether the URL has echoed a challenge, unless it is another one meanwhile.
    pub async fn set_verified(&mut self, id: AppId, url: &str, verified: bool) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE apps SET webhook_verified = $3 WHERE id = $1 AND webhook_url = $2"
        )
        .bind(id.to_string())
        .bind(url)
        .bind(verified)
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Deletes an app with its installations.
    pub async fn delete(&mut self, id: AppId) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM apps WHERE id = $1")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))
    }
}
