//! Invitations: single-use tickets for registration on a hub whose registration is `invite`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Admin;
use crate::{
    access::Actor,
    config::Registration,
    error::{Error, Result},
    idempotency::{self, Idempotent},
    model::audit::Action,
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token},
    store::accounts::Purpose,
    time::Timestamp,
};

/// Default validity of an invitation, in days.
pub const INVITE_DAYS: u32 = 7;
/// Maximum validity of an invitation, in days.
pub const MAX_INVITE_DAYS: u32 = 90;

/// A created invitation. It is shown only here.
#[derive(Debug, Clone, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "expires_at": "2026-11-21T09:30:00.000Z",
    "invite": "hubi_…",
    "invite_link": "https://hub.example.com/login#invite=hubi_…",
})]
pub struct Invite {
    /// Value of `invite` in the registration.
    pub invite: ShownOnce,
    /// Registration page with the invitation filled in.
    #[api(name = "invite_link")]
    pub url: ShownOnce,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Admin<'_> {
    /// Creates an invitation. `idempotency_key` is the caller's `Idempotency-Key`: the same key with the same request
    /// returns the first response, invitation included.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `INVALID_PARAMS` on `expires_in_days` outside 1..=90,
    /// `CONFLICT` if registration is closed, or the idempotency key was used for something else.
    pub async fn create_invite(
        &self,
        actor: &Actor,
        expires_in_days: Option<u32>,
        idempotency_key: Option<&str>,
    ) -> Result<Invite> {
        actor.admin()?;
        let days = expires_in_days.unwrap_or(INVITE_DAYS);
        if !(1..=MAX_INVITE_DAYS).contains(&days) {
            return Err(Error::invalid(
                "expires_in_days",
                format!("must be between 1 and {MAX_INVITE_DAYS}"),
            ));
        }
        if self.ctx.config.registration == Registration::Closed {
            return Err(Error::conflict("registration is closed, so an invitation cannot be used")
                .with_hint("set registration to invite"));
        }
        let once = Idempotent::read(self.ctx, actor, "invite.create", &days, idempotency_key)?;
        let invite = new_token(TokenKind::Invite, &self.ctx.random);
        let hash = TokenHash::of(invite.expose());
        let expires_at = self.ctx.store.now() + Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        let entry = self.ctx.audit(actor, Action::InviteCreated).detail(json!({ "expires_at": expires_at }));
        let subject = actor.principal();
        let mut url = self.ctx.config.address("/login");
        url.set_fragment(Some(&format!("invite={}", invite.expose())));
        let write = idempotency::write_once(&self.ctx.store, once, move |tx| {
            Box::pin(async move {
                tx.accounts().insert_one_time(Purpose::Invite, &hash, &subject, expires_at).await?;
                tx.audit().add(&entry).await?;
                Ok(Invite { invite: invite.into(), url: Secret::new(url).into(), expires_at })
            })
        });
        write.await
    }
}
