//! Everybody's accounts.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Admin;
use crate::{
    access::{Actor, Role},
    accounts::{User, UserStatus},
    apps::{status_of, tell_status},
    audit::Action,
    bots::BotStatus,
    context::Hint,
    error::{Error, ErrorCode, Problems, Result},
    id::UserId,
    page::{Page, PageRequest},
    revocation::Revoked,
    store::{accounts::Purpose, users::Guarded},
    text,
    time::Timestamp,
};

/// Whoever deletes their own account has signed in within this time (reliability Z5).
const FRESH: Duration = Duration::from_secs(5 * 60);

/// A user as administrators see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminUser {
    /// The account.
    pub user: User,
    /// Whether a password can be used to sign in.
    pub has_password: bool,
    /// How many bots they have.
    pub bots: u32,
    /// How many sessions, ended ones that are not forgotten yet included.
    pub sessions: u32,
    /// How many API keys.
    pub api_keys: u32,
    /// When one of the sessions was last used, to the minute.
    pub last_seen_at: Option<Timestamp>,
}

/// Which users are wanted; what is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserQuery {
    /// With this role.
    pub role: Option<Role>,
    /// In this status.
    pub status: Option<UserStatus>,
    /// Whose username or name to show has this text, without regard to case.
    pub q: Option<String>,
}

impl UserQuery {
    /// The name of this list for [`PageRequest::parse`]: a cursor of another filter is refused.
    pub fn list_name(&self) -> String {
        format!("admin.users:{self:?}")
    }
}

/// What changes about a user; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPatch {
    /// Another role.
    pub role: Option<Role>,
    /// Switched on or off.
    pub status: Option<UserStatus>,
    /// Another name to show, 1 to 64 characters.
    pub display_name: Option<String>,
}

impl UserPatch {
    /// What stands in the audit log about the change.
    fn summary(&self) -> Value {
        let mut summary = Map::new();
        if let Some(role) = self.role {
            summary.insert("role".into(), role.as_str().into());
        }
        if let Some(status) = self.status {
            summary.insert("status".into(), status.as_str().into());
        }
        if let Some(name) = &self.display_name {
            summary.insert("display_name".into(), name.as_str().into());
        }
        Value::Object(summary)
    }
}

impl Admin<'_> {
    /// Everybody who has an account, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody but an administrator.
    pub async fn users(
        &self,
        actor: &Actor,
        query: &UserQuery,
        page: &PageRequest,
    ) -> Result<Page<AdminUser>> {
        actor.admin()?;
        let rows = self.ctx.store.read().await?.users().page(query, page).await?;
        Ok(Page::from_rows(&query.list_name(), page, rows, |row| row.user.id.to_string()))
    }

    /// One user.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody but an administrator, `NOT_FOUND`.
    pub async fn user(&self, actor: &Actor, id: UserId) -> Result<AdminUser> {
        actor.admin()?;
        let found = self.ctx.store.read().await?.users().find(id).await?;
        found.ok_or_else(|| Error::not_found("user"))
    }

    /// A user by name, without regard to case.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody but an administrator, `NOT_FOUND`.
    pub async fn user_by_name(&self, actor: &Actor, username: &str) -> Result<AdminUser> {
        actor.admin()?;
        let mut read = self.ctx.store.read().await?;
        let found = read.accounts().find_user_by_name(&username.to_lowercase()).await?;
        let (user, _) = found.ok_or_else(|| Error::not_found("user"))?;
        read.users().find(user.id).await?.ok_or_else(|| Error::not_found("user"))
    }

    /// Changes a user. Whoever is switched off loses every session at once, here and on other nodes; their keys and
    /// their channels' keys open nothing, and their bots rest, until they are switched on again.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody but an administrator, `INVALID_PARAMS` naming every broken field, `NOT_FOUND`,
    /// `CONFLICT` when no active administrator would be left.
    pub async fn update_user(&self, actor: &Actor, id: UserId, patch: UserPatch) -> Result<AdminUser> {
        actor.admin()?;
        let mut problems = Problems::default();
        if let Some(name) = &patch.display_name {
            text::check_name(&mut problems, "display_name", name, 1..=64);
        }
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
                        tell_status(tx, &ids, *bot, None, now).await?;
                    }
                }
                tx.audit().add(&entry).await?;
                tx.revocations().add(&revocation).await?;
                Ok(bots)
            })
        });
        let bots = write.await?;
        self.ctx.tell_revoked(revocation.revoked);
        for bot in bots {
            self.ctx.wake.hint(Hint::Bot(bot));
        }
        self.user(actor, id).await
    }

    /// Deletes a user with everything of theirs, in one transaction: sessions and keys end, bots stop and are gone
    /// with their channels, messages and traces. The audit log keeps the name.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody but an administrator, and for one who deletes themselves without having signed in
    /// within five minutes; `NOT_FOUND`; `CONFLICT` when no active administrator would be left.
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
        self.ctx.tell_revoked(revocation.revoked);
        for bot in bots {
            self.ctx.wake.hint(Hint::Bot(bot));
        }
        Ok(())
    }

    /// A stolen key or a forgotten browser must not end the account it belongs to.
    async fn check_own_deletion(&self, actor: &Actor, id: UserId) -> Result<()> {
        let Actor::User(acting) = actor else { return Ok(()) };
        if acting.user_id != id {
            return Ok(());
        }
        let Some(session_id) = actor.in_person()?.session_id else { return Ok(()) };
        let signed_in = self.ctx.store.read().await?.accounts().session_opened_at(session_id).await?;
        if signed_in.is_some_and(|at| at + FRESH > self.ctx.store.now()) {
            return Ok(());
        }
        Err(Error::new(ErrorCode::Forbidden, "sign in again before you delete your own account"))
    }
}

/// # Errors
/// What a guarded change was refused for.
fn settled(guarded: Guarded) -> Result<()> {
    match guarded {
        Guarded::Done => Ok(()),
        Guarded::Absent => Err(Error::not_found("user")),
        Guarded::LastAdmin => Err(Error::conflict("the hub would be left without an active administrator")
            .with_hint("make somebody else an administrator first")),
    }
}
