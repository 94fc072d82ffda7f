//! Sign-in with a password, and sessions.

use std::time::Duration;

use serde_json::json;

use crate::{
    access::{Actor, UserActor},
    accounts::{Accounts, Me, SignedIn, UserStatus, user::canonical_username},
    audit::Action,
    error::{Error, ErrorCode, Reason, Result},
    id::{SessionId, UserId},
    model::{
        audit::NewEntry,
        revocation::{Revocation, Revoked},
        session::{ClientInfo, Session},
    },
    page::{Page, PageRequest},
    password::Verdict,
    secret::{Secret, TokenHash, TokenKind, new_token, parse_token},
    store::{Tx, accounts::SessionRow},
    time::Timestamp,
};

/// Maximum number of sessions of one user; a further one ends the oldest.
const MAX_SESSIONS: u32 = 100;
/// Interval at which a session's last use is recorded at most.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// Age up to which a session may change sign-in methods and approve other devices.
const RECENT_SIGN_IN: Duration = Duration::from_secs(15 * 60);
/// Maximum length of a password in bytes: 256 characters of four.
const MAX_PASSWORD_BYTES: usize = 1024;

/// A session about to be opened.
pub(super) struct NewSession {
    id: SessionId,
    user_id: UserId,
    pub(super) token: Secret,
    created_at: Timestamp,
    expires_at: Timestamp,
    client: ClientInfo,
    entry: NewEntry,
    trimmed: Revocation,
}

impl NewSession {
    /// Sets the sign-in method for the audit log; the default is a password.
    #[must_use]
    pub(super) fn by(mut self, method: &str) -> Self {
        self.entry = self.entry.detail(json!({ "method": method }));
        self
    }

    /// Assigns the session to another user than the one it was created for.
    #[cfg(feature = "providers")]
    pub(super) fn belongs_to(&mut self, user_id: UserId) {
        self.user_id = user_id;
        self.entry.actor = user_id.to_string();
        self.trimmed.revoked = Revoked::User(user_id);
    }

    /// Opens the session within a transaction, and ends the user's oldest sessions beyond [`MAX_SESSIONS`].
    ///
    /// # Errors
    /// `UNAUTHORIZED` when the user was disabled or the password changed meanwhile.
    pub(super) async fn open(&self, tx: &mut Tx, password_hash: Option<&Secret>) -> Result<()> {
        let row = SessionRow {
            id: self.id,
            user_id: self.user_id,
            token_hash: &TokenHash::of(self.token.expose()),
            created_at: self.created_at,
            expires_at: self.expires_at,
            client: &self.client,
        };
        if !tx.accounts().insert_session(&row, password_hash).await? {
            return Err(wrong_credentials());
        }
        if tx.accounts().trim_sessions(self.user_id, MAX_SESSIONS).await? > 0 {
            tx.revocations().add(&self.trimmed).await?;
        }
        tx.audit().add(&self.entry).await
    }
}

impl Accounts<'_> {
    /// Signs in with username and password. An unknown name, a wrong password, a disabled user and one without a
    /// password get the same response after the same work.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when the pair is wrong, `RATE_LIMITED` when too many passwords wait to be hashed.
    pub async fn login(&self, username: &str, password: Secret, client: &ClientInfo) -> Result<SignedIn> {
        if password.expose().len() > MAX_PASSWORD_BYTES {
            return Err(wrong_credentials());
        }
        let found = match canonical_username(username) {
            Some(name) => self.ctx.store.read().await?.accounts().find_user_by_name(&name).await?,
            None => None,
        };
        let stored = found.as_ref().and_then(|(_, hash)| hash.clone());
        let verdict = self.ctx.passwords.verify(password, stored).await?;
        let (user, old_hash) = found.ok_or_else(wrong_credentials)?;
        let new_hash = match verdict {
            Verdict::Right if user.status == UserStatus::Active => None,
            Verdict::Outdated(hash) if user.status == UserStatus::Active => Some(hash),
            Verdict::Wrong | Verdict::Right | Verdict::Outdated(_) => {
                self.note_failed_login(user.id, "password", client);
                return Err(wrong_credentials());
            }
        };
        // An account without a password cannot match.
        let old_hash = old_hash.ok_or_else(wrong_credentials)?;
        let session = self.new_session(user.id, client);
        let (token, user_id) = (session.token.clone(), user.id);
        let open = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                session.open(tx, Some(&old_hash)).await?;
                if let Some(new_hash) = new_hash {
                    let now = session.created_at;
                    tx.accounts().replace_password_hash(user_id, Some(&old_hash), &new_hash, now).await?;
                }
                Ok(())
            })
        });
        open.await?;
        let me = self.find_me(user_id).await?.unwrap_or_else(|| Me::new(user, true));
        Ok(self.signed_in(me, token))
    }

    /// Builds the result of a sign-in, with the time until which its session counts as fresh.
    pub(super) fn signed_in(self, me: Me, token: Secret) -> SignedIn {
        SignedIn { me: Me { fresh_until: Some(self.ctx.store.now() + RECENT_SIGN_IN), ..me }, token }
    }

    /// Returns the user of the caller's session if it began within [`RECENT_SIGN_IN`]. Adding and removing sign-in
    /// methods and approving other devices require such a session, which excludes unattended browsers and API keys.
    ///
    /// # Errors
    /// `FORBIDDEN` otherwise.
    pub(super) async fn fresh_user(self, actor: &Actor) -> Result<UserActor> {
        let user = *actor.user()?;
        let stale = |reason| {
            Error::new(ErrorCode::Forbidden, "sign in again to do this")
                .with_hint("this needs a session that was opened within the last 15 minutes")
                .with_reason(reason)
        };
        if user.session_id.is_none() {
            return Err(stale(Reason::SessionRequired));
        }
        let fresh_until = self.fresh_until(&user).await?;
        let is_fresh = fresh_until.is_some_and(|until| until > self.ctx.store.now());
        if is_fresh { Ok(user) } else { Err(stale(Reason::SessionTooOld)) }
    }

    /// Returns the time until which a session may change sign-in methods and approve other devices; `None` without a
    /// session.
    pub(super) async fn fresh_until(self, user: &UserActor) -> Result<Option<Timestamp>> {
        let Some(session) = user.session_id else { return Ok(None) };
        let opened_at = self.ctx.store.read().await?.accounts().session_opened_at(session).await?;
        Ok(opened_at.map(|at| at + RECENT_SIGN_IN))
    }

    /// Records a failed sign-in after the response. An unknown name is not recorded: people type passwords there.
    pub(super) fn note_failed_login(self, user_id: UserId, method: &str, client: &ClientInfo) {
        let entry = self.ctx.audit_sign_in(None, Action::LoginFailed, client).target(user_id, "");
        let entry = entry.detail(json!({ "method": method }));
        self.ctx.store.write_later(move |tx| Box::pin(async move { tx.audit().add(&entry).await }));
    }

    pub(super) fn new_session(self, user_id: UserId, client: &ClientInfo) -> NewSession {
        let (now, id) = (self.ctx.store.now(), self.ctx.ids.next());
        NewSession {
            id,
            user_id,
            token: new_token(TokenKind::Session, &self.ctx.random),
            created_at: now,
            expires_at: now + self.ctx.config.session_lifetime,
            client: client.cleaned(),
            entry: self.ctx.audit_sign_in(Some(user_id), Action::Login, client).target(id, ""),
            trimmed: self.ctx.revocation(Revoked::User(user_id)),
        }
        .by("password")
    }

    /// Authenticates a session token and returns its user as the actor. Nothing is cached, so an ended session and a
    /// disabled or demoted user take effect with the next request. The use is recorded at most once a minute, after
    /// the response.
    ///
    /// # Errors
    /// `UNAUTHORIZED` unless the token is one of a valid session.
    pub async fn authenticate_session(&self, token: &str) -> Result<Actor> {
        let hash = parse_token(TokenKind::Session, token).ok_or_else(not_signed_in)?;
        let alive = self.alive();
        let holder = self.ctx.store.read().await?.accounts().find_holder(&hash, alive).await?;
        let holder = holder.ok_or_else(not_signed_in)?;
        let due = alive.now - NOTE_EVERY;
        if holder.last_seen_at <= due {
            self.ctx.store.write_later(move |tx| {
                Box::pin(async move { tx.accounts().touch_session(holder.session_id, alive.now, due).await })
            });
        }
        Ok(Actor::User(UserActor {
            user_id: holder.user_id,
            role: holder.role,
            session_id: Some(holder.session_id),
            key_id: None,
        }))
    }

    /// Ends the session of the request.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn logout(&self, actor: &Actor) -> Result<()> {
        let user = *actor.user()?;
        let Some(session_id) = user.session_id else { return Ok(()) };
        self.end_session(actor, user.user_id, session_id, Action::Logout).await.map(|_| ())
    }

    /// Lists the user's valid sessions, newest first. Cursors belong to the list [`Accounts::session_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub async fn sessions(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Session>> {
        let user = actor.user()?;
        let mut read = self.ctx.store.read().await?;
        let mut rows = read.accounts().list_sessions(user.user_id, self.alive(), page).await?;
        for session in &mut rows {
            session.current = Some(session.id) == user.session_id;
        }
        Ok(Page::from_rows(&Self::session_list(actor), page, rows, |session| session.id.to_string()))
    }

    /// The name of an actor's list of sessions, for [`PageRequest::parse`].
    pub fn session_list(actor: &Actor) -> String {
        format!("sessions:{}", actor.principal())
    }

    /// Ends one of the user's sessions; ending the current one is signing out.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not one of theirs, `FORBIDDEN` unless the caller is a user.
    pub async fn delete_session(&self, actor: &Actor, id: SessionId) -> Result<()> {
        let user_id = actor.user()?.user_id;
        let ended = self.end_session(actor, user_id, id, Action::SessionEnded).await?;
        if ended { Ok(()) } else { Err(Error::not_found("session")) }
    }

    /// Ends a session of a user on all nodes. Returns whether it existed.
    async fn end_session(
        &self,
        actor: &Actor,
        user_id: UserId,
        id: SessionId,
        action: Action,
    ) -> Result<bool> {
        let revocation = self.ctx.revocation(Revoked::Session(id));
        let entry = self.ctx.audit(actor, action).target(id, "");
        let end = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                // Before the session is gone: the entry takes its address.
                tx.audit().add(&entry).await?;
                if !tx.accounts().delete_session(user_id, id).await? {
                    return Err(Error::not_found("session"));
                }
                tx.revocations().add(&revocation).await
            })
        });
        match end.await {
            Ok(()) => {
                self.ctx.notify_revoked(revocation.revoked);
                Ok(true)
            }
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn wrong_credentials() -> Error {
    Error::new(ErrorCode::Unauthorized, "username or password is wrong")
}

pub(super) fn not_signed_in() -> Error {
    Error::new(ErrorCode::Unauthorized, "sign in first: there is no session, or it has ended")
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
