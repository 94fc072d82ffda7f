//! Statements about plugins and their versions; where they are installed is [`channel_plugins`](super::channel_plugins)'.
//!
//! A version's source is written once and never changed: a review, an installation and a run all mean the row, and
//! the row's hash is what was reviewed. Only its author and administrators read a version that is not approved.

use hub_macros::FromRow;

use super::conn::{Conn, on};
use crate::{
    access::Scope,
    error::Result,
    id::{BotId, PluginId, PluginVersionId, UserId},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about plugins, on a lent connection.
#[derive(Debug)]
pub struct Plugins<'c>(pub(super) Conn<'c>);

/// A plugin with the newest of its versions that the reader may see.
#[derive(Debug, Clone, FromRow)]
pub struct PluginRow {
    /// Plugin.
    pub plugin_id: String,
    /// Name.
    pub name: String,
    /// The author's user name; `None` when they are gone.
    pub author: Option<String>,
    /// When it was first submitted, in Unix milliseconds.
    pub plugin_created_at: i64,
    /// Channels it is installed in.
    pub installs: i64,
    /// The newest approved version: its id.
    pub approved_id: Option<String>,
    /// And its name.
    pub approved_version: Option<String>,
    /// The newest version that the reader may see.
    #[row(flatten)]
    pub version: VersionRow,
}

/// A version without its source.
#[derive(Debug, Clone, FromRow)]
pub struct VersionRow {
    /// Version.
    pub id: String,
    /// Its name, `1.2.0`.
    pub version: String,
    /// What it does.
    pub description: String,
    /// SHA-256 of the source, in hex.
    pub content_hash: String,
    /// JSON array.
    pub matches: String,
    /// JSON array.
    pub connects: String,
    /// Time of one hook.
    pub timeout_ms: i64,
    /// State word.
    pub state: String,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// When it was reviewed, in Unix milliseconds.
    pub reviewed_at: Option<i64>,
    /// When it was submitted, in Unix milliseconds.
    pub created_at: i64,
}

/// A version with its source and its plugin.
#[derive(Debug, Clone, FromRow)]
pub struct SourceRow {
    /// The plugin.
    pub plugin_id: String,
    /// Its name.
    pub name: String,
    /// The source.
    pub script: String,
    /// The version.
    #[row(flatten)]
    pub version: VersionRow,
}

/// A version that waits for its review, and what it would replace.
#[derive(Debug, Clone, FromRow)]
pub struct PendingRow {
    /// The plugin.
    pub plugin_id: String,
    /// Its name.
    pub name: String,
    /// The author's user name.
    pub author: Option<String>,
    /// The source.
    pub script: String,
    /// The version.
    #[row(flatten)]
    pub version: VersionRow,
    /// The newest approved version: its name.
    pub approved_version: Option<String>,
    /// And its source.
    pub approved_script: Option<String>,
}

/// A plugin to be stored.
#[derive(Debug, Clone)]
pub struct NewPlugin {
    /// Id.
    pub id: PluginId,
    /// Author.
    pub author_id: UserId,
    /// Name.
    pub name: String,
    /// The name, folded.
    pub name_key: String,
    /// When.
    pub now: Timestamp,
}

/// A version to be stored; it waits for its review.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// Id; ids of one plugin's versions rise.
    pub id: PluginVersionId,
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its name.
    pub version: String,
    /// What it does.
    pub description: String,
    /// The source.
    pub script: String,
    /// SHA-256 of the source, in hex.
    pub content_hash: String,
    /// JSON array.
    pub matches: String,
    /// JSON array.
    pub connects: String,
    /// Time of one hook.
    pub timeout_ms: i64,
    /// When.
    pub now: Timestamp,
}

/// A change of a version's state.
#[derive(Debug, Clone)]
pub struct StateChange {
    /// The version.
    pub id: PluginVersionId,
    /// The state it must have.
    pub from: &'static str,
    /// The state it gets.
    pub to: &'static str,
    /// Why.
    pub reason: Option<String>,
    /// Who reviewed it.
    pub by: String,
    /// When.
    pub now: Timestamp,
}

/// Columns of [`VersionRow`].
macro_rules! version {
    () => {
        "v.id, v.version, v.description, v.content_hash, v.matches, v.connects, v.timeout_ms, v.state, v.reason,
         v.reviewed_at, v.created_at "
    };
}

/// `SELECT` of [`PluginRow`] with the rest of the statement; `$1` is the reader, who sees what is approved and
/// what is their own.
macro_rules! plugins {
    ($rest:literal) => {
        concat!(
            "SELECT p.id AS plugin_id, p.name, u.username AS author, p.created_at AS plugin_created_at,
                (SELECT count(*) FROM channel_plugins i WHERE i.plugin_id = p.id) AS installs,
                a.id AS approved_id, a.version AS approved_version, ",
            version!(),
            "FROM plugins p LEFT JOIN users u ON u.id = p.author_id
             JOIN plugin_versions v ON v.id = (SELECT max(x.id) FROM plugin_versions x WHERE x.plugin_id = p.id
                AND (x.state = 'approved' OR CAST($1 AS TEXT) IS NULL OR p.author_id = $1))
             LEFT JOIN plugin_versions a ON a.id = (SELECT max(x.id) FROM plugin_versions x
                WHERE x.plugin_id = p.id AND x.state = 'approved') ",
            $rest
        )
    };
}

/// Reading.
impl Plugins<'_> {
    /// The marketplace: plugins with an approved version, newest first, one more than the page has room for.
    pub async fn page(&mut self, page: &PageRequest) -> Result<Vec<PluginRow>> {
        // No user has an empty id: such a reader sees approved versions only.
        on!(self.0, |conn| sqlx::query_as(plugins!("WHERE p.id < $2 ORDER BY p.id DESC LIMIT $3"))
            .bind("")
            .bind(page.before(PluginId::MAX))
            .bind(i64::from(page.limit()) + 1)
            .fetch_all(conn)
            .await)
    }

    /// The plugins of one author with their newest versions, newest first, one more than the page has room for.
    pub async fn page_of(&mut self, author: UserId, page: &PageRequest) -> Result<Vec<PluginRow>> {
        on!(self.0, |conn| sqlx::query_as(plugins!(
            "WHERE p.author_id = $1 AND p.id < $2 ORDER BY p.id DESC LIMIT $3"
        ))
        .bind(author.to_string())
        .bind(page.before(PluginId::MAX))
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)
    }

    /// One plugin that the scope may see.
    pub async fn find(&mut self, scope: Scope, id: PluginId) -> Result<Option<PluginRow>> {
        on!(self.0, |conn| sqlx::query_as(plugins!("WHERE p.id = $2"))
            .bind(scope.owner())
            .bind(id.to_string())
            .fetch_optional(conn)
            .await)
    }

    /// The plugin with a folded name: its id and its author.
    pub async fn find_by_name(&mut self, name_key: &str) -> Result<Option<(String, Option<String>)>> {
        on!(self.0, |conn| sqlx::query_as("SELECT id, author_id FROM plugins WHERE name_key = $1")
            .bind(name_key)
            .fetch_optional(conn)
            .await)
    }

    /// The versions of a plugin that the scope may see, newest first, without their sources.
    pub async fn versions(&mut self, scope: Scope, id: PluginId) -> Result<Vec<VersionRow>> {
        on!(self.0, |conn| sqlx::query_as(concat!(
            "SELECT ",
            version!(),
            "FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id
             WHERE v.plugin_id = $2 AND (v.state = 'approved' OR CAST($1 AS TEXT) IS NULL OR p.author_id = $1)
             ORDER BY v.id DESC"
        ))
        .bind(scope.owner())
        .bind(id.to_string())
        .fetch_all(conn)
        .await)
    }

    /// The versions of a plugin that may run in channels of a bot: those that its owner may see, newest first.
    pub async fn versions_for(&mut self, bot_id: BotId, id: PluginId) -> Result<Vec<VersionRow>> {
        on!(self.0, |conn| sqlx::query_as(concat!(
            "SELECT ",
            version!(),
            "FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id JOIN bots b ON b.id = $1
             WHERE v.plugin_id = $2 AND (v.state = 'approved' OR p.author_id = b.owner_id) ORDER BY v.id DESC"
        ))
        .bind(bot_id.to_string())
        .bind(id.to_string())
        .fetch_all(conn)
        .await)
    }

    /// A version that the scope may see, with its source.
    pub async fn source(&mut self, scope: Scope, id: PluginVersionId) -> Result<Option<SourceRow>> {
        on!(self.0, |conn| sqlx::query_as(concat!(
            "SELECT v.plugin_id, p.name, v.script, ",
            version!(),
            "FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id
             WHERE v.id = $2 AND (v.state = 'approved' OR CAST($1 AS TEXT) IS NULL OR p.author_id = $1)"
        ))
        .bind(scope.owner())
        .bind(id.to_string())
        .fetch_optional(conn)
        .await)
    }

    /// Versions that wait for a review, newest first, one more than the page has room for.
    pub async fn pending(&mut self, page: &PageRequest) -> Result<Vec<PendingRow>> {
        on!(self.0, |conn| {
            sqlx::query_as(concat!(
            "SELECT v.plugin_id, p.name, u.username AS author, v.script, ",
            version!(),
            ", a.version AS approved_version, a.script AS approved_script
             FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id LEFT JOIN users u ON u.id = p.author_id
             LEFT JOIN plugin_versions a ON a.id = (SELECT max(x.id) FROM plugin_versions x
                WHERE x.plugin_id = v.plugin_id AND x.state = 'approved')
             WHERE v.state = 'pending' AND v.id < $1 ORDER BY v.id DESC LIMIT $2"
        ))
        .bind(page.before(PluginVersionId::MAX))
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await
        })
    }

    /// Whether the scope permits changing a plugin: its author's, or all.
    pub async fn is_owned(&mut self, scope: Scope, id: PluginId) -> Result<bool> {
        let found: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT id FROM plugins WHERE id = $2 AND (CAST($1 AS TEXT) IS NULL OR author_id = $1)"
        )
        .bind(scope.owner())
        .bind(id.to_string())
        .fetch_optional(conn)
        .await)?;
        Ok(found.is_some())
    }

    /// How many plugins a user has.
    pub async fn count_of(&mut self, author: UserId) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar("SELECT count(*) FROM plugins WHERE author_id = $1")
            .bind(author.to_string())
            .fetch_one(conn)
            .await)
    }
}

/// Writing.
impl Plugins<'_> {
    /// Adds a plugin.
    ///
    /// # Errors
    /// A constraint error when the name is taken.
    pub async fn insert(&mut self, plugin: &NewPlugin) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO plugins (id, author_id, name, name_key, created_at) VALUES ($1, $2, $3, $4, $5)"
        )
        .bind(plugin.id.to_string())
        .bind(plugin.author_id.to_string())
        .bind(&plugin.name)
        .bind(&plugin.name_key)
        .bind(plugin.now.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Adds a version that waits for its review; whatever of the plugin waited before is superseded.
    pub async fn insert_version(&mut self, version: &NewVersion) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE plugin_versions SET state = 'superseded' WHERE plugin_id = $1 AND state = 'pending'"
        )
        .bind(version.plugin_id.to_string())
        .execute(conn)
        .await
        .map(|_| ()))?;
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO plugin_versions (id, plugin_id, version, description, script, content_hash, matches,
                connects, timeout_ms, state, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10)"
        )
        .bind(version.id.to_string())
        .bind(version.plugin_id.to_string())
        .bind(&version.version)
        .bind(&version.description)
        .bind(&version.script)
        .bind(&version.content_hash)
        .bind(&version.matches)
        .bind(&version.connects)
        .bind(version.timeout_ms)
        .bind(version.now.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Forgets all but the newest `keep` of a plugin's versions that were superseded, rejected or withdrawn and
    /// run nowhere.
    pub async fn trim_versions(&mut self, id: PluginId, keep: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM plugin_versions WHERE id IN (
                SELECT v.id FROM plugin_versions v
                WHERE v.plugin_id = $1 AND v.state IN ('superseded', 'rejected', 'withdrawn')
                AND NOT EXISTS (SELECT 1 FROM channel_plugins i WHERE i.version_id = v.id)
                ORDER BY v.id DESC LIMIT 1000 OFFSET $2)"
        )
        .bind(id.to_string())
        .bind(i64::from(keep))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }

    /// Moves a version to another state, unless it is no longer in the state it was; says whether it was.
    pub async fn change_state(&mut self, change: &StateChange) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE plugin_versions SET state = $3, reason = $4, reviewed_by = $5, reviewed_at = $6
             WHERE id = $1 AND state = $2"
        )
        .bind(change.id.to_string())
        .bind(change.from)
        .bind(change.to)
        .bind(&change.reason)
        .bind(&change.by)
        .bind(change.now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Deletes a plugin with its versions, and takes it out of every channel. Returns whether it existed.
    pub async fn delete(&mut self, id: PluginId) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query("DELETE FROM plugins WHERE id = $1")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }
}
