//! Statements about plugins and their versions; where they are installed is [`channel_plugins`](super::channel_plugins)'.
//!
//! A version's source is written once and never changed: a review, an installation and a run all mean the row, and
//! the row's hash is what was reviewed. Only its author and administrators read a version that is not approved.

use hub_macros::FromRow;

use super::conn::{Conn, sql};
use crate::{
    access::Scope,
    error::Result,
    id::{BotId, PluginId, PluginVersionId, UserId},
    model::plugin::{Plugin, Version, VersionState},
    page::PageRequest,
    text::json,
    time::Timestamp,
};

/// Statements about plugins, on a lent connection.
#[derive(Debug)]
pub struct Plugins<'c>(pub(super) Conn<'c>);

#[derive(FromRow)]
#[row(table = "plugins")]
struct Row {
    plugin_id: PluginId,
    name: String,
    author: String,
    plugin_created_at: Timestamp,
    #[row(number)]
    installs: u64,
    approved_id: Option<PluginVersionId>,
    approved_version: Option<String>,
    #[row(flatten)]
    version: Version,
}

impl From<Row> for Plugin {
    fn from(row: Row) -> Self {
        Self {
            id: row.plugin_id,
            name: row.name,
            author: row.author,
            latest: row.version,
            approved: row.approved_id.zip(row.approved_version),
            installs: row.installs,
            created_at: row.plugin_created_at,
        }
    }
}

/// A version with its source and its plugin.
#[derive(Debug, Clone, FromRow)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SourceRow {
    pub plugin_id: PluginId,
    pub name: String,
    pub script: String,
    #[row(flatten)]
    pub version: Version,
}

/// A version that waits for its review, and what it would replace.
#[derive(Debug, Clone, FromRow)]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `PendingVersion`")]
pub struct PendingRow {
    pub plugin_id: PluginId,
    pub name: String,
    pub author: String,
    pub script: String,
    #[row(flatten)]
    pub version: Version,
    /// The newest approved version: its name.
    pub approved_version: Option<String>,
    /// And its source.
    pub approved_script: Option<String>,
}

/// A plugin to be stored.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NewPlugin {
    pub id: PluginId,
    pub author_id: UserId,
    pub name: String,
    /// The name, folded.
    pub name_key: String,
    pub now: Timestamp,
}

/// A version to be stored; it waits for its review.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `Version`")]
pub struct NewVersion {
    /// Ids of one plugin's versions rise.
    pub id: PluginVersionId,
    pub plugin_id: PluginId,
    pub version: String,
    pub description: String,
    pub script: String,
    pub content_hash: String,
    pub matches: Vec<String>,
    pub connects: Vec<String>,
    pub timeout_ms: u32,
    pub now: Timestamp,
}

/// A change of a version's state.
#[derive(Debug, Clone)]
pub struct StateChange {
    /// The version.
    pub id: PluginVersionId,
    /// The state it must have.
    pub from: VersionState,
    /// The state it gets.
    pub to: VersionState,
    /// Reason for the change.
    pub reason: Option<String>,
    /// Reviewer.
    pub by: String,
    /// Time of the change.
    pub now: Timestamp,
}

/// Columns of [`Version`].
macro_rules! version {
    () => {
        "v.id, v.version, v.description, v.content_hash, v.matches, v.connects, v.timeout_ms, v.state, v.reason,
         v.reviewed_at, v.created_at "
    };
}

/// `SELECT` of [`Version`], and of more columns, with the rest of the statement.
macro_rules! versions {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $more,
            version!(),
            "FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id ",
            $rest
        )
    };
}

/// `SELECT` of [`Row`] with the rest of the statement; `$1` is the reader, who sees what is approved and what is their
/// own.
macro_rules! plugins {
    ($rest:literal) => {
        concat!(
            "SELECT p.id AS plugin_id, p.name, COALESCE(u.username, '') AS author,
                p.created_at AS plugin_created_at, a.id AS approved_id, a.version AS approved_version,
                (SELECT count(*) FROM channel_plugins i WHERE i.plugin_id = p.id) AS installs, ",
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
    pub async fn page(&mut self, page: &PageRequest) -> Result<Vec<Plugin>> {
        // No user has an empty id: such a reader sees approved versions only.
        let rows: Vec<Row> = sql!(self.0, all:
            plugins!("WHERE p.id < $2 ORDER BY p.id DESC LIMIT $3");
            "", page.before(PluginId::MAX), i64::from(page.limit()) + 1
        )?;
        Ok(rows.into_iter().map(Plugin::from).collect())
    }

    /// The plugins of one author with their newest versions, newest first, one more than the page has room for.
    pub async fn page_of(&mut self, author: UserId, page: &PageRequest) -> Result<Vec<Plugin>> {
        let rows: Vec<Row> = sql!(self.0, all:
            plugins!("WHERE p.author_id = $1 AND p.id < $2 ORDER BY p.id DESC LIMIT $3");
            author, page.before(PluginId::MAX), i64::from(page.limit()) + 1
        )?;
        Ok(rows.into_iter().map(Plugin::from).collect())
    }

    /// One plugin that the scope may see.
    pub async fn find(&mut self, scope: Scope, id: PluginId) -> Result<Option<Plugin>> {
        let row: Option<Row> = sql!(self.0, optional: plugins!("WHERE p.id = $2"); scope.owner(), id)?;
        Ok(row.map(Plugin::from))
    }

    /// The plugin with a folded name: its id and its author.
    pub async fn find_by_name(&mut self, name_key: &str) -> Result<Option<(PluginId, Option<UserId>)>> {
        sql!(self.0, optional: "SELECT id, author_id FROM plugins WHERE name_key = $1"; name_key)
    }

    /// The versions of a plugin that the scope may see, newest first, without their sources.
    pub async fn versions(&mut self, scope: Scope, id: PluginId) -> Result<Vec<Version>> {
        sql!(self.0, all:
            versions!("", "WHERE v.plugin_id = $2
             AND (v.state = 'approved' OR CAST($1 AS TEXT) IS NULL OR p.author_id = $1) ORDER BY v.id DESC");
            scope.owner(), id
        )
    }

    /// The versions of a plugin that may run in channels of a bot: those that its owner may see, newest first.
    pub async fn versions_for(&mut self, bot_id: BotId, id: PluginId) -> Result<Vec<Version>> {
        sql!(self.0, all:
            versions!("", "JOIN bots b ON b.id = $1
             WHERE v.plugin_id = $2 AND (v.state = 'approved' OR p.author_id = b.owner_id) ORDER BY v.id DESC");
            bot_id, id
        )
    }

    /// A version that the scope may see, with its source.
    pub async fn source(&mut self, scope: Scope, id: PluginVersionId) -> Result<Option<SourceRow>> {
        sql!(self.0, optional:
            versions!("v.plugin_id, p.name, v.script, ", "WHERE v.id = $2
             AND (v.state = 'approved' OR CAST($1 AS TEXT) IS NULL OR p.author_id = $1)");
            scope.owner(), id
        )
    }

    /// Versions that wait for a review, newest first, one more than the page has room for.
    pub async fn pending(&mut self, page: &PageRequest) -> Result<Vec<PendingRow>> {
        sql!(self.0, all:
            versions!("v.plugin_id, p.name, COALESCE(u.username, '') AS author, v.script,
             a.version AS approved_version, a.script AS approved_script, ",
            "LEFT JOIN users u ON u.id = p.author_id
             LEFT JOIN plugin_versions a ON a.id = (SELECT max(x.id) FROM plugin_versions x
                WHERE x.plugin_id = v.plugin_id AND x.state = 'approved')
             WHERE v.state = 'pending' AND v.id < $1 ORDER BY v.id DESC LIMIT $2");
            page.before(PluginVersionId::MAX), i64::from(page.limit()) + 1
        )
    }

    /// Whether the scope permits changing a plugin: its author's, or all.
    pub async fn is_owned(&mut self, scope: Scope, id: PluginId) -> Result<bool> {
        let found: Option<PluginId> = sql!(self.0, optional_value:
            "SELECT id FROM plugins WHERE id = $2 AND (CAST($1 AS TEXT) IS NULL OR author_id = $1)";
            scope.owner(), id
        )?;
        Ok(found.is_some())
    }

    /// Counts the plugins of a user.
    pub async fn count_of(&mut self, author: UserId) -> Result<i64> {
        sql!(self.0, value: "SELECT count(*) FROM plugins WHERE author_id = $1"; author)
    }
}

/// Writing.
impl Plugins<'_> {
    /// Adds a plugin.
    ///
    /// # Errors
    /// A constraint error when the name is taken.
    pub async fn insert(&mut self, plugin: &NewPlugin) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO plugins (id, author_id, name, name_key, created_at) VALUES ($1, $2, $3, $4, $5)";
            plugin.id, plugin.author_id, &plugin.name, &plugin.name_key, plugin.now
        )
    }

    /// Adds a version that waits for its review; whatever of the plugin waited before is superseded.
    pub async fn insert_version(&mut self, version: &NewVersion) -> Result<()> {
        sql!(self.0, run:
            "UPDATE plugin_versions SET state = 'superseded' WHERE plugin_id = $1 AND state = 'pending'";
            version.plugin_id
        )?;
        sql!(self.0, insert "plugin_versions":
            id = version.id, plugin_id = version.plugin_id, version = &version.version,
            description = &version.description, script = &version.script, content_hash = &version.content_hash,
            matches = json(&version.matches), connects = json(&version.connects),
            timeout_ms = i64::from(version.timeout_ms), state = "pending", created_at = version.now
        )
    }

    /// Forgets all but the newest `keep` of a plugin's versions that were superseded, rejected or withdrawn and
    /// run nowhere.
    pub async fn trim_versions(&mut self, id: PluginId, keep: u32) -> Result<u64> {
        sql!(self.0, execute:
            "DELETE FROM plugin_versions WHERE id IN (
            SELECT v.id FROM plugin_versions v
            WHERE v.plugin_id = $1 AND v.state IN ('superseded', 'rejected', 'withdrawn')
            AND NOT EXISTS (SELECT 1 FROM channel_plugins i WHERE i.version_id = v.id)
            ORDER BY v.id DESC LIMIT 1000 OFFSET $2)";
            id, i64::from(keep)
        )
    }

    /// Moves a version to another state, unless its state has changed; returns whether it did.
    pub async fn change_state(&mut self, change: &StateChange) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE plugin_versions SET state = $3, reason = $4, reviewed_by = $5, reviewed_at = $6
            WHERE id = $1 AND state = $2";
            change.id, change.from, change.to, &change.reason, &change.by, change.now
        )?;
        Ok(rows > 0)
    }

    /// Deletes a plugin with its versions, and takes it out of every channel. Returns whether it existed.
    pub async fn delete(&mut self, id: PluginId) -> Result<bool> {
        let rows = sql!(self.0, execute: "DELETE FROM plugins WHERE id = $1"; id)?;
        Ok(rows > 0)
    }
}
