//! Values of columns: how the types of the domain are stored, the same on both databases.
//!
//! JSON is stored as text, not as a column type of PostgreSQL, so that both databases hold the same bytes;
//! [`#[row(json)]`](hub_macros::FromRow) reads it.

use serde::de::DeserializeOwned;
use sqlx::{
    ColumnIndex, Database, Decode, Encode, Row, Type,
    encode::IsNull,
    error::{BoxDynError, UnexpectedNullError},
};

use crate::{
    id::{Id, Kind},
    secret::{Sealed, TokenHash},
    time::Timestamp,
    words::text_column,
};

text_column!([K: Kind] Id<K>, ToString::to_string, |text| {
    text.parse().map_err(|_| format!("broken id `{text}`").into())
});
text_column!([] Sealed, Self::as_str, |text| Ok(Self::from(text.to_owned())));
text_column!([] TokenHash, Self::as_str, |text| Ok(Self::stored(text)));

impl<DB: Database> Type<DB> for Timestamp
where
    i64: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        i64::type_info()
    }

    fn compatible(found: &DB::TypeInfo) -> bool {
        i64::compatible(found)
    }
}

impl<'q, DB: Database> Encode<'q, DB> for Timestamp
where
    i64: Encode<'q, DB>,
{
    fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        self.as_millis().encode_by_ref(buffer)
    }
}

impl<'r, DB: Database> Decode<'r, DB> for Timestamp
where
    i64: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        i64::decode(value).map(Self::from_millis)
    }
}

/// Integers that are stored as `i64`.
pub(crate) trait Number: Sized {
    /// From the column's value, `None` when it is NULL.
    fn from_column(value: Option<i64>) -> Result<Self, BoxDynError>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn from_column(value: Option<i64>) -> Result<Self, BoxDynError> {
                Ok(value.ok_or(UnexpectedNullError)?.try_into()?)
            }
        }

        impl Number for Option<$type> {
            fn from_column(value: Option<i64>) -> Result<Self, BoxDynError> {
                Ok(value.map(TryInto::try_into).transpose()?)
            }
        }
    )*};
}

numbers!(u16 u32 u64 usize);

/// Reads an integer of another type than `i64`.
pub(crate) fn number<'r, R: Row, T: Number>(row: &'r R, column: &str) -> sqlx::Result<T>
where
    Option<i64>: Decode<'r, R::Database> + Type<R::Database>,
    for<'i> &'i str: ColumnIndex<R>,
{
    T::from_column(row.try_get(column)?).map_err(|source| undecodable(column, source))
}

/// Reads a text that is JSON.
pub(crate) fn json<'r, R: Row, T: DeserializeOwned>(row: &'r R, column: &str) -> sqlx::Result<T>
where
    Option<&'r str>: Decode<'r, R::Database> + Type<R::Database>,
    for<'i> &'i str: ColumnIndex<R>,
{
    let text: Option<&str> = row.try_get(column)?;
    serde_json::from_str(text.unwrap_or("null")).map_err(|error| undecodable(column, error.into()))
}

/// The error of a value that cannot be read.
pub(crate) fn undecodable(column: &str, source: BoxDynError) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source }
}

/// Names the table, the column and the row of a value that cannot be read; a part of a row has named them already.
pub(crate) fn damaged<'r, R: Row>(row: &'r R, table: &str, error: sqlx::Error) -> sqlx::Error
where
    &'r str: Decode<'r, R::Database> + Type<R::Database>,
    for<'i> &'i str: ColumnIndex<R>,
{
    match error {
        sqlx::Error::ColumnDecode { index, source } if !index.contains(" of ") => {
            let id = row.try_get::<&str, _>("id").unwrap_or("a row");
            sqlx::Error::ColumnDecode {
                index: format!("{table}.{} of {id}", index.trim_matches('"')),
                source,
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, FromRow as _, SqliteConnection};

    use crate::id::BotId;

    #[derive(hub_macros::FromRow)]
    #[row(table = "bots")]
    #[expect(dead_code, reason = "only reading is tested")]
    struct Row {
        id: BotId,
        #[row(number)]
        port: u16,
        #[row(json)]
        list: Option<Vec<u8>>,
    }

    #[tokio::test]
    async fn a_damaged_value_is_reported_with_table_column_and_row() {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let id = BotId::MAX.to_string();
        for (values, place) in [
            (format!("'{id}' AS id, 1 AS port, NULL AS list"), None),
            (format!("'{id}' AS id, 1 AS port, '[1]' AS list"), None),
            ("'ch_1' AS id, 1 AS port, NULL AS list".to_owned(), Some("bots.id of ch_1".to_owned())),
            (format!("'{id}' AS id, 65536 AS port, NULL AS list"), Some(format!("bots.port of {id}"))),
            (format!("'{id}' AS id, 1 AS port, '[-1]' AS list"), Some(format!("bots.list of {id}"))),
        ] {
            let row =
                sqlx::query(AssertSqlSafe(format!("SELECT {values}"))).fetch_one(&mut conn).await.unwrap();
            let error = Row::from_row(&row).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), place.is_some(), "{error:?}");
            assert!(error.unwrap_or_default().contains(&place.unwrap_or_default()));
        }
    }
}
