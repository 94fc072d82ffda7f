//! Statements about the audit log. There is none that changes an entry.

use sqlx::AssertSqlSafe;

use super::{
    conn::{Conn, sql},
    given,
    list_ids::{ScanEnd, scan_end},
};
use crate::{
    error::Result,
    id::{AuditId, UserId},
    model::audit::{AuditEntry, NewEntry},
    page::{Found, PageRequest},
    text::json,
    time::Timestamp,
};

/// Statements about the audit log, on a lent connection.
#[derive(Debug)]
pub struct Audit<'c>(pub(super) Conn<'c>);

/// Filter for audit entries; a field that is `None` matches every entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// User id of the actor, `operator`, or the empty text for callers without an account.
    pub actor: Option<String>,
    /// Name of the action.
    pub action: Option<String>,
    /// Id of the target.
    pub target: Option<String>,
}

/// The columns of an [`AuditEntry`], before the `WHERE`.
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
    fn statement(&self) -> String {
        let filters = given(&[
            (self.actor.is_some(), " AND actor = $2"),
            (self.action.is_some(), " AND action = $3"),
            // With both, the index of the actor is read.
            (self.target.is_some() && self.actor.is_some(), " AND target || '' = $4"),
            (self.target.is_some() && self.actor.is_none(), " AND target = $4"),
        ]);
        format!("{}{filters} ORDER BY id DESC LIMIT $5", select!("WHERE id < $1 AND id > $6"))
    }

    /// The rows of the index that a page is read from, with the value of their condition.
    fn rows(&self) -> (&'static str, Option<&str>) {
        match (&self.actor, &self.target) {
            (Some(actor), _) => ("audit WHERE actor = $2", Some(actor)),
            (None, Some(target)) => ("audit WHERE target = $2", Some(target)),
            (None, None) => ("audit WHERE true", None),
        }
    }

    /// Whether it has a filter that this index does not satisfy.
    const fn is_scanned(&self) -> bool {
        self.action.is_some() || self.actor.is_some() && self.target.is_some()
    }
}

/// The statement for a page of what a user did, and of what was done to them.
const PAGE_OF_USER: &str = select!(
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
        sql!(self.0, run:
            "INSERT INTO audit (id, at, actor, actor_name, credential, action, target, target_name, detail, ip)
            VALUES ($1, $2, $3, COALESCE((SELECT username FROM users WHERE id = $3), ''), $4, $5, $6,
               COALESCE((SELECT username FROM users WHERE id = $6), $7), $8,
               COALESCE((SELECT ip FROM sessions WHERE id = $4), $9))";
            entry.id, entry.at, &entry.actor, &entry.credential, entry.action, &entry.target,
            &entry.target_name, json(&entry.detail), &entry.ip
        )
    }

    /// A page of the log, newest first; one more than the page holds when there are more. With an action, and with both
    /// an actor and a target, it looks at [`MAX_SCANNED`](crate::page::MAX_SCANNED) entries.
    pub async fn page(&mut self, filter: &AuditFilter, page: &PageRequest) -> Result<Found<AuditEntry>> {
        let before = page.before(AuditId::MAX);
        let ScanEnd { after, scanned } = if filter.is_scanned() {
            scan_end(&mut self.0, filter.rows(), &before).await?
        } else {
            ScanEnd::default()
        };
        let rows = sql!(self.0, all:
            AssertSqlSafe(filter.statement());
            before, &filter.actor, &filter.action, &filter.target, i64::from(page.limit()) + 1, after
        )?;
        Ok(Found { rows, scanned })
    }

    /// A page of what a user did and of what was done to them, newest first; one more than the page holds when
    /// there are more.
    pub async fn page_of_user(&mut self, id: UserId, page: &PageRequest) -> Result<Vec<AuditEntry>> {
        sql!(self.0, all: PAGE_OF_USER; page.before(AuditId::MAX), id, i64::from(page.limit()) + 1)
    }

    /// Forgets at most `limit` entries from before an instant and says how many.
    pub async fn delete_before(&mut self, before: Timestamp, limit: u32) -> Result<u64> {
        sql!(self.0, execute: DELETE_BEFORE; AuditId::first_at(before), before, i64::from(limit))
    }
}
