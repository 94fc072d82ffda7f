//! Invitations to register.

use hub_core::{Hub, admin::Invite, openapi::Api};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Header};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Body, Number, Text},
};

/// Invitations.
#[derive(Debug, Clone, Copy)]
pub struct InvitesApi;

/// An invitation to create.
#[derive(Debug, Api)]
#[api(input, example = {
    "expires_in_days": 14
})]
pub struct CreateInvite {
    /// Lifetime in days, 1 to 90; 7 if absent.
    pub expires_in_days: Option<Number<1, 90>>,
}

#[OpenApi(tag = "Tag::Admin")]
impl InvitesApi {
    /// Creates an invitation
    ///
    /// It permits one registration on a hub whose registration is `invite`. `CONFLICT` if registration is closed. With
    /// an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/admin/invites", method = "post", operation_id = "createInvite")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<CreateInvite>,
    ) -> ApiResult<Invite> {
        let (days, once) = (body.0.expires_in_days.map(u32::from), idempotency_key.0.as_deref());
        ok(hub.admin().create_invite(&admin.0, days, once).await?)
    }
}
