//! A record of the statements that a task runs, and of the steps that they take, for tests of plans and costs.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    fault::classify,
    views::{Pooled, Read},
};
use crate::error::Result;

/// A statement that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStatement {
    /// Text in the dialect of the database.
    pub sql: String,
    /// Rows that it returned.
    pub rows: usize,
}

tokio::task_local! {
    static RAN: RefCell<Vec<RecordedStatement>>;
}

/// Runs a future and returns the statements that its task ran, in their order. Statements of the committer are left
/// out: it is another task.
pub async fn record<T>(run: impl Future<Output = T>) -> (T, Vec<RecordedStatement>) {
    let recorded = async {
        let result = run.await;
        (result, RAN.with(RefCell::take))
    };
    RAN.scope(RefCell::default(), recorded).await
}

/// Records a statement that is about to run.
pub(super) fn note(sql: &str) {
    let _ = RAN.try_with(|ran| ran.borrow_mut().push(RecordedStatement { sql: sql.to_owned(), rows: 0 }));
}

/// Records how many rows the last statement returned.
pub(super) fn note_rows(rows: usize) {
    let _ = RAN.try_with(|ran| ran.borrow_mut().last_mut().map(|ran| ran.rows = rows));
}

impl Read {
    /// Counts the steps of SQLite's virtual machine on this connection from now on; stays 0 on PostgreSQL.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the connection is closed.
    pub async fn count_steps(&mut self) -> Result<Arc<AtomicU64>> {
        let steps = Arc::new(AtomicU64::new(0));
        if let Pooled::Sqlite(conn) = &mut self.0 {
            let counted = Arc::clone(&steps);
            let mut handle = conn.lock_handle().await.map_err(classify)?;
            handle.set_progress_handler(1, move || {
                counted.fetch_add(1, Ordering::Relaxed);
                true
            });
        }
        Ok(steps)
    }
}
