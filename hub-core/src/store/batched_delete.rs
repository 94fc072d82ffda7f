//! Deletion by age, in batches of bounded size.
//!
//! Ids begin with the time, so rows are visited in the order of their ids, from the oldest to the first that is young
//! enough: nothing old costs nothing. A batch is bounded by the rows that it visits, also when most of them have to
//! stay.

use super::conn::{Conn, sql};
use crate::{error::Result, time::Timestamp};

/// Result of one batch of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedBatch {
    /// Rows that were deleted.
    pub deleted: u64,
    /// The last row that was visited: the next batch starts after it. `None` when no old row is left.
    pub last: Option<String>,
}

/// The statement that finds the end of a batch: the last of `$3` ids after `$1` and before `$2`.
macro_rules! batch_end {
    ($table:literal) => {
        concat!(
            "SELECT MAX(id) FROM (SELECT id FROM ",
            $table,
            " WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3) AS piece"
        )
    };
}
pub(super) use batch_end;

/// The statement that deletes up to `$2` rows whose time is before `$1`.
macro_rules! delete_old {
    ($table:literal, $key:literal, $time:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE ",
            $time,
            " < $1 LIMIT $2)"
        )
    };
}
pub(super) use delete_old;

/// Runs a statement of [`delete_old`]; returns how many rows it deleted.
pub(super) async fn delete_before(
    conn: &mut Conn<'_>,
    sql: &'static str,
    before: Timestamp,
    limit: u32,
) -> Result<u64> {
    sql!(*conn, execute: sql; before, i64::from(limit))
}

/// Runs a statement of [`batch_end`].
pub(super) async fn end(
    conn: &mut Conn<'_>,
    sql: &'static str,
    after: &str,
    before: &str,
    limit: u32,
) -> Result<Option<String>> {
    sql!(*conn, value: sql; after, before, i64::from(limit))
}
