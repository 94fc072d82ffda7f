//! Links with which people set a new password (added; reliability Z6).

use hub_core::{Hub, admin::ResetLink};
use poem::web::Data;
use poem_openapi::{Object, OpenApi, param::Path, types::Example};

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    wire::{ShownOnce, Time, UserId},
};

/// Links for lost passwords.
#[derive(Debug, Clone, Copy)]
pub struct ResetLinksApi;

/// A new link: its only sight.
#[derive(Debug, Object)]
#[oai(example)]
pub struct ResetLinkView {
    /// The page to open in a browser; to be handed to the user, and to nobody else.
    pub reset_link: ShownOnce,
    /// Until when.
    pub expires_at: Time,
}

#[OpenApi(tag = "Tag::Admin")]
impl ResetLinksApi {
    /// Makes a link with which a user sets a new password
    ///
    /// It works once, for an hour; a later one ends it. Nobody sets the password of somebody else, so administrators
    /// cannot name one. What changes, changes when the link is used: then every session of the user ends. For one's
    /// own account it is `FORBIDDEN`.
    #[oai(path = "/api/admin/users/:id/reset-link", method = "post", operation_id = "createResetLink")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        id: Path<UserId>,
    ) -> ApiResult<ResetLinkView> {
        ok(hub.admin().create_reset_link(&admin.0, id.0.0).await?.into())
    }
}

impl From<ResetLink> for ResetLinkView {
    fn from(link: ResetLink) -> Self {
        Self { reset_link: ShownOnce(link.url), expires_at: link.expires_at.into() }
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
