//! Notifications between the processes that share a PostgreSQL database. SQLite has one process and none.

use sqlx::postgres::PgListener;

use super::{backend::Backend, fault::classify};
use crate::error::{Error, Result};

/// PostgreSQL channel of all nodes of one database.
const CHANNEL: &str = "message_hub";

/// Subscription to notifications of other processes.
#[derive(Debug)]
pub struct Notices(PgListener);

impl Notices {
    pub(super) async fn of(backend: &Backend) -> Result<Self> {
        let Backend::Postgres { reads, .. } = backend else {
            return Err(Error::internal("only PostgreSQL has notifications"));
        };
        let mut listener = PgListener::connect_with(reads).await.map_err(classify)?;
        listener.listen(CHANNEL).await.map_err(classify)?;
        Ok(Self(listener))
    }

    /// Returns the next notification. `None` after the connection broke: it was opened again, and notifications sent
    /// in between are lost.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the connection cannot be opened again.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let notice = self.0.try_recv().await.map_err(classify)?;
        Ok(notice.map(|notice| notice.payload().to_owned()))
    }
}

pub(super) async fn send(backend: &Backend, text: &str) -> Result<()> {
    let Backend::Postgres { reads, .. } = backend else { return Ok(()) };
    let sent = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(text).execute(reads).await;
    sent.map(|_| ()).map_err(classify)
}
