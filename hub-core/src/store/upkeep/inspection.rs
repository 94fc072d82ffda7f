//! Checks of a database before a hub uses it. They change nothing, so that a refused start leaves everything as it was.

use std::path::Path;

use super::{Schema, Upkeep};
use crate::{
    error::{Advice, Error, ErrorCode, Result},
    store::{StoreConfig, backend::KnownMigrations, conn::Conn, fault::classify, hot},
};

/// The first migration after which nodes, not bots, have leases.
const LEASES_OF_NODES: i64 = 22;

/// Connects to a database and checks that this program may use it; `None` for a SQLite file that is absent or new.
///
/// # Errors
/// `UNAVAILABLE` when a newer program wrote it; when a migration is missing unless it `migrates`, or while a node
/// works on PostgreSQL; when the commit log cannot be read.
pub(crate) async fn inspect(config: &StoreConfig, migrates: bool) -> Result<Option<(Upkeep, Schema)>> {
    if let StoreConfig::Sqlite(path) = config
        && !path.metadata().is_ok_and(|found| found.is_dir() || found.len() > 0)
    {
        return if migrates { Ok(None) } else { Err(outdated_schema(0, KnownMigrations::sqlite().newest())) };
    }
    let mut database = Upkeep::open(config).await?;
    match check(&mut database, migrates).await {
        Ok(schema) => Ok(Some((database, schema))),
        Err(error) => {
            // The reason is more interesting than a connection that cannot be closed.
            let _ = database.close().await;
            Err(error)
        }
    }
}

async fn check(database: &mut Upkeep, migrates: bool) -> Result<Schema> {
    let schema = database.schema().await?;
    if schema.is_newer() {
        return Err(newer_schema(schema.version));
    }
    if !migrates && !schema.pending.is_empty() {
        return Err(outdated_schema(schema.version, schema.newest));
    }
    // After a migration, the version that can read the log does not open the database any more.
    database.expect_readable_log().await?;
    if schema.version > 0 && !schema.pending.is_empty() && database.has_leases().await? {
        let message = format!(
            "a node works on this database, and this program would migrate its schema from {} to {}",
            schema.version, schema.newest
        );
        return Err(Error::new(ErrorCode::Unavailable, message).with_hint(
            "stop every node, then start this program; a node that was killed counts until its lease ends",
        ));
    }
    Ok(schema)
}

/// The error of a database that a newer program wrote.
pub(in crate::store) fn newer_schema(version: i64) -> Error {
    let message = format!("the database has schema version {version}, which this program does not know");
    Error::new(ErrorCode::Unavailable, message).with_hint("a newer hub wrote this database; start that one")
}

/// Refuses a file of 0 bytes next to a key: a fresh hub has neither, so the database was lost, and opening it would make
/// the next person who registers an administrator.
///
/// # Errors
/// `UNAVAILABLE` with the ways out.
pub(crate) fn refuse_emptied(path: &Path) -> Result<()> {
    let size = |path: &Path| std::fs::metadata(path).map(|found| found.len()).ok();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_emptied = size(path) == Some(0)
        && size(Path::new(&log)).is_none_or(|size| size == 0)
        && path.with_file_name("secret.key").exists();
    if !is_emptied {
        return Ok(());
    }
    let message = format!("{} is empty (0 bytes) although its key exists", path.display());
    Err(Error::new(ErrorCode::Unavailable, message)
        .with_hint("delete the empty file to start without data, or restore a backup")
        .with_advice([Advice::RestoreBackup]))
}

/// The error of a database whose schema is to be migrated first.
fn outdated_schema(version: i64, newest: i64) -> Error {
    let message = format!("the database has schema version {version}, this program needs {newest}");
    Error::new(ErrorCode::Unavailable, message).with_advice([Advice::MigrateDatabase])
}

impl Upkeep {
    /// Checks that this program can read the commit log of a SQLite file.
    ///
    /// # Errors
    /// `UNAVAILABLE` naming the first entry that cannot be read, and the way out.
    pub async fn expect_readable_log(&mut self) -> Result<()> {
        let mut unreadable = self.unreadable_entries().await?.into_iter();
        let Some(first) = unreadable.next() else { return Ok(()) };
        Err(match unreadable.count() {
            0 => first,
            more => Error::new(first.code(), format!("{}; {more} more cannot be read", first.message()))
                .with_hint_of(&first),
        })
    }

    /// The entries of the commit log that this program cannot read, as errors that name them; none on PostgreSQL, which
    /// has no log.
    pub async fn unreadable_entries(&mut self) -> Result<Vec<Error>> {
        let Conn::Sqlite(conn) = &mut self.tx.conn() else { return Ok(Vec::new()) };
        let has_log = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'commit_log')";
        if !sqlx::query_scalar(has_log).fetch_one(&mut **conn).await.map_err(classify)? {
            return Ok(Vec::new());
        }
        let entries = sqlx::query_as("SELECT id, entry FROM commit_log ORDER BY id").fetch_all(&mut **conn);
        let entries: Vec<(i64, Vec<u8>)> = entries.await.map_err(classify)?;
        Ok(entries.into_iter().filter_map(|(id, entry)| hot::check_entry(id, entry).err()).collect())
    }

    /// Whether a node works on a PostgreSQL database now, by its lease, which ends some seconds after a node that was
    /// killed. Who works on a SQLite file has claimed it.
    pub async fn has_leases(&mut self) -> Result<bool> {
        let version = self.schema().await?.version;
        let Conn::Postgres(conn) = &mut self.tx.conn() else { return Ok(false) };
        let held = match version {
            0 => return Ok(false),
            ..LEASES_OF_NODES => {
                "SELECT EXISTS (SELECT 1 FROM bots
                WHERE lease_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))"
            }
            _ => {
                "SELECT EXISTS (SELECT 1 FROM nodes
                WHERE lease_until > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))"
            }
        };
        sqlx::query_scalar(held).fetch_one(&mut **conn).await.map_err(classify)
    }
}
