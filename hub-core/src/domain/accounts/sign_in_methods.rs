//! Sign-in methods of a user other than a password: listed, and removed. A build without passkeys or external
//! providers shows those that another build created.

use crate::{
    access::Actor,
    accounts::Accounts,
    audit::Action,
    error::{Error, Result},
    id::{PasskeyId, UserId},
    model::user::{ExternalAccount, Passkey},
    page::{Page, PageRequest},
    store::Tx,
};

impl Accounts<'_> {
    /// The user's passkeys, newest first. Cursors belong to the list [`Accounts::passkey_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn passkeys(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Passkey>> {
        let user = actor.user()?;
        let rows = self.ctx.store.read().await?.passkeys().list(user.user_id, page).await?;
        Ok(Page::from_rows(&Self::passkey_list(actor), page, rows, |passkey| passkey.id.to_string()))
    }

    /// The name of an actor's list of passkeys, for [`PageRequest::parse`].
    pub fn passkey_list(actor: &Actor) -> String {
        format!("passkeys:{}", actor.principal())
    }

    /// Deletes one of the user's passkeys.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not one of theirs, `CONFLICT` when it is their only way to sign in, `FORBIDDEN`
    /// when the session is not fresh.
    pub async fn delete_passkey(&self, actor: &Actor, id: PasskeyId) -> Result<()> {
        let user_id = self.fresh_user(actor).await?.user_id;
        let noted = self.ctx.audit(actor, Action::PasskeyDeleted).target(id, "");
        let delete = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().lock_user(user_id).await?;
                if !tx.passkeys().delete(user_id, id).await? {
                    return Err(Error::not_found("passkey"));
                }
                check_a_way_is_left(tx, user_id).await?;
                tx.audit().add(&noted).await
            })
        });
        delete.await
    }

    /// The user's linked accounts.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn external_accounts(&self, actor: &Actor) -> Result<Vec<ExternalAccount>> {
        let user = actor.user()?.user_id;
        self.ctx.store.read().await?.external_accounts().list(user).await
    }

    /// Unlinks the user's account of a provider.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none, `CONFLICT` when it is their only way to sign in, `FORBIDDEN` when the
    /// session is not fresh.
    pub async fn unlink_external(&self, actor: &Actor, provider: &str) -> Result<()> {
        let user = actor.in_person()?.user_id;
        let provider = provider.to_owned();
        let noted = self.ctx.audit(actor, Action::AccountUnlinked).target(&provider, "");
        // What is not there is not found, however old the session is.
        let linked = self.external_accounts(actor).await?;
        if !linked.iter().any(|account| account.provider == provider) {
            return Err(Error::not_found("linked account"));
        }
        self.fresh_user(actor).await?;
        let unlink = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().lock_user(user).await?;
                if !tx.external_accounts().delete(user, &provider).await? {
                    return Err(Error::not_found("linked account"));
                }
                check_a_way_is_left(tx, user).await?;
                tx.audit().add(&noted).await
            })
        });
        unlink.await
    }
}

/// Fails, at the end of a transaction that removes a sign-in method, if the user has none left.
///
/// # Errors
/// `CONFLICT`, which rolls the transaction back.
async fn check_a_way_is_left(tx: &mut Tx, user_id: UserId) -> Result<()> {
    if tx.accounts().count_sign_in_methods(user_id).await? > 0 {
        return Ok(());
    }
    Err(Error::conflict("this is your only way to sign in")
        .with_hint("set a password, or add another passkey or account first"))
}
