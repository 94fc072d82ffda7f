//! The databases: a file, or a server from the machine's own binaries.

use hub_core::store::StoreConfig;

use crate::{Result, options::Database, process::postgres_cpu, support::postgres::Server};

/// Settings of PostgreSQL that are not its defaults: a buffer of the size of a small machine's.
const SETTINGS: [&str; 1] = ["shared_buffers=128MB"];

/// An empty database.
pub enum Place {
    File,
    Server { url: String, _server: Server },
}

impl Place {
    /// Makes one.
    pub async fn new(database: Database) -> Result<Self> {
        if database == Database::Sqlite {
            return Ok(Self::File);
        }
        let server = Server::with(&SETTINGS).ok_or("PostgreSQL is not installed")?;
        match server.create_database().await {
            StoreConfig::Postgres(url) => Ok(Self::Server { url: url.expose().to_owned(), _server: server }),
            StoreConfig::Sqlite(_) => Err("a PostgreSQL server makes no files".into()),
        }
    }

    /// The setting that names it; a file is the server's default.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::File => None,
            Self::Server { url, .. } => Some(url),
        }
    }

    /// Processor time of the database's own processes.
    pub fn cpu(&self) -> std::time::Duration {
        match self {
            Self::File => std::time::Duration::ZERO,
            Self::Server { .. } => postgres_cpu(),
        }
    }
}
