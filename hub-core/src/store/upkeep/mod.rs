//! A separate connection for maintenance of a database: while a hub runs, on a copy, or before any hub opened it.

use std::path::Path;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::{
    StoreConfig,
    backend::{self, KnownMigrations},
    conn::{Conn, sql},
    fault::{classify, is_fatal},
    hot,
    jobs::execute,
    postgres,
    refusal::explain,
    sealed::SealedValues,
};
use crate::{
    error::{Advice, Error, ErrorCode, Result, Setting},
    id::{AppCallId, AppEventId, MessageId, TraceId},
    store::views::{Owned, Tx},
    time::Timestamp,
};

mod inspection;

pub(super) use self::inspection::newer_schema;
pub(crate) use self::inspection::{inspect, refuse_emptied};

/// Tables whose rows are counted.
const COUNTED: [&str; 9] =
    ["users", "bots", "channels", "contacts", "messages", "deliveries", "traces", "media", "plugins"];

/// Maximum number of findings of a check of the database.
const MOST_FINDINGS: u32 = 100;

/// Connection for maintenance of a database. It never creates a database, and changes no schema.
#[derive(Debug)]
pub struct Upkeep {
    tx: Tx,
}

/// Migrations of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Version of the newest applied migration; 0 for none.
    pub version: i64,
    /// Version of the newest migration that this program knows.
    pub newest: i64,
    /// Missing migrations, with their names.
    pub pending: Vec<(i64, String)>,
}

impl Schema {
    /// Whether a newer program wrote it.
    pub fn is_newer(&self) -> bool {
        self.version > self.newest
    }
}

impl Upkeep {
    /// `meta` key of the sealing key's fingerprint, stored when a rotation begins.
    pub const KEY_ID: &'static str = super::sealed::KEY_ID;

    /// Connects.
    ///
    /// # Errors
    /// `NOT_FOUND` for a file that is not there; `UNAVAILABLE` when the database does not answer.
    pub async fn open(config: &StoreConfig) -> Result<Self> {
        Self::connect(config).await.map_err(|error| explain(config, error))
    }

    async fn connect(config: &StoreConfig) -> Result<Self> {
        let owned = match config {
            StoreConfig::Sqlite(path) => {
                if !path.exists() {
                    return Err(Error::new(
                        ErrorCode::NotFound,
                        format!("there is no database {}", path.display()),
                    )
                    .with_hint("start the hub once, or name its data directory")
                    .with_advice([Advice::Set(Setting::DataDir, None)]));
                }
                if path.is_dir() {
                    let message = format!("{} is a directory, not a database", path.display());
                    return Err(Error::new(ErrorCode::Unavailable, message));
                }
                refuse_emptied(path)?;
                let mut connection = backend::sqlite_options(path).connect().await.map_err(classify)?;
                // Connecting does not read the file.
                sqlx::raw_sql("PRAGMA schema_version").execute(&mut connection).await.map_err(classify)?;
                Owned::Sqlite(connection)
            }
            StoreConfig::Postgres(url) => {
                Owned::Postgres(postgres::options(url)?.connect().await.map_err(classify)?)
            }
        };
        Ok(Self { tx: Tx(owned) })
    }

    /// Closes the connection: of a SQLite file that no other process has open, only the file remains.
    pub async fn close(self) -> Result<()> {
        match self.tx.0 {
            Owned::Sqlite(connection) => connection.close().await,
            Owned::Postgres(connection) => connection.close().await,
        }
        .map_err(classify)
    }

    /// Reads the state of the migrations.
    pub async fn schema(&mut self) -> Result<Schema> {
        let (found, known): (i64, _) = match &mut self.tx.conn() {
            Conn::Sqlite(conn) => (
                sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'")
                    .fetch_one(&mut **conn)
                    .await
                    .map_err(classify)?,
                KnownMigrations::sqlite(),
            ),
            Conn::Postgres(conn) => (
                sqlx::query_scalar("SELECT CAST(COUNT(to_regclass('_sqlx_migrations')) AS BIGINT)")
                    .fetch_one(&mut **conn)
                    .await
                    .map_err(classify)?,
                KnownMigrations::postgres(),
            ),
        };
        let version = if found == 0 { 0 } else { self.applied().await? };
        let pending = known.after(version);
        Ok(Schema { version, newest: known.newest(), pending })
    }

    /// Returns the time at which the database was created; `None` without a schema.
    pub async fn created_at(&mut self) -> Result<Option<Timestamp>> {
        let first: Option<i64> = match &mut self.tx.conn() {
            Conn::Sqlite(conn) => sqlx::query_scalar(
                "SELECT CAST(strftime('%s', MIN(installed_on)) AS INTEGER) FROM _sqlx_migrations",
            )
            .fetch_one(&mut **conn)
            .await
            .map_err(classify)?,
            Conn::Postgres(conn) => sqlx::query_scalar(
                "SELECT CAST(EXTRACT(EPOCH FROM MIN(installed_on)) AS BIGINT) FROM _sqlx_migrations",
            )
            .fetch_one(&mut **conn)
            .await
            .map_err(classify)?,
        };
        Ok(first.map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000))))
    }

    async fn applied(&mut self) -> Result<i64> {
        let mut conn = self.tx.conn();
        let version: Option<i64> = sql!(conn, value: "SELECT MAX(version) FROM _sqlx_migrations")?;
        Ok(version.unwrap_or(0))
    }

    /// Checks the file itself and returns the findings; none on PostgreSQL, which checks its pages when it reads
    /// them.
    pub async fn integrity(&mut self) -> Result<Vec<String>> {
        let Conn::Sqlite(conn) = &mut self.tx.conn() else { return Ok(Vec::new()) };
        let sql = format!("PRAGMA integrity_check({MOST_FINDINGS})");
        let found = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut **conn).await.map_err(classify);
        let lines: Vec<String> = match found {
            // The check itself ends at some kinds of damage.
            Err(error) if is_fatal(&error) => error.causes(),
            found => found?,
        };
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Stores in the tables of a SQLite file what its commit log has for them. The schema must be up to date.
    pub async fn flush(&mut self, config: &StoreConfig) -> Result<()> {
        match config {
            StoreConfig::Sqlite(path) => hot::flush_file(path).await,
            StoreConfig::Postgres(_) => Ok(()),
        }
    }

    /// Returns references to rows that do not exist, by table; none on PostgreSQL, which enforces them.
    pub async fn broken_references(&mut self) -> Result<Vec<String>> {
        let Conn::Sqlite(conn) = &mut self.tx.conn() else { return Ok(Vec::new()) };
        let rows: Vec<(String, i64, String)> = sqlx::query_as(
            "SELECT \"table\", COUNT(*), parent FROM pragma_foreign_key_check GROUP BY \"table\", parent",
        )
        .fetch_all(&mut **conn)
        .await
        .map_err(classify)?;
        let describe =
            |(table, count, parent)| format!("{count} rows of {table} name {parent} that are not there");
        Ok(rows.into_iter().map(describe).collect())
    }

    /// Counts the rows of the main tables.
    pub async fn counts(&mut self) -> Result<Vec<(&'static str, i64)>> {
        let mut counts = Vec::with_capacity(COUNTED.len());
        for table in COUNTED {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            let mut conn = self.tx.conn();
            let count: i64 = sql!(conn, value: AssertSqlSafe(sql))?;
            counts.push((table, count));
        }
        Ok(counts)
    }

    /// Bytes that the database takes, the write-ahead log not counted.
    pub async fn size(&mut self) -> Result<i64> {
        let mut conn = self.tx.conn();
        sql!(conn, value:
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
            "SELECT CAST(pg_database_size(current_database()) AS BIGINT)"
        )
    }

    /// Gives the room of what was deleted back to the machine, and brings the planner's numbers up to date.
    pub async fn vacuum(&mut self) -> Result<()> {
        execute(&mut self.tx, "VACUUM (ANALYZE)", "VACUUM; PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)")
            .await
    }

    /// Copies a SQLite database as it is at this moment into a new file, while others read and write.
    ///
    /// # Errors
    /// `CONFLICT` on PostgreSQL; `UNAVAILABLE` when the copy cannot be written.
    pub async fn copy_into(&mut self, path: &Path) -> Result<()> {
        let Conn::Sqlite(conn) = &mut self.tx.conn() else {
            return Err(Error::conflict("a PostgreSQL database is not copied by the hub")
                .with_hint("use pg_dump --format custom; keep the key and the files as well"));
        };
        sqlx::query("VACUUM INTO $1")
            .bind(path.display().to_string())
            .execute(&mut **conn)
            .await
            .map(|_| ())
            .map_err(classify)
    }

    /// Reads a page of the ids of available files, after one.
    pub async fn ready_files(&mut self, after: &str, limit: u32) -> Result<Vec<String>> {
        let mut conn = self.tx.conn();
        sql!(conn, values:
            "SELECT id FROM media WHERE state = 'ready' AND id > $1 ORDER BY id LIMIT $2";
            after, i64::from(limit)
        )
    }

    /// Returns the ids among these that have a row, in any state.
    pub async fn known_files(&mut self, ids: &[String]) -> Result<Vec<String>> {
        let mut conn = self.tx.conn();
        sql!(conn, values:
            ["SELECT id FROM media WHERE id", in 1]; crate::text::json(ids)
        )
    }

    /// The bots, with names and statuses, the oldest thousand.
    pub async fn bots(&mut self) -> Result<Vec<(String, String, String)>> {
        let mut conn = self.tx.conn();
        sql!(conn, all: "SELECT id, name, status FROM bots ORDER BY id LIMIT 1000")
    }

    /// The settings of the webhooks of channels that are on, as JSON, with the names of the channels; the oldest
    /// thousand.
    pub async fn webhooks(&mut self) -> Result<Vec<(String, String)>> {
        let mut conn = self.tx.conn();
        sql!(conn, all: "SELECT name, webhook FROM channels WHERE enabled ORDER BY id LIMIT 1000")
    }

    /// The versions of plugins that run in channels: name, version and source; the oldest thousand.
    pub async fn plugins_in_use(&mut self) -> Result<Vec<(String, String, String)>> {
        let mut conn = self.tx.conn();
        sql!(conn, all:
            "SELECT p.name, v.version, v.script FROM plugin_versions v JOIN plugins p ON p.id = v.plugin_id
            WHERE v.id IN (SELECT version_id FROM channel_plugins) ORDER BY v.id LIMIT 1000"
        )
    }

    /// Counts the rows from before an instant in tables with a retention period.
    pub async fn count_before(&mut self, before: Timestamp) -> Result<Vec<(&'static str, i64)>> {
        let counted = [
            (
                "traces",
                TraceId::first_at(before).to_string(),
                "SELECT COUNT(*) FROM traces WHERE id < $2 AND started_at < $1 AND status <> 'pending'",
            ),
            (
                "messages",
                MessageId::first_at(before).to_string(),
                "SELECT COUNT(*) FROM messages m WHERE m.id < $2 AND m.created_at < $1
                    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state IN ('pending', 'parked'))
                    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message_id = m.id AND o.state IN ('queued', 'sending'))",
            ),
            (
                "app_calls",
                AppCallId::MAX.to_string(),
                "SELECT COUNT(*) FROM app_calls WHERE created_at < $1 AND id < $2",
            ),
            (
                "app_events",
                AppEventId::MAX.to_string(),
                "SELECT COUNT(*) FROM app_events WHERE created_at < $1 AND id < $2",
            ),
        ];
        let mut counts = Vec::with_capacity(counted.len());
        for (name, bound, sql) in counted {
            let mut conn = self.tx.conn();
            let count: i64 = sql!(conn, value: sql; before, &bound)?;
            counts.push((name, count));
        }
        Ok(counts)
    }

    /// Reads the value stored under a name.
    pub async fn noted(&mut self, name: &str) -> Result<Option<String>> {
        let mut conn = self.tx.conn();
        sql!(conn, optional_value: "SELECT value FROM meta WHERE key = $1"; name)
    }

    /// Stores a value under a name.
    pub async fn note(&mut self, name: &str, value: &str) -> Result<()> {
        let mut conn = self.tx.conn();
        sql!(conn, run:
            "INSERT INTO meta (key, value) VALUES ($1, $2)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            name, value
        )
    }

    /// Sealed values.
    pub fn sealed(&mut self) -> SealedValues<'_> {
        SealedValues(self.tx.conn())
    }

    /// Begins a transaction.
    pub async fn begin(&mut self) -> Result<()> {
        execute(&mut self.tx, "BEGIN", "BEGIN IMMEDIATE").await
    }

    /// Ends the transaction; what it did is on disk then.
    pub async fn commit(&mut self) -> Result<()> {
        execute(&mut self.tx, "COMMIT", "COMMIT").await
    }
}

#[cfg(test)]
impl Upkeep {
    /// Runs statements of a test.
    pub async fn run(&mut self, statements: &str) -> Result<()> {
        self.tx.conn().script(AssertSqlSafe(statements.to_owned())).await
    }
}
