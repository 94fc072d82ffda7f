//! Statements about the audit log. There is none that changes an entry.

use sqlx::AssertSqlSafe;

use super::{
    conn::{Conn, on},
    given, stored_id,
};
use crate::{
    error::{Error, Result},
    id::{AuditId, UserId},
    model::audit::{AuditEntry, NewEntry},
    page::PageRequest,
    time::Timestamp,
};

/// Statements about the audit log, on a lent connection.
#[derive(Debug)]
pub struct Audit<'c>(pub(super) Conn<'c>);

/// Which entries are wanted; what is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Done by this user's id, `operator`, or the empty text for strangers.
    pub actor: Option<String>,
    /// This word.
    pub action: Option<String>,
    /// Done to this.
    pub target: Option<String>,
}

#[derive(hub_macros::FromRow)]
struct Row {
    id: String,
    at: i64,
    actor: String,
    actor_name: String,
    credential: String,
    action: String,
    target: String,
    target_name: String,
    detail: String,
    ip: String,
}

impl Row {
    fn into_entry(self) -> Result<AuditEntry> {
        Ok(AuditEntry {
            id: stored_id(&self.id)?,
            at: Timestamp::from_millis(self.at),
            actor: self.actor,
            actor_name: self.actor_name,
            credential: self.credential,
            action: self.action,
            target: self.target,
            target_name: self.target_name,
            detail: serde_json::from_str(&self.detail).map_err(Error::internal)?,
            ip: self.ip,
        })
    }
}

/// The columns of a [`Row`], before the `WHERE`.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, at, actor, actor_name, credential, action, target, target_name, detail, ip FROM audit ",
            $rest
        )
    };
}

impl AuditFilter {
    /// The statement for a page.
    pub(super) fn statement(&self) -> String {
        let filters = given(&[
            (self.actor.is_some(), " AND actor = $2"),
            (self.action.is_some(), " AND action = $3"),
            (self.target.is_some(), " AND target = $4"),
        ]);
        format!("{}{filters} ORDER BY id DESC LIMIT $5", select!("WHERE id < $1"))
    }
}

/// The statement for a page of what a user did, and of what was done to them.
pub(super) const PAGE_OF_USER: &str = select!(
    "WHERE id IN (
        SELECT id FROM (SELECT id FROM audit WHERE actor = $2 AND id < $1 ORDER BY id DESC LIMIT $3) AS by_them
        UNION SELECT id FROM (SELECT id FROM audit WHERE target = $2 AND id < $1 ORDER BY id DESC LIMIT $3) AS to_them)
     ORDER BY id DESC LIMIT $3"
);

/// The statement of [`Audit::delete_before`].
pub(super) const DELETE_BEFORE: &str =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < $1 AND at < $2 ORDER BY id LIMIT $3)";

impl Audit<'_> {
    /// Adds an entry, with the names that the users have now and the address that the session came from.
    pub async fn add(&mut self, entry: &NewEntry) -> Result<()> {
        on!(self.0, |conn| {
            sqlx::query(
            "INSERT INTO audit (id, at, actor, actor_name, credential, action, target, target_name, detail, ip)
             VALUES ($1, $2, $3, COALESCE((SELECT username FROM users WHERE id = $3), ''), $4, $5, $6,
                COALESCE((SELECT username FROM users WHERE id = $6), $7), $8,
                COALESCE((SELECT ip FROM sessions WHERE id = $4), $9))"
        )
        .bind(entry.id.to_string())
        .bind(entry.at.as_millis())
        .bind(&entry.actor)
        .bind(&entry.credential)
        .bind(entry.action.as_str())
        .bind(&entry.target)
        .bind(&entry.target_name)
        .bind(entry.detail.to_string())
        .bind(&entry.ip)
        .execute(conn)
        .await
        .map(|_| ())
        })
    }

    /// A page of the log, newest first; one more than the page holds when there are more.
    pub async fn page(&mut self, filter: &AuditFilter, page: &PageRequest) -> Result<Vec<AuditEntry>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(AssertSqlSafe(filter.statement()))
            .bind(page.before(AuditId::MAX))
            .bind(filter.actor.as_deref())
            .bind(filter.action.as_deref())
            .bind(filter.target.as_deref())
            .bind(i64::from(page.limit()) + 1)
            .fetch_all(conn)
            .await)?;
        rows.into_iter().map(Row::into_entry).collect()
    }

    /// A page of what a user did and of what was done to them, newest first; one more than the page holds when
    /// there are more.
    pub async fn page_of_user(&mut self, id: UserId, page: &PageRequest) -> Result<Vec<AuditEntry>> {
        let rows: Vec<Row> = on!(self.0, |conn| sqlx::query_as(PAGE_OF_USER)
            .bind(page.before(AuditId::MAX))
            .bind(id.to_string())
            .bind(i64::from(page.limit()) + 1)
            .fetch_all(conn)
            .await)?;
        rows.into_iter().map(Row::into_entry).collect()
    }

    /// Forgets at most `limit` entries from before an instant and says how many.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        on!(self.0, |conn| sqlx::query(DELETE_BEFORE)
            .bind(AuditId::first_at(before).to_string())
            .bind(before.as_millis())
            .bind(i64::from(limit))
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))
    }
}
