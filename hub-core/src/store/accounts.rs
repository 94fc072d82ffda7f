//! Statements about users, their sessions, and one-time things.

mod one_time;
mod sessions;

#[cfg(feature = "testing")]
pub(super) use one_time::DELETE_EXPIRED_ONE_TIME;
pub use one_time::Purpose;
#[cfg(feature = "testing")]
pub(super) use sessions::DELETE_ENDED_SESSIONS;
pub use sessions::{Alive, Holder, SessionRow};

use super::{
    conn::{Conn, on},
    stored_id,
};
use crate::{
    access::Role,
    error::Result,
    id::UserId,
    model::user::{ProfilePatch, User, UserStatus},
    secret::Secret,
    time::Timestamp,
};

/// Statements about users, their sessions, and one-time things, on a lent connection.
#[derive(Debug)]
pub struct Accounts<'c>(pub(super) Conn<'c>);

#[derive(hub_macros::FromRow)]
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
}

/// The role behind a column; what is not admin may do no more than a member.
pub(super) fn role(text: &str) -> Role {
    if text == Role::Admin.as_str() { Role::Admin } else { Role::Member }
}
