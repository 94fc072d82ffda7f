//! Statements about plugins in channels: which version, in what order, whether it runs.

use hub_macros::FromRow;

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    id::{BotId, ChannelId, PluginId, PluginVersionId, UserId},
    model::plugin::InstalledPlugin,
    text::json,
    time::Timestamp,
};

/// Statements about plugins in channels, on a lent connection.
#[derive(Debug)]
pub struct ChannelPlugins<'c>(pub(super) Conn<'c>);

/// A plugin in a channel.
#[derive(Debug, Clone, FromRow)]
#[expect(missing_docs, reason = "the names say it")]
pub struct InstalledRow {
    pub channel_id: ChannelId,
    #[row(flatten)]
    pub plugin: InstalledPlugin,
}

/// A plugin to be put into a channel, or moved there.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `InstalledPlugin`")]
pub struct Installation {
    pub channel_id: ChannelId,
    pub plugin_id: PluginId,
    pub version_id: PluginVersionId,
    pub position: u32,
    pub enabled: bool,
    pub paused: Option<String>,
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
        sql!(self.0, all:
            installed!("WHERE c.bot_id = $1 AND c.id >= $2 AND c.id <= $3
             ORDER BY i.channel_id, i.position, i.plugin_id");
            bot_id, first, last
        )
    }

    /// Every plugin of a bot's channels in the order of each channel, for the workers.
    pub async fn installed_of_bot(&mut self, bot_id: BotId) -> Result<Vec<InstalledRow>> {
        sql!(self.0, all:
            installed!("WHERE c.bot_id = $1 ORDER BY i.channel_id, i.position, i.plugin_id");
            bot_id
        )
    }

    /// The sources of versions that run: id and source.
    pub async fn scripts(&mut self, ids: &[PluginVersionId]) -> Result<Vec<(PluginVersionId, String)>> {
        sql!(self.0, all: ["SELECT id, script FROM plugin_versions WHERE id", in 1]; json(ids))
    }

    /// Channels of bots that are not this user's in which a plugin is installed; only in this version where
    /// one is named.
    pub async fn installed_elsewhere(
        &mut self,
        user: UserId,
        id: PluginId,
        version: Option<PluginVersionId>,
    ) -> Result<i64> {
        sql!(self.0, value:
            "SELECT count(*) FROM channel_plugins i JOIN channels c ON c.id = i.channel_id
            JOIN bots b ON b.id = c.bot_id
            WHERE i.plugin_id = $1 AND (CAST($2 AS TEXT) IS NULL OR i.version_id = $2) AND b.owner_id <> $3";
            id, version, user
        )
    }

    /// Raises the revision of the rules of every bot with a channel that has the plugin installed, in this
    /// version where one is named; says which bots.
    pub async fn touch_bots(&mut self, id: PluginId, version: Option<PluginVersionId>) -> Result<Vec<BotId>> {
        sql!(self.0, values:
            "UPDATE bots SET config_rev = config_rev + 1 WHERE id IN (
               SELECT c.bot_id FROM channel_plugins i JOIN channels c ON c.id = i.channel_id
               WHERE i.plugin_id = $1 AND (CAST($2 AS TEXT) IS NULL OR i.version_id = $2))
            RETURNING id";
            id, version
        )
    }

    /// Puts a plugin into a channel, or changes its version, place and switch there.
    pub async fn install(&mut self, installation: &Installation) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO channel_plugins (channel_id, plugin_id, version_id, position, enabled, paused, installed_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (channel_id, plugin_id) DO UPDATE SET version_id = excluded.version_id,
               position = excluded.position, enabled = excluded.enabled, paused = excluded.paused";
            installation.channel_id, installation.plugin_id, installation.version_id,
            i64::from(installation.position), installation.enabled, &installation.paused, installation.installed_at
        )
    }

    /// Takes a plugin out of a channel. Returns whether it was there.
    pub async fn uninstall(&mut self, channel_id: ChannelId, id: PluginId) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "DELETE FROM channel_plugins WHERE channel_id = $1 AND plugin_id = $2";
            channel_id, id
        )?;
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
        let rows = sql!(self.0, execute:
            "UPDATE channel_plugins SET paused = $3 WHERE channel_id = $1 AND version_id = $2 AND paused IS NULL";
            channel_id, version_id, reason
        )?;
        if rows > 0 {
            sql!(self.0, run:
                "UPDATE bots SET config_rev = config_rev + 1
                WHERE id = (SELECT bot_id FROM channels WHERE id = $1)";
                channel_id
            )?;
        }
        Ok(rows > 0)
    }
}
