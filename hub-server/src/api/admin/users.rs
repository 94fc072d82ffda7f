//! Accounts of all users.

use hub_core::{
    Hub,
    access::Role,
    accounts::UserStatus,
    admin::{AdminUser, UserPatch, UserQuery},
    id::UserId,
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Cursor, Limit, Page, Text, page_request},
};

/// Users.
#[derive(Debug, Clone, Copy)]
pub struct UsersApi;

#[OpenApi(tag = "Tag::Admin")]
impl UsersApi {
    /// Lists all users
    ///
    /// With status and role, most recently registered first. A page reads at most 1000 users: with filters it may have
    /// fewer items than its limit, or none, and a `next_cursor`. The list ends where that is `null`.
    #[oai(path = "/api/admin/users", method = "get", operation_id = "listUsers")]
    #[expect(clippy::too_many_arguments, reason = "one per query parameter")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        /// Only users with this role.
        role: Query<Option<Role>>,
        /// Only users with this status.
        status: Query<Option<UserStatus>>,
        /// Only users whose username or display name contains this text, regardless of case.
        q: Query<Option<Text<1, 64>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AdminUser>> {
        let query = UserQuery { role: role.0, status: status.0, q: q.0.map(|q| q.0) };
        let page = page_request(&query.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().users(&admin.0, &query, &page).await?.into())
    }

    /// Shows a user
    ///
    /// Account data only, without messages.
    #[oai(path = "/api/admin/users/:id", method = "get", operation_id = "getUser")]
    async fn get(&self, hub: Data<&Hub>, admin: Administrator, id: Path<UserId>) -> ApiResult<AdminUser> {
        ok(hub.admin().user(&admin.0, id.0).await?)
    }

    /// Updates a user
    ///
    /// `CONFLICT` if no active administrator would be left.
    #[oai(path = "/api/admin/users/:id", method = "put", operation_id = "updateUser")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
        body: Body<UserPatch>,
    ) -> ApiResult<AdminUser> {
        ok(hub.admin().update_user(&admin.0, id.0, body.0).await?)
    }

    /// Deletes a user
    ///
    /// With all of their data, at once: sessions and keys are revoked, bots stop and are deleted with their channels,
    /// messages and traces. `CONFLICT` if no active administrator would be left. Administrators who delete themselves
    /// must have signed in within the last five minutes.
    #[oai(path = "/api/admin/users/:id", method = "delete", operation_id = "deleteUser")]
    async fn delete(&self, hub: Data<&Hub>, admin: Administrator, id: Path<UserId>) -> ApiResult<Empty> {
        hub.admin().delete_user(&admin.0, id.0).await?;
        ok(Empty {})
    }
}
