//! Classification of database errors: wait, degrade, or stop.

use std::{borrow::Cow, time::Duration};

use sqlx::error::{DatabaseError, ErrorKind};

use crate::error::{Advice, Error, ErrorCode};

/// The class of a storage failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A unique or foreign key rule was broken; the caller decides what that means.
    Constraint,
    /// Locked or overloaded: the same call may succeed soon.
    Busy,
    /// Disconnected, restarting or refusing connections: the same call may succeed once that is over.
    Unreachable,
    /// Full or read-only: reads go on, writes do not.
    Degraded,
    /// The storage is corrupt or returns wrong results: nothing may be acknowledged any more.
    Fatal,
    /// A fault of ours: a wrong statement or type.
    Bug,
}

/// Finds the class of an error.
pub fn fault(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(database)
            if database.is_unique_violation() || database.is_foreign_key_violation() =>
        {
            Fault::Constraint
        }
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            if database.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
                postgres_fault(&code)
            } else {
                sqlite_fault(code.parse().unwrap_or(0))
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => Fault::Unreachable,
        sqlx::Error::PoolTimedOut => Fault::Busy,
        _ => Fault::Bug,
    }
}

/// SQLite's extended result codes; the low byte is the class (sqlite.org/rescode.html).
fn sqlite_fault(code: i32) -> Fault {
    // The index of the log could not grow: a full disk, before anything of the commit was written.
    const IOERR_SHMSIZE: i32 = 10 + 19 * 256;
    match code & 0xff {
        _ if code == IOERR_SHMSIZE => Fault::Degraded,
        5 | 6 => Fault::Busy,           // BUSY, LOCKED
        8 | 13 | 14 => Fault::Degraded, // READONLY, FULL, CANTOPEN (no descriptors, no permission)
        10 | 11 | 26 => Fault::Fatal,   // IOERR, CORRUPT, NOTADB
        _ => Fault::Bug,
    }
}

/// SQLSTATE classes (PostgreSQL manual, appendix A).
fn postgres_fault(code: &str) -> Fault {
    match code {
        "40001" | "40P01" | "55P03" | "57014" => Fault::Busy,
        // A full disk; a server that only reads, such as a standby; a right that was taken away.
        "53100" | "25006" | "42501" => Fault::Degraded,
        _ if code.starts_with("53") => Fault::Busy,
        // Connections, logins, absent databases, restarts.
        _ if ["08", "28", "3D", "57"].iter().any(|class| code.starts_with(class)) => Fault::Unreachable,
        _ if code.starts_with("58") || code.starts_with("XX") => Fault::Degraded,
        _ => Fault::Bug,
    }
}

/// Marks an [`Error`] made from a broken unique or foreign key, see [`is_constraint`].
#[derive(Debug, thiserror::Error)]
#[error("constraint violated")]
struct ConstraintViolated(#[source] sqlx::Error);

/// Marks an [`Error`] after which nothing may be acknowledged, see [`is_fatal`].
#[derive(Debug, thiserror::Error)]
#[error("the database is damaged, or its disk fails")]
struct StorageFailed(#[source] sqlx::Error);

/// Turns a database error into ours.
pub fn classify(error: sqlx::Error) -> Error {
    match fault(&error) {
        Fault::Constraint => Error::conflict("it exists already, or something it needs is gone")
            .with_source(ConstraintViolated(error)),
        Fault::Busy => Error::new(ErrorCode::Unavailable, "the store is busy")
            .with_retry_after(Duration::from_secs(1))
            .with_source(error),
        Fault::Unreachable => Error::new(ErrorCode::Unavailable, "the store does not answer")
            .with_retry_after(Duration::from_secs(1))
            .with_source(error),
        Fault::Degraded => Error::new(ErrorCode::Unavailable, "the store cannot write at the moment")
            .with_retry_after(Duration::from_secs(5))
            .with_hint("the disk may be full, or the database read-only for the hub")
            .with_source(error),
        Fault::Fatal => Error::internal(StorageFailed(error))
            .with_hint("keep the database file, check the disk, and restore a backup")
            .with_advice([Advice::RestoreBackup]),
        Fault::Bug => Error::internal(error),
    }
}

/// An error of SQLite that came past `sqlx`.
#[derive(Debug, thiserror::Error)]
#[error("{message} (code {code})")]
struct DirectError {
    /// The extended result code.
    code: i32,
    message: String,
}

impl DatabaseError for DirectError {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn kind(&self) -> ErrorKind {
        match self.code {
            rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                ErrorKind::UniqueViolation
            }
            _ => ErrorKind::Other,
        }
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }
}

/// [`classify`] for the connection that is not one of `sqlx`.
pub(super) fn classify_direct(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            let message = message.unwrap_or_else(|| failure.to_string());
            let error = DirectError { code: failure.extended_code, message };
            classify(sqlx::Error::Database(Box::new(error)))
        }
        error => Error::internal(error),
    }
}

/// Whether an error comes from a broken unique or foreign key.
pub fn is_constraint(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<ConstraintViolated>)
}

/// Whether an error means that the connection or the server cannot write at the moment, whatever the command, and not
/// that one command failed. A conflict with another transaction does not count.
pub fn is_outage(error: &Error) -> bool {
    let cause =
        std::error::Error::source(error).and_then(<dyn std::error::Error>::downcast_ref::<sqlx::Error>);
    cause.is_some_and(|cause| match (fault(cause), cause) {
        (Fault::Busy, sqlx::Error::Database(cause)) => {
            !matches!(cause.code().as_deref(), Some("40001" | "40P01" | "55P03"))
        }
        (Fault::Busy | Fault::Unreachable | Fault::Degraded, _) => true,
        _ => false,
    })
}

/// Whether the storage can no longer be trusted.
pub fn is_fatal(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<StorageFailed>)
}
