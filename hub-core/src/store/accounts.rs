//! Statements about users, their sessions, and one-time things.

use super::{
    conn::{Conn, on},
    stored_id,
};
use crate::{
    access::Role,
    accounts::{ClientInfo, ProfilePatch, Session, User, UserStatus},
    error::Result,
    id::{SessionId, UserId},
    page::PageRequest,
    secret::{Secret, TokenHash},
    time::Timestamp,
};

/// Statements about users, their sessions, and one-time things, on a lent connection.
#[derive(Debug)]
pub struct Accounts<'c>(pub(super) Conn<'c>);

/// What a one-time thing is for; a hash is worth nothing for another purpose (design rule D17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Lets the first user of a server bound wide become admin.
    Setup,
    /// Lets somebody register.
    Invite,
    /// Lets a user set a new password.
    Reset,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Invite => "invite",
            Self::Reset => "reset",
        }
    }
}

/// A session as it is stored.
#[derive(Debug)]
pub struct SessionRow<'a> {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user_id: UserId,
    /// Hash of the cookie's value.
    pub token_hash: &'a TokenHash,
    /// Since when.
    pub created_at: Timestamp,
    /// Until when in any case.
    pub expires_at: Timestamp,
    /// From where.
    pub client: &'a ClientInfo,
}

/// The limits of a living session at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    /// Now.
    pub now: Timestamp,
    /// Sessions last used at or before this instant have ended.
    pub idle_since: Timestamp,
}

/// Who a session token stands for.
#[derive(Debug, Clone, Copy)]
pub struct Holder {
    /// The session.
    pub session_id: SessionId,
    /// Its user.
    pub user_id: UserId,
    /// Their role, as of now.
    pub role: Role,
    /// When the session was last noted as used.
    pub last_seen_at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct UserColumns {
    id: String,
    username: String,
    display_name: String,
    email: String,
    role: String,
    status: String,
    password_hash: Option<String>,
    created_at: i64,
}

impl UserColumns {
    fn into_user(self) -> Result<(User, Option<Secret>)> {
        let user = User {
            id: stored_id(&self.id)?,
            username: self.username,
            display_name: self.display_name,
            email: self.email,
            role: role(&self.role),
            status: if self.status == "active" { UserStatus::Active } else { UserStatus::Disabled },
            created_at: Timestamp::from_millis(self.created_at),
        };
        Ok((user, self.password_hash.map(Secret::new)))
    }
}

#[derive(sqlx::FromRow)]
struct SessionColumns {
    id: String,
    created_at: i64,
    last_seen_at: i64,
    ip: String,
    user_agent: String,
}

impl Accounts<'_> {
    /// Makes the transaction the only one that decides who is the first admin. On PostgreSQL those of several
    /// nodes run at the same time; on SQLite there is only one writer.
    pub async fn lock_admins(&mut self) -> Result<()> {
        let Conn::Postgres(_) = self.0 else { return Ok(()) };
        on!(self.0, |conn| sqlx::query("SELECT pg_advisory_xact_lock(hashtext('message-hub.admins'))")
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// Whether an admin exists; while none does, the next user becomes one.
    pub async fn has_admin(&mut self) -> Result<bool> {
        let found: Option<i32> =
            on!(self.0, |conn| sqlx::query_scalar("SELECT 1 FROM users WHERE role = 'admin' LIMIT 1")
                .fetch_optional(conn)
                .await)?;
        Ok(found.is_some())
    }

    /// Adds a user and says which role they got: with `role` given that one, else admin while no admin exists
    /// and member from then on. `None` when the name is taken.
    pub async fn insert_user(
        &mut self,
        user: &User,
        password_hash: Option<&Secret>,
        role: Option<Role>,
    ) -> Result<Option<Role>> {
        let given: Option<String> = on!(self.0, |conn| sqlx::query_scalar(
            "INSERT INTO users \
             (id, username, display_name, email, role, status, password_hash, created_at, updated_at) \
             VALUES ($1, $2, $3, $4, COALESCE(CAST($5 AS TEXT), CASE WHEN EXISTS \
             (SELECT 1 FROM users WHERE role = 'admin') THEN 'member' ELSE 'admin' END), $6, $7, $8, $8) \
             ON CONFLICT (username) DO NOTHING RETURNING role"
        )
        .bind(user.id.to_string())
        .bind(&user.username)
        .bind(&user.display_name)
        .bind(&user.email)
        .bind(role.map(Role::as_str))
        .bind(user.status.as_str())
        .bind(password_hash.map(Secret::expose))
        .bind(user.created_at.as_millis())
        .fetch_optional(conn)
        .await)?;
        Ok(given.map(|given| self::role(&given)))
    }

    /// A user and the hash of their password, by name in lower case.
    pub async fn find_user_by_name(&mut self, username: &str) -> Result<Option<(User, Option<Secret>)>> {
        let row: Option<UserColumns> =
            on!(self.0, |conn| sqlx::query_as("SELECT * FROM users WHERE username = $1")
                .bind(username)
                .fetch_optional(conn)
                .await)?;
        row.map(UserColumns::into_user).transpose()
    }

    /// A user and the hash of their password.
    pub async fn find_user(&mut self, id: UserId) -> Result<Option<(User, Option<Secret>)>> {
        let row: Option<UserColumns> =
            on!(self.0, |conn| sqlx::query_as("SELECT * FROM users WHERE id = $1")
                .bind(id.to_string())
                .fetch_optional(conn)
                .await)?;
        row.map(UserColumns::into_user).transpose()
    }

    /// Replaces a password hash unless it has changed meanwhile; says whether it did. `old` is `None` for a user
    /// without a password.
    pub async fn replace_password_hash(
        &mut self,
        id: UserId,
        old: Option<&Secret>,
        new: &Secret,
        now: Timestamp,
    ) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE users SET password_hash = $3, updated_at = $4
             WHERE id = $1 AND (password_hash = $2 OR (password_hash IS NULL AND CAST($2 AS TEXT) IS NULL))"
        )
        .bind(id.to_string())
        .bind(old.map(Secret::expose))
        .bind(new.expose())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Changes how a user is shown; says whether there is one.
    pub async fn update_profile(&mut self, id: UserId, patch: &ProfilePatch, now: Timestamp) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "UPDATE users SET display_name = COALESCE($2, display_name), email = COALESCE($3, email),
                updated_at = $4 WHERE id = $1"
        )
        .bind(id.to_string())
        .bind(patch.display_name.as_deref())
        .bind(patch.email.as_deref())
        .bind(now.as_millis())
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Opens a session of an active user and says whether there was one. With `password_hash`, only while
    /// that is still the user's: a password changed during a login does not leave a session behind.
    pub async fn insert_session(
        &mut self,
        session: &SessionRow<'_>,
        password_hash: Option<&Secret>,
    ) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query(
            "INSERT INTO sessions \
             (id, user_id, token_hash, created_at, last_seen_at, expires_at, ip, user_agent) \
             SELECT $1, id, $3, $4, $4, $5, $6, $7 FROM users WHERE id = $2 AND status = 'active' \
             AND (CAST($8 AS TEXT) IS NULL OR password_hash = $8)"
        )
        .bind(session.id.to_string())
        .bind(session.user_id.to_string())
        .bind(session.token_hash.as_str())
        .bind(session.created_at.as_millis())
        .bind(session.expires_at.as_millis())
        .bind(session.client.ip_text())
        .bind(&session.client.user_agent)
        .bind(password_hash.map(Secret::expose))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Ends a user's oldest sessions beyond `keep`.
    pub async fn trim_sessions(&mut self, user_id: UserId, keep: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM sessions WHERE id IN \
             (SELECT id FROM sessions WHERE user_id = $1 ORDER BY id DESC LIMIT 1000 OFFSET $2)"
        )
        .bind(user_id.to_string())
        .bind(i64::from(keep))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }

    /// Who a session token stands for, when the session lives and its user is active.
    pub async fn find_holder(&mut self, token_hash: &TokenHash, alive: Alive) -> Result<Option<Holder>> {
        let row: Option<(String, String, String, i64)> = on!(self.0, |conn| {
            sqlx::query_as(
            "SELECT s.id, s.user_id, u.role, s.last_seen_at FROM sessions s JOIN users u ON u.id = s.user_id \
             WHERE s.token_hash = $1 AND s.expires_at > $2 AND s.last_seen_at > $3 AND u.status = 'active'"
        )
        .bind(token_hash.as_str())
        .bind(alive.now.as_millis())
        .bind(alive.idle_since.as_millis())
        .fetch_optional(conn)
        .await
        })?;
        row.map(|(session_id, user_id, role, last_seen_at)| {
            Ok(Holder {
                session_id: stored_id(&session_id)?,
                user_id: stored_id(&user_id)?,
                role: self::role(&role),
                last_seen_at: Timestamp::from_millis(last_seen_at),
            })
        })
        .transpose()
    }

    /// Notes that a session was used, unless that was noted after `unless_after` already.
    pub async fn touch_session(
        &mut self,
        id: SessionId,
        now: Timestamp,
        unless_after: Timestamp,
    ) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at <= $3"
        )
        .bind(id.to_string())
        .bind(now.as_millis())
        .bind(unless_after.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// A user's living sessions, newest first; one more than the page holds when there are more.
    pub async fn list_sessions(
        &mut self,
        user_id: UserId,
        alive: Alive,
        page: &PageRequest,
    ) -> Result<Vec<Session>> {
        let rows: Vec<SessionColumns> = on!(self.0, |conn| sqlx::query_as(
            "SELECT id, created_at, last_seen_at, ip, user_agent FROM sessions \
             WHERE user_id = $1 AND expires_at > $2 AND last_seen_at > $3 \
             AND (CAST($4 AS TEXT) IS NULL OR id < $4) ORDER BY id DESC LIMIT $5"
        )
        .bind(user_id.to_string())
        .bind(alive.now.as_millis())
        .bind(alive.idle_since.as_millis())
        .bind(page.after())
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        rows.into_iter()
            .map(|row| {
                Ok(Session {
                    id: stored_id(&row.id)?,
                    created_at: Timestamp::from_millis(row.created_at),
                    last_seen_at: Timestamp::from_millis(row.last_seen_at),
                    ip: row.ip,
                    user_agent: row.user_agent,
                    current: false,
                })
            })
            .collect()
    }

    /// Ends one session of a user; says whether it existed.
    pub async fn delete_session(&mut self, user_id: UserId, id: SessionId) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query("DELETE FROM sessions WHERE id = $1 AND user_id = $2")
            .bind(id.to_string())
            .bind(user_id.to_string())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Ends every session of a user but `keep` and says how many.
    pub async fn end_other_sessions(&mut self, user_id: UserId, keep: Option<SessionId>) -> Result<u64> {
        on!(self.0, |conn| sqlx::query("DELETE FROM sessions WHERE user_id = $1 AND id <> $2")
            .bind(user_id.to_string())
            .bind(keep.map(|id| id.to_string()).unwrap_or_default())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))
    }

    /// Gives a session another secret; says whether it exists.
    pub async fn renew_session(&mut self, id: SessionId, token_hash: &TokenHash) -> Result<bool> {
        let rows = on!(self.0, |conn| sqlx::query("UPDATE sessions SET token_hash = $2 WHERE id = $1")
            .bind(id.to_string())
            .bind(token_hash.as_str())
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))?;
        Ok(rows == 1)
    }

    /// Deletes at most `limit` sessions that have ended and says how many.
    pub async fn delete_ended_sessions(&mut self, alive: Alive, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM sessions WHERE id IN \
             (SELECT id FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2 LIMIT $3)"
        )
        .bind(alive.now.as_millis())
        .bind(alive.idle_since.as_millis())
        .bind(i64::from(limit))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }

    /// Makes the transaction the only one that takes ways of signing in from a user. On SQLite there is only
    /// one writer.
    pub async fn lock_user(&mut self, id: UserId) -> Result<()> {
        let Conn::Postgres(_) = self.0 else { return Ok(()) };
        on!(self.0, |conn| sqlx::query("SELECT 1 FROM users WHERE id = $1 FOR UPDATE")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// In how many ways a user can sign in: the password, each passkey, each linked account.
    pub async fn count_sign_in_methods(&mut self, id: UserId) -> Result<u32> {
        let count: i64 = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT (SELECT COUNT(*) FROM users WHERE id = $1 AND password_hash IS NOT NULL)
                + (SELECT COUNT(*) FROM passkeys WHERE user_id = $1)
                + (SELECT COUNT(*) FROM external_accounts WHERE user_id = $1)"
        )
        .bind(id.to_string())
        .fetch_one(conn)
        .await)?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// When a session was opened.
    pub async fn session_opened_at(&mut self, id: SessionId) -> Result<Option<Timestamp>> {
        let at: Option<i64> =
            on!(self.0, |conn| sqlx::query_scalar("SELECT created_at FROM sessions WHERE id = $1")
                .bind(id.to_string())
                .fetch_optional(conn)
                .await)?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// The name of a user and the number that their known browsers carry.
    pub async fn device_generation(&mut self, id: UserId) -> Result<Option<(String, i64)>> {
        on!(self.0, |conn| sqlx::query_as("SELECT username, device_generation FROM users WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(conn)
            .await)
    }

    /// Moves that number on: no browser of the user is known any more.
    pub async fn forget_devices(&mut self, id: UserId) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "UPDATE users SET device_generation = device_generation + 1 WHERE id = $1"
        )
        .bind(id.to_string())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// Stores a one-time thing; `subject` says whom or what it is bound to and may be empty.
    pub async fn insert_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        subject: &str,
        expires_at: Timestamp,
    ) -> Result<()> {
        on!(self.0, |conn| sqlx::query(
            "INSERT INTO one_time (hash, purpose, subject, expires_at) VALUES ($1, $2, $3, $4)"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(subject)
        .bind(expires_at.as_millis())
        .execute(conn)
        .await
        .map(|_| ()))
    }

    /// The subject of a one-time thing that can still be used, and is left so.
    pub async fn find_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        on!(self.0, |conn| {
            sqlx::query_scalar(
            "SELECT subject FROM one_time WHERE hash = $1 AND purpose = $2 AND used_at IS NULL AND expires_at > $3"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await
        })
    }

    /// Uses a one-time thing and returns its subject; `None` when it is unknown, used, expired, or for
    /// another purpose.
    pub async fn use_one_time(
        &mut self,
        purpose: Purpose,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<String>> {
        on!(self.0, |conn| sqlx::query_scalar(
            "UPDATE one_time SET used_at = $3 WHERE hash = $1 AND purpose = $2 \
             AND used_at IS NULL AND expires_at > $3 RETURNING subject"
        )
        .bind(hash.as_str())
        .bind(purpose.as_str())
        .bind(now.as_millis())
        .fetch_optional(conn)
        .await)
    }

    /// Forgets every one-time thing of a purpose and subject.
    pub async fn delete_one_time(&mut self, purpose: Purpose, subject: &str) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM one_time WHERE purpose = $1 AND subject = $2")
            .bind(purpose.as_str())
            .bind(subject)
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// Deletes at most `limit` expired one-time things and says how many.
    pub async fn delete_expired_one_time(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM one_time WHERE hash IN (SELECT hash FROM one_time WHERE expires_at <= $1 LIMIT $2)"
        )
        .bind(now.as_millis())
        .bind(i64::from(limit))
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))
    }
}

/// The role behind a column; what is not admin may do no more than a member.
pub(super) fn role(text: &str) -> Role {
    if text == Role::Admin.as_str() { Role::Admin } else { Role::Member }
}
