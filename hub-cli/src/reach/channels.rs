//! Channels of a bot: made, set, taken away, and the plugins that run in them.

use hub_core::{
    access::Actor,
    channels::{
        Channel, ChannelPatch, Channels, NewChannel,
        sinks::{AiUpdate, WebSocketSettings, WebhookUpdate},
    },
    delivery::ping::ping,
    id::{BotId, ChannelId, PluginId},
    page::{MAX_LIMIT, PageRequest},
    plugins::{InstallationPatch, InstalledPlugin, NewInstallation, Plugins},
    traces::Trace,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    Reach,
    apps::{given, paging},
    page_document,
    traces::read,
};
use crate::{args::PageArgs, exit::Failure};

/// A channel of a bot.
#[derive(Debug, Clone, Copy)]
pub struct ChannelPlace {
    /// The bot.
    pub bot: BotId,
    /// The channel.
    pub channel: ChannelId,
}

impl ChannelPlace {
    fn path(self) -> String {
        format!("/api/bots/{}/channels/{}", self.bot, self.channel)
    }
}

/// What of a channel is set as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Webhook,
    WebSocket,
    Ai,
    Filter,
}

impl Part {
    /// Its name in a channel's document, and in paths.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::WebSocket => "websocket",
            Self::Ai => "ai",
            Self::Filter => "filter",
        }
    }
}

impl Reach {
    /// A page of the channels of a bot.
    pub async fn channels(&self, bot: BotId, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let list = Channels::channel_list(bot);
                let request = PageRequest::parse(&list, Some(page.limit), page.cursor.as_deref())?;
                Ok(page_document(&hub.channels().list(&Actor::Operator, bot, &request).await?, document))
            }
            Self::Remote(remote) => {
                remote.call("GET", &format!("/api/bots/{bot}/channels"), &paging(page), &Value::Null).await
            }
        }
    }

    /// A channel, by what somebody calls it and its bot.
    pub async fn channel_place(&self, bot: &str, channel: &str) -> Result<ChannelPlace, Failure> {
        let bot = self.bot(bot).await?;
        Ok(ChannelPlace { bot, channel: self.channel(bot, channel).await? })
    }

    /// A channel with its settings, without secrets.
    pub async fn channel_document(&self, place: ChannelPlace) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                Ok(document(&hub.channels().get(&Actor::Operator, place.bot, place.channel).await?))
            }
            Self::Remote(remote) => remote.call("GET", &place.path(), &[], &Value::Null).await,
        }
    }

    /// The channel of a bot with this name; the case of letters does not count.
    pub async fn channel_named(&self, bot: BotId, name: &str) -> Result<Option<Value>, Failure> {
        let mut page = PageArgs { limit: MAX_LIMIT, cursor: None };
        loop {
            let mut found = self.channels(bot, &page).await?;
            let items = found["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let is_wanted = |item: &Value| {
                item["name"].as_str().unwrap_or_default().to_lowercase() == name.to_lowercase()
            };
            if let Some(channel) = items.into_iter().find(is_wanted) {
                return Ok(Some(channel));
            }
            page.cursor = found["next_cursor"].as_str().map(str::to_owned);
            if page.cursor.is_none() {
                return Ok(None);
            }
        }
    }

    /// Makes a channel; its document has the key.
    pub async fn create_channel(
        &self,
        bot: BotId,
        name: String,
        handle: Option<String>,
        include_outbound: bool,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let websocket = WebSocketSettings { include_outbound, ..WebSocketSettings::default() };
                let new = NewChannel { handle, websocket, ..NewChannel::named(name) };
                let created = hub.channels().create(&Actor::Operator, bot, new, None).await?;
                let mut document = document(&created.channel);
                document["api_key"] = json!(created.api_key.expose());
                Ok(document)
            }
            Self::Remote(remote) => {
                let websocket = include_outbound.then(|| json!({ "include_outbound": true }));
                let body = given(&json!({ "name": name, "handle": handle, "websocket": websocket }));
                remote.call("POST", &format!("/api/bots/{bot}/channels"), &[], &body).await
            }
        }
    }

    /// Changes name and state of a channel.
    pub async fn edit_channel(
        &self,
        place: ChannelPlace,
        name: Option<String>,
        enabled: Option<bool>,
    ) -> Result<Value, Failure> {
        let ChannelPlace { bot, channel } = place;
        match self {
            Self::Local(hub) => {
                let patch = ChannelPatch { name, enabled, ..ChannelPatch::default() };
                Ok(document(&hub.channels().update(&Actor::Operator, bot, channel, patch).await?))
            }
            Self::Remote(remote) => {
                let body = given(&json!({ "name": name, "enabled": enabled }));
                remote.call("PUT", &place.path(), &[], &body).await
            }
        }
    }

    /// Deletes a channel.
    pub async fn delete_channel(&self, place: ChannelPlace) -> Result<(), Failure> {
        match self {
            Self::Local(hub) => Ok(hub.channels().delete(&Actor::Operator, place.bot, place.channel).await?),
            Self::Remote(remote) => remote.call("DELETE", &place.path(), &[], &Value::Null).await.map(|_| ()),
        }
    }

    /// Gives a channel a new key: `api_key`, `old_key_expires_at`.
    pub async fn rotate_channel_key(
        &self,
        place: ChannelPlace,
        grace: Option<u32>,
    ) -> Result<Value, Failure> {
        let ChannelPlace { bot, channel } = place;
        match self {
            Self::Local(hub) => {
                let made = hub.channels().regenerate_key(&Actor::Operator, bot, channel, grace).await?;
                Ok(json!({
                    "api_key": made.api_key.expose(), "old_key_expires_at": made.old_key_expires_at,
                }))
            }
            Self::Remote(remote) => {
                let path = format!("{}/regenerate-key", place.path());
                let grace = [("grace_hours", grace.map(|hours| hours.to_string()))];
                remote.call("POST", &path, &grace, &Value::Null).await
            }
        }
    }

    /// Sets a part of a channel to these settings, as the API takes them; gives the channel.
    pub async fn set_channel_part(
        &self,
        place: ChannelPlace,
        part: Part,
        settings: Map<String, Value>,
    ) -> Result<Value, Failure> {
        let (ChannelPlace { bot, channel }, settings) = (place, Value::Object(settings));
        let Self::Local(hub) = self else {
            return self.put_channel_part(place, part, &settings).await;
        };
        let (channels, operator) = (hub.channels(), &Actor::Operator);
        let changed = match part {
            Part::Webhook => {
                let update: WebhookUpdate = settings_of(settings)?;
                channels.set_webhook(operator, bot, channel, update).await?
            }
            Part::WebSocket => {
                channels.set_websocket(operator, bot, channel, &settings_of(settings)?).await?
            }
            Part::Ai => {
                let update: AiUpdate = settings_of(settings)?;
                let changed = channels.set_ai(operator, bot, channel, update).await?;
                let mut shown = document(&changed);
                if let Some(warning) = channels.ai_warning(&changed).await? {
                    shown["ai"]["warning"] = warning.into();
                }
                return Ok(shown);
            }
            Part::Filter => channels.set_filter(operator, bot, channel, &settings_of(settings)?).await?,
        };
        Ok(document(&changed))
    }

    async fn put_channel_part(
        &self,
        place: ChannelPlace,
        part: Part,
        settings: &Value,
    ) -> Result<Value, Failure> {
        let Self::Remote(remote) = self else { return Ok(Value::Null) };
        let path = format!("{}/{}", place.path(), part.as_str());
        remote.call("PUT", &path, &[], settings).await
    }

    /// Sends one signed ping to a channel's webhook; what became of it.
    pub async fn ping_channel(&self, place: ChannelPlace) -> Result<Trace, Failure> {
        match self {
            Self::Local(hub) => Ok(ping(hub, &Actor::Operator, place.bot, place.channel).await?),
            Self::Remote(remote) => {
                let path = format!("{}/webhook/test", place.path());
                read(remote.call("POST", &path, &[], &Value::Null).await?)
            }
        }
    }

    /// The plugins of a channel, in the order they run.
    pub async fn channel_plugins(&self, place: ChannelPlace) -> Result<Vec<Value>, Failure> {
        let mut page = match self {
            Self::Local(hub) => {
                let list = Plugins::installed_list(place.channel);
                let request = PageRequest::parse(&list, Some(MAX_LIMIT), None)?;
                let found =
                    hub.plugins().installed(&Actor::Operator, place.bot, place.channel, &request).await?;
                page_document(&found, installed_document)
            }
            Self::Remote(remote) => {
                let page = PageArgs { limit: MAX_LIMIT, cursor: None };
                let path = format!("{}/plugins", place.path());
                remote.call("GET", &path, &paging(&page), &Value::Null).await?
            }
        };
        Ok(page["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Puts a plugin into a channel, or moves it to another version.
    pub async fn install_channel_plugin(
        &self,
        place: ChannelPlace,
        new: NewInstallation,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let plugins = hub.plugins();
                let done = plugins.install(&Actor::Operator, place.bot, place.channel, new).await?;
                Ok(installed_document(&done))
            }
            Self::Remote(remote) => {
                let path = format!("{}/plugins/install", place.path());
                let body = given(&json!({
                    "plugin_id": new.plugin_id, "version": new.version, "position": new.position,
                }));
                remote.call("POST", &path, &[], &body).await
            }
        }
    }

    /// Changes a plugin of a channel: its place in the order, whether it runs.
    pub async fn change_channel_plugin(
        &self,
        place: ChannelPlace,
        plugin: PluginId,
        patch: InstallationPatch,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let (plugins, ChannelPlace { bot, channel }) = (hub.plugins(), place);
                let done = plugins.change_installation(&Actor::Operator, bot, channel, plugin, patch).await?;
                Ok(installed_document(&done))
            }
            Self::Remote(remote) => {
                let path = format!("{}/plugins/{plugin}", place.path());
                let body = given(&json!({ "position": patch.position, "enabled": patch.enabled }));
                remote.call("PUT", &path, &[], &body).await
            }
        }
    }

    /// Takes a plugin out of a channel.
    pub async fn uninstall_channel_plugin(
        &self,
        place: ChannelPlace,
        plugin: PluginId,
    ) -> Result<(), Failure> {
        match self {
            Self::Local(hub) => {
                Ok(hub.plugins().uninstall(&Actor::Operator, place.bot, place.channel, plugin).await?)
            }
            Self::Remote(remote) => {
                let path = format!("{}/plugins/{plugin}", place.path());
                remote.call("DELETE", &path, &[], &Value::Null).await.map(|_| ())
            }
        }
    }

    /// A plugin by name or id.
    pub async fn plugin_id(&self, wanted: &str) -> Result<PluginId, Failure> {
        match self {
            Self::Local(hub) => Ok(hub.plugins().named(&Actor::Operator, wanted).await?.id),
            Self::Remote(_) => super::id_of(&self.plugin(wanted).await?),
        }
    }
}

fn settings_of<T: DeserializeOwned>(settings: Value) -> Result<T, Failure> {
    serde_json::from_value(settings)
        .map_err(|error| Failure::usage(format!("these settings are not acceptable: {error}")))
}

/// A channel without its secrets, except one that was generated just now.
fn document(channel: &Channel) -> Value {
    let mut document = json!({
        "id": channel.id,
        "bot_id": channel.bot_id,
        "name": channel.name,
        "handle": channel.handle.as_ref().map(ToString::to_string),
        "enabled": channel.enabled,
        "api_key_prefix": channel.api_key_prefix,
        "filter": channel.filter,
        "websocket": channel.websocket,
        "webhook": channel.webhook,
        "ai": channel.ai,
        "stats": channel.stats,
        "created_at": channel.created_at,
    });
    if let Some(secret) = &channel.webhook_generated_secret {
        document["webhook"]["auth"]["secret"] = secret.expose().into();
    }
    document
}

fn installed_document(plugin: &InstalledPlugin) -> Value {
    json!({
        "plugin_id": plugin.plugin_id,
        "name": plugin.name,
        "version": plugin.version,
        "version_id": plugin.version_id,
        "position": plugin.position,
        "enabled": plugin.enabled,
        "status": plugin.state,
        "reason": plugin.reason,
        "paused": plugin.paused,
        "content_hash": plugin.content_hash,
    })
}
