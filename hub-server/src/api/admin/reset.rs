//! Links for resetting a password.

use hub_core::{Hub, admin::ResetLink, id::UserId};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path},
};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::Text,
};

/// Links for resetting a password.
#[derive(Debug, Clone, Copy)]
pub struct ResetLinksApi;

#[OpenApi(tag = "Tag::Admin")]
impl ResetLinksApi {
    /// Creates a password reset link for a user
    ///
    /// It works once, for one hour; a later one replaces it. Administrators cannot choose a password for another
    /// user. When the link is used, all sessions of the user are revoked. For one's own account it is `FORBIDDEN`.
    /// With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/admin/users/:id/reset-link", method = "post", operation_id = "createResetLink")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
    ) -> ApiResult<ResetLink> {
        ok(hub.admin().create_reset_link(&admin.0, id.0, idempotency_key.0.as_deref()).await?)
    }
}
