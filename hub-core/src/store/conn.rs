//! Connections: the two drivers behind one type, and [`sql!`], which runs a statement on either.

use sqlx::{FromRow, PgConnection, Row, SqlSafeStr, SqlStr, SqliteConnection};

use super::fault::classify;
use crate::error::Result;

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

    /// Runs statements without values, unprepared.
    pub(super) async fn script(&mut self, statements: impl SqlSafeStr) -> Result<()> {
        let statements = sqlx::raw_sql(statements);
        match self {
            Self::Sqlite(conn) => statements.execute(&mut **conn).await.map(|_| ()),
            Self::Postgres(conn) => statements.execute(&mut **conn).await.map(|_| ()),
        }
        .map_err(classify)
    }
}

/// Runs one statement on whichever connection it is: `sql!(self.0, all: "SELECT …"; id, now)`, with the values of `$1`
/// and on after the semicolon. Where the dialects differ, there are two texts, SQLite's first. What it returns is a
/// `Result` of
///
/// | verb | |
/// |---|---|
/// | `run` | nothing |
/// | `execute` | the number of rows affected |
/// | `all` `one` `optional` | the rows as a type that is `FromRow` |
/// | `values` `value` `optional_value` | the first column of the rows |
///
/// For a condition on a list, `sql!(self.0, all: ["SELECT … WHERE id", in 1, " ORDER BY id"]; json(ids))` expands to
/// the text in both dialects, see [`dialects!`].
///
/// A statement that writes columns one by one names each next to its value, and returns nothing:
/// `sql!(self.0, insert "bots": id = bot.id, name = &bot.name)` and `sql!(self.0, update "bots": name = &bot.name;
/// " WHERE id = $1"; bot.id)`, where the values of the last text come first.
macro_rules! sql {
    ($db:expr, insert $table:literal: $($column:ident = $value:expr),+ $(,)?) => {
        $crate::store::conn::sql!($db, run:
            concat!("INSERT INTO ", $table, $crate::store::conn::columns!(insert [] $($column)+));
            $($value),+
        )
    };
    ($db:expr, update $table:literal: $($column:ident = $value:expr),+; $rest:literal; $($given:expr),+) => {
        $crate::store::conn::sql!($db, run:
            concat!("UPDATE ", $table, " SET ", $crate::store::conn::columns!(update [$($given),+] $($column)+), $rest);
            $($given,)+ $($value),+
        )
    };
    ($db:expr, $verb:ident: [$($part:tt)+] $(; $($value:expr),*)?) => {
        $crate::store::conn::sql!($db, $verb:
            $crate::store::conn::dialect!(sqlite $($part)+), $crate::store::conn::dialect!(postgres $($part)+)
            $(; $($value),*)?)
    };
    ($db:expr, $verb:ident: $sql:expr $(; $($value:expr),*)?) => {
        $crate::store::conn::sql!($db, $verb: $sql, $sql $(; $($value),*)?)
    };
    ($db:expr, $verb:ident: $sqlite:expr, $postgres:expr $(; $($value:expr),*)?) => {
        match &mut $db {
            $crate::store::conn::Conn::Sqlite(conn) => {
                let query = ::sqlx::query($crate::store::conn::noted($sqlite))$($(.bind($value))*)?;
                $crate::store::conn::sql!(@$verb sqlite, query, conn)
            }
            $crate::store::conn::Conn::Postgres(conn) => {
                let query = ::sqlx::query($crate::store::conn::noted($postgres))$($(.bind($value))*)?;
                $crate::store::conn::sql!(@$verb postgres, query, conn)
            }
        }
        .map_err($crate::store::fault::classify)
    };
    (@run $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::execute($query, $conn).await.map(|_| ())
    };
    (@execute $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::execute($query, $conn).await
    };
    (@all $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::rows($query, $conn).await.and_then(|rows| $crate::store::conn::all(&rows))
    };
    (@one $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::row($query, $conn)
            .await
            .and_then(|row| $crate::store::conn::one(row.as_ref()))
    };
    (@optional $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::row($query, $conn)
            .await
            .and_then(|row| $crate::store::conn::optional(row.as_ref()))
    };
    (@values $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::rows($query, $conn)
            .await
            .and_then(|rows| $crate::store::conn::all(&rows))
            .map(|rows| rows.into_iter().map(|(value,)| value).collect())
    };
    (@value $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::row($query, $conn)
            .await
            .and_then(|row| $crate::store::conn::one(row.as_ref()))
            .map(|(value,)| value)
    };
    (@optional_value $driver:ident, $query:expr, $conn:expr) => {
        $crate::store::conn::$driver::row($query, $conn)
            .await
            .and_then(|row| $crate::store::conn::optional(row.as_ref()))
            .map(|row| row.map(|(value,)| value))
    };
}

pub(crate) use sql;

/// Passes on the text of a statement that is about to run, which a test may record.
pub(super) fn noted(sql: impl SqlSafeStr) -> SqlStr {
    let sql = sql.into_sql_str();
    #[cfg(feature = "testing")]
    super::recording::note(sql.as_str());
    sql
}

/// A statement in both dialects, SQLite's first, made of texts and of `in 2`, where what is before it is one of the texts of
/// the JSON array `$2`. PostgreSQL gets an array, as it looks each of its elements up in an index. A subquery it may join
/// with all rows of a table that was small when the statement was prepared.
macro_rules! dialects {
    ($($part:tt)+) => {
        [$crate::store::conn::dialect!(sqlite $($part)+), $crate::store::conn::dialect!(postgres $($part)+)]
    };
}

pub(crate) use dialects;

/// One dialect of [`dialects!`].
macro_rules! dialect {
    ($dialect:ident) => { "" };
    ($dialect:ident in $list:literal $(, $($part:tt)*)?) => {
        concat!(
            $crate::store::conn::dialect!(@$dialect $list),
            $crate::store::conn::dialect!($dialect $($($part)*)?)
        )
    };
    ($dialect:ident $text:expr $(, $($part:tt)*)?) => {
        concat!($text, $crate::store::conn::dialect!($dialect $($($part)*)?))
    };
    (@sqlite $list:literal) => { concat!(" IN (SELECT value FROM json_each($", $list, "))") };
    (@postgres $list:literal) => {
        concat!(" = ANY (ARRAY (SELECT json_array_elements_text($", $list, "::json)))")
    };
}

pub(crate) use dialect;

/// The columns of a statement of [`sql!`] and the places of their values, which follow those of the values in brackets.
macro_rules! columns {
    ($verb:ident [$($given:expr),*] $($column:ident)+) => {
        $crate::store::conn::columns!(@$verb [$($given),*] [] [$($column)+]
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@$verb:ident [$_:expr $(, $given:expr)*] [] $columns:tt $number:literal $($numbers:literal)*) => {
        $crate::store::conn::columns!(@$verb [$($given),*] [] $columns $($numbers)*)
    };
    (@$verb:ident [] [$($placed:tt)*] [$column:ident $($columns:ident)*] $number:literal $($numbers:literal)*) => {
        $crate::store::conn::columns!(@$verb [] [$($placed)* $column $number] [$($columns)*] $($numbers)*)
    };
    (@insert [] [$first:ident $one:literal $($column:ident $number:literal)*] [] $($unused:literal)*) => {
        concat!(
            " (", stringify!($first), $(", ", stringify!($column),)* ") VALUES ($", $one, $(", $", $number,)* ")"
        )
    };
    (@update [] [$first:ident $one:literal $($column:ident $number:literal)*] [] $($unused:literal)*) => {
        concat!(stringify!($first), " = $", $one, $(", ", stringify!($column), " = $", $number),*)
    };
}

pub(crate) use columns;

/// The same three functions for each driver. Their futures are the same for every statement: only the reading of rows is
/// compiled for each type.
macro_rules! driver {
    ($name:ident, $database:ty, $arguments:ty, $connection:ty, $row:ty) => {
        pub(super) mod $name {
            use sqlx::query::Query;

            type Statement<'q> = Query<'q, $database, $arguments>;

            pub(in super::super) async fn execute(
                query: Statement<'_>,
                conn: &mut $connection,
            ) -> sqlx::Result<u64> {
                Ok(query.execute(conn).await?.rows_affected())
            }

            pub(in super::super) async fn row(
                query: Statement<'_>,
                conn: &mut $connection,
            ) -> sqlx::Result<Option<$row>> {
                let row = query.fetch_optional(conn).await?;
                #[cfg(feature = "testing")]
                crate::store::recording::note_rows(usize::from(row.is_some()));
                Ok(row)
            }

            pub(in super::super) async fn rows(
                query: Statement<'_>,
                conn: &mut $connection,
            ) -> sqlx::Result<Vec<$row>> {
                let rows = query.fetch_all(conn).await?;
                #[cfg(feature = "testing")]
                crate::store::recording::note_rows(rows.len());
                Ok(rows)
            }
        }
    };
}

driver!(sqlite, sqlx::Sqlite, sqlx::sqlite::SqliteArguments, sqlx::SqliteConnection, sqlx::sqlite::SqliteRow);
driver!(postgres, sqlx::Postgres, sqlx::postgres::PgArguments, sqlx::PgConnection, sqlx::postgres::PgRow);

/// A row, or the error of reading it: for lists that continue after a corrupt row.
pub(super) struct MaybeDamaged<T>(pub Result<T>);

impl<'r, R: Row, T: FromRow<'r, R>> FromRow<'r, R> for MaybeDamaged<T> {
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        Ok(Self(T::from_row(row).map_err(classify)))
    }
}

pub(super) fn all<'r, R: Row, T: FromRow<'r, R>>(rows: &'r [R]) -> sqlx::Result<Vec<T>> {
    rows.iter().map(T::from_row).collect()
}

pub(super) fn one<'r, R: Row, T: FromRow<'r, R>>(row: Option<&'r R>) -> sqlx::Result<T> {
    T::from_row(row.ok_or(sqlx::Error::RowNotFound)?)
}

pub(super) fn optional<'r, R: Row, T: FromRow<'r, R>>(row: Option<&'r R>) -> sqlx::Result<Option<T>> {
    row.map(T::from_row).transpose()
}
