//! Plugins in channels: which, in what order, in which version.

use futures_util::FutureExt;
use serde_json::json;

use super::{InstalledPlugin, Plugins, Version};
use crate::{
    access::{Actor, Scope},
    error::{Error, Result},
    events::{Changed, Event},
    id::{BotId, ChannelId, PluginId},
    model::audit::{Action, NewEntry},
    page::{Page, PageRequest},
    store::{
        Tx,
        channel_plugins::{Installation, InstalledRow},
    },
    wake::Hint,
};

/// Plugins one channel may have: each of them may take its time for every message.
pub const MAX_INSTALLED: usize = 16;

/// A plugin to install.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(name = "InstallPlugin", input, example = {
    "plugin_id": "plg_01KAG00000E008000000000005",
    "version": "1.2.0",
})]
pub struct NewInstallation {
    /// Id of the plugin.
    pub plugin_id: PluginId,
    /// Name or id of the version; the newest one that the caller may run if absent.
    #[api(length = 1..=64)]
    pub version: Option<String>,
    /// Position in the order, from 0; at the end if absent.
    pub position: Option<u32>,
}

/// A change of an installed plugin; absent fields keep their values.
// A plugin that the hub itself stopped runs again when it is enabled, or moved to a version.
#[derive(Debug, Clone, PartialEq, Eq, Default, hub_macros::Api)]
#[api(name = "ChangeInstallation", input, example = { "enabled": true, "position": 0 })]
pub struct InstallationPatch {
    /// Name or id of another version.
    #[api(length = 1..=64)]
    pub version: Option<String>,
    /// New position in the order, from 0.
    pub position: Option<u32>,
    /// Whether it is enabled.
    pub enabled: Option<bool>,
}

impl Plugins<'_> {
    /// The plugins of a channel in the order they run.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn installed(
        &self,
        actor: &Actor,
        bot_id: BotId,
        channel_id: ChannelId,
        page: &PageRequest,
    ) -> Result<Page<InstalledPlugin>> {
        let scope = actor.scope()?;
        let mut read = self.ctx.store.read().await?;
        if read.channels().find(scope, bot_id, channel_id).await?.is_none() {
            return Err(Error::not_found("channel"));
        }
        let rows = read.channel_plugins().installed(bot_id, channel_id, channel_id).await?;
        let key = |plugin: &InstalledPlugin| format!("{:05}", plugin.position);
        let is_later =
            |plugin: &InstalledPlugin| page.after().is_none_or(|after| key(plugin).as_str() > after);
        let later = rows.into_iter().map(|row| row.plugin).filter(is_later);
        let later = later.take(page.limit() as usize + 1).collect();
        Ok(Page::from_rows(&Self::installed_list(channel_id), page, later, key))
    }

    /// The name of a channel's list of plugins, for [`PageRequest::parse`].
    pub fn installed_list(channel_id: ChannelId) -> String {
        format!("plugins:{channel_id}")
    }

    /// Installs a version of a plugin into a channel. Installing an installed plugin changes its version, and its
    /// position if one is given. An installed plugin keeps its version until it is changed.
    ///
    /// # Errors
    /// `NOT_FOUND` for the channel, or a plugin or version that the caller may not run; `CONFLICT` when the
    /// version was rejected or withdrawn, or the channel has as many plugins as it may have.
    pub async fn install(
        &self,
        actor: &Actor,
        bot_id: BotId,
        channel_id: ChannelId,
        new: NewInstallation,
    ) -> Result<InstalledPlugin> {
        let patch = InstallationPatch {
            version: Some(new.version.unwrap_or_default()),
            position: new.position,
            enabled: None,
        };
        self.arrange(actor, bot_id, channel_id, new.plugin_id, patch, true).await
    }

    /// Changes an installed plugin: its version, its place, whether it runs.
    ///
    /// # Errors
    /// As [`Plugins::install`]; `NOT_FOUND` also when it is not installed in the channel.
    pub async fn change_installation(
        &self,
        actor: &Actor,
        bot_id: BotId,
        channel_id: ChannelId,
        id: PluginId,
        patch: InstallationPatch,
    ) -> Result<InstalledPlugin> {
        self.arrange(actor, bot_id, channel_id, id, patch, false).await
    }

    /// Takes a plugin out of a channel.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn uninstall(
        &self,
        actor: &Actor,
        bot_id: BotId,
        channel_id: ChannelId,
        id: PluginId,
    ) -> Result<()> {
        let scope = actor.scope()?;
        let entry = self.ctx.audit(actor, Action::PluginUninstalled);
        self.ctx
            .store
            .write(move |tx| {
                async move {
                    let rows = begin(tx, scope, bot_id, channel_id).await?;
                    let name = tx.plugins().find(scope, id).await?.map(|plugin| plugin.name);
                    if !tx.channel_plugins().uninstall(channel_id, id).await? {
                        return Err(Error::not_found("plugin"));
                    }
                    let detail = json!({ "bot": bot_id, "channel": channel_id });
                    tx.audit().add(&entry.target(id, name.unwrap_or_default()).detail(detail)).await?;
                    let rest = rows.into_iter().filter(|row| row.plugin_id != id);
                    renumber(tx, bot_id, channel_id, rest.collect()).await.map(drop)
                }
                .boxed()
            })
            .await?;
        self.notify_changed(bot_id, channel_id, id, Changed::Removed);
        Ok(())
    }

    async fn arrange(
        &self,
        actor: &Actor,
        bot_id: BotId,
        channel_id: ChannelId,
        id: PluginId,
        patch: InstallationPatch,
        may_add: bool,
    ) -> Result<InstalledPlugin> {
        let (scope, now) = (actor.scope()?, self.ctx.store.now());
        let action = if may_add { Action::PluginInstalled } else { Action::PluginArranged };
        let entry = self.ctx.audit(actor, action);
        let installed = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let mut rows = begin(tx, scope, bot_id, channel_id).await?;
                    let here = rows.iter().position(|row| row.plugin_id == id);
                    if here.is_none() && !may_add {
                        return Err(Error::not_found("plugin"));
                    }
                    if here.is_none() && rows.len() >= MAX_INSTALLED {
                        let rule = format!("a channel may have at most {MAX_INSTALLED} plugins");
                        return Err(Error::conflict(rule));
                    }
                    let present = here.map(|here| rows.remove(here));
                    let version_id = match (&patch.version, &present) {
                        (Some(wanted), _) => choose(tx, bot_id, id, wanted).await?.id,
                        (None, Some(row)) => row.version_id,
                        (None, None) => return Err(Error::not_found("plugin version")),
                    };
                    let mut row = present.unwrap_or(Installation {
                        channel_id,
                        plugin_id: id,
                        version_id,
                        position: 0,
                        enabled: true,
                        paused: None,
                        installed_at: now,
                    });
                    row.version_id = version_id;
                    if patch.version.is_some() || patch.enabled == Some(true) {
                        row.paused = None;
                    }
                    row.enabled = patch.enabled.unwrap_or(row.enabled);
                    let place = patch.position.map_or(here.unwrap_or(rows.len()), |place| place as usize);
                    rows.insert(place.min(rows.len()), row);
                    let mut rows = renumber(tx, bot_id, channel_id, rows).await?;
                    rows.retain(|row| row.plugin_id == id);
                    let installed = rows.pop().ok_or_else(|| Error::not_found("plugin"))?;
                    tx.audit().add(&arranged(entry, bot_id, channel_id, &installed)).await?;
                    Ok(installed)
                }
                .boxed()
            })
            .await?;
        self.notify_changed(bot_id, channel_id, id, Changed::Installed);
        Ok(installed)
    }

    /// Notifies the workers and the clients that the plugins of a channel changed.
    fn notify_changed(self, bot_id: BotId, channel_id: ChannelId, plugin_id: PluginId, change: Changed) {
        self.ctx.node.wake.hint(Hint::Bot(bot_id));
        self.ctx.node.events.notify(Event::Plugin { bot_id, channel_id, plugin_id, change });
    }
}

fn arranged(entry: NewEntry, bot_id: BotId, channel_id: ChannelId, plugin: &InstalledPlugin) -> NewEntry {
    let InstalledPlugin { version, content_hash, position, enabled, .. } = plugin;
    let detail = json!({ "bot": bot_id, "channel": channel_id, "version": version, "content_hash": content_hash,
        "position": position, "enabled": enabled });
    entry.target(plugin.plugin_id, &*plugin.name).detail(detail)
}

/// Holds the bot's row and reads what is installed.
async fn begin(tx: &mut Tx, scope: Scope, bot_id: BotId, channel_id: ChannelId) -> Result<Vec<Installation>> {
    tx.channels().begin_change(scope, bot_id).await?;
    if tx.channels().find(scope, bot_id, channel_id).await?.is_none() {
        return Err(Error::not_found("channel"));
    }
    let rows = tx.channel_plugins().installed(bot_id, channel_id, channel_id).await?;
    let installation = |InstalledRow { channel_id, plugin }| Installation {
        channel_id,
        plugin_id: plugin.plugin_id,
        version_id: plugin.version_id,
        position: plugin.position,
        enabled: plugin.enabled,
        paused: plugin.paused,
        installed_at: plugin.installed_at,
    };
    Ok(rows.into_iter().map(installation).collect())
}

/// The version a caller means, among those that the bot's owner may run: by id, by name, or the newest. Who is
/// not the author runs what is approved and nothing else.
async fn choose(tx: &mut Tx, bot_id: BotId, id: PluginId, wanted: &str) -> Result<Version> {
    let versions = tx.plugins().versions_for(bot_id, id).await?;
    if versions.is_empty() {
        return Err(Error::not_found("plugin"));
    }
    let mut named = versions
        .into_iter()
        .filter(|row| wanted.is_empty() || row.id.to_string() == wanted || row.version == wanted);
    let Some(newest) = named.next() else { return Err(Error::not_found("plugin version")) };
    let newest_state = newest.state;
    std::iter::once(newest)
        .chain(named)
        .find(|version| version.state.runs())
        .ok_or_else(|| Error::conflict(format!("the version is {newest_state} and cannot be installed")))
}

/// Writes the plugins of a channel in this order, numbered from 0, and reads them back.
async fn renumber(
    tx: &mut Tx,
    bot_id: BotId,
    channel_id: ChannelId,
    rows: Vec<Installation>,
) -> Result<Vec<InstalledPlugin>> {
    for (position, row) in (0..).zip(rows) {
        tx.channel_plugins().install(&Installation { position, ..row }).await?;
    }
    let rows = tx.channel_plugins().installed(bot_id, channel_id, channel_id).await?;
    Ok(rows.into_iter().map(|row| row.plugin).collect())
}
