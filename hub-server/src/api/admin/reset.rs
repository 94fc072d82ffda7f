//! Links for resetting a password.

use hub_core::{Hub, admin::ResetLink};
use poem::web::Data;
use poem_openapi::{
    Object, OpenApi,
    param::{Header, Path},
    types::Example,
};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{ShownOnce, Text, Time, UserId, view},
};

/// Links for resetting a password.
#[derive(Debug, Clone, Copy)]
pub struct ResetLinksApi;

view! {
    /// A created link. It is shown only here.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct ResetLinkView from link: ResetLink {
        /// The page to open in a browser, for the user only.
        pub reset_link: ShownOnce = ShownOnce(link.url),
        /// When it expires.
        pub expires_at: Time,
    }
}

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
    ) -> ApiResult<ResetLinkView> {
        ok(hub.admin().create_reset_link(&admin.0, id.0.0, idempotency_key.0.as_deref()).await?.into())
    }
}

impl Example for ResetLinkView {
    fn example() -> Self {
        Self {
            reset_link: ShownOnce("https://hub.example.com/login/reset#hubr_…".into()),
            expires_at: Time(hub_core::time::Timestamp::from_millis(1_795_253_400_000)),
        }
    }
}
