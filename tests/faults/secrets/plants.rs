//! Secrets, and where they were found.

use std::{fs, path::Path};

use data_encoding::{BASE64, HEXLOWER};
use hub_core::{random::Random, secret::Secret};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// Secrets, and what each is.
#[derive(Default)]
pub(super) struct Plants(pub(super) Vec<Plant>);

pub(super) struct Plant {
    what: String,
    pub(super) secret: String,
    /// Part of a URL that the hub has to dial later: it is in the database, and nowhere else.
    pub(super) at_rest: bool,
}

impl Plants {
    /// Makes a secret.
    pub(super) fn plant(&mut self, what: &str) -> String {
        let secret = format!("plant-{}", HEXLOWER.encode(&Random::system().bytes::<16>()));
        self.keep(what, &secret);
        secret
    }

    /// Keeps a secret that someone else made.
    pub(super) fn keep(&mut self, what: &str, secret: &str) {
        assert!(secret.len() >= 16, "{what} is too short to be looked for: {secret:?}");
        self.0.push(Plant { what: what.to_owned(), secret: secret.to_owned(), at_rest: false });
    }

    /// The secrets that are in `bytes`, as they are or in a common spelling.
    pub(super) fn found_in(&self, place: &str, bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        let found = self.0.iter().filter(|Plant { secret, .. }| {
            let raw = secret.as_bytes();
            // The last characters depend on what follows.
            let whole = &raw[..raw.len() / 3 * 3];
            [secret.clone(), HEXLOWER.encode(raw), BASE64.encode(whole)]
                .iter()
                .any(|form| text.contains(form))
        });
        found.map(|Plant { what, secret, .. }| format!("{what} ({secret}) is in {place}")).collect()
    }

    /// The same in what the server keeps.
    pub(super) fn found_at_rest(&self, place: &str, bytes: &[u8]) -> Vec<String> {
        let stored = |line: &String| self.0.iter().any(|one| one.at_rest && line.contains(&one.secret));
        let mut found = self.found_in(place, bytes);
        found.retain(|line| !stored(line));
        found
    }

    /// The secrets whose names have this text.
    pub(super) fn named(&self, text: &str) -> Vec<String> {
        self.0.iter().filter(|one| one.what.contains(text)).map(|one| one.secret.clone()).collect()
    }
}

/// Searches every file the server keeps.
pub(super) fn search_folder(plants: &Plants, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(search_folder(plants, &path));
        } else if let Ok(bytes) = fs::read(&path) {
            found.extend(plants.found_at_rest(&path.file_name().unwrap().to_string_lossy(), &bytes));
        }
    }
    found
}

/// Searches every row of every table.
pub(super) async fn search_postgres(plants: &Plants, url: &Secret) -> Vec<String> {
    let mut connection = PgConnection::connect(url.expose()).await.unwrap();
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = 'public'")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert!(tables.len() >= 5, "{tables:?}");
    let mut found = Vec::new();
    for table in tables {
        let rows: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT CAST(t.* AS TEXT) FROM \"{table}\" AS t")))
                .fetch_all(&mut connection)
                .await
                .unwrap();
        found.extend(plants.found_at_rest(&format!("table {table}"), rows.join("\n").as_bytes()));
    }
    connection.close().await.unwrap();
    found
}
