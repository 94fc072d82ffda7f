//! Bots of all users.

use hub_core::{
    Hub,
    admin::{AdminBot, BotQuery},
};
use poem::web::Data;
use poem_openapi::{Object, OpenApi, param::Query};

use crate::{
    api::{
        Tag,
        bots::{BotStatus, BotView},
    },
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Cursor, Limit, Page, UserId, page_request, view},
};

/// Bots of all users.
#[derive(Debug, Clone, Copy)]
pub struct AdminBotsApi;

view! {
    /// A bot and its owner, without messages.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct AdminBotView from row: AdminBot {
        /// The bot.
        #[oai(flatten)]
        pub bot: BotView,
        /// Username of its owner.
        pub owner_name: String,
    }
}

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
    ) -> ApiResult<Page<AdminBotView>> {
        let query = BotQuery { owner_id: owner_id.0.map(|id| id.0), status: status.0.map(Into::into) };
        let page = page_request(&query.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().bots(&admin.0, &query, &page).await?.into())
    }
}
