//! Connections to PostgreSQL. Their settings are set after connecting: poolers such as PgBouncer refuse the startup
//! parameter that carries settings.

use std::{str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool, Row, pool::PoolOptions, postgres::PgConnectOptions,
};

use super::fault::classify;
use crate::{
    error::{Error, ErrorCode, Result},
    secret::Secret,
};

/// Idle time after which a connection is tested before it is used.
const IDLE: Duration = Duration::from_secs(1);

/// Settings of readers. A page follows an index and ends at its limit. With the default `random_page_cost` of 4 PostgreSQL
/// prefers to collect and sort all rows of a bot, because it expects few of each bot.
const READER: &str = "SET default_transaction_read_only = on; SET statement_timeout = '5s'; \
    SET random_page_cost = 1";

/// Settings of the writer. Its statements join a few rows with large tables by key. Plans are made once, while tables
/// may be small or unknown; one that reads a whole table then would be kept while it grows.
const WRITER: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
    SET jit = off; SET plan_cache_mode = force_generic_plan";

/// The options of every connection.
///
/// # Errors
/// `INVALID_PARAMS` for a URL that does not parse.
pub(super) fn options(url: &Secret) -> Result<PgConnectOptions> {
    let options = PgConnectOptions::from_str(url.expose())
        .map_err(|_| Error::invalid("database_url", "is not a valid PostgreSQL URL"))?;
    // PgBouncer refuses `extra_float_digits`; since version 12 PostgreSQL writes numbers exactly without it.
    Ok(options.application_name("message-hub").extra_float_digits(None).disable_statement_logging())
}

/// Connects as the writer.
pub(super) async fn connect_writer(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    let mut connection = options.connect().await?;
    set(&mut connection, WRITER).await?;
    Ok(connection)
}

/// The pool of readers, which connects when it is first used.
pub(super) fn readers(options: PgConnectOptions, count: u32, acquire: Duration) -> PgPool {
    PoolOptions::new()
        .max_connections(count)
        .acquire_timeout(acquire)
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(set(connection, READER)))
        // After a restart of the server every idle connection is dead, and would fail one reader each.
        .before_acquire(|connection, seen| {
            Box::pin(async move {
                if seen.idle_for >= IDLE {
                    sqlx::Connection::ping(connection).await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options)
}

async fn set(connection: &mut PgConnection, settings: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(settings).execute(connection).await.map(drop)
}

/// Refuses a database that only reads, and a pooler that gives each transaction another session: settings, prepared
/// statements and `LISTEN` belong to a session.
///
/// # Errors
/// `UNAVAILABLE` with a remedy, also when the database cannot be reached.
pub(super) async fn check(options: &PgConnectOptions) -> Result<()> {
    let (is_read_only, have_sessions) = examine(options).await.map_err(classify)?;
    if is_read_only {
        let message =
            "the database is read-only for the hub: a standby, or default_transaction_read_only is on";
        return Err(Error::new(ErrorCode::Unavailable, message)
            .with_hint("name the primary in database_url, or ALTER ROLE or ALTER DATABASE … SET default_transaction_read_only = off"));
    }
    if have_sessions {
        return Ok(());
    }
    let message = "the pooler in front of the database gives each transaction another session (transaction pooling), \
        and a hub needs sessions: for settings, prepared statements and LISTEN";
    Err(Error::new(ErrorCode::Unavailable, message).with_hint(
        "use session pooling (PgBouncer: pool_mode = session), or the address of the database itself",
    ))
}

/// Whether the database only reads, and whether two connections have a session each: they do not if one has that of
/// the other, or another one after a transaction of the other.
async fn examine(options: &PgConnectOptions) -> sqlx::Result<(bool, bool)> {
    let (mut one, mut other) = (options.connect().await?, options.connect().await?);
    let row = sqlx::raw_sql("SHOW transaction_read_only").fetch_one(&mut one).await?;
    let is_read_only = row.try_get_unchecked::<String, _>(0)? == "on";
    // A pooler that gives a connection its own session because of a setting does so now.
    for connection in [&mut one, &mut other] {
        set(connection, READER).await?;
    }
    let before = session(&mut one).await?;
    sqlx::raw_sql("BEGIN").execute(&mut other).await?;
    let held = session(&mut other).await?;
    let after = session(&mut one).await?;
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await?;
    for connection in [one, other] {
        connection.close().await?;
    }
    Ok((is_read_only, before == after && before != held))
}

/// Returns the id of the server process that serves a connection, without a prepared statement.
async fn session(connection: &mut PgConnection) -> sqlx::Result<i32> {
    let row = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?;
    row.try_get_unchecked(0)
}
