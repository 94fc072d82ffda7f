//! Invitations: what opens registering on a hub that is `invite`.

use std::time::Duration;

use serde_json::json;

use super::Admin;
use crate::{
    access::Actor,
    config::Registration,
    error::{Error, Result},
    model::audit::Action,
    secret::{Secret, TokenHash, TokenKind, new_token},
    store::accounts::Purpose,
    time::Timestamp,
};

/// How long an invitation can be used unless said otherwise, in days.
pub const INVITE_DAYS: u32 = 7;
/// The longest it can be used, in days.
pub const MAX_INVITE_DAYS: u32 = 90;

/// An invitation: lets one person register, once. This is its only sight.
#[derive(Debug, Clone)]
pub struct Invite {
    /// What the person shows.
    pub invite: Secret,
    /// The page on which they register, with the invitation after the `#`, which no browser sends anywhere.
    pub url: Secret,
    /// Until when.
    pub expires_at: Timestamp,
}

impl Admin<'_> {
    /// Makes an invitation.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `INVALID_PARAMS` on `expires_in_days` outside 1..=90,
    /// `CONFLICT` if registration is closed.
    pub async fn create_invite(&self, actor: &Actor, expires_in_days: Option<u32>) -> Result<Invite> {
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
        let invite = new_token(TokenKind::Invite, &self.ctx.random);
        let hash = TokenHash::of(invite.expose());
        let expires_at = self.ctx.store.now() + Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        let entry = self.ctx.audit(actor, Action::InviteCreated).detail(json!({ "expires_at": expires_at }));
        let subject = actor.principal();
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().insert_one_time(Purpose::Invite, &hash, &subject, expires_at).await?;
                tx.audit().add(&entry).await
            })
        });
        write.await?;
        let mut url = self.ctx.config.public_url.join("login").map_err(Error::internal)?;
        url.set_fragment(Some(&format!("invite={}", invite.expose())));
        Ok(Invite { invite, url: Secret::new(url), expires_at })
    }
}
