//! Invitations to register.

use hub_core::{Hub, admin::Invite};
use poem::web::Data;
use poem_openapi::{Object, OpenApi, param::Header, types::Example};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{Body, Number, ShownOnce, Text, Time, view},
};

/// Invitations.
#[derive(Debug, Clone, Copy)]
pub struct InvitesApi;

/// An invitation to create.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct CreateInvite {
    /// Lifetime in days, 1 to 90; 7 if absent.
    pub expires_in_days: Option<Number<1, 90>>,
}

view! {
    /// A created invitation. It is shown only here.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct InviteView from invite: Invite {
        /// Value of `invite` in the registration.
        pub invite: ShownOnce,
        /// Registration page with the invitation filled in.
        pub invite_link: ShownOnce = ShownOnce(invite.url),
        /// When it expires.
        pub expires_at: Time,
    }
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
    ) -> ApiResult<InviteView> {
        let (days, once) = (body.0.expires_in_days.map(u32::from), idempotency_key.0.as_deref());
        ok(hub.admin().create_invite(&admin.0, days, once).await?.into())
    }
}

impl Example for CreateInvite {
    fn example() -> Self {
        Self { expires_in_days: Some(Number(14)) }
    }
}

impl Example for InviteView {
    fn example() -> Self {
        Self {
            invite: ShownOnce("hubi_…".into()),
            invite_link: ShownOnce("https://hub.example.com/login#invite=hubi_…".into()),
            expires_at: Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000)),
        }
    }
}
