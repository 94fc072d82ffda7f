//! Statements about plugins in channels: which version, in what order, whether it runs.

use hub_macros::FromRow;

use super::conn::{Conn, on, on_each};
use crate::{
    error::Result,
    id::{BotId, ChannelId, PluginId, PluginVersionId, UserId},
    text::json,
    time::Timestamp,
};

/// Statements about plugins in channels, on a lent connection.
#[derive(Debug)]
pub struct ChannelPlugins<'c>(pub(super) Conn<'c>);

/// A plugin in a channel.
#[derive(Debug, Clone, FromRow)]
pub struct InstalledRow {
    /// The channel.
    pub channel_id: String,
    /// The plugin.
    pub plugin_id: String,
    /// Its name.
    pub name: String,
    /// The version that runs.
    pub version_id: String,
    /// Its name.
    pub version: String,
    /// SHA-256 of its source.
    pub content_hash: String,
    /// State word of the version.
    pub state: String,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// Place in the order.
    pub position: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Why the hub itself stopped it, if it did.
    pub paused: Option<String>,
    /// When it was installed, in Unix milliseconds.
    pub installed_at: i64,
}

/// A plugin to be put into a channel, or moved there.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The channel.
    pub channel_id: ChannelId,
    /// The plugin.
    pub plugin_id: PluginId,
    /// The version that runs.
    pub version_id: PluginVersionId,
    /// Place in the order.
    pub position: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Why the hub itself stopped it, if it did.
    pub paused: Option<String>,
    /// When it was first installed.
    pub installed_at: Timestamp,
}

/// `SELECT` of [`InstalledRow`] with the rest of the statement.
macro_rules! installed {
    ($rest:literal) => {
        concat!(
            "SELECT i.channel_id, i.plugin_id, p.name, i.version_id, v.version, v.content_hash, v.state, v.reason,
                i.position, i.enabled, i.paused, i.installed_at
             FROM channel_plugins i JOIN plugins p ON p.id = i.plugin_id
             JOIN plugin_versions v ON v.id = i.version_id JOIN channels c ON c.id = i.channel_id ",
            $rest
        )
    };
}

impl ChannelPlugins<'_> {
    /// Plugins of a bot's channels from `first` to `last` by id, in the order of each channel.
    pub async fn installed(
        &mut self,
        bot_id: BotId,
        first: ChannelId,
        last: ChannelId,
    ) -> Result<Vec<InstalledRow>> {
        on!(self.0, |conn| sqlx::query_as(installed!(
            "WHERE c.bot_id = $1 AND c.id >= $2 AND c.id <= $3 ORDER BY i.channel_id, i.position, i.plugin_id"
        ))
        .bind(bot_id.to_string())
        .bind(first.to_string())
        .bind(last.to_string())
        .fetch_all(conn)
        .await)
    }

    /// Every plugin of a bot's channels in the order of each channel, for the workers.
    pub async fn installed_of_bot(&mut self, bot_id: BotId) -> Result<Vec<InstalledRow>> {
        on!(self.0, |conn| sqlx::query_as(installed!(
            "WHERE c.bot_id = $1 ORDER BY i.channel_id, i.position, i.plugin_id"
        ))
        .bind(bot_id.to_string())
        .fetch_all(conn)
        .await)
    }

    /// The sources of versions that run: id and source.
    pub async fn scripts(&mut self, ids: &[String]) -> Result<Vec<(String, String)>> {
        on_each!(
            self.0,
            "SELECT id, script FROM plugin_versions WHERE id IN (SELECT value FROM json_each($1))",
            "SELECT id, script FROM plugin_versions
             WHERE id IN (SELECT json_array_elements_text($1::json))",
            |conn, sql| sqlx::query_as(sql).bind(json(ids)).fetch_all(conn).await
        )
    }

    /// Channels of bots that are not this user's in which a plugin is installed; only in this version where
    /// one is named.
    pub async fn installed_elsewhere(
        &mut self,
        user: UserId,
        id: PluginId,
        version: Option<PluginVersionId>,
    ) -> Result<i64> {
        on!(self.0, |conn| sqlx::query_scalar(
            "SELECT count(*) FROM channel_plugins i JOIN channels c ON c.id = i.channel_id
             JOIN bots b ON b.id = c.bot_id
             WHERE i.plugin_id = $1 AND (CAST($2 AS TEXT) IS NULL OR i.version_id = $2) AND b.owner_id <> $3"
        )
        .bind(id.to_string())
        .bind(version.map(|id| id.to_string()))
        .bind(user.to_string())
        .fetch_one(conn)
        .await)
    }

    /// Raises the revision of the rules of every bot with a channel that has the plugin installed, in this
    /// version where one is named; says which bots.
    pub async fn touch_bots(&mut self, id: PluginId, version: Option<PluginVersionId>) -> Result<Vec<BotId>> {
        let bots: Vec<String> = on!(self.0, |conn| sqlx::query_scalar(
            "UPDATE bots SET config_rev = config_rev + 1 WHERE id IN (
                SELECT c.bot_id FROM channel_plugins i JOIN channels c ON c.id = i.channel_id
                WHERE i.plugin_id = $1 AND (CAST($2 AS TEXT) IS NULL OR i.version_id = $2))
             RETURNING id"
        )
        .bind(id.to_string())
        .bind(version.map(|id| id.to_string()))
        .fetch_all(conn)
        .await)?;
        Ok(bots.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Puts a plugin into a channel, or changes its version, place and switch there.
    pub async fn install(&mut self, installation: &Installation) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO channel_plugins (channel_id, plugin_id, version_id, position, enabled, paused, installed_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (channel_id, plugin_id) DO UPDATE SET version_id = excluded.version_id,
                position = excluded.position, enabled = excluded.enabled, paused = excluded.paused"
        )
        .bind(installation.channel_id.to_string())
        .bind(installation.plugin_id.to_string())
        .bind(installation.version_id.to_string())
        .bind(installation.position)
        .bind(installation.enabled)
        .bind(&installation.paused)
        .bind(installation.installed_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// Takes a plugin out of a channel. Returns whether it was there.
    pub async fn uninstall(&mut self, channel_id: ChannelId, id: PluginId) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "DELETE FROM channel_plugins WHERE channel_id = $1 AND plugin_id = $2"
        )
        .bind(channel_id.to_string())
        .bind(id.to_string())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows > 0)
    }

    /// Notes that the hub itself stops a plugin in a channel, and why, unless it is stopped already or another
    /// version of it runs there meanwhile; raises the revision of the bot's rules. Says whether it did.
    pub async fn pause(
        &mut self,
        channel_id: ChannelId,
        version_id: PluginVersionId,
        reason: &str,
    ) -> Result<bool> {
        let rows = on!(self.0, |conn| {
            sqlx::query(
            "UPDATE channel_plugins SET paused = $3 WHERE channel_id = $1 AND version_id = $2 AND paused IS NULL"
        )
        .bind(channel_id.to_string())
        .bind(version_id.to_string())
        .bind(reason)
        .execute(conn)
        .await
        .map(|done| done.rows_affected())
        })?;
        if rows > 0 {
            on!(self.0, |conn| sqlx::query(
                "UPDATE bots SET config_rev = config_rev + 1
                 WHERE id = (SELECT bot_id FROM channels WHERE id = $1)"
            )
            .bind(channel_id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))?;
        }
        Ok(rows > 0)
    }
}
