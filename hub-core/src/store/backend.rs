//! Opening either database: options, pools, migrations.

use std::{
    fs::File,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use data_encoding::HEXLOWER;
use sqlx::{
    ConnectOptions, PgPool, SqlitePool,
    migrate::{Migrate, Migration, MigrationType, Migrator},
    pool::PoolOptions,
    postgres::PgConnectOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use super::{
    fault::classify,
    postgres,
    refusal::explain,
    upkeep::{Schema, Upkeep, inspect, newer_schema},
};
use crate::{
    data_dir,
    error::{Advice, Error, ErrorCode, Result, Setting},
    private_files::{self, Locked},
    secret::Secret,
    store::views::{Owned, Pooled, Read},
};

/// Location of the database, as a setting.
#[derive(Debug, Clone)]
pub enum StoreConfig {
    /// A file; it and its folder are made when missing.
    Sqlite(PathBuf),
    /// A `postgres://` URL; it may hold a password.
    Postgres(Secret),
}

impl StoreConfig {
    /// Reads `HUB_DATABASE_URL`: `postgres://…`, `postgresql://…` or `sqlite://PATH`, which may end with `?mode=rwc`.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on another scheme, a URL that does not parse, or a parameter of SQLite that the hub does not have.
    pub fn from_url(url: &Secret) -> Result<Self> {
        let text = url.expose();
        if let Some(path) = text.strip_prefix("sqlite:") {
            let file = sqlite_file(path.strip_prefix("//").unwrap_or(path));
            return file.map(Self::Sqlite).map_err(|reason| Error::invalid("database_url", reason));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return PgConnectOptions::from_str(text)
                .map(|_| Self::Postgres(url.clone()))
                .map_err(|_| Error::invalid("database_url", "is not a valid PostgreSQL URL"));
        }
        Err(Error::invalid("database_url", "must start with postgres:// or sqlite://"))
    }

    /// Claims a SQLite file, whose folder is created, for the hub of this process; `None` on PostgreSQL, which nodes
    /// share under leases.
    ///
    /// # Errors
    /// As [`claim_file`]; `UNAVAILABLE` when the folder cannot be created.
    pub(crate) fn claim(&self) -> Result<Option<Locked>> {
        let Self::Sqlite(path) = self else { return Ok(None) };
        create_folder_of(path)?;
        claim_file(path).map(Some)
    }
}

/// The file of a SQLite URL, without its scheme.
fn sqlite_file(text: &str) -> std::result::Result<PathBuf, String> {
    let (path, parameters) = text.split_once('?').unwrap_or((text, ""));
    match path {
        "" => return Err("names no file".to_owned()),
        ":memory:" => return Err("names no file: a hub keeps what it has promised".to_owned()),
        _ => {}
    }
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        if parameter != "mode=rwc" {
            return Err(format!(
                "has a parameter that the hub does not have: {parameter}; it opens the file as with mode=rwc"
            ));
        }
    }
    if !parameters.is_empty() && Path::new(text).exists() {
        return Err(format!(
            "has parameters, which were a part of the file's name before: rename {text} to {path}, while no hub runs"
        ));
    }
    data_dir::path(path)
}

/// A database, with its pool for reads.
#[derive(Debug, Clone)]
pub(super) enum Backend {
    Sqlite { reads: SqlitePool, write: SqliteConnectOptions },
    Postgres { reads: PgPool, write: PgConnectOptions },
}

/// Reads at the same time.
const READERS: u32 = 4;
/// Longest wait for a reader.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Longest wait of SQLite for another process's lock.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Pages of SQLite's write-ahead log, 17 MiB, after which a commit copies them into the database.
pub(super) const CHECKPOINT_PAGES: i32 = 4352;

impl Backend {
    /// Connects and, with `migrate`, brings the schema up to date. A database that is not fit for use is not changed.
    pub(super) async fn open(config: &StoreConfig, migrate: bool) -> Result<Self> {
        Self::prepare(config, migrate).await.map_err(|error| explain(config, error))
    }

    async fn prepare(config: &StoreConfig, migrate: bool) -> Result<Self> {
        if let StoreConfig::Postgres(url) = config {
            postgres::check(&postgres::options(url)?).await?;
        }
        if let Some((mut upkeep, schema)) = inspect(config, migrate).await? {
            let copied = match config {
                StoreConfig::Sqlite(path) => keep_before_migration(&mut upkeep, path, &schema).await,
                StoreConfig::Postgres(_) => Ok(()),
            };
            upkeep.close().await?;
            copied?;
        }
        match config {
            StoreConfig::Sqlite(path) => Self::open_sqlite(path, migrate).await,
            StoreConfig::Postgres(url) => Self::open_postgres(url, migrate).await,
        }
    }

    async fn open_sqlite(path: &Path, migrate: bool) -> Result<Self> {
        if migrate {
            create_folder_of(path)?;
            private_files::open(path).map_err(|error| cannot_create(path, &error))?;
        }
        let options = sqlite_options(path)
            .journal_mode(SqliteJournalMode::Wal)
            // The write-ahead log shrinks back to this after a burst.
            .pragma("journal_size_limit", "67108864")
            .statement_cache_capacity(256);
        let mut writer = options.connect().await.map_err(classify)?;
        if migrate {
            apply(&mut writer, &sqlite_migrator()).await?;
        }
        sqlx::Connection::close(writer).await.map_err(classify)?;
        let reads = PoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().pragma("query_only", "ON"));
        let write = options
            // What a statement may have to take back is kept in memory: on disk it is a third of what a batch of
            // messages writes. Programs that embed the hub do not get the flags with which the workspace builds SQLite.
            .pragma("temp_store", "MEMORY")
            // What the indexes touch again and again stays in memory (KiB).
            .pragma("cache_size", "-8192")
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string());
        Ok(Self::Sqlite { reads, write })
    }

    async fn open_postgres(url: &Secret, migrate: bool) -> Result<Self> {
        let options = postgres::options(url)?.statement_cache_capacity(256);
        let mut writer = options.connect().await.map_err(classify)?;
        if migrate {
            apply(&mut writer, &postgres_migrator()).await?;
        }
        sqlx::Connection::close(writer).await.map_err(classify)?;
        Ok(Self::Postgres { reads: postgres::readers(options.clone(), READERS * 2, ACQUIRE), write: options })
    }

    pub(super) async fn connect_writer(&self) -> Result<Owned> {
        match self {
            Self::Sqlite { write, .. } => write.connect().await.map(Owned::Sqlite),
            Self::Postgres { write, .. } => postgres::connect_writer(write).await.map(Owned::Postgres),
        }
        .map_err(classify)
    }

    pub(super) async fn read(&self) -> Result<Read> {
        match self {
            Self::Sqlite { reads, .. } => reads.acquire().await.map(Pooled::Sqlite),
            Self::Postgres { reads, .. } => reads.acquire().await.map(Pooled::Postgres),
        }
        .map(Read)
        .map_err(classify)
    }

    /// Takes the file for this process alone, as long as the answer lives; `None` on PostgreSQL, which nodes
    /// share.
    pub(super) fn claim(&self) -> Result<Option<Locked>> {
        match self {
            Self::Sqlite { write, .. } => claim_file(write.get_filename()).map(Some),
            Self::Postgres { .. } => Ok(None),
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite { reads, .. } => reads.close().await,
            Self::Postgres { reads, .. } => reads.close().await,
        }
    }
}

/// Takes a SQLite file, which need not be there, for this process alone, as long as the answer lives.
///
/// # Errors
/// `UNAVAILABLE` when another process has it, or the lock next to it cannot be made; `FORBIDDEN` when the operating
/// system refuses it.
pub fn claim_file(database: &Path) -> Result<Locked> {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let path: &Path = path.as_ref();
    let failed = |error: std::io::Error| {
        let other = || Error::new(ErrorCode::Unavailable, format!("cannot lock {}: {error}", path.display()));
        private_files::refusal(path, &error).unwrap_or_else(other)
    };
    private_files::lock(path).map_err(failed)?.ok_or_else(|| {
        let taken = Error::new(ErrorCode::Unavailable, "another process works on this database");
        taken.with_hint("stop it first; only a PostgreSQL database serves several hubs")
    })
}

/// Options of every connection to a SQLite file.
pub(super) fn sqlite_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .disable_statement_logging()
}

/// Copies a database before its migration, to the same directory, for a return to the older program. The last two
/// copies are kept.
///
/// # Errors
/// Those of files.
async fn keep_before_migration(upkeep: &mut Upkeep, path: &Path, schema: &Schema) -> Result<()> {
    if schema.version == 0 || schema.pending.is_empty() {
        return Ok(());
    }
    let copy = migration_copy(path, schema.version);
    let partial = migration_copy(path, 0);
    let made = async {
        let failed = |error: std::io::Error| {
            Error::new(ErrorCode::Unavailable, format!("cannot write {}: {error}", partial.display()))
        };
        remove_if_there(&partial).map_err(failed)?;
        private_files::create_new(&partial, b"").map_err(failed)?;
        upkeep.copy_into(&partial).await?;
        File::open(&partial).and_then(|file| file.sync_all()).map_err(failed)?;
        std::fs::rename(&partial, &copy).map_err(failed)
    };
    made.await.map_err(|error| {
        error.with_hint("the copy of the database before its migration needs space in the same directory")
    })?;
    tracing::info!(copy = %copy.display(), version = schema.version, "the database was copied before its migration");
    let copies = (1..=schema.version).rev().map(|version| migration_copy(path, version));
    for older in copies.filter(|copy| copy.exists()).skip(2) {
        if remove_if_there(&older).is_err() {
            tracing::warn!(file = %older.display(), "an old copy of the database cannot be removed");
        }
    }
    Ok(())
}

/// `hub.db.schema-16`: the copy of a database that has schema version 16.
fn migration_copy(path: &Path, version: i64) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(if version == 0 { ".schema-partial".to_owned() } else { format!(".schema-{version}") });
    name.into()
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The migrations that this program knows of a database.
pub(super) struct KnownMigrations(Migrator);

impl KnownMigrations {
    pub(super) fn sqlite() -> Self {
        Self(sqlite_migrator())
    }

    pub(super) fn postgres() -> Self {
        Self(postgres_migrator())
    }

    pub(super) fn newest(&self) -> i64 {
        self.0.iter().map(|migration| migration.version).max().unwrap_or(0)
    }

    /// Migrations after a version, with their names.
    pub(super) fn after(&self, version: i64) -> Vec<(i64, String)> {
        let behind = self.0.iter().filter(|migration| migration.version > version);
        behind.map(|migration| (migration.version, migration.description.to_string())).collect()
    }
}

/// Creates the folder of a file, readable by its owner only.
fn create_folder_of(path: &Path) -> Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => private_files::create_folder(folder).map_err(|error| cannot_create(path, &error)),
        None => Ok(()),
    }
}

fn cannot_create(path: &Path, error: &std::io::Error) -> Error {
    private_files::refusal(path, error).unwrap_or_else(|| {
        Error::new(ErrorCode::Unavailable, format!("cannot create {}: {error}", path.display()))
            .with_hint("choose another data directory")
            .with_advice([Advice::Set(Setting::DataDir, None)])
    })
}

macro_rules! migrations {
    ($database:literal: $($version:literal $name:literal),* $(,)?) => {
        Migrator::with_migrations(vec![$(
            Migration::new(
                $version,
                $name.into(),
                MigrationType::Simple,
                sqlx::SqlStr::from_static(include_str!(concat!(
                    "../../migrations/", $database, "/", $name, ".sql"
                ))),
                false,
            ),
        )*])
    };
}

/// Every migration of a database, one per line.
macro_rules! all_migrations {
    ($database:literal) => {
        migrations!(
            $database:
            1 "0001_accounts",
            2 "0002_bots",
            3 "0003_channels",
            4 "0004_lease_name",
            5 "0005_open_deliveries",
            6 "0006_plugins",
            7 "0007_identity",
            8 "0008_admin",
            9 "0009_media",
            10 "0010_ai",
            11 "0011_channel_listeners",
            12 "0012_apps",
            13 "0013_cheaper_rows",
            14 "0014_paused_plugins",
            15 "0015_app_events",
            16 "0016_app_sockets",
            17 "0017_known_devices",
            18 "0018_recent_sends",
            19 "0019_retention_indexes",
            20 "0020_message_lists",
            21 "0021_replays",
            22 "0022_node_leases",
            23 "0023_ilink",
            24 "0024_successes",
            25 "0025_commit_log",
            26 "0026_steps_and_order",
            27 "0027_compressed_steps",
            28 "0028_packed_steps",
            29 "0029_node_networks",
            30 "0030_app_config",
            31 "0031_app_deliveries",
        )
    };
}

fn sqlite_migrator() -> Migrator {
    let accounts =
        "eb5da8932b392e959c2ad0ffd78d923968e6432d0c7f6adb8dd9d38481f6c934817edd98eb3295be395e293c54f71681";
    let bots =
        "3eeba441ccb96cc1004754225f2dfc0e93ce7ea64823cfb22cebe3c9c9527390ae5ff0a3a19fa4fffd7b2bc77962ed50";
    with_checksums(all_migrations!("sqlite"), [(1, accounts), (2, bots)])
}

fn postgres_migrator() -> Migrator {
    let accounts =
        "5f2b12163c1a2e3a708f70303a3391ebd901995d271c003128d3919a0d2d5c89e28464d0cb950adcf4e4c73e16c1a897";
    let bots =
        "4436d08aaa13c8de77fdcd2949993175ca73f8d5b82dadd61b976b0c43a3bc9b8cffdefbadac64a0a6f019ebe947a1ed";
    with_checksums(all_migrations!("postgres"), [(1, accounts), (2, bots)])
}

/// Keeps the first checksums of migrations whose comments were edited later: databases have stored these.
fn with_checksums(mut migrator: Migrator, edited: [(i64, &str); 2]) -> Migrator {
    for migration in migrator.migrations.to_mut() {
        if let Some((_, checksum)) = edited.iter().find(|(version, _)| *version == migration.version) {
            let bytes = HEXLOWER.decode(checksum.as_bytes()).expect("a constant that is hex");
            migration.checksum = bytes.into();
        }
    }
    migrator
}

/// Runs the missing migrations.
async fn apply<C>(connection: &mut C, migrator: &Migrator) -> Result<()>
where
    C: Migrate,
{
    let applied = migrator.run_direct(None, connection, false).await;
    applied.map_err(|error| match error {
        // Another program has migrated it since it was inspected.
        sqlx::migrate::MigrateError::VersionMissing(version) => newer_schema(version),
        sqlx::migrate::MigrateError::Execute(error)
        | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => classify(error),
        other => Error::internal(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_sqlite_url_are_understood_or_refused() {
        let read = |url: &str| match StoreConfig::from_url(&Secret::new(url)) {
            Ok(StoreConfig::Sqlite(path)) => path.display().to_string(),
            Ok(StoreConfig::Postgres(_)) => "PostgreSQL".to_owned(),
            Err(error) => error.details()[0].reason.to_string(),
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.db").display().to_string();
        for (url, path) in [
            (format!("sqlite://{file}"), &*file),
            (format!("sqlite:{file}?mode=rwc"), &*file),
            (format!("sqlite://{file}?"), &*file),
            ("sqlite:hub.db?mode=rwc&mode=rwc".to_owned(), "hub.db"),
        ] {
            assert_eq!(read(&url), path, "{url}");
        }
        for (url, says) in [
            (format!("sqlite://{file}?mode=ro"), "a parameter that the hub does not have: mode=ro"),
            (format!("sqlite://{file}?mode=rwc&cache=shared"), "cache=shared"),
            (format!("sqlite://{file}?immutable=1"), "immutable=1"),
            ("sqlite://?mode=rwc".to_owned(), "names no file"),
            ("sqlite::memory:".to_owned(), "names no file"),
            ("sqlite://~/hub.db".to_owned(), "only a shell replaces ~"),
            ("sqlite:///~/hub.db?mode=rwc".to_owned(), "only a shell replaces ~"),
            ("sqlite:$HOME/hub.db".to_owned(), "only a shell replaces $"),
        ] {
            assert!(read(&url).contains(says), "{url}: {}", read(&url));
        }
        std::fs::write(format!("{file}?mode=rwc"), "").unwrap();
        let message = read(&format!("sqlite://{file}?mode=rwc"));
        assert!(message.contains("rename"), "{message}");
    }

    #[tokio::test]
    async fn the_writer_keeps_what_a_statement_may_take_back_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig::Sqlite(folder.path().join("hub.db"));
        let backend = Backend::open(&config, true).await.unwrap();
        let Owned::Sqlite(mut writer) = backend.connect_writer().await.unwrap() else {
            panic!("a file is opened by SQLite");
        };
        let temp_store: i64 = sqlx::query_scalar("PRAGMA temp_store").fetch_one(&mut writer).await.unwrap();
        assert_eq!(temp_store, 2, "2 is MEMORY");
        backend.close().await;
    }
}
