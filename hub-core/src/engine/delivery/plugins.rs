//! A channel's plugins as the workers use them: read once with the channel's rules, ready to run.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use crate::{
    delivery::work_store::WorkContext,
    error::Result,
    id::{BotId, ChannelId, PluginId, PluginVersionId},
    model::cause::Cause,
    plugins::{InstalledPlugin, breaker::Breaker, manifest::Manifest},
    sandbox::{Hooks, Source},
};

/// A plugin that is installed and switched on in a channel.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its name.
    pub name: String,
    /// The version that runs.
    pub version_id: PluginVersionId,
    /// Its name.
    pub version: String,
    pub code: Code,
    /// Its hooks, known after a run. A plugin cannot change them later.
    pub hooks: OnceLock<Hooks>,
    /// Its runs in a row that did not end by themselves.
    pub breaker: Breaker,
}

/// Code of an installed plugin, or the reason why it is not run.
#[derive(Debug, Clone)]
pub enum Code {
    /// This.
    Ready {
        /// The source.
        source: Source,
        /// Its metadata.
        manifest: Arc<Manifest>,
    },
    /// Not run: the version was rejected or withdrawn, or cannot be read any more. Contains the reason.
    Stopped(Cause),
    /// Not run while the hub has paused it here. Contains the reason. Messages are not sent without the plugin's
    /// changes, unless the channel allows that.
    Paused(String),
}

/// Loads the plugins of a bot's channels, each channel's in the order they run. Equal versions share their
/// source.
pub(crate) async fn load(
    ctx: &WorkContext,
    bot_id: BotId,
) -> Result<HashMap<ChannelId, Vec<Arc<Installed>>>> {
    let (rows, scripts) = ctx.store.plugins(bot_id).await?;
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let compile = move || {
        let read = |script: String| match Manifest::parse(&script) {
            Ok(manifest) => Code::Ready { source: Source::new(script), manifest: Arc::new(manifest) },
            // Rules were narrowed since it was submitted.
            Err(error) => Code::Stopped(Cause::read(error.message())),
        };
        let codes: HashMap<PluginVersionId, Code> =
            scripts.into_iter().map(|(id, script)| (id, read(script))).collect();
        let mut channels: HashMap<ChannelId, Vec<Arc<Installed>>> = HashMap::new();
        for row in rows.into_iter().filter(|row| row.plugin.enabled) {
            let installed = Installed::new(row.plugin, &codes);
            channels.entry(row.channel_id).or_default().push(Arc::new(installed));
        }
        channels
    };
    ctx.computations.run(compile).await
}

impl Installed {
    fn new(row: InstalledPlugin, codes: &HashMap<PluginVersionId, Code>) -> Self {
        let code = match codes.get(&row.version_id) {
            _ if !row.state.runs() => {
                let state = row.state.to_string();
                Code::Stopped(match row.reason {
                    Some(reason) => Cause::VersionRejected { state, reason },
                    None => Cause::VersionStopped { state },
                })
            }
            _ if row.paused.is_some() => Code::Paused(row.paused.unwrap_or_default()),
            Some(code) => code.clone(),
            None => Code::Stopped(Cause::PluginSourceGone),
        };
        Self {
            plugin_id: row.plugin_id,
            version_id: row.version_id,
            name: row.name,
            version: row.version,
            code,
            hooks: OnceLock::new(),
            breaker: Breaker::default(),
        }
    }
}
