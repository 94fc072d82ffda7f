//! Endpoints of the marketplace and of plugins in channels.

use hub_core::{
    Hub,
    id::{BotId, ChannelId, PluginId},
    plugins::{
        InstallationPatch, InstalledPlugin, NewInstallation, Plugin, PluginDetail, Plugins, Submission,
    },
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod debug;
mod requests;
#[cfg(test)]
mod tests;
mod views;

pub use debug::{DebugRequestHook, DebugResponseHook, PluginDebugApi};
pub use requests::{ApprovePlugin, RejectPlugin};
pub use views::Target;

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Cursor, Limit, Page, Text, page_request},
};

/// The marketplace, and plugins in channels.
#[derive(Debug, Clone, Copy)]
pub struct PluginsApi;

#[OpenApi(tag = "Tag::Plugins")]
impl PluginsApi {
    /// Lists the marketplace
    ///
    /// Plugins with an approved version; with `mine=true` all plugins of the caller. With `name` only the plugin with
    /// that name, if the caller may see it; administrators see all.
    #[oai(path = "/api/plugins", method = "get", operation_id = "listPlugins")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Only your own plugins, in any state.
        mine: Query<Option<bool>>,
        /// Only the plugin with this name.
        name: Query<Option<Text<1, 64>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Plugin>> {
        if let Some(name) = name.0 {
            let found = hub.plugins().find_named(&user.0, &name, mine.0 == Some(true)).await?;
            let items = found.into_iter().collect();
            return ok(hub_core::page::Page { items, next_cursor: None }.into());
        }
        if mine.0 == Some(true) {
            let page = page_request(&Plugins::own_list(&user.0), limit.0, cursor.0.as_ref())?;
            return ok(hub.plugins().list_own(&user.0, &page).await?.into());
        }
        let page = page_request(Plugins::MARKETPLACE, limit.0, cursor.0.as_ref())?;
        ok(hub.plugins().list(&user.0, &page).await?.into())
    }

    /// Submits a plugin
    ///
    /// The version waits for review; until then only its author may install it. `CONFLICT` if the name belongs to
    /// another plugin. With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/plugins", method = "post", operation_id = "submitPlugin")]
    async fn submit(
        &self,
        hub: Data<&Hub>,
        user: User,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<Submission>,
    ) -> ApiResult<Plugin> {
        ok(hub.plugins().submit(&user.0, body.0, idempotency_key.0.as_deref()).await?)
    }

    /// Shows a plugin
    ///
    /// With the id of a version, source and permissions are those of that version.
    #[oai(path = "/api/plugins/:id", method = "get", operation_id = "getPlugin")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<Target>) -> ApiResult<PluginDetail> {
        ok(hub.plugins().get(&user.0, id.0.0).await?)
    }

    /// Submits a new version of a plugin
    ///
    /// It waits for review and replaces a version that was waiting. The approved version stays live, and channels
    /// keep their version.
    #[oai(path = "/api/plugins/:id", method = "put", operation_id = "updatePlugin")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<PluginId>,
        body: Body<Submission>,
    ) -> ApiResult<Plugin> {
        ok(hub.plugins().update(&user.0, id.0, body.0).await?)
    }

    /// Deletes a plugin
    ///
    /// With the id of a version, that version is withdrawn: it does not run any more. `CONFLICT` while it is
    /// installed in channels of other users, unless the caller is an administrator.
    #[oai(path = "/api/plugins/:id", method = "delete", operation_id = "deletePlugin")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<Target>) -> ApiResult<Empty> {
        hub.plugins().delete(&user.0, id.0.0).await?;
        ok(Empty {})
    }

    /// Installs a plugin into a channel
    ///
    /// The version is pinned. Installing an installed plugin changes its version, and its position if one is given.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/plugins/install",
        method = "post",
        operation_id = "installPlugin"
    )]
    async fn install(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<NewInstallation>,
    ) -> ApiResult<InstalledPlugin> {
        ok(hub.plugins().install(&user.0, id.0, channel_id.0, body.0).await?)
    }

    /// Lists the plugins of a channel
    ///
    /// In order of execution.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/plugins",
        method = "get",
        operation_id = "listChannelPlugins"
    )]
    async fn installed(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<InstalledPlugin>> {
        let page = page_request(&Plugins::installed_list(channel_id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.plugins().installed(&user.0, id.0, channel_id.0, &page).await?.into())
    }

    /// Updates a plugin of a channel
    ///
    /// Its version, its position, and whether it is enabled.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/plugins/:pluginId",
        method = "put",
        operation_id = "changeChannelPlugin"
    )]
    async fn change(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        #[oai(name = "pluginId")] plugin_id: Path<PluginId>,
        body: Body<InstallationPatch>,
    ) -> ApiResult<InstalledPlugin> {
        let (bot, channel, plugin) = (id.0, channel_id.0, plugin_id.0);
        ok(hub.plugins().change_installation(&user.0, bot, channel, plugin, body.0).await?)
    }

    /// Uninstalls a plugin from a channel
    ///
    /// Other channels are not affected; it can be installed again.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/plugins/:pluginId",
        method = "delete",
        operation_id = "uninstallPlugin"
    )]
    async fn uninstall(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        #[oai(name = "pluginId")] plugin_id: Path<PluginId>,
    ) -> ApiResult<Empty> {
        hub.plugins().uninstall(&user.0, id.0, channel_id.0, plugin_id.0).await?;
        ok(Empty {})
    }
}
