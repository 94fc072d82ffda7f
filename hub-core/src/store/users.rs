//! Statements about the accounts of all users, for administrators.

use std::collections::HashMap;

use super::{
    conn::{Conn, sql},
    list_ids::{ScanEnd, scan_end},
};
use crate::{
    access::Role,
    error::Result,
    id::{BotId, UserId},
    model::{
        admin::{AdminUser, UserPatch, UserQuery},
        user::UserStatus,
    },
    page::{Found, PageRequest},
    store::demo::DEMO_USER,
    text::json,
    time::Timestamp,
};

/// Statements about the accounts of all users, on a lent connection.
#[derive(Debug)]
pub struct Users<'c>(pub(super) Conn<'c>);

/// Outcome of a change that must leave an active administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// It was made.
    Done,
    /// There is no such user.
    Absent,
    /// It would have left no active administrator.
    LastAdmin,
}

/// `SELECT` with the columns of an [`AdminUser`], of users `u`, and the rest of the statement.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT u.id, u.username, u.display_name, u.email, u.role, u.status, u.created_at,
                u.password_hash IS NOT NULL AS has_password,
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
    /// demo is no one. With a filter it looks at [`MAX_SCANNED`](crate::page::MAX_SCANNED) users.
    pub async fn page(&mut self, query: &UserQuery, page: &PageRequest) -> Result<Found<AdminUser>> {
        let before = page.before(UserId::MAX);
        let ScanEnd { after, scanned } = if *query == UserQuery::default() {
            ScanEnd::default()
        } else {
            scan_end(&mut self.0, ("users WHERE true", None), &before).await?
        };
        let pattern = query.q.as_ref().map(|text| {
            let text = text.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{text}%")
        });
        let rows = sql!(self.0, all:
            select!("WHERE u.username <> $1 AND u.id < $2 AND u.id > $7
               AND (CAST($3 AS TEXT) IS NULL OR u.role = $3) AND (CAST($4 AS TEXT) IS NULL OR u.status = $4)
               AND (CAST($5 AS TEXT) IS NULL OR LOWER(u.username) LIKE $5 ESCAPE '\\'
                   OR LOWER(u.display_name) LIKE $5 ESCAPE '\\')
            ORDER BY u.id DESC LIMIT $6");
            DEMO_USER, before, query.role, query.status, &pattern, i64::from(page.limit()) + 1, after
        )?;
        Ok(Found { rows, scanned })
    }

    /// One user.
    pub async fn find(&mut self, id: UserId) -> Result<Option<AdminUser>> {
        sql!(self.0, optional: select!("WHERE u.id = $1 AND u.username <> $2"); id, DEMO_USER)
    }

    /// The usernames of users.
    pub async fn names(&mut self, ids: &[UserId]) -> Result<HashMap<UserId, String>> {
        let names: Vec<(UserId, String)> =
            sql!(self.0, all: ["SELECT id, username FROM users WHERE id", in 1]; json(ids))?;
        Ok(names.into_iter().collect())
    }
}

/// Writing; [`Accounts::lock_admins`](super::accounts::Accounts::lock_admins) comes first, so that of the
/// transactions of several nodes one decides after the other.
impl Users<'_> {
    /// Changes a user, unless no active administrator would be left: one statement decides and does it.
    pub async fn update(&mut self, id: UserId, patch: &UserPatch, now: Timestamp) -> Result<Guarded> {
        let rows = sql!(self.0, execute:
            concat!(
                "UPDATE users SET role = COALESCE(CAST($2 AS TEXT), role), status = COALESCE(CAST($3 AS TEXT), status),
                    display_name = COALESCE(CAST($4 AS TEXT), display_name), updated_at = $5
                 WHERE id = $1 AND username <> $6 AND ",
                keeps_an_admin!()
            );
            id, patch.role, patch.status, &patch.display_name, now, DEMO_USER
        )?;
        self.guarded(id, rows).await
    }

    /// Decides whether a user may go, and switches them off so that nothing new of theirs begins; what deletes them
    /// follows in the same transaction.
    pub async fn begin_deletion(&mut self, id: UserId) -> Result<Guarded> {
        let rows = sql!(self.0, execute:
            concat!(
                "UPDATE users SET status = COALESCE(CAST($3 AS TEXT), status)
                 WHERE id = $1 AND CAST($2 AS TEXT) IS NULL AND username <> $4 AND ",
                keeps_an_admin!()
            );
            id, None::<Role>, UserStatus::Disabled, DEMO_USER
        )?;
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
        sql!(self.0, run:
            "DELETE FROM binds WHERE for_bot_id IN (SELECT id FROM bots WHERE owner_id = $1)";
            id
        )?;
        sql!(self.0, values: "DELETE FROM bots WHERE owner_id = $1 RETURNING id"; id)
    }

    /// Deletes a user who has no bots any more, with sessions, keys, and the answers kept for repeated calls.
    pub async fn delete(&mut self, id: UserId) -> Result<()> {
        sql!(self.0, run: "DELETE FROM idempotency WHERE principal = $1"; id)?;
        sql!(self.0, run: "DELETE FROM users WHERE id = $1"; id)
    }

    /// Takes a user's bots away from the nodes that work for them, and says which they are.
    pub async fn rest_bots(&mut self, id: UserId, now: Timestamp) -> Result<Vec<BotId>> {
        sql!(self.0, values:
            "UPDATE bots SET lease_owner = NULL, lease_fence = lease_fence + 1, status_since = $2,
               status_reason = CASE WHEN status IN ('expired', 'error') THEN status_reason
                   ELSE 'its owner is disabled' END,
               status = CASE WHEN status IN ('expired', 'error') THEN status ELSE 'offline' END
            WHERE owner_id = $1 AND (status_reason IS NULL OR status_reason <> 'its owner is disabled')
            RETURNING id";
            id, now
        )
    }

    /// Lets a user's bots that rested connect again, and says which they are.
    pub async fn wake_bots(&mut self, id: UserId, now: Timestamp) -> Result<Vec<BotId>> {
        sql!(self.0, values:
            "UPDATE bots SET status = 'connecting', status_reason = NULL, status_since = $2
            WHERE owner_id = $1 AND status_reason = 'its owner is disabled' RETURNING id";
            id, now
        )
    }
}
