//! Accounts of all users.

use hub_core::{
    Hub,
    admin::{AdminUser, UserPatch, UserQuery},
};
use poem::web::Data;
use poem_openapi::{
    Object, OpenApi,
    param::{Path, Query},
    types::Example,
};

use crate::{
    api::{
        Tag,
        auth::{AccountStatus, UserRole},
    },
    credentials::Administrator,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Checked, Cursor, Limit, Page, Text, Time, UserId, page_request, view},
};

/// Users.
#[derive(Debug, Clone, Copy)]
pub struct UsersApi;

view! {
    /// A user, for administrators.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct AdminUserView from row: AdminUser {
        /// Id of the user.
        pub id: UserId = row.user.id.into(),
        /// Name to sign in with.
        pub username: String = row.user.username,
        /// Display name.
        pub display_name: String = row.user.display_name,
        /// E-mail address; empty if none was given.
        pub email: String = row.user.email,
        /// Role.
        pub role: UserRole = row.user.role.into(),
        /// Whether the user may sign in.
        pub status: AccountStatus = row.user.status.into(),
        /// Whether the user can sign in with a password.
        pub has_password: bool,
        /// Number of bots.
        pub bots: u32,
        /// Number of sessions.
        pub sessions: u32,
        /// Number of API keys.
        pub api_keys: u32,
        /// When a session was last used, to the minute; absent if the user has no session.
        pub last_seen_at: Option<Time>,
        /// When the account was created.
        pub created_at: Time = row.user.created_at.into(),
    }
}

/// A change of a user; absent fields keep their values.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct UpdateUser {
    /// The new role.
    pub role: Option<UserRole>,
    /// `disabled` revokes all sessions at once; API keys stop working and bots are paused until the user is `active`
    /// again.
    pub status: Option<AccountStatus>,
    /// Display name, 1 to 64 characters.
    pub display_name: Option<Checked<1, 64>>,
}

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
        role: Query<Option<UserRole>>,
        /// Only users with this status.
        status: Query<Option<AccountStatus>>,
        /// Only users whose username or display name contains this text, regardless of case.
        q: Query<Option<Text<1, 64>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<AdminUserView>> {
        let query =
            UserQuery { role: role.0.map(Into::into), status: status.0.map(Into::into), q: q.0.map(|q| q.0) };
        let page = page_request(&query.list_name(), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().users(&admin.0, &query, &page).await?.into())
    }

    /// Shows a user
    ///
    /// Account data only, without messages.
    #[oai(path = "/api/admin/users/:id", method = "get", operation_id = "getUser")]
    async fn get(&self, hub: Data<&Hub>, admin: Administrator, id: Path<UserId>) -> ApiResult<AdminUserView> {
        ok(hub.admin().user(&admin.0, id.0.0).await?.into())
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
        body: Body<UpdateUser>,
    ) -> ApiResult<AdminUserView> {
        ok(hub.admin().update_user(&admin.0, id.0.0, body.0.into()).await?.into())
    }

    /// Deletes a user
    ///
    /// With all of their data, at once: sessions and keys are revoked, bots stop and are deleted with their channels,
    /// messages and traces. `CONFLICT` if no active administrator would be left. Administrators who delete themselves
    /// must have signed in within the last five minutes.
    #[oai(path = "/api/admin/users/:id", method = "delete", operation_id = "deleteUser")]
    async fn delete(&self, hub: Data<&Hub>, admin: Administrator, id: Path<UserId>) -> ApiResult<Empty> {
        hub.admin().delete_user(&admin.0, id.0.0).await?;
        ok(Empty {})
    }
}

impl From<UpdateUser> for UserPatch {
    fn from(request: UpdateUser) -> Self {
        Self {
            role: request.role.map(Into::into),
            status: request.status.map(Into::into),
            display_name: request.display_name.map(String::from),
        }
    }
}

const EXAMPLE_TIME: Time = Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000));

impl Example for AdminUserView {
    fn example() -> Self {
        Self {
            id: hub_core::id::UserId::from_u128(0x019a_a52c_a2c0_0000_0000_0000_0000_0001).into(),
            username: "alice".to_owned(),
            display_name: "Alice".to_owned(),
            email: String::new(),
            role: UserRole::Member,
            status: AccountStatus::Active,
            has_password: true,
            bots: 2,
            sessions: 1,
            api_keys: 0,
            last_seen_at: Some(EXAMPLE_TIME),
            created_at: EXAMPLE_TIME,
        }
    }
}

impl Example for UpdateUser {
    fn example() -> Self {
        Self { role: Some(UserRole::Admin), status: None, display_name: None }
    }
}
