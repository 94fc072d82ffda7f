//! Sessions of other users: for a user who lost a device and cannot sign in to revoke its session.

use serde_json::json;

use super::Admin;
use crate::{
    access::Actor,
    accounts::Accounts,
    error::{Error, Result},
    id::{SessionId, UserId},
    model::{audit::Action, revocation::Revoked, session::Session},
    page::{Page, PageRequest},
};

impl Admin<'_> {
    /// The living sessions of a user, newest first. Cursors belong to the list [`Admin::session_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND`.
    pub async fn sessions(&self, actor: &Actor, id: UserId, page: &PageRequest) -> Result<Page<Session>> {
        actor.admin()?;
        let alive = Accounts::new(self.ctx).alive();
        let mut read = self.ctx.store.read().await?;
        read.accounts().find_user(id).await?.ok_or_else(|| Error::not_found("user"))?;
        let mut rows = read.accounts().list_sessions(id, alive, page).await?;
        let own = actor.user().ok().and_then(|user| user.session_id);
        for session in &mut rows {
            session.current = Some(session.id) == own;
        }
        Ok(Page::from_rows(&Self::session_list(id), page, rows, |session| session.id.to_string()))
    }

    /// The name of the list of a user's sessions, for [`PageRequest::parse`].
    pub fn session_list(id: UserId) -> String {
        format!("admin.sessions:{id}")
    }

    /// Ends one session of a user, or all of them, on all nodes. Returns their number. With all of them no browser of
    /// the user is recognised any more. API keys stay valid.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator, `NOT_FOUND` when there is no such user, or no such session
    /// of theirs.
    pub async fn end_sessions(&self, actor: &Actor, id: UserId, session: Option<SessionId>) -> Result<u64> {
        actor.admin()?;
        let revoked = session.map_or(Revoked::User(id), Revoked::Session);
        let revocation = self.ctx.revocation(revoked);
        let entry = self.ctx.audit(actor, Action::SessionsEnded).target(id, "");
        let end = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut accounts = tx.accounts();
                accounts.find_user(id).await?.ok_or_else(|| Error::not_found("user"))?;
                let ended = match session {
                    Some(session) if accounts.delete_session(id, session).await? => 1,
                    Some(_) => return Err(Error::not_found("session")),
                    None => {
                        accounts.forget_devices(id).await?;
                        accounts.end_other_sessions(id, None).await?
                    }
                };
                let detail = json!({ "sessions": ended, "session": session.map(|id| id.to_string()) });
                tx.audit().add(&entry.detail(detail)).await?;
                tx.revocations().add(&revocation).await?;
                Ok(ended)
            })
        });
        let ended = end.await?;
        self.ctx.notify_revoked(revoked);
        Ok(ended)
    }
}
