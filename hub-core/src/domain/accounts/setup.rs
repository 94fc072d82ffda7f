//! The first administrator of a hub without open registration: the setup token printed at the start, credentials from
//! the environment, and the operator at the command line.

use std::time::Duration;

use serde_json::json;

use crate::{
    access::{Actor, Role},
    accounts::{Accounts, NewUser, User, user::add_user},
    audit::Action,
    error::{Error, ErrorCode, Result},
    secret::{Secret, TokenHash, TokenKind, new_token},
    store::accounts::Purpose,
};

/// Validity of a setup token.
pub const SETUP_TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 60);

/// Outcome of [`Accounts::ensure_admin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnsuredAdmin {
    /// There was no admin, and this one was created.
    Created(User),
    /// There was an admin; nothing was changed, and the given password was not checked.
    Exists,
}

impl Accounts<'_> {
    /// Whether the hub has no administrator yet: the first user who registers becomes one.
    pub async fn is_new(&self) -> Result<bool> {
        Ok(!self.ctx.store.read().await?.accounts().has_admin().await?)
    }

    /// Creates a setup token for [`Accounts::register`], usable once within [`SETUP_TOKEN_LIFETIME`], and revokes
    /// earlier ones. Returns `None` when an admin exists: there is nothing left to set up.
    pub async fn mint_setup_token(&self) -> Result<Option<Secret>> {
        let token = new_token(TokenKind::Setup, &self.ctx.random);
        let hash = TokenHash::of(token.expose());
        let expires_at = self.ctx.store.now() + SETUP_TOKEN_LIFETIME;
        let minted = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut accounts = tx.accounts();
                accounts.lock_admins().await?;
                if accounts.has_admin().await? {
                    return Ok(false);
                }
                accounts.delete_one_time(Purpose::Setup, "").await?;
                accounts.insert_one_time(Purpose::Setup, &hash, "", expires_at).await?;
                Ok(true)
            })
        });
        Ok(minted.await?.then_some(token))
    }

    /// Creates an admin with this name while the hub has none (`HUB_ADMIN_USERNAME`, `HUB_ADMIN_PASSWORD`); safe to
    /// call at every start.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field, `CONFLICT` when a member has the name.
    pub async fn ensure_admin(&self, username: &str, password: Secret) -> Result<EnsuredAdmin> {
        if !self.is_new().await? {
            return Ok(EnsuredAdmin::Exists);
        }
        let new = NewUser { username: username.to_owned(), password, display_name: None, email: None };
        self.add(new, Role::Admin, true).await
    }

    /// Creates another admin (`users create-admin`).
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is the operator, `INVALID_PARAMS` with every invalid field, `CONFLICT` when the
    /// name is taken.
    pub async fn create_admin(&self, actor: &Actor, new: NewUser) -> Result<User> {
        self.create_user(actor, new, Role::Admin).await
    }

    /// Creates an account regardless of the registration mode (`users create`).
    ///
    /// # Errors
    /// As [`create_admin`](Self::create_admin).
    pub async fn create_user(&self, actor: &Actor, new: NewUser, role: Role) -> Result<User> {
        if *actor != Actor::Operator {
            return Err(Error::new(ErrorCode::Forbidden, "only the operator of the hub can do this"));
        }
        match self.add(new, role, false).await? {
            EnsuredAdmin::Created(user) => Ok(user),
            EnsuredAdmin::Exists => Err(Error::internal("an unconditional create found an admin")),
        }
    }

    async fn add(&self, new: NewUser, role: Role, only_first: bool) -> Result<EnsuredAdmin> {
        let (mut user, password) = new.into_user(self.ctx.ids.next(), self.ctx.store.now())?;
        let password_hash = self.ctx.passwords.hash(password).await?;
        let entry = self.ctx.audit(&Actor::Operator, Action::UserCreated).target(user.id, "");
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().lock_admins().await?;
                if only_first && tx.accounts().has_admin().await? {
                    return Ok(EnsuredAdmin::Exists);
                }
                user.role = add_user(tx, &user, Some(&password_hash), Some(role)).await?;
                tx.audit().add(&entry.detail(json!({ "role": user.role.as_str() }))).await?;
                Ok(EnsuredAdmin::Created(user))
            })
        });
        write.await
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
