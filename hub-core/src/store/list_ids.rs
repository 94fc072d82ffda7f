//! Candidates of lists over all bots of an owner. The statements read the newest ids of each bot through an index in
//! the order of the list, and keep the newest of all. Both take the owner as $1, the bot as $2, the bounds of the ids
//! as $3 and $4 and the number of ids as $5.
//!
//! [`scan_end`] finds the end of a page whose filter has no index.

use sqlx::AssertSqlSafe;

use super::{
    conn::{Conn, sql},
    given,
};
use crate::{error::Result, page::MAX_SCANNED};

/// The newest ids of a bot `b` between $3 and $4, each once, from the rows of a table.
macro_rules! newest {
    ($id:literal, $rows:expr) => {
        concat!(
            "SELECT DISTINCT x.",
            $id,
            " AS id FROM ",
            $rows,
            " AND x.",
            $id,
            " > $3 AND x.",
            $id,
            " < $4
                ORDER BY x.",
            $id,
            " DESC LIMIT $5"
        )
    };
}
pub(super) use newest;

/// The condition that the channel of a trace or, if it has none, its bot is `$id`: what an index of the traces begins
/// with. SQLite uses an index of an expression only for a value that is no column, as the type of a column may convert
/// the expression's.
macro_rules! is_channel_or_bot {
    ($trace:literal, $id:literal) => {
        concat!("COALESCE(", $trace, ".channel_id, ", $trace, ".bot_id) = ", $id, " || ''")
    };
}
pub(super) use is_channel_or_bot;

/// Objects whose ids are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Of each bot `b`.
    Bots,
    /// Of each bot and of each of its channels, all as `b`.
    BotsAndChannels,
}

/// The statement over all bots, on SQLite and on PostgreSQL.
pub(super) fn statement(of: Of, source: &str, has_owner: bool, has_bot: bool) -> [String; 2] {
    let bots = given(&[(has_owner, " AND b.owner_id = $1"), (has_bot, " AND b.id = $2")]);
    of_each(of, &bots, source, "DESC LIMIT $5")
}

/// Builds the statement that runs `source` for each `b` of the bots that meet these conditions, and takes `end` of
/// all the ids.
pub(super) fn of_each(of: Of, bots: &str, source: &str, end: &str) -> [String; 2] {
    let all = format!("SELECT b.id FROM bots b WHERE true{bots}");
    let all = match of {
        Of::Bots => all,
        Of::BotsAndChannels => {
            format!(
                "{all} UNION ALL SELECT c.id FROM bots b JOIN channels c ON c.bot_id = b.id WHERE true{bots}"
            )
        }
    };
    [
        format!(
            "SELECT DISTINCT value AS id
             FROM ({all}) AS b, json_each((SELECT json_group_array(id) FROM ({source}))) ORDER BY id {end}"
        ),
        format!(
            "SELECT DISTINCT x.id FROM ({all}) AS b CROSS JOIN LATERAL ({source}) AS x ORDER BY x.id {end}"
        ),
    ]
}

/// End of a page that is scanned because its filter has no index.
#[derive(Debug, Default)]
pub(super) struct ScanEnd {
    /// Greatest id that is not scanned; empty if all are.
    pub(super) after: String,
    /// Last scanned id, if others follow.
    pub(super) scanned: Option<String>,
}

/// Finds the end of [`MAX_SCANNED`] ids of these rows before an id, newest first. `rows` is a table and a condition with
/// `$2`, and has an index in the order of the ids.
pub(super) async fn scan_end(
    conn: &mut Conn<'_>,
    (rows, value): (&str, Option<&str>),
    before: &str,
) -> Result<ScanEnd> {
    let sql = format!("SELECT id FROM {rows} AND id < $1 ORDER BY id DESC LIMIT 2 OFFSET $3");
    let ends: Vec<String> =
        sql!(*conn, values: AssertSqlSafe(sql); before, value, i64::from(MAX_SCANNED) - 1)?;
    let mut ends = ends.into_iter();
    Ok(match (ends.next(), ends.next()) {
        (scanned, Some(after)) => ScanEnd { after, scanned },
        _ => ScanEnd::default(),
    })
}
