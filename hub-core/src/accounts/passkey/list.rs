//! The passkeys of a user.

use crate::{
    access::Actor,
    accounts::{Accounts, flow::check_a_way_is_left},
    audit::Action,
    error::{Error, Result},
    id::PasskeyId,
    page::{Page, PageRequest},
    time::Timestamp,
};

/// A passkey in the list of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    /// The id.
    pub id: PasskeyId,
    /// What its user calls it.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When somebody last signed in with it.
    pub last_used_at: Option<Timestamp>,
}

impl Accounts<'_> {
    /// The user's passkeys, newest first. Cursors belong to the list [`Accounts::passkey_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody who is not a user.
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
}
