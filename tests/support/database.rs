//! A fresh, migrated database of either kind, and a connection that looks behind the store's back.

use hub_core::{
    id::{BotId, Ids, UserId},
    random::Random,
    store::{Claim, Store, StoreConfig},
    time::{Clock, ManualClock, Timestamp},
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row, SqliteConnection};
use tokio::sync::Mutex;

use super::postgres;

/// The moment at which the contract's stories begin.
pub const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// One database and the store on it.
#[derive(Debug)]
pub struct Db {
    pub store: Store,
    pub ids: Ids,
    pub config: StoreConfig,
    raw: Mutex<Raw>,
    claim: Option<Claim>,
    _folder: Option<tempfile::TempDir>,
}

/// A connection without the store.
#[derive(Debug)]
enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// Pastes an expression for both drivers.
macro_rules! raw {
    ($self:expr, |$conn:ident| $run:expr) => {
        match &mut *$self.raw.lock().await {
            Raw::Sqlite($conn) => $run,
            Raw::Postgres($conn) => $run,
        }
        .unwrap()
    };
}

impl Db {
    /// A file in a temporary folder.
    pub async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig::Sqlite(folder.path().join("hub.db"));
        Self::open(config, Some(folder)).await
    }

    /// As [`Db::sqlite`], and this process works on the file: messages and outcomes are committed to the log first.
    pub async fn claimed() -> Self {
        let mut db = Self::sqlite().await;
        db.claim = db.store.claim().unwrap();
        db
    }

    /// A database of the run's server; `None` when there is no server.
    pub async fn postgres() -> Option<Self> {
        Some(Self::of(postgres::server()?).await)
    }

    /// A database of this server.
    pub async fn of(server: &postgres::Server) -> Self {
        Self::open(server.migrated_database().await, None).await
    }

    async fn open(config: StoreConfig, folder: Option<tempfile::TempDir>) -> Self {
        let clock = Clock::system();
        let store = Store::open(&config, clock.clone()).await.unwrap();
        let raw = match &config {
            StoreConfig::Sqlite(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                Raw::Sqlite(options.connect().await.unwrap())
            }
            StoreConfig::Postgres(url) => Raw::Postgres(PgConnection::connect(url.expose()).await.unwrap()),
        };
        // Ids begin with the time: those of a story are made when it happens.
        let ids = Ids::new(ManualClock::new(START).into(), Random::system());
        Self { store, ids, config, raw: Mutex::new(raw), claim: None, _folder: folder }
    }

    /// Closes the store and removes the database. A test that fails leaves it, and the end of the run
    /// removes it.
    pub async fn remove(self) {
        self.store.close().await;
        match self.raw.into_inner() {
            Raw::Sqlite(connection) => connection.close().await.unwrap(),
            Raw::Postgres(connection) => connection.close().await.unwrap(),
        }
        if let Some(server) = matches!(self.config, StoreConfig::Postgres(_)).then(postgres::server).flatten()
        {
            server.drop_database(&self.config).await;
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.config, StoreConfig::Postgres(_))
    }

    /// Flushes the commit log into the tables, as a read does.
    async fn flush(&self) {
        if self.claim.is_some() {
            drop(self.store.read().await.unwrap());
        }
    }

    /// Number of rows of a table, without a flush of the commit log.
    pub async fn count_unflushed(&self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT CAST(count(*) AS BIGINT) FROM {table}"));
        raw!(self, |conn| sqlx::query_scalar(sql).fetch_one(conn).await)
    }

    /// Runs statements on a connection outside the store.
    pub async fn sql(&self, sql: impl Into<String>) {
        self.flush().await;
        let sql = AssertSqlSafe(sql.into());
        raw!(self, |conn| sqlx::raw_sql(sql).execute(conn).await.map(|_| ()));
    }

    /// A number. The statement casts it to BIGINT.
    pub async fn number(&self, sql: impl Into<String>) -> i64 {
        self.flush().await;
        let sql = AssertSqlSafe(sql.into());
        raw!(self, |conn| sqlx::query_scalar(sql).fetch_one(conn).await)
    }

    /// A text; `None` for NULL and for no row.
    pub async fn text(&self, sql: impl Into<String>) -> Option<String> {
        self.flush().await;
        let sql = AssertSqlSafe(sql.into());
        raw!(self, |conn| sqlx::query_scalar::<_, Option<String>>(sql).fetch_optional(conn).await).flatten()
    }

    /// A column of texts.
    pub async fn texts(&self, sql: impl Into<String>) -> Vec<String> {
        self.flush().await;
        let sql = AssertSqlSafe(sql.into());
        raw!(self, |conn| sqlx::query_scalar(sql).fetch_all(conn).await)
    }

    /// Query plan of a statement, by lines.
    pub async fn plan(&self, sql: &str) -> Vec<String> {
        match &mut *self.raw.lock().await {
            Raw::Sqlite(conn) => {
                let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
                let rows = sqlx::query(sql).fetch_all(conn).await.unwrap();
                rows.iter().map(|row| row.get("detail")).collect()
            }
            Raw::Postgres(conn) => {
                let places: Vec<String> = (1..=12).map(|place| format!("${place}")).collect();
                let used =
                    places.iter().rposition(|place| sql.contains(place.as_str())).map_or(0, |last| last + 1);
                let kinds = places[..used].iter();
                let kinds = kinds.map(|place| if sql.contains(place.as_str()) { "unknown" } else { "text" });
                let list = |items: Vec<&str>| {
                    if items.is_empty() { String::new() } else { format!("({})", items.join(", ")) }
                };
                let (kinds, values) = (list(kinds.collect()), list(vec!["NULL"; used]));
                let prepare =
                    format!("SET plan_cache_mode = force_generic_plan; PREPARE planned {kinds} AS {sql}");
                sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *conn).await.unwrap();
                let explain = AssertSqlSafe(format!("EXPLAIN (COSTS OFF) EXECUTE planned {values}"));
                let lines = sqlx::query_scalar(explain).fetch_all(&mut *conn).await.unwrap();
                sqlx::raw_sql("DEALLOCATE planned").execute(conn).await.unwrap();
                lines
            }
        }
    }

    /// Number of rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        self.number(format!("SELECT CAST(count(*) AS BIGINT) FROM {table}")).await
    }

    /// A user, behind the store's back.
    pub async fn user(&self, name: &str) -> UserId {
        let id: UserId = self.ids.next();
        self.sql(format!(
            "INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
             VALUES ('{id}', '{name}', '{name}', '', 'member', 'active', 0, 0)"
        ))
        .await;
        id
    }

    /// A bot of a user whose lease no one holds, behind the store's back.
    pub async fn bot(&self, owner: UserId) -> BotId {
        let id: BotId = self.ids.next();
        self.sql(format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials,
                credentials_rev, cursor, config_rev, lease_fence, created_at)
             VALUES ('{id}', '{owner}', 'bot', 'sim', 'pending', 0, '{id}@im.bot', '{id}@person', 'sealed', 1, '', 0,
                0, 0)"
        ))
        .await;
        id
    }
}
