//! Account activity for its user: their part of the audit log. It shows devices signed in by QR code, new keys and
//! guessed passwords, so that a user who was tricked into one of these notices.

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

/// An event of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The entry of the audit log, without the identity of an administrator.
    pub entry: AuditEntry,
    /// Party that caused it.
    pub by: ActivityBy,
    /// Whether the session or key of the request caused it, or was created by it.
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
    /// Lists the events of the user's account, newest first. Cursors belong to the list [`Accounts::activity_list`]
    /// names.
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
            // Hide both identity and address.
            for hidden in [&mut entry.actor, &mut entry.actor_name, &mut entry.credential, &mut entry.ip] {
                hidden.clear();
            }
        }
        let is_own = |id: &str| !id.is_empty() && id == own;
        let current = is_own(&entry.credential) || is_own(&entry.target);
        Self { entry, by, current }
    }

    /// Returns the sign-in method of a sign-in: `password`, `passkey`, `qr` or a provider.
    pub fn method(&self) -> Option<&str> {
        self.entry.detail.get("method").and_then(Value::as_str)
    }
}
