//! Reviewing plugins.

use hub_core::{
    Hub,
    plugins::{PendingVersion, Plugin, Plugins},
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
};

use crate::{
    api::{
        Tag,
        plugins::{ApprovePlugin, RejectPlugin, Target},
    },
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Body, Cursor, Limit, Page, page_request},
};

/// The review of plugins.
#[derive(Debug, Clone, Copy)]
pub struct AdminPluginsApi;

#[OpenApi(tag = "Tag::Admin")]
impl AdminPluginsApi {
    /// Lists the plugins that wait for a review
    ///
    /// Newest first, at most 20 per page, each with its source, the diff against the approved version, and its
    /// permissions.
    #[oai(path = "/api/admin/plugins/pending", method = "get", operation_id = "listPendingPlugins")]
    async fn pending(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<PendingVersion>> {
        let page = page_request(Plugins::PENDING_LIST, limit.0, cursor.0.as_ref())?;
        ok(hub.plugins().pending(&admin.0, &page).await?.into())
    }

    /// Approves a plugin
    ///
    /// The id is that of the plugin, meaning its waiting version, or of that version. With `content_hash` only if the
    /// source is the reviewed one; `CONFLICT` otherwise, and if no version is waiting.
    #[oai(path = "/api/admin/plugins/:id/approve", method = "post", operation_id = "approvePlugin")]
    async fn approve(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<Target>,
        body: Body<Option<ApprovePlugin>>,
    ) -> ApiResult<Plugin> {
        let hash = body.0.and_then(|body| body.content_hash);
        ok(hub.plugins().approve(&admin.0, id.0.0, hash.as_deref()).await?)
    }

    /// Rejects a plugin
    ///
    /// Ids as for approval; the author can read the reason. An approved version, named by its own id, is withdrawn:
    /// it does not run from the next message on.
    #[oai(path = "/api/admin/plugins/:id/reject", method = "post", operation_id = "rejectPlugin")]
    async fn reject(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<Target>,
        body: Body<RejectPlugin>,
    ) -> ApiResult<Plugin> {
        let hash = body.0.content_hash.as_deref();
        ok(hub.plugins().reject(&admin.0, id.0.0, &body.0.reason, hash).await?)
    }
}
