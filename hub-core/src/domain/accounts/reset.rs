//! Setting a new password with the link of an administrator.

use crate::{
    accounts::{Accounts, User},
    audit::Action,
    error::{Error, ErrorCode, Problems, Result},
    id::UserId,
    model::{revocation::Revoked, session::ClientInfo},
    password,
    secret::{Secret, TokenHash, TokenKind, parse_token},
    store::accounts::Purpose,
};

impl Accounts<'_> {
    /// Sets a user's password with the token of a link
    /// ([`Admin::create_reset_link`](crate::admin::Admin::create_reset_link)) and uses the token up. All sessions of
    /// the user are revoked and no browser is recognised any more; API keys stay valid. It does not sign in.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the token is unknown, used or expired; `INVALID_PARAMS` on `new_password` when it is not
    /// acceptable, which leaves the link valid; `CONFLICT` when the password was changed meanwhile; `RATE_LIMITED`
    /// when too many passwords wait to be hashed.
    pub async fn reset_password(&self, token: &Secret, new: Secret, client: &ClientInfo) -> Result<User> {
        let token = parse_token(TokenKind::Reset, token.expose().trim()).ok_or_else(bad_link)?;
        let user = self.holder_of_link(&token).await?;
        let mut problems = Problems::default();
        password::check_as(&mut problems, "new_password", &new, &user.username);
        problems.finish()?;
        let hash = self.ctx.passwords.hash(new).await?;
        let (id, now) = (user.id, self.ctx.store.now());
        let revocation = self.ctx.revocation(Revoked::User(id));
        let entry = self.ctx.audit_sign_in(None, Action::PasswordReset, client).target(id, "");
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut accounts = tx.accounts();
                accounts.use_one_time(Purpose::Reset, &token, now).await?.ok_or_else(bad_link)?;
                accounts.lock_user(id).await?;
                let (_, old) = accounts.find_user(id).await?.ok_or_else(bad_link)?;
                if !accounts.replace_password_hash(id, old.as_ref(), &hash, now).await? {
                    return Err(Error::conflict("the password was changed meanwhile"));
                }
                accounts.end_other_sessions(id, None).await?;
                accounts.forget_devices(id).await?;
                tx.audit().add(&entry).await?;
                tx.revocations().add(&revocation).await
            })
        });
        write.await?;
        self.ctx.notify_revoked(revocation.revoked);
        Ok(user)
    }

    /// Returns the user whose password a link sets.
    async fn holder_of_link(self, token: &TokenHash) -> Result<User> {
        let mut read = self.ctx.store.read().await?;
        let found = read.accounts().find_one_time(Purpose::Reset, token, self.ctx.store.now()).await?;
        let id: UserId = found.ok_or_else(bad_link)?.parse().map_err(Error::internal)?;
        let (user, _) = read.accounts().find_user(id).await?.ok_or_else(bad_link)?;
        Ok(user)
    }
}

fn bad_link() -> Error {
    Error::new(ErrorCode::InvalidToken, "the link is wrong, used or expired")
        .with_hint("ask an administrator for another one")
}

#[cfg(test)]
#[path = "reset_tests.rs"]
mod tests;
