//! Changes that users make to their own account: profile and password.

use crate::{
    access::Actor,
    accounts::{Accounts, Me, session::not_signed_in, user},
    audit::Action,
    error::{Error, Problems, Result},
    model::{revocation::Revoked, user::ProfilePatch},
    password::{self, Verdict},
    secret::{Secret, TokenHash, TokenKind, new_token},
    store::accounts::Purpose,
};

/// A change of password.
#[derive(Debug, Clone)]
pub struct NewPassword {
    /// The current password; not needed by a user who has none.
    pub old: Option<Secret>,
    /// The new password, 8 to 256 characters.
    pub new: Secret,
}

impl Accounts<'_> {
    /// Changes display name and e-mail address of the user.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field, `FORBIDDEN` unless the caller is a user.
    pub async fn update_profile(&self, actor: &Actor, patch: ProfilePatch) -> Result<Me> {
        let user_id = actor.user()?.user_id;
        let mut problems = Problems::default();
        patch.check_bounds(&mut problems);
        if let Some(email) = &patch.email {
            user::check_email(&mut problems, email);
        }
        problems.finish()?;
        let now = self.ctx.store.now();
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move { tx.accounts().update_profile(user_id, &patch, now).await })
        });
        if !write.await? {
            return Err(not_signed_in());
        }
        self.me(actor).await
    }

    /// Changes the user's password, or sets their first one. All other sessions are revoked. The caller's session
    /// continues under a new secret, which is returned. No browser of the user is recognised any more, and an open
    /// reset link becomes invalid. API keys stay valid.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `old_password` when it is missing or wrong, on `new_password` when it is not acceptable;
    /// `FORBIDDEN` for an API key; `CONFLICT` when the password was changed meanwhile; `RATE_LIMITED` when too many
    /// passwords wait to be hashed.
    pub async fn change_password(&self, actor: &Actor, change: NewPassword) -> Result<Option<Secret>> {
        let acting = *actor.in_person()?;
        let found = self.ctx.store.read().await?.accounts().find_user(acting.user_id).await?;
        let (user, stored) = found.ok_or_else(not_signed_in)?;
        let mut problems = Problems::default();
        password::check_as(&mut problems, "new_password", &change.new, &user.username);
        problems.check(stored.is_none() || change.old.is_some(), "old_password", "must be given");
        problems.finish()?;
        if let (Some(_), Some(old)) = (&stored, change.old)
            && matches!(self.ctx.passwords.verify(old, stored.clone()).await?, Verdict::Wrong)
        {
            return Err(Error::invalid("old_password", "is wrong"));
        }
        let hash = self.ctx.passwords.hash(change.new).await?;
        let token = acting.session_id.map(|_| new_token(TokenKind::Session, &self.ctx.random));
        let token_hash = token.as_ref().map(|token| TokenHash::of(token.expose()));
        let (now, revocation) = (self.ctx.store.now(), self.ctx.revocation(Revoked::User(user.id)));
        let entry = self.ctx.audit(actor, Action::PasswordChanged).target(user.id, "");
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut accounts = tx.accounts();
                if !accounts.replace_password_hash(user.id, stored.as_ref(), &hash, now).await? {
                    return Err(Error::conflict("the password was changed meanwhile"));
                }
                accounts.end_other_sessions(user.id, acting.session_id).await?;
                accounts.forget_devices(user.id).await?;
                accounts.delete_one_time(Purpose::Reset, &user.id.to_string()).await?;
                if let (Some(id), Some(hash)) = (acting.session_id, &token_hash) {
                    accounts.renew_session(id, hash).await?;
                }
                tx.audit().add(&entry).await?;
                tx.revocations().add(&revocation).await
            })
        });
        write.await?;
        self.ctx.notify_revoked(revocation.revoked);
        Ok(token)
    }
}
