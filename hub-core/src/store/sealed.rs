//! The columns with sealed values, so that all of them can be checked and sealed again.

use sqlx::AssertSqlSafe;

use super::conn::{Conn, sql};
use crate::{
    error::Result,
    secret::{Sealed, Sealer},
};

/// Under this name a database knows the fingerprint of the key it is sealed with, once there was a rotation.
pub(super) const KEY_ID: &str = "secret_key.id";

/// A column of sealed values.
#[derive(Debug, PartialEq, Eq)]
pub struct SealedColumn {
    /// Its table.
    pub table: &'static str,
    /// Its name.
    pub column: &'static str,
    /// Prefix of the names of places in the column; the row's keys follow, each after a colon.
    place: &'static str,
    /// The columns of the primary key that are part of the place: two at most.
    keys: &'static [&'static str],
    /// The columns with the keys of the contact for which some of the values were sealed.
    contact: Option<[&'static str; 2]>,
}

const fn column(
    table: &'static str,
    column: &'static str,
    place: &'static str,
    keys: &'static [&'static str],
) -> SealedColumn {
    SealedColumn { table, column, place, keys, contact: None }
}

/// Prefix of the names of places of contacts' tokens.
const CONTACT: &str = "contacts.context_token";

/// Expression for a key that a table does not have.
const NO_KEY: &str = "CAST('' AS TEXT)";

/// Every column of sealed values. The longest-lived ones are last: the first few rows show most.
pub const SEALED_COLUMNS: &[SealedColumn] = &[
    column("ai_config", "api_key", "ai_config.api_key", &[]),
    column("apps", "webhook_secret", "apps.webhook_secret", &["id"]),
    column("app_installations", "config", "app_installations.config", &["id"]),
    column("bots", "credentials", "bots.credentials", &["id"]),
    column("channels", "webhook_secret", "channels.webhook_secret", &["id"]),
    column("channels", "webhook_old_secret", "channels.webhook_old_secret", &["id"]),
    column("channels", "ai_api_key", "channels.ai_api_key", &["id"]),
    column("binds", "private", "binds.private", &["id"]),
    column("sign_in_flows", "state", "sign_in_flows.state", &["id"]),
    column("qr_logins", "exchange", "qr_logins.exchange", &["id"]),
    column("idempotency", "answer", "idempotency", &["principal", "key"]),
    column("contacts", "context_token", CONTACT, &["bot_id", "user_id"]),
    column("media", "source", "media.source", &["id"]),
    SealedColumn {
        contact: Some(["bot_id", "from_user_id"]),
        ..column("messages", "private", "messages.private", &["id"])
    },
];

/// A sealed value and its column.
#[derive(Debug, Clone)]
pub struct SealedRow {
    /// The value.
    pub value: Sealed,
    /// Keys of its row; empty texts for keys that the table does not have.
    keys: [String; 2],
    /// The keys of its contact; empty texts in a column that has none.
    contact: [String; 2],
}

impl SealedColumn {
    /// The place for which a row's value was sealed.
    pub fn place(&self, row: &SealedRow) -> String {
        let (place, keys) = if row.value.is_of_contact() {
            (CONTACT, &row.contact[..])
        } else {
            (self.place, &row.keys[..self.keys.len()])
        };
        let mut place = place.to_owned();
        for key in keys {
            place.push(':');
            place.push_str(key);
        }
        place
    }

    /// Returns the expression of a key in a statement.
    fn key(&self, number: usize) -> &'static str {
        self.keys.get(number).copied().unwrap_or(NO_KEY)
    }

    /// Returns the condition for rows after `$1`, `$2`, in a form that uses the primary key.
    fn behind(&self) -> String {
        match self.keys {
            [] => "CAST($1 AS TEXT) = '' AND CAST($2 AS TEXT) = ''".to_owned(),
            [key] => format!("{key} > $1 AND CAST($2 AS TEXT) = ''"),
            [first, second, ..] => format!("({first}, {second}) > ($1, $2)"),
        }
    }
}

/// Statements about sealed values of any table, on a lent connection.
#[derive(Debug)]
pub struct SealedValues<'c>(pub(super) Conn<'c>);

impl SealedValues<'_> {
    /// Reads the fingerprint of the key that values are sealed with, once there was a rotation.
    pub async fn key_id(&mut self) -> Result<Option<String>> {
        sql!(self.0, optional_value: "SELECT value FROM meta WHERE key = $1"; KEY_ID)
    }

    /// Returns the fingerprint of a key that the database needs and the sealer does not have: the one stored by a
    /// rotation, or else that of the first value in a column. `None` when no key is missing.
    pub async fn missing_key(&mut self, sealer: &Sealer) -> Result<Option<String>> {
        if self.columns("meta").await?.is_empty() {
            return Ok(None);
        }
        if let Some(noted) = self.key_id().await? {
            return Ok(Some(noted).filter(|noted| !sealer.has_key(noted)));
        }
        for column in SEALED_COLUMNS {
            // A migration that the database has yet to see may add the column.
            if !self.columns(column.table).await?.iter().any(|name| name == column.column) {
                continue;
            }
            for row in self.page(column, None, 1).await? {
                if let Some(sealed_with) = row.value.key_id().filter(|key| !sealer.has_key(key)) {
                    return Ok(Some(sealed_with.to_owned()));
                }
            }
        }
        Ok(None)
    }

    /// The columns of a table; none when there is no such table.
    async fn columns(&mut self, table: &str) -> Result<Vec<String>> {
        sql!(self.0, values:
            "SELECT name FROM pragma_table_info($1)",
            "SELECT CAST(attname AS TEXT) FROM pg_attribute
            WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped";
            table
        )
    }

    /// Reads up to `limit` values of a column after a row.
    pub async fn page(
        &mut self,
        column: &SealedColumn,
        after: Option<&SealedRow>,
        limit: u32,
    ) -> Result<Vec<SealedRow>> {
        let SealedColumn { table, column: name, .. } = column;
        let (first, second) = (column.key(0), column.key(1));
        let order = if column.keys.is_empty() { "1".to_owned() } else { column.keys.join(", ") };
        let [bot, person] = column.contact.unwrap_or([NO_KEY; 2]);
        let sql = format!(
            "SELECT {name}, {first}, {second}, {bot}, {person} FROM {table}
             WHERE {name} IS NOT NULL AND {} ORDER BY {order} LIMIT $3",
            column.behind()
        );
        let [first, second] = after.map(|row| row.keys.clone()).unwrap_or_default();
        let rows: Vec<(Sealed, String, String, String, String)> =
            sql!(self.0, all: AssertSqlSafe(sql); &first, &second, i64::from(limit))?;
        let row = |(value, first, second, bot, person)| SealedRow {
            value,
            keys: [first, second],
            contact: [bot, person],
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Puts a value into the place of a row's, unless that was changed meanwhile.
    pub async fn replace(&mut self, column: &SealedColumn, row: &SealedRow, value: &Sealed) -> Result<()> {
        let SealedColumn { table, column: name, .. } = column;
        let (first, second) = (column.key(0), column.key(1));
        let sql =
            format!("UPDATE {table} SET {name} = $1 WHERE {name} = $2 AND {first} = $3 AND {second} = $4");
        let value = if row.value.is_of_contact() { value.of_contact() } else { value.clone() };
        sql!(self.0, run: AssertSqlSafe(sql); &value, &row.value, &row.keys[0], &row.keys[1])
    }
}
