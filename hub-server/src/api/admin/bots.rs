//! Bots of all users.

use hub_core::{
    Hub,
    admin::{AdminBot, BotQuery},
    bots::BotStatus,
    id::UserId,
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Query};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Cursor, Limit, Page, page_request},
};

/// Bots of all users.
#[derive(Debug, Clone, Copy)]
pub struct AdminBotsApi;

#[OpenApi(tag = "Tag::Admin")]
impl AdminBotsApi {
    /// Lists the bots of all users
    ///
    /// With their owners, without messages. A page reads at most 1000 bots: with `status` it may have fewer items than its
    /// limit, or none, and a `next_cursor`. The list ends where that is `null`.
    #[oai(path = "/api/admin/bots", method = "get", operation_id = "listAllBots")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        /// Only bots of this user.
        owner_id: Query<Option<UserId>>,
        /// Only bots with this status.
        status: Query<Option<BotStatus>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AdminBot>> {
        let query = BotQuery { owner_id: owner_id.0, status: status.0 };
        let page = page_request(&query.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().bots(&admin.0, &query, &page).await?.into())
    }
}
