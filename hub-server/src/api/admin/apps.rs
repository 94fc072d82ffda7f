//! The review of app listings.

use hub_core::{
    Hub,
    apps::{App, Apps},
    id::AppId,
    openapi::Api,
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Body, Checked, Cursor, Limit, Page, page_request},
};

/// A rejection of a listing.
#[derive(Debug, Api)]
#[api(input, example = { "reason": "does not explain what it does with messages" })]
pub struct RejectApp {
    /// Reason for the author, at most 2,000 characters.
    pub reason: Checked<1, 2000>,
}

/// The review of apps.
#[derive(Debug, Clone, Copy)]
pub struct AdminAppsApi;

#[OpenApi(tag = "Tag::Admin")]
impl AdminAppsApi {
    /// Lists the apps that wait for listing
    ///
    /// Newest first, with their authors.
    #[oai(path = "/api/admin/apps/pending", method = "get", operation_id = "listPendingApps")]
    async fn pending(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<App>> {
        let page = page_request(Apps::PENDING_LIST, limit.0, cursor.0.as_ref())?;
        ok(hub.apps().pending(&admin.0, &page).await?.into())
    }

    /// Approves the listing of an app
    ///
    /// `CONFLICT` if it is not waiting.
    #[oai(path = "/api/admin/apps/:id/approve", method = "post", operation_id = "approveApp")]
    async fn approve(&self, hub: Data<&Hub>, admin: Administrator, id: Path<AppId>) -> ApiResult<App> {
        ok(hub.apps().approve(&admin.0, id.0).await?)
    }

    /// Rejects the listing of an app
    ///
    /// Also revokes an earlier approval. The author can read the reason; installations are not affected.
    #[oai(path = "/api/admin/apps/:id/reject", method = "post", operation_id = "rejectApp")]
    async fn reject(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<AppId>,
        body: Body<RejectApp>,
    ) -> ApiResult<App> {
        ok(hub.apps().reject(&admin.0, id.0, &body.0.reason).await?)
    }
}
