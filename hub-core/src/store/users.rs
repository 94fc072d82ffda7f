//! Statements about the accounts of all users, for administrators.

use std::collections::HashMap;

use super::conn::{Conn, on, on_each};
use crate::{
    access::Role,
    error::{Error, Result},
    id::{BotId, UserId},
    model::{
        admin::{AdminUser, UserPatch, UserQuery},
        user::{User, UserStatus},
    },
    page::PageRequest,
    store::demo::DEMO_USER,
    text::json,
    time::Timestamp,
};

/// Statements about the accounts of all users, on a lent connection.
#[derive(Debug)]
pub struct Users<'c>(pub(super) Conn<'c>);

/// What came of a change that an administrator may be needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// It was made.
    Done,
    /// There is no such user.
    Absent,
    /// It would have left no active administrator.
    LastAdmin,
}

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    username: String,
    display_name: String,
    email: String,
    role: String,
    status: String,
    has_password: i64,
    created_at: i64,
    bots: i64,
    sessions: i64,
    api_keys: i64,
    last_seen_at: Option<i64>,
}

impl TryFrom<Row> for AdminUser {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Self {
            user: User {
                id: row.id.parse().map_err(Error::internal)?,
                username: row.username,
                display_name: row.display_name,
                email: row.email,
                role: super::accounts::role(&row.role),
                status: if row.status == "active" { UserStatus::Active } else { UserStatus::Disabled },
                created_at: Timestamp::from_millis(row.created_at),
            },
            has_password: row.has_password != 0,
            bots: count(row.bots),
            sessions: count(row.sessions),
            api_keys: count(row.api_keys),
            last_seen_at: row.last_seen_at.map(Timestamp::from_millis),
        })
    }
}

/// `SELECT` with the columns of [`Row`], of users `u`, and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT u.id, u.username, u.display_name, u.email, u.role, u.status, u.created_at,
                CAST(CASE WHEN u.password_hash IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_password,
                (SELECT COUNT(*) FROM bots WHERE owner_id = u.id) AS bots,
                (SELECT COUNT(*) FROM sessions WHERE user_id = u.id) AS sessions,
                (SELECT COUNT(*) FROM user_keys WHERE user_id = u.id) AS api_keys,
                (SELECT MAX(last_seen_at) FROM sessions WHERE user_id = u.id) AS last_seen_at
             FROM users AS u ",
            $rest
        )
    };
}

/// Holds unless the change would take the last active administrator away: `$1` is the user, `$2` and `$3` the role
/// and the status they will have.
macro_rules! keeps_an_admin {
    () => {
        "(NOT (role = 'admin' AND status = 'active')
            OR (COALESCE(CAST($2 AS TEXT), role) = 'admin' AND COALESCE(CAST($3 AS TEXT), status) = 'active')
            OR EXISTS (SELECT 1 FROM users AS o WHERE o.id <> $1 AND o.role = 'admin' AND o.status = 'active'))"
    };
}

/// Reading.
impl Users<'_> {
    /// A page of everyone, newest first; one more than the page holds when there are more. The user that holds the
    /// demo is no one.
    pub async fn page(&mut self, query: &UserQuery, page: &PageRequest) -> Result<Vec<AdminUser>> {
        let pattern = query.q.as_ref().map(|text| {
            let text = text.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{text}%")
        });
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(select!(
            "WHERE u.username <> $1 AND u.id < $2
                AND (CAST($3 AS TEXT) IS NULL OR u.role = $3) AND (CAST($4 AS TEXT) IS NULL OR u.status = $4)
                AND (CAST($5 AS TEXT) IS NULL OR LOWER(u.username) LIKE $5 ESCAPE '\\'
                    OR LOWER(u.display_name) LIKE $5 ESCAPE '\\')
             ORDER BY u.id DESC LIMIT $6"
        ))
        .bind(DEMO_USER)
        .bind(page.before(UserId::MAX))
        .bind(query.role.map(Role::as_str))
        .bind(query.status.map(UserStatus::as_str))
        .bind(&pattern)
        .bind(i64::from(page.limit()) + 1)
        .fetch_all(conn)
        .await)?;
        rows.into_iter().map(AdminUser::try_from).collect()
    }

    /// One user.
    pub async fn find(&mut self, id: UserId) -> Result<Option<AdminUser>> {
        let row: Option<Row> =
            on!(self.0, |conn| sqlx::query_as(select!("WHERE u.id = $1 AND u.username <> $2"))
                .bind(id.to_string())
                .bind(DEMO_USER)
                .fetch_optional(conn)
                .await)?;
        row.map(AdminUser::try_from).transpose()
    }

    /// The usernames of users.
    pub async fn names(&mut self, ids: &[UserId]) -> Result<HashMap<UserId, String>> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let rows: Vec<(String, String)> = on_each!(
            self.0,
            "SELECT id, username FROM users WHERE id IN (SELECT value FROM json_each($1))",
            "SELECT id, username FROM users WHERE id IN (SELECT json_array_elements_text(CAST($1 AS JSON)))",
            |conn, sql| sqlx::query_as(sql).bind(json(&ids)).fetch_all(conn).await
        )?;
        rows.into_iter().map(|(id, name)| Ok((id.parse().map_err(Error::internal)?, name))).collect()
    }
}

/// Writing; [`Accounts::lock_admins`](super::accounts::Accounts::lock_admins) comes first, so that of the
/// transactions of several nodes one decides after the other.
impl Users<'_> {
    /// Changes a user, unless no active administrator would be left: one statement decides and does it.
    pub async fn update(&mut self, id: UserId, patch: &UserPatch, now: Timestamp) -> Result<Guarded> {
        let rows = on!(self.0, |conn| {
            sqlx::query(concat!(
            "UPDATE users SET role = COALESCE(CAST($2 AS TEXT), role), status = COALESCE(CAST($3 AS TEXT), status),
                display_name = COALESCE(CAST($4 AS TEXT), display_name), updated_at = $5
             WHERE id = $1 AND username <> $6 AND ",
            keeps_an_admin!()
        ))
        .bind(id.to_string())
        .bind(patch.role.map(Role::as_str))
        .bind(patch.status.map(UserStatus::as_str))
        .bind(patch.display_name.as_deref())
        .bind(now.as_millis())
        .bind(DEMO_USER)
        .execute(conn)
        .await
        .map(|done| done.rows_affected())
        })?;
        self.guarded(id, rows).await
    }

    /// Decides whether a user may go, and switches them off so that nothing new of theirs begins; what deletes them
    /// follows in the same transaction.
    pub async fn begin_deletion(&mut self, id: UserId) -> Result<Guarded> {
        let rows = on!(self.0, |conn| sqlx::query(concat!(
            "UPDATE users SET status = COALESCE(CAST($3 AS TEXT), status)
             WHERE id = $1 AND CAST($2 AS TEXT) IS NULL AND username <> $4 AND ",
            keeps_an_admin!()
        ))
        .bind(id.to_string())
        .bind(None::<String>)
        .bind(UserStatus::Disabled.as_str())
        .bind(DEMO_USER)
        .execute(conn)
        .await
        .map(|done| done.rows_affected()))?;
        self.guarded(id, rows).await
    }

    async fn guarded(&mut self, id: UserId, rows: u64) -> Result<Guarded> {
        if rows == 1 {
            return Ok(Guarded::Done);
        }
        Ok(if self.find(id).await?.is_some() { Guarded::LastAdmin } else { Guarded::Absent })
    }

    /// Deletes a user's bots with everything of them, and the logins in progress for them.
    pub async fn delete_bots(&mut self, id: UserId) -> Result<Vec<BotId>> {
        on!(self.0, |conn| sqlx::query(
            "DELETE FROM binds WHERE for_bot_id IN (SELECT id FROM bots WHERE owner_id = $1)"
        )
        .bind(id.to_string())
        .execute(conn)
        .await
        .map(|_| ()))?;
        self.bots("DELETE FROM bots WHERE owner_id = $1 RETURNING id", id, None).await
    }

    /// Deletes a user who has no bots any more, with sessions, keys, and the answers kept for repeated calls.
    pub async fn delete(&mut self, id: UserId) -> Result<()> {
        on!(self.0, |conn| sqlx::query("DELETE FROM idempotency WHERE principal = $1")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))?;
        on!(self.0, |conn| sqlx::query("DELETE FROM users WHERE id = $1")
            .bind(id.to_string())
            .execute(conn)
            .await
            .map(|_| ()))
    }

    /// Takes a user's bots away from the nodes that work for them, and says which they are.
    pub async fn rest_bots(&mut self, id: UserId, now: Timestamp) -> Result<Vec<BotId>> {
        self.bots(
            "UPDATE bots SET lease_owner = NULL, lease_until = 0, lease_fence = lease_fence + 1, status_since = $2,
                status_reason = CASE WHEN status IN ('expired', 'error') THEN status_reason
                    ELSE 'its owner is disabled' END,
                status = CASE WHEN status IN ('expired', 'error') THEN status ELSE 'offline' END
             WHERE owner_id = $1 AND (status_reason IS NULL OR status_reason <> 'its owner is disabled')
             RETURNING id",
            id,
            Some(now),
        )
        .await
    }

    /// Lets a user's bots that rested connect again, and says which they are.
    pub async fn wake_bots(&mut self, id: UserId, now: Timestamp) -> Result<Vec<BotId>> {
        self.bots(
            "UPDATE bots SET status = 'connecting', status_reason = NULL, status_since = $2
             WHERE owner_id = $1 AND status_reason = 'its owner is disabled' RETURNING id",
            id,
            Some(now),
        )
        .await
    }

    async fn bots(&mut self, sql: &'static str, owner: UserId, now: Option<Timestamp>) -> Result<Vec<BotId>> {
        let rows: Vec<String> = on!(self.0, |conn| {
            let query = sqlx::query_scalar(sql).bind(owner.to_string());
            let query = match now {
                Some(now) => query.bind(now.as_millis()),
                None => query,
            };
            query.fetch_all(conn).await
        })?;
        rows.into_iter().map(|id| id.parse().map_err(Error::internal)).collect()
    }
}
