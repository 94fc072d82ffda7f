//! Password reset links, for users who have lost their password. Administrators cannot choose a password for another
//! user.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Admin;
use crate::{
    access::Actor,
    error::{Error, ErrorCode, Result},
    id::UserId,
    idempotency::{self, Idempotent},
    model::audit::Action,
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token},
    store::accounts::Purpose,
    time::Timestamp,
};

/// Validity of a link.
pub const RESET_LINK_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A created link. It is shown only here.
#[derive(Debug, Clone, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "expires_at": "2026-11-21T09:30:00.000Z",
    "reset_link": "https://hub.example.com/login/reset#hubr_…",
})]
pub struct ResetLink {
    /// The page to open in a browser, for the user only.
    #[api(name = "reset_link")]
    pub url: ShownOnce,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Admin<'_> {
    /// Creates a link with which a user sets a new password
    /// ([`Accounts::reset_password`](crate::accounts::Accounts::reset_password)), and revokes earlier links. The old
    /// password stays valid until the link is used. `idempotency_key` is the caller's `Idempotency-Key`: the same key
    /// for the same user returns the first link.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, and for the caller's own account; `NOT_FOUND`; `CONFLICT` when
    /// the idempotency key was used for something else.
    pub async fn create_reset_link(
        &self,
        actor: &Actor,
        id: UserId,
        idempotency_key: Option<&str>,
    ) -> Result<ResetLink> {
        actor.admin()?;
        if actor.user().is_ok_and(|acting| acting.user_id == id) {
            return Err(Error::new(ErrorCode::Forbidden, "you cannot create a reset link for yourself")
                .with_hint("change your own with PUT /api/user/password"));
        }
        let once = Idempotent::read(self.ctx, actor, "reset_link.create", &id, idempotency_key)?;
        let token = new_token(TokenKind::Reset, &self.ctx.random);
        let hash = TokenHash::of(token.expose());
        let expires_at = self.ctx.store.now() + RESET_LINK_LIFETIME;
        let entry = self.ctx.audit(actor, Action::ResetLinkCreated).target(id, "");
        let entry = entry.detail(json!({ "expires_at": expires_at }));
        let subject = id.to_string();
        // The token follows the `#`, which browsers do not send.
        let mut url = self.ctx.config.address("/login/reset");
        url.set_fragment(Some(token.expose()));
        let write = idempotency::write_once(&self.ctx.store, once, move |tx| {
            Box::pin(async move {
                tx.users().find(id).await?.ok_or_else(|| Error::not_found("user"))?;
                let mut accounts = tx.accounts();
                accounts.delete_one_time(Purpose::Reset, &subject).await?;
                accounts.insert_one_time(Purpose::Reset, &hash, &subject, expires_at).await?;
                tx.audit().add(&entry).await?;
                Ok(ResetLink { url: Secret::new(url).into(), expires_at })
            })
        });
        write.await
    }
}
