//! Apps on bots.

use hub_core::{
    Hub,
    apps::{AppCall, AppEvent, Apps, Installation, InstallationPatch, NewInstallation, RegeneratedToken},
    id::{AppId, BotId},
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

use super::views::InstallAnswer;
use crate::{
    api::Tag,
    credentials::User,
    envelope::{ApiError, ApiResult, Empty, ok},
    wire::{Body, Cursor, Limit, Number, Page, Text, page_request},
};

/// Apps on bots.
#[derive(Debug, Clone, Copy)]
pub struct InstallationsApi;

#[OpenApi(tag = "Tag::Apps")]
impl InstallationsApi {
    /// Lists the apps on a bot
    ///
    /// With the granted scopes.
    #[oai(path = "/api/bots/:id/apps", method = "get", operation_id = "listInstalledApps")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Installation>> {
        let page = page_request(&Apps::installed_list(id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.apps().installed(&user.0, id.0, &page).await?.into())
    }

    /// Installs an app onto a bot
    ///
    /// An app with a `setup_url` is installed there: `{needs_oauth:true, oauth_redirect}` contains the URL for the
    /// browser, and `config` is not stored. For any other app, `app_token` is shown only in this response. The app gets
    /// the scopes that it requests, or fewer. `CONFLICT` if it is installed already, or if another app on the bot has
    /// the handle. With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/bots/:id/apps/install", method = "post", operation_id = "installApp")]
    async fn install(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<NewInstallation>,
    ) -> Result<InstallAnswer, ApiError> {
        let key = idempotency_key.0.as_deref();
        InstallAnswer::of(hub.apps().install(&user.0, id.0, body.0, key).await?)
    }

    /// Changes an app on a bot
    ///
    /// Its handle, its scopes, its configuration, and whether it is enabled.
    #[oai(path = "/api/bots/:id/apps/:appId", method = "put", operation_id = "changeInstalledApp")]
    async fn change(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "appId")] app_id: Path<AppId>,
        body: Body<InstallationPatch>,
    ) -> ApiResult<Installation> {
        ok(hub.apps().change_installation(&user.0, id.0, app_id.0, body.0).await?)
    }

    /// Uninstalls an app from a bot
    ///
    /// Its token stops working at once.
    #[oai(path = "/api/bots/:id/apps/:appId", method = "delete", operation_id = "uninstallApp")]
    async fn uninstall(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "appId")] app_id: Path<AppId>,
    ) -> ApiResult<Empty> {
        hub.apps().uninstall(&user.0, id.0, app_id.0).await?;
        ok(Empty {})
    }

    /// Replaces the token of an app on a bot
    ///
    /// The new token is shown only in this response. The old one stops working at once, or after `grace_hours` (1 to
    /// 72). With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(
        path = "/api/bots/:id/apps/:appId/regenerate-token",
        method = "post",
        operation_id = "regenerateAppToken"
    )]
    async fn regenerate_token(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "appId")] app_id: Path<AppId>,
        /// How long the old token stays valid; not at all if absent.
        grace_hours: Query<Option<Number<1, 72>>>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
    ) -> ApiResult<RegeneratedToken> {
        let (grace, once) = (grace_hours.0.map(u32::from), idempotency_key.0.as_deref());
        ok(hub.apps().regenerate_token(&user.0, id.0, app_id.0, grace, once).await?)
    }

    /// Lists the calls of an app to the bot API
    ///
    /// Newest first, with the beginning of the bodies; retained for 7 days.
    #[oai(path = "/api/bots/:id/apps/:appId/api-logs", method = "get", operation_id = "listAppCalls")]
    async fn calls(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "appId")] app_id: Path<AppId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AppCall>> {
        let page = page_request(&Apps::call_list(id.0, app_id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.apps().calls(&user.0, id.0, app_id.0, &page).await?.into())
    }

    /// Lists the events of an app
    ///
    /// Delivered and pending, newest first; retained for 7 days.
    #[oai(path = "/api/bots/:id/apps/:appId/events", method = "get", operation_id = "listAppEvents")]
    async fn events(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "appId")] app_id: Path<AppId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AppEvent>> {
        let page = page_request(&Apps::event_list(id.0, app_id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.apps().events(&user.0, id.0, app_id.0, &page).await?.into())
    }
}
