//! Endpoints of apps, and of apps on bots (spec §4, "Apps"; `contract.md` §8).

use hub_core::{Hub, apps::Apps};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod installations;
mod oauth;
mod requests;
#[cfg(test)]
mod tests;
mod views;

pub use installations::InstallationsApi;
pub use oauth::{
    AppOauthApi, AuthorizationView, Choice, DecideApp, DecidedView, ExchangeCode, ExchangeCodeOlder,
    GrantedView, OlderGrantedView,
};
pub use requests::{AppView, ChangeApp, CreateApp, InstallApp, RejectApp, SetAppTool, UpdateApp};
pub use views::{
    AppCallView, AppDetailView, AppEventState, AppEventView, AppToolView, CreatedAppView, InstallationView,
    InstalledAppView, Listing, NeedsOauthView, RegeneratedTokenView,
};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{AppId, Body, Cursor, Limit, Page, Text, page_request},
};

/// Apps.
#[derive(Debug, Clone, Copy)]
pub struct AppsApi;

#[OpenApi(tag = "Tag::Apps")]
impl AppsApi {
    /// Lists apps
    ///
    /// The caller's own, those that everybody finds, and those on a bot of theirs; `view` shows one kind alone.
    #[oai(path = "/api/apps", method = "get", operation_id = "listApps")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Which kind; all of them when left out.
        view: Query<Option<AppView>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AppDetailView>> {
        let view = view.0.unwrap_or(AppView::All).into();
        let page = page_request(&Apps::app_list(&user.0, view), limit.0, cursor.0.as_ref())?;
        ok(hub.apps().list(&user.0, view, &page).await?.into())
    }

    /// Creates an app
    ///
    /// The answer is the only sight of `client_secret` and `webhook_secret`. A `webhook_url` is tried at once with
    /// `{v:1,type:"url_verification",challenge}`, which has to be answered with `{challenge}` and 200 within 5
    /// seconds; until that worked it gets no events. `CONFLICT` when the short name is taken. With an
    /// `Idempotency-Key` the same request within 24 hours gives the first answer.
    #[oai(path = "/api/apps", method = "post", operation_id = "createApp")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        user: User,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<CreateApp>,
    ) -> ApiResult<CreatedAppView> {
        ok(hub.apps().create(&user.0, body.0.into(), idempotency_key.0.as_deref()).await?.into())
    }

    /// Shows an app
    ///
    /// Its author and administrators see all of it, others what is listed.
    #[oai(path = "/api/apps/:id", method = "get", operation_id = "getApp")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<AppDetailView> {
        ok(hub.apps().get(&user.0, id.0.0).await?.into())
    }

    /// Changes an app
    ///
    /// What is left out stays. A listed app whose abilities or addresses change waits for an administrator again;
    /// bots on which it is installed go on granting what they did.
    #[oai(path = "/api/apps/:id", method = "put", operation_id = "updateApp")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<AppId>,
        body: Body<UpdateApp>,
    ) -> ApiResult<AppDetailView> {
        ok(hub.apps().update(&user.0, id.0.0, body.0.into()).await?.into())
    }

    /// Deletes an app
    ///
    /// With its installations: their tokens open nothing from then on.
    #[oai(path = "/api/apps/:id", method = "delete", operation_id = "deleteApp")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<Empty> {
        hub.apps().delete(&user.0, id.0.0).await?;
        ok(Empty {})
    }

    /// Tries an app's URL for events again
    ///
    /// `UPSTREAM_ERROR` with the reason when the challenge did not come back.
    #[oai(path = "/api/apps/:id/verify-url", method = "post", operation_id = "verifyAppUrl")]
    async fn verify(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<AppDetailView> {
        ok(hub.apps().verify_url(&user.0, id.0.0).await?.into())
    }

    /// Asks for an app to be listed
    ///
    /// An administrator decides. It needs a description, a `webhook_url` or `setup_url`, an event or a tool, and a
    /// scope.
    #[oai(path = "/api/apps/:id/listing", method = "post", operation_id = "requestAppListing")]
    async fn request_listing(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<AppId>,
    ) -> ApiResult<AppDetailView> {
        ok(hub.apps().request_listing(&user.0, id.0.0).await?.into())
    }

    /// Takes an app off the list
    ///
    /// Or the request back. Installations stay.
    #[oai(path = "/api/apps/:id/listing", method = "delete", operation_id = "withdrawAppListing")]
    async fn withdraw_listing(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<AppId>,
    ) -> ApiResult<AppDetailView> {
        ok(hub.apps().withdraw_listing(&user.0, id.0.0).await?.into())
    }
}
