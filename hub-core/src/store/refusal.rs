//! Reasons why a database cannot be opened, with the fix for the operator.
//!
//! These sentences name hosts, files and users, so they are for logs and for the command line. Once a hub runs, its
//! callers get those of [`fault`](super::fault).

use std::{fs::File, path::Path};

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::{StoreConfig, postgres};
use crate::{
    error::{Advice, Error, ErrorCode},
    private_files,
};

/// Explains an error of connecting to a database, inspecting it or migrating it. One that is not the database's stays as it
/// is.
pub(super) fn explain(config: &StoreConfig, error: Error) -> Error {
    let mut sources = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    let cause = sources.find_map(|error| error.downcast_ref::<sqlx::Error>());
    let explained = cause.and_then(|cause| match config {
        StoreConfig::Sqlite(path) => file_refusal(path, cause),
        StoreConfig::Postgres(url) => {
            let (message, hint) = server_refusal(&postgres::options(url).ok()?, cause)?;
            Some((message, hint, None))
        }
    });
    if let StoreConfig::Sqlite(path) = config
        && explained.is_some()
        && let Err(refused) = File::open(path)
        && let Some(refused) = private_files::refusal(path, &refused)
    {
        return refused;
    }
    // Without the error as its source, which the sentence has already.
    match explained {
        Some((message, hint, advice)) => {
            Error::new(ErrorCode::Unavailable, message).with_hint(hint).with_advice(advice)
        }
        None => error,
    }
}

fn file_refusal(path: &Path, error: &sqlx::Error) -> Option<(String, &'static str, Option<Advice>)> {
    let error = error.as_database_error()?;
    let code: i32 = error.code()?.parse().ok()?;
    let (path, reason) = (path.display(), error.message());
    Some(match code & 0xff {
        11 | 26 => (
            format!("{path} is damaged or not a database: {reason}"),
            "keep the file and restore a backup",
            Some(Advice::RestoreBackup),
        ),
        8 | 14 => (
            format!("cannot open {path}: {reason}"),
            "the user of the hub must own the file and its directory",
            None,
        ),
        10 => (format!("cannot read {path}: {reason}"), "check the disk", None),
        13 => (format!("cannot write {path}: {reason}"), "free space on the disk", None),
        _ => return None,
    })
}

fn server_refusal(options: &PgConnectOptions, error: &sqlx::Error) -> Option<(String, &'static str)> {
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    Some(match error {
        sqlx::Error::Database(error) => {
            let (code, reason) = (error.code().unwrap_or_default(), error.message());
            let hint = remedy(&code, reason, options.get_ssl_mode())?;
            (format!("the database at {place} refused: {reason}"), hint)
        }
        sqlx::Error::Io(error) => (
            format!("the database at {place} does not answer: {error}"),
            "check that it runs and that database_url has its host and port",
        ),
        sqlx::Error::Tls(error) => (
            format!("no TLS with the database at {place}: {error}"),
            "sslmode in database_url is prefer, require or, with sslrootcert=FILE, verify-full",
        ),
        sqlx::Error::Protocol(reason) => (
            format!("what answers at {place} does not speak the protocol of PostgreSQL: {reason}"),
            "check host and port of database_url",
        ),
        _ => return None,
    })
}

/// The remedy for a SQLSTATE (PostgreSQL manual, appendix A). Poolers have one, `08P01`, for everything.
fn remedy(code: &str, reason: &str, tls: PgSslMode) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    Some(match code {
        "28P01" => "check user and password of database_url",
        "08P01" if says(&["authentication failed", "no such user"]) => {
            "check user and password of database_url"
        }
        _ if says(&["no encryption", "SSL required", "SSL off", "requires TLS", "requires SSL"]) => {
            if matches!(tls, PgSslMode::Disable) {
                "the server requires TLS: remove sslmode=disable from database_url"
            } else {
                "the server requires TLS: add ?sslmode=require to database_url"
            }
        }
        "28000" => "check user, password and host of database_url, and pg_hba.conf of the server",
        "3D000" => "create the database (createdb), or correct its name in database_url",
        "3F000" => "create the schema of search_path, or remove search_path from database_url",
        "42501" if says(&["permission denied for database"]) => {
            "GRANT CONNECT, CREATE ON DATABASE … TO the user of database_url, or make it the owner"
        }
        "42501" => "GRANT USAGE, CREATE ON SCHEMA public TO the user of database_url, or make it the owner",
        "25006" => {
            "the hub needs the primary: this is a standby, or default_transaction_read_only is on for the user or database"
        }
        "53300" | "08P01" if says(&["connection", "clients"]) => {
            "a hub uses up to 10 connections: raise max_connections of the server or the limit of the user, database or pooler"
        }
        _ if says(&["unsupported startup parameter"]) => {
            "a pooler does not take options in database_url: set them for the user, with ALTER ROLE … SET"
        }
        "53300" => "raise max_connections of the server, or the limit of the user or database",
        "53100" => "free space on the disk of the server",
        "57P03" => "the server is starting or stopping: try again",
        _ if code.starts_with("28") => "check user and password of database_url",
        _ if code.starts_with("08") => "check the pooler between the hub and the database",
        _ => return None,
    })
}
