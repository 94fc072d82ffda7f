//! Endpoints of apps, and of apps on bots.

use hub_core::{
    Hub,
    apps::{App, AppPatch, AppView, Apps, CreatedApp, NewApp},
    id::AppId,
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod installations;
mod oauth;
#[cfg(test)]
mod tests;
mod views;

pub use installations::InstallationsApi;
pub use oauth::{
    AppOauthApi, AuthorizationView, Choice, DecideApp, DecidedView, ExchangeCode, ExchangeCodeOlder,
    GrantedView,
};
pub use views::NeedsOauthView;

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Cursor, Limit, Page, Text, page_request},
};

/// Apps.
#[derive(Debug, Clone, Copy)]
pub struct AppsApi;

#[OpenApi(tag = "Tag::Apps")]
impl AppsApi {
    /// Lists apps
    ///
    /// The caller's own apps, listed apps, and apps on the caller's bots; `view` selects one of these.
    #[oai(path = "/api/apps", method = "get", operation_id = "listApps")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Kind of apps; all if absent.
        view: Query<Option<AppView>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<App>> {
        let view = view.0.unwrap_or_default();
        let page = page_request(&Apps::app_list(&user.0, view), limit.0, cursor.0.as_ref())?;
        ok(hub.apps().list(&user.0, view, &page).await?.into())
    }

    /// Creates an app
    ///
    /// `client_secret` and `webhook_secret` are shown only in this response. A `webhook_url` is verified at once with
    /// `{v:1,type:"url_verification",challenge}`; the expected response is 200 with `{challenge}` within 5 seconds.
    /// Until then it receives no events. `CONFLICT` if the slug is taken. With an `Idempotency-Key`, the same request
    /// within 24 hours returns the first response.
    #[oai(path = "/api/apps", method = "post", operation_id = "createApp")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        user: User,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<NewApp>,
    ) -> ApiResult<CreatedApp> {
        ok(hub.apps().create(&user.0, body.0, idempotency_key.0.as_deref()).await?)
    }

    /// Shows an app
    ///
    /// Its author and administrators see all fields, other users the public ones.
    #[oai(path = "/api/apps/:id", method = "get", operation_id = "getApp")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<App> {
        ok(hub.apps().get(&user.0, id.0).await?)
    }

    /// Updates an app
    ///
    /// Absent fields keep their values. A listed app whose scopes or URLs change needs another approval by an
    /// administrator; existing installations keep what they granted.
    #[oai(path = "/api/apps/:id", method = "put", operation_id = "updateApp")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<AppId>,
        body: Body<AppPatch>,
    ) -> ApiResult<App> {
        ok(hub.apps().update(&user.0, id.0, body.0).await?)
    }

    /// Deletes an app
    ///
    /// With its installations, whose tokens stop working at once.
    #[oai(path = "/api/apps/:id", method = "delete", operation_id = "deleteApp")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<Empty> {
        hub.apps().delete(&user.0, id.0).await?;
        ok(Empty {})
    }

    /// Verifies the event URL of an app again
    ///
    /// `UPSTREAM_ERROR` with the reason if the challenge was not returned.
    #[oai(path = "/api/apps/:id/verify-url", method = "post", operation_id = "verifyAppUrl")]
    async fn verify(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<App> {
        ok(hub.apps().verify_url(&user.0, id.0).await?)
    }

    /// Requests the listing of an app
    ///
    /// An administrator decides. Required: a description, a `webhook_url` or `setup_url`, an event or a tool, and a
    /// scope.
    #[oai(path = "/api/apps/:id/listing", method = "post", operation_id = "requestAppListing")]
    async fn request_listing(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<App> {
        ok(hub.apps().request_listing(&user.0, id.0).await?)
    }

    /// Removes an app from the list
    ///
    /// Or withdraws the request. Installations are not affected.
    #[oai(path = "/api/apps/:id/listing", method = "delete", operation_id = "withdrawAppListing")]
    async fn withdraw_listing(&self, hub: Data<&Hub>, user: User, id: Path<AppId>) -> ApiResult<App> {
        ok(hub.apps().withdraw_listing(&user.0, id.0).await?)
    }
}
