//! Statements about leases: which node polls and delivers for which bot.

use super::conn::{Conn, on};
use crate::error::Result;

/// Statements about leases, on a lent connection.
#[derive(Debug)]
pub struct Leases<'c>(pub(super) Conn<'c>);

impl Leases<'_> {
    /// Whether the database answers at all.
    pub async fn ping(&mut self) -> Result<()> {
        let _: i64 =
            on!(self.0, |conn| sqlx::query_scalar("SELECT CAST(1 AS BIGINT)").fetch_one(conn).await)?;
        Ok(())
    }

    /// The database's own clock in Unix milliseconds; `None` on SQLite, which has none of its own.
    pub async fn database_now(&mut self) -> Result<Option<i64>> {
        if matches!(self.0, Conn::Sqlite(_)) {
            return Ok(None);
        }
        let now: i64 = on!(self.0, |conn| sqlx::query_scalar(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
        )
        .fetch_one(conn)
        .await)?;
        Ok(Some(now))
    }
}
