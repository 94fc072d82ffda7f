//! Connections: the two drivers behind one type.

use sqlx::{PgConnection, SqliteConnection};

/// A borrowed connection of either database; what every table view holds.
#[derive(Debug)]
pub enum Conn<'c> {
    /// SQLite.
    Sqlite(&'c mut SqliteConnection),
    /// PostgreSQL.
    Postgres(&'c mut PgConnection),
}

impl Conn<'_> {
    /// The same connection, for one more view.
    pub(super) fn lend(&mut self) -> Conn<'_> {
        match self {
            Self::Sqlite(conn) => Conn::Sqlite(conn),
            Self::Postgres(conn) => Conn::Postgres(conn),
        }
    }
}

/// Runs one expression on whichever connection it is: `on!(self.0, |conn| query.fetch_one(conn).await)`.
/// The expression is pasted twice, with `conn` as the native connection; its error becomes ours.
macro_rules! on {
    ($db:expr, |$conn:ident| $run:expr) => {
        match &mut $db {
            $crate::store::conn::Conn::Sqlite($conn) => {
                let $conn = &mut **$conn;
                $run
            }
            $crate::store::conn::Conn::Postgres($conn) => {
                let $conn = &mut **$conn;
                $run
            }
        }
        .map_err($crate::store::fault::classify)
    };
}

/// As `on!`, with one statement per database: where the dialects part, both stand side by side.
macro_rules! on_each {
    ($db:expr, $sqlite:expr, $postgres:expr, |$conn:ident, $sql:ident| $run:expr) => {
        match &mut $db {
            $crate::store::conn::Conn::Sqlite($conn) => {
                let ($conn, $sql) = (&mut **$conn, $sqlite);
                $run
            }
            $crate::store::conn::Conn::Postgres($conn) => {
                let ($conn, $sql) = (&mut **$conn, $postgres);
                $run
            }
        }
        .map_err($crate::store::fault::classify)
    };
}

pub(crate) use {on, on_each};
