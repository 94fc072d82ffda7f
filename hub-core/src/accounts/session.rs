//! Signing in and staying signed in.

use std::time::Duration;

use crate::{
    access::{Actor, UserActor},
    accounts::{Accounts, ClientInfo, Me, SignedIn, UserStatus, password::Verdict, user::canonical_username},
    error::{Error, ErrorCode, Result},
    id::{SessionId, UserId},
    page::{Page, PageRequest},
    secret::{Secret, TokenHash, TokenKind, new_token, parse_token},
    store::{Tx, accounts::SessionRow},
    time::Timestamp,
};

/// Most sessions of one user; a further one ends the oldest.
const MAX_SESSIONS: u32 = 100;
/// A session's last use is noted at most this often.
const NOTE_EVERY: Duration = Duration::from_secs(60);
/// No password is longer in bytes: 256 characters of four.
const MAX_PASSWORD_BYTES: usize = 1024;

/// A session in the list of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The id; it is not the secret in the cookie.
    pub id: SessionId,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// Address it was opened from; empty when unknown.
    pub ip: String,
    /// Program it was opened with; empty when unknown.
    pub user_agent: String,
    /// Whether it is the one that asks.
    pub current: bool,
}

/// A session about to be opened.
pub(super) struct NewSession {
    id: SessionId,
    user_id: UserId,
    pub(super) token: Secret,
    created_at: Timestamp,
    expires_at: Timestamp,
    client: ClientInfo,
}

impl NewSession {
    /// Opens the session within a transaction, and ends the user's oldest beyond the cap.
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
        tx.accounts().trim_sessions(self.user_id, MAX_SESSIONS).await?;
        Ok(())
    }
}

impl Accounts<'_> {
    /// Signs in with username and password. An unknown name, a wrong password, a disabled user and one
    /// without a password get the same answer after the same work (reliability A5).
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
        let (user, Some(old_hash)) = found.ok_or_else(wrong_credentials)? else {
            return Err(wrong_credentials());
        };
        let new_hash = match verdict {
            Verdict::Wrong => return Err(wrong_credentials()),
            Verdict::Right => None,
            Verdict::Outdated(hash) => Some(hash),
        };
        if user.status != UserStatus::Active {
            return Err(wrong_credentials());
        }
        let session = self.new_session(user.id, client);
        let (token, user_id) = (session.token.clone(), user.id);
        let open = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                session.open(tx, Some(&old_hash)).await?;
                if let Some(new_hash) = new_hash {
                    let now = session.created_at;
                    tx.accounts().replace_password_hash(user_id, &old_hash, &new_hash, now).await?;
                }
                Ok(())
            })
        });
        open.await?;
        Ok(SignedIn { me: Me::new(user, true), token })
    }

    pub(super) fn new_session(self, user_id: UserId, client: &ClientInfo) -> NewSession {
        let now = self.ctx.store.now();
        NewSession {
            id: self.ctx.ids.next(),
            user_id,
            token: new_token(TokenKind::Session, &self.ctx.random),
            created_at: now,
            expires_at: now + self.ctx.config.session_lifetime,
            client: client.cleaned(),
        }
    }

    /// Who holds a session token. Nothing is cached: a session that was ended, a user who was disabled or
    /// demoted is so on the next request. The use is noted at most once a minute, behind the answer.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when the token is not one of a living session.
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
        }))
    }

    /// Ends the session of the request.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody who is not a user.
    pub async fn logout(&self, actor: &Actor) -> Result<()> {
        let user = *actor.user()?;
        let Some(session_id) = user.session_id else { return Ok(()) };
        let end = self.ctx.store.write(move |tx| {
            Box::pin(async move { tx.accounts().delete_session(user.user_id, session_id).await })
        });
        end.await.map(|_| ())
    }

    /// The user's living sessions, newest first. Cursors belong to the list [`Accounts::session_list`] names.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody who is not a user.
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
    /// `NOT_FOUND` when it is not one of theirs, `FORBIDDEN` for anybody who is not a user.
    pub async fn delete_session(&self, actor: &Actor, id: SessionId) -> Result<()> {
        let user_id = actor.user()?.user_id;
        let end = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.accounts().delete_session(user_id, id).await }));
        if end.await? { Ok(()) } else { Err(Error::not_found("session")) }
    }
}

fn wrong_credentials() -> Error {
    Error::new(ErrorCode::Unauthorized, "username or password is wrong")
}

pub(super) fn not_signed_in() -> Error {
    Error::new(ErrorCode::Unauthorized, "sign in first: there is no session, or it has ended")
}
