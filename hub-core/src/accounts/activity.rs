//! What happened to an account, for its user: their part of the audit log. A device that was let in by QR code, a new
//! key or a guessed password shows here, so that a person who was talked into it learns of it.

use serde_json::Value;

use crate::{
    access::Actor,
    accounts::Accounts,
    error::Result,
    id::UserId,
    model::audit::AuditEntry,
    page::{Page, PageRequest},
    words::words,
};

/// Something that happened to the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What, when, to what: as in the audit log, without who an administrator was.
    pub entry: AuditEntry,
    /// Who did it.
    pub by: ActivityBy,
    /// Whether it was done with the session or key that asks, or is how that session began.
    pub current: bool,
}

words! {
    /// Who acted on an account.
    pub enum ActivityBy {
        /// Its user, or someone signed in as that user.
        User = "user",
        /// An administrator or the operator.
        Administrator = "administrator",
        /// Someone who failed to sign in.
        Stranger = "stranger",
    }
}

impl Accounts<'_> {
    /// What happened to the user's account, newest first. Cursors belong to the list
    /// [`Accounts::activity_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn activity(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Activity>> {
        let user = *actor.user()?;
        let own = user.session_id.map(|id| id.to_string()).or_else(|| user.key_id.map(|id| id.to_string()));
        let own = own.unwrap_or_default();
        let rows = self.ctx.store.read().await?.audit().page_of_user(user.user_id, page).await?;
        let rows = rows.into_iter().map(|entry| Activity::of(entry, user.user_id, &own)).collect();
        Ok(Page::from_rows(&Self::activity_list(actor), page, rows, |activity| activity.entry.id.to_string()))
    }

    /// The name of an actor's list of activities, for [`PageRequest::parse`].
    pub fn activity_list(actor: &Actor) -> String {
        format!("activity:{}", actor.principal())
    }
}

impl Activity {
    fn of(mut entry: AuditEntry, user: UserId, own: &str) -> Self {
        let by = match entry.actor.as_str() {
            "" => ActivityBy::Stranger,
            id if id == user.to_string() => ActivityBy::User,
            _ => ActivityBy::Administrator,
        };
        if by == ActivityBy::Administrator {
            // Neither who it was nor from where.
            for hidden in [&mut entry.actor, &mut entry.actor_name, &mut entry.credential, &mut entry.ip] {
                hidden.clear();
            }
        }
        let is_own = |id: &str| !id.is_empty() && id == own;
        let current = is_own(&entry.credential) || is_own(&entry.target);
        Self { entry, by, current }
    }

    /// How the user signed in, when that is what happened: `password`, `passkey`, `qr` or a provider.
    pub fn method(&self) -> Option<&str> {
        self.entry.detail.get("method").and_then(Value::as_str)
    }
}
