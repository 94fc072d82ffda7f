//! Sessions of other users (`hub-cli users sessions`).

use hub_core::{
    Hub,
    accounts::Session,
    admin::Admin,
    id::{SessionId, UserId},
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
    wire::{Cursor, Limit, Page, page_request},
};

/// Sessions of other users.
#[derive(Debug, Clone, Copy)]
pub struct SessionsApi;

/// Number of revoked sessions.
#[derive(Debug, Api)]
#[api(example = {
    "ended": 2
})]
pub struct EndedSessions {
    /// The number.
    pub ended: u64,
}

#[OpenApi(tag = "Tag::Admin")]
impl SessionsApi {
    /// Lists a user's sessions
    ///
    /// Valid sessions, newest first.
    #[oai(path = "/api/admin/users/:id/sessions", method = "get", operation_id = "listUserSessions")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Session>> {
        let page = page_request(&Admin::session_list(id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.admin().sessions(&admin.0, id.0, &page).await?.into())
    }

    /// Revokes all sessions of a user
    ///
    /// Within a second on every node. API keys stay valid.
    #[oai(path = "/api/admin/users/:id/sessions", method = "delete", operation_id = "endUserSessions")]
    async fn end_all(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
    ) -> ApiResult<EndedSessions> {
        ok(EndedSessions { ended: hub.admin().end_sessions(&admin.0, id.0, None).await? })
    }

    /// Revokes a session of a user
    ///
    /// Takes effect at once on every node, open connections included.
    #[oai(
        path = "/api/admin/users/:id/sessions/:sessionId",
        method = "delete",
        operation_id = "endUserSession"
    )]
    async fn end_one(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
        #[oai(name = "sessionId")] session_id: Path<SessionId>,
    ) -> ApiResult<EndedSessions> {
        let session = Some(session_id.0);
        ok(EndedSessions { ended: hub.admin().end_sessions(&admin.0, id.0, session).await? })
    }
}
