//! Multi-row parameters of the hot statements: values in columns and rows, without a text that the database would
//! have to read first.
//!
//! Both databases can take rows out of a JSON text, and both spend more time on reading it than on the rows.
//! SQLite gets one bound value per column and row. Its statement's text depends on how many rows it has, so rows
//! are padded to a power of two with rows of NULLs, which the statements leave out: a handful of texts, each
//! prepared once. PostgreSQL gets one array per column.

use std::borrow::Cow;

use sqlx::{
    Arguments, AssertSqlSafe, FromRow,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};

use super::{conn::Conn, fault::classify};
use crate::{
    error::Result,
    id::{Id, IdText, Kind, kind},
    time::Timestamp,
};

mod arrays;

pub(super) use arrays::Arrays;

/// Most rows of one statement on SQLite; far below its 32,766 parameters.
pub(super) const MAX_ROWS: usize = 128;

const ENCODED: &str = "texts and numbers are always encoded";

/// One column of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Texts, under this name.
    Text(&'static str),
    /// Texts of a few hundred bytes and more, under this name.
    Long(&'static str),
    /// Integers, under this name.
    Number(&'static str),
    /// Bytes, a few hundred and more, under this name.
    Bytes(&'static str),
}

impl Column {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::Long(name) | Self::Number(name) | Self::Bytes(name) => name,
        }
    }

    /// Whether a copy of a value costs more than a look at where it is.
    const fn is_long(self) -> bool {
        matches!(self, Self::Long(_) | Self::Bytes(_))
    }

    /// Its type on PostgreSQL.
    const fn kind(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Long(_) => "text",
            Self::Number(_) => "bigint",
            Self::Bytes(_) => "bytea",
        }
    }
}

/// A type that is bound as a row. The first column must never be NULL: padding rows are recognised by it.
pub(super) trait Row {
    /// The columns, in the order of their values.
    const COLUMNS: &'static [Column];

    /// Hands over one value per column.
    fn write<'v>(&'v self, values: &mut impl Values<'v>);
}

/// Implements [`Row`]: the columns of a type's rows, and their values.
macro_rules! row {
    ($type:ty, |$row:ident| { $($kind:ident $column:ident = $value:expr,)* }) => {
        impl $crate::store::rows::Row for $type {
            const COLUMNS: &'static [$crate::store::rows::Column] =
                &[$($crate::store::rows::Column::$kind(stringify!($column))),*];

            fn write<'v>(&'v self, values: &mut impl $crate::store::rows::Values<'v>) {
                let $row = self;
                $($crate::store::rows::Values::push(&mut *values, $value);)*
            }
        }
    };
}

pub(super) use row;

impl<R: Row> Row for &R {
    const COLUMNS: &'static [Column] = R::COLUMNS;

    fn write<'v>(&'v self, values: &mut impl Values<'v>) {
        (*self).write(values);
    }
}

/// Takes values one by one.
pub(super) trait Values<'v> {
    /// A text, or NULL.
    fn text(&mut self, value: Option<Cow<'v, str>>);
    /// An id, or NULL.
    fn id(&mut self, value: Option<IdText>) {
        self.text(value.map(|id| Cow::Owned(id.as_str().to_owned())));
    }
    /// An integer, or NULL.
    fn number(&mut self, value: Option<i64>);
    fn bytes(&mut self, value: &'v [u8]);

    fn push(&mut self, value: impl Into<Value<'v>>)
    where
        Self: Sized,
    {
        match value.into() {
            Value::Text(text) => self.text(text),
            Value::Id(id) => self.id(id),
            Value::Number(number) => self.number(number),
            Value::Bytes(bytes) => self.bytes(bytes),
        }
    }
}

/// One value; `None` is NULL.
#[derive(Debug)]
pub(super) enum Value<'v> {
    Text(Option<Cow<'v, str>>),
    Id(Option<IdText>),
    Number(Option<i64>),
    Bytes(&'v [u8]),
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl From<IdText> for Value<'_> {
    fn from(id: IdText) -> Self {
        Self::Id(Some(id))
    }
}

impl<K: Kind> From<Id<K>> for Value<'_> {
    fn from(id: Id<K>) -> Self {
        Self::Id(Some(id.text()))
    }
}

impl<K: Kind> From<Option<Id<K>>> for Value<'_> {
    fn from(id: Option<Id<K>>) -> Self {
        Self::Id(id.map(Id::text))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(at: Timestamp) -> Self {
        at.as_millis().into()
    }
}

impl From<Option<Timestamp>> for Value<'_> {
    fn from(at: Option<Timestamp>) -> Self {
        at.map(Timestamp::as_millis).into()
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

/// SQLite's values, in the order of their places.
#[derive(Debug, Default)]
pub(super) struct Places(SqliteArguments);

impl Places {
    /// Binds rows, and padding up to `size` rows.
    pub(super) fn push_rows<R: Row>(&mut self, rows: &[R], size: usize) {
        let places = size * R::COLUMNS.len();
        self.0.reserve(places, 0);
        for row in rows {
            row.write(self);
        }
        for _ in rows.len() * R::COLUMNS.len()..places {
            self.number(None);
        }
    }
}

impl<'v> Values<'v> for Places {
    fn text(&mut self, value: Option<Cow<'v, str>>) {
        self.0.add(value.map(Cow::into_owned)).expect(ENCODED);
    }

    fn number(&mut self, value: Option<i64>) {
        self.0.add(value).expect(ENCODED);
    }

    fn bytes(&mut self, value: &'v [u8]) {
        self.0.add(value.to_vec()).expect(ENCODED);
    }
}

impl From<Places> for SqliteArguments {
    fn from(values: Places) -> Self {
        values.0
    }
}

/// Runs a statement on rows. `statement` gets the expression of the rows after `FROM`, where they are called `x`; it
/// leaves out those whose first column is NULL.
pub(super) async fn run<R: Row>(
    conn: &mut Conn<'_>,
    rows: &[R],
    statement: impl Fn(&str) -> String,
) -> Result<()> {
    returning::<R, kind::Message>(conn, rows, statement).await.map(drop)
}

/// As [`run`], with the ids that the statement returns.
pub(super) async fn returning<R: Row, K: Kind>(
    conn: &mut Conn<'_>,
    rows: &[R],
    statement: impl Fn(&str) -> String,
) -> Result<Vec<Id<K>>> {
    let ids: Vec<(Id<K>,)> = all(conn, rows, statement).await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// As [`run`], with what the statement returns.
pub(super) async fn all<R: Row, T>(
    conn: &mut Conn<'_>,
    rows: &[R],
    statement: impl Fn(&str) -> String,
) -> Result<Vec<T>>
where
    T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    match conn {
        Conn::Sqlite(conn) => {
            let mut all = Vec::new();
            for rows in rows.chunks(MAX_ROWS) {
                let size = size(rows.len());
                let mut values = Places::default();
                values.push_rows(rows, size);
                let sql = format!("WITH x {} {}", table::<R>(size), statement("x"));
                let query = sqlx::query_as_with(AssertSqlSafe(sql), SqliteArguments::from(values));
                all.append(&mut query.fetch_all(&mut **conn).await.map_err(classify)?);
            }
            Ok(all)
        }
        Conn::Postgres(conn) => {
            let mut values = Arrays::default();
            let sql = statement(&values.push_rows(rows));
            let query = sqlx::query_as_with(AssertSqlSafe(sql), PgArguments::from(values));
            query.fetch_all(&mut **conn).await.map_err(classify)
        }
    }
}

/// Returns the number of rows, with padding, of a statement for `rows` rows on SQLite.
pub(super) fn size(rows: usize) -> usize {
    rows.next_power_of_two()
}

/// SQLite's rows: `(names…) AS (VALUES (?, …), …)`, the text between `WITH x ` and the statement that reads rows from
/// `x`.
pub(super) fn table<R: Row>(size: usize) -> String {
    let row = places::<R>();
    format!("({}) AS (VALUES {}{row})", names::<R>(), format!("{row},").repeat(size - 1))
}

/// SQLite's expression after `FROM` for one row, whose values are bound in their order.
pub(super) fn single<R: Row>() -> String {
    let columns = R::COLUMNS.iter().map(|column| format!("? AS {}", column.name()));
    format!("(SELECT {}) AS x", columns.collect::<Vec<_>>().join(", "))
}

/// The end of an INSERT of one row into columns of the same names. If the table has a trigger, SQLite writes rows of a
/// SELECT to a temporary table first, but not these values.
pub(super) fn values<R: Row>() -> String {
    format!("({}) VALUES {}", names::<R>(), places::<R>())
}

fn places<R: Row>() -> String {
    format!("({}?)", "?,".repeat(R::COLUMNS.len() - 1))
}

fn names<R: Row>() -> String {
    R::COLUMNS.iter().map(|column| column.name()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) struct Pair(pub(super) &'static str, pub(super) Option<i64>);

    impl Row for Pair {
        const COLUMNS: &'static [Column] = &[Column::Text("name"), Column::Number("n")];

        fn write<'v>(&'v self, values: &mut impl Values<'v>) {
            values.push(self.0);
            values.push(self.1);
        }
    }

    #[tokio::test]
    async fn rows_arrive_in_their_columns_and_padding_is_known() {
        use sqlx::Connection as _;
        let mut conn = sqlx::SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let rows = [Pair("a", Some(1)), Pair("b", None), Pair("c", Some(3))];
        let size = size(rows.len());
        assert_eq!(size, 4);
        let mut values = Places::default();
        values.push_rows(&rows, size);
        values.number(Some(7));
        let sql = format!("WITH x {} SELECT name, n + ? FROM x WHERE name IS NOT NULL", table::<Pair>(size));
        // The place in the list of columns follows those of the rows.
        let read: Vec<(String, Option<i64>)> =
            sqlx::query_as_with(sqlx::AssertSqlSafe(sql), values.0).fetch_all(&mut conn).await.unwrap();
        assert_eq!(read, [("a".to_owned(), Some(8)), ("b".to_owned(), None), ("c".to_owned(), Some(10))]);
    }
}
