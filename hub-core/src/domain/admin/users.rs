//! Accounts of all users.

use std::time::Duration;

use serde_json::json;

use super::Admin;
use crate::{
    access::Actor,
    app_status::{notify_status, status_of},
    error::{Error, ErrorCode, Problems, Result},
    id::UserId,
    model::{
        admin::{AdminUser, UserPatch, UserQuery},
        audit::Action,
        bot::BotStatus,
        revocation::Revoked,
        user::UserStatus,
    },
    page::{Page, PageRequest},
    store::{accounts::Purpose, users::Guarded},
    wake::Hint,
};

/// Time after a sign-in within which administrators may delete their own account.
const RECENT_SIGN_IN: Duration = Duration::from_secs(5 * 60);

impl Admin<'_> {
    /// Lists all users, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator.
    pub async fn users(
        &self,
        actor: &Actor,
        query: &UserQuery,
        page: &PageRequest,
    ) -> Result<Page<AdminUser>> {
        actor.admin()?;
        let found = self.ctx.store.read().await?.users().page(query, page).await?;
        Ok(Page::from_found(&query.list_name(), page, found, |row| row.user.id.to_string()))
    }

    /// One user.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`.
    pub async fn user(&self, actor: &Actor, id: UserId) -> Result<AdminUser> {
        actor.admin()?;
        let found = self.ctx.store.read().await?.users().find(id).await?;
        found.ok_or_else(|| Error::not_found("user"))
    }

    /// A user by name, without regard to case.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`.
    pub async fn user_by_name(&self, actor: &Actor, username: &str) -> Result<AdminUser> {
        actor.admin()?;
        let mut read = self.ctx.store.read().await?;
        let found = read.accounts().find_user_by_name(&username.to_lowercase()).await?;
        let (user, _) = found.ok_or_else(|| Error::not_found("user"))?;
        read.users().find(user.id).await?.ok_or_else(|| Error::not_found("user"))
    }

    /// Changes a user. Disabling revokes all sessions at once, on every node; until the user is enabled again, their
    /// keys and their channels' keys stop working and their bots are paused.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `INVALID_PARAMS` with every invalid field, `NOT_FOUND`,
    /// `CONFLICT` when no active administrator would be left.
    pub async fn update_user(&self, actor: &Actor, id: UserId, patch: UserPatch) -> Result<AdminUser> {
        actor.admin()?;
        let mut problems = Problems::default();
        patch.check_bounds(&mut problems);
        problems.finish()?;
        let (now, revocation) = (self.ctx.store.now(), self.ctx.revocation(Revoked::User(id)));
        let entry = self.ctx.audit(actor, Action::UserUpdated).target(id, "").detail(patch.summary());
        let (status, ids) = (patch.status, self.ctx.ids.clone());
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().lock_admins().await?;
                settled(tx.users().update(id, &patch, now).await?)?;
                let bots = match status {
                    Some(UserStatus::Disabled) => {
                        tx.accounts().end_other_sessions(id, None).await?;
                        tx.accounts().forget_devices(id).await?;
                        tx.users().rest_bots(id, now).await?
                    }
                    Some(UserStatus::Active) => tx.users().wake_bots(id, now).await?,
                    None => Vec::new(),
                };
                for bot in &bots {
                    let is_moved = [Some(BotStatus::Offline), Some(BotStatus::Connecting)];
                    if is_moved.contains(&status_of(tx, *bot).await?) {
                        notify_status(tx, &ids, *bot, None, now).await?;
                    }
                }
                tx.audit().add(&entry).await?;
                tx.revocations().add(&revocation).await?;
                Ok(bots)
            })
        });
        let bots = write.await?;
        self.ctx.notify_revoked(revocation.revoked);
        for bot in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot));
        }
        self.user(actor, id).await
    }

    /// Deletes a user and all their data in one transaction: sessions and keys are revoked, bots stop and are deleted
    /// with their channels, messages and traces. The audit log keeps the name.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, and for administrators who delete themselves more than five
    /// minutes after signing in; `NOT_FOUND`; `CONFLICT` when no active administrator would be left.
    pub async fn delete_user(&self, actor: &Actor, id: UserId) -> Result<()> {
        actor.admin()?;
        self.check_own_deletion(actor, id).await?;
        let revocation = self.ctx.revocation(Revoked::User(id));
        let entry = self.ctx.audit(actor, Action::UserDeleted).target(id, "");
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.accounts().lock_admins().await?;
                settled(tx.users().begin_deletion(id).await?)?;
                let bots = tx.users().delete_bots(id).await?;
                let count = bots.len();
                tx.audit().add(&entry.detail(json!({ "bots": count }))).await?;
                tx.accounts().delete_one_time(Purpose::Reset, &id.to_string()).await?;
                tx.users().delete(id).await?;
                tx.revocations().add(&revocation).await?;
                Ok(bots)
            })
        });
        let bots = write.await?;
        self.ctx.notify_revoked(revocation.revoked);
        for bot in bots {
            self.ctx.node.wake.hint(Hint::Bot(bot));
        }
        Ok(())
    }

    /// Requires a recent sign-in, so that a stolen key or an unattended browser cannot delete its account.
    async fn check_own_deletion(&self, actor: &Actor, id: UserId) -> Result<()> {
        let Actor::User(acting) = actor else { return Ok(()) };
        if acting.user_id != id {
            return Ok(());
        }
        let Some(session_id) = actor.in_person()?.session_id else { return Ok(()) };
        let signed_in = self.ctx.store.read().await?.accounts().session_opened_at(session_id).await?;
        if signed_in.is_some_and(|at| at + RECENT_SIGN_IN > self.ctx.store.now()) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Forbidden, "sign in again before you delete your own account"))
    }
}

/// # Errors
/// Reasons for which a guarded change was rejected.
fn settled(guarded: Guarded) -> Result<()> {
    match guarded {
        Guarded::Done => Ok(()),
        Guarded::Absent => Err(Error::not_found("user")),
        Guarded::LastAdmin => Err(Error::conflict("the hub would be left without an active administrator")
            .with_hint("make another user an administrator first")),
    }
}
