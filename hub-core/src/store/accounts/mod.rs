//! Statements about users, their sessions, and one-time things.

mod one_time;
mod sessions;

#[cfg(feature = "testing")]
pub(super) use one_time::DELETE_EXPIRED_ONE_TIME;
pub use one_time::Purpose;
#[cfg(feature = "testing")]
pub(super) use sessions::DELETE_ENDED_SESSIONS;
pub use sessions::{Alive, SessionRow, SessionUser};

use super::conn::{Conn, sql};
use crate::{
    access::Role,
    error::Result,
    id::UserId,
    model::user::{ProfilePatch, User},
    secret::Secret,
    time::Timestamp,
};

/// Statements about users, their sessions, and one-time things, on a lent connection.
#[derive(Debug)]
pub struct Accounts<'c>(pub(super) Conn<'c>);

/// A user with the hash of their password.
#[derive(hub_macros::FromRow)]
struct UserRow {
    #[row(flatten)]
    user: User,
    password_hash: Option<String>,
}

/// `SELECT` with the columns of [`UserRow`] and the rest of the statement. Named one by one: on PostgreSQL a prepared
/// `SELECT *` fails once another node has added a column.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, username, display_name, email, role, status, password_hash, created_at FROM users ",
            $rest
        )
    };
}

impl From<UserRow> for (User, Option<Secret>) {
    fn from(row: UserRow) -> Self {
        (row.user, row.password_hash.map(Secret::new))
    }
}

impl Accounts<'_> {
    /// Makes the transaction the only one that decides who is the first admin. On PostgreSQL those of several
    /// nodes run at the same time; on SQLite there is only one writer.
    pub async fn lock_admins(&mut self) -> Result<()> {
        let Conn::Postgres(_) = self.0 else { return Ok(()) };
        sql!(self.0, run: "SELECT pg_advisory_xact_lock(hashtext('message-hub.admins'))")
    }

    /// Whether an admin exists; while none does, the next user becomes one.
    pub async fn has_admin(&mut self) -> Result<bool> {
        let found: Option<i32> = sql!(self.0, optional_value:
            "SELECT 1 FROM users WHERE role = 'admin' LIMIT 1"
        )?;
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
        sql!(self.0, optional_value:
            "INSERT INTO users \
             (id, username, display_name, email, role, status, password_hash, created_at, updated_at) \
             VALUES ($1, $2, $3, $4, COALESCE(CAST($5 AS TEXT), CASE WHEN EXISTS \
             (SELECT 1 FROM users WHERE role = 'admin') THEN 'member' ELSE 'admin' END), $6, $7, $8, $8) \
             ON CONFLICT (username) DO NOTHING RETURNING role";
            user.id, &user.username, &user.display_name, &user.email, role, user.status,
            password_hash.map(Secret::expose), user.created_at
        )
    }

    /// A user and the hash of their password, by name in lower case.
    pub async fn find_user_by_name(&mut self, username: &str) -> Result<Option<(User, Option<Secret>)>> {
        let row: Option<UserRow> = sql!(self.0, optional: select!("WHERE username = $1"); username)?;
        Ok(row.map(Into::into))
    }

    /// A user and the hash of their password.
    pub async fn find_user(&mut self, id: UserId) -> Result<Option<(User, Option<Secret>)>> {
        let row: Option<UserRow> = sql!(self.0, optional: select!("WHERE id = $1"); id)?;
        Ok(row.map(Into::into))
    }

    /// Replaces a password hash unless it has changed meanwhile; returns whether it did. `old` is `None` for a user
    /// without a password.
    pub async fn replace_password_hash(
        &mut self,
        id: UserId,
        old: Option<&Secret>,
        new: &Secret,
        now: Timestamp,
    ) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE users SET password_hash = $3, updated_at = $4
            WHERE id = $1 AND (password_hash = $2 OR (password_hash IS NULL AND CAST($2 AS TEXT) IS NULL))";
            id, old.map(Secret::expose), new.expose(), now
        )?;
        Ok(rows == 1)
    }

    /// Changes the display name and the email address of a user; returns whether the user exists.
    pub async fn update_profile(&mut self, id: UserId, patch: &ProfilePatch, now: Timestamp) -> Result<bool> {
        let rows = sql!(self.0, execute:
            "UPDATE users SET display_name = COALESCE($2, display_name), email = COALESCE($3, email),
            updated_at = $4 WHERE id = $1";
            id, &patch.display_name, &patch.email, now
        )?;
        Ok(rows == 1)
    }

    /// Makes the transaction the only one that takes ways of signing in from a user. On SQLite there is only
    /// one writer.
    pub async fn lock_user(&mut self, id: UserId) -> Result<()> {
        let Conn::Postgres(_) = self.0 else { return Ok(()) };
        sql!(self.0, run: "SELECT 1 FROM users WHERE id = $1 FOR UPDATE"; id)
    }

    /// In how many ways a user can sign in: the password, each passkey, each linked account.
    pub async fn count_sign_in_methods(&mut self, id: UserId) -> Result<u32> {
        let count: i64 = sql!(self.0, value:
            "SELECT (SELECT COUNT(*) FROM users WHERE id = $1 AND password_hash IS NOT NULL)
            + (SELECT COUNT(*) FROM passkeys WHERE user_id = $1)
            + (SELECT COUNT(*) FROM external_accounts WHERE user_id = $1)";
            id
        )?;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The name of a user and the number that their known browsers carry.
    pub async fn device_generation(&mut self, id: UserId) -> Result<Option<(String, i64)>> {
        sql!(self.0, optional: "SELECT username, device_generation FROM users WHERE id = $1"; id)
    }

    /// Moves that number on: no browser of the user is known any more.
    pub async fn forget_devices(&mut self, id: UserId) -> Result<()> {
        sql!(self.0, run: "UPDATE users SET device_generation = device_generation + 1 WHERE id = $1"; id)
    }
}
