//! Checkpoints of a SQLite file while commits go on.
//!
//! A checkpoint copies what the write-ahead log has into the database and syncs it. SQLite has it done by the commit that
//! makes the log long enough, and everything that comes meanwhile waits: 10 ms and more for 16 MiB. Here another
//! connection does it, which keeps no commit from the log. What is committed in the meantime is left for the writer's own
//! checkpoint, which finds little to do, and after which SQLite begins the log again.

use std::{cell::Cell, ffi::c_int, thread};

use rusqlite::{Connection, OpenFlags};

use crate::store::backend::CHECKPOINT_PAGES;

/// Pages of the log after which another connection copies it: so many before the writer does that some commits go on
/// meanwhile.
const AHEAD: c_int = CHECKPOINT_PAGES - 256;

thread_local! {
    /// Pages of the log after the last commit of this thread, until they are looked at.
    static PAGES: Cell<Option<c_int>> = const { Cell::new(None) };
}

/// Replaces SQLite's own checkpoint after the commits of a connection.
pub(super) fn install(connection: &Connection) {
    connection.wal_hook(Some(|wal, pages| {
        PAGES.set(Some(pages));
        if pages >= CHECKPOINT_PAGES {
            // Another connection may be at it. The commit itself succeeded; what fails here is tried again after the next.
            let _ = wal.checkpoint();
        }
        Ok(())
    }));
}

/// The connection that copies the log, as long as it does.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    running: Option<thread::JoinHandle<()>>,
    /// Pages of the log when it began.
    began_at: c_int,
}

impl Checkpoint {
    /// Begins one if the log is long enough after the last commit of this thread.
    pub(super) fn begin_if_due(&mut self, database: Option<&str>) {
        let (Some(pages), Some(database)) = (PAGES.take(), database) else { return };
        if pages < self.began_at {
            self.began_at = 0;
        }
        let is_running = self.running.as_ref().is_some_and(|thread| !thread.is_finished());
        if pages < self.began_at + AHEAD || is_running {
            return;
        }
        let database = database.to_owned();
        let copy = move || {
            if let Err(error) = copy(&database) {
                tracing::debug!(%error, "the writer has to copy the write-ahead log itself");
            }
        };
        self.began_at = pages;
        self.running = thread::Builder::new().name("checkpoint".to_owned()).spawn(copy).ok();
    }
}

impl Drop for Checkpoint {
    /// Nothing works on the file any more after the writer's connection was closed.
    fn drop(&mut self) {
        if let Some(thread) = self.running.take() {
            let _ = thread.join();
        }
    }
}

/// The first round copies nearly everything, and takes the longest. SQLite syncs the database in a round that meets no
/// commit: the second, which copies what was committed during the first.
fn copy(database: &str) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    (0..2).try_for_each(|_| connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_copied_before_a_commit_has_to() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.db");
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE pages (page BLOB)").unwrap();
        install(&connection);
        let add_hundred = || {
            connection.execute("INSERT INTO pages VALUES (zeroblob(409600))", []).unwrap();
            PAGES.get().unwrap()
        };
        let mut checkpoint = Checkpoint::default();
        let mut pages = 0;
        while pages < AHEAD {
            pages = add_hundred();
            checkpoint.begin_if_due(connection.path());
        }
        assert!(pages < CHECKPOINT_PAGES, "no commit did it");
        drop(checkpoint);
        let copied = std::fs::metadata(&file).unwrap().len();
        assert!(copied >= u64::try_from(AHEAD).unwrap() * 4096, "{copied} bytes");
        assert!(add_hundred() < 200, "the log begins again");
    }

    #[test]
    fn a_log_that_grows_is_copied_again_and_a_short_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hub.db").display().to_string();
        let mut checkpoint = Checkpoint::default();
        let mut begins = |pages: Option<c_int>| {
            PAGES.set(pages);
            checkpoint.begin_if_due(Some(&file));
            checkpoint.running.take().map(thread::JoinHandle::join).is_some()
        };
        assert!(!begins(None), "a commit of another thread");
        assert!(!begins(Some(AHEAD - 1)));
        assert!(begins(Some(AHEAD)));
        assert!(!begins(Some(AHEAD + 100)), "a reader keeps the log from its beginning");
        assert!(begins(Some(2 * AHEAD)));
        assert!(!begins(Some(1)), "the log began again");
        assert!(begins(Some(AHEAD + 1)));
    }
}
