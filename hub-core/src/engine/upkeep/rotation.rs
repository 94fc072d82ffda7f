//! A new key for the secrets in the database.
//!
//! The new key lies next to the old one from before the first secret is sealed with it until it takes the old one's
//! place, and a hub that is opened meanwhile reads with both. So a rotation may end at any point: the hub works as it
//! is, and the next rotation goes on. The database knows which key it is sealed with: a hub that has only the old one
//! does not open it.

use std::{fs::File, path::Path};

use crate::{
    backup::Home,
    data_dir,
    error::{Advice, Error, ErrorCode, Result},
    private_files,
    random::Random,
    secret::Sealer,
    store::{SEALED_COLUMNS, SealedColumn, StoreConfig, Upkeep, claim_file},
};

/// Secrets of one transaction.
const BATCH_SIZE: u32 = 500;

/// Result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// Fingerprint of the previous key.
    pub old_key: String,
    /// Fingerprint of the new key.
    pub new_key: String,
    /// Secrets that were sealed again.
    pub sealed: u64,
    /// Secrets that neither key opens; they are unchanged.
    pub unreadable: u64,
}

/// Seals every secret with a new key. Without `new_key` the hub's key is the file in its data folder, and a random one
/// takes its place; the old one is kept as `secret.key.old` for copies of the database from before. With `new_key` the
/// key is a setting, which is to be changed when this returns.
///
/// # Errors
/// `UNAVAILABLE` while a hub works on the database, or when something cannot be read or written; what was done until
/// then is not done again.
pub async fn rotate_key(home: &Home, new_key: Option<[u8; 32]>, random: &Random) -> Result<Rotated> {
    let _claim = match &home.store {
        StoreConfig::Sqlite(path) if path.exists() => Some(claim_file(path)?),
        StoreConfig::Sqlite(_) | StoreConfig::Postgres(_) => None,
    };
    let mut database = Upkeep::open(&home.store).await?;
    let schema = database.schema().await?;
    if schema.is_newer() || !schema.pending.is_empty() {
        return Err(Error::new(
            ErrorCode::Unavailable,
            "the database has another schema than this program's",
        )
        .with_advice([Advice::MigrateDatabase]));
    }
    // Entries of the commit log have sealed values, too.
    database.flush(&home.store).await?;
    if matches!(home.store, StoreConfig::Postgres(_)) && database.has_leases().await? {
        let working = Error::new(ErrorCode::Unavailable, "a hub works on this database");
        return Err(working.with_hint("stop every node; half a minute after the last one died it is free"));
    }
    let key_file = data_dir::key_file(&home.data_dir);
    let (old, new) = match (&home.key, new_key) {
        (Some(old), Some(new)) => (old.0, new),
        (None, None) => {
            let old = data_dir::read_key(&key_file)?;
            (old, data_dir::create_key(&data_dir::next_key_file(&key_file), random)?)
        }
        (Some(_), None) => {
            return Err(Error::invalid("new_key", "is needed: the key of this hub is a setting")
                .with_advice([Advice::NewKey]));
        }
        (None, Some(_)) => {
            return Err(Error::invalid("new_key", "is for hubs whose key is a setting")
                .with_hint("leave it out: the key in the data folder is replaced by a random one"));
        }
    };
    let (old, new) = (Sealer::new(&old, random.clone()), Sealer::new(&new, random.clone()).opening(&old));
    if old.key_id() == new.key_id() {
        return Err(Error::invalid("new_key", "is the key that the hub has"));
    }
    database.note(Upkeep::KEY_ID, new.key_id()).await?;
    let mut rotated = Rotated {
        old_key: old.key_id().to_owned(),
        new_key: new.key_id().to_owned(),
        sealed: 0,
        unreadable: 0,
    };
    for column in SEALED_COLUMNS {
        reseal(&mut database, column, &new, &mut rotated).await?;
    }
    database.close().await?;
    if home.key.is_none() {
        take_place(&key_file)?;
    }
    Ok(rotated)
}

async fn reseal(
    database: &mut Upkeep,
    column: &SealedColumn,
    new: &Sealer,
    rotated: &mut Rotated,
) -> Result<()> {
    let mut after = None;
    loop {
        let rows = database.sealed().page(column, after.as_ref(), BATCH_SIZE).await?;
        database.begin().await?;
        for row in rows.iter().filter(|row| row.value.key_id() != Some(new.key_id())) {
            let place = column.place(row);
            match new.open(&place, &row.value) {
                Ok(secret) => {
                    database.sealed().replace(column, row, &new.seal(&place, &secret)).await?;
                    rotated.sealed += 1;
                }
                Err(_) => rotated.unreadable += 1,
            }
        }
        database.commit().await?;
        if rows.len() < BATCH_SIZE as usize {
            return Ok(());
        }
        after = rows.into_iter().next_back();
    }
}

/// Replaces the old key with the new one, and keeps a copy of the old one.
fn take_place(key_file: &Path) -> Result<()> {
    let kept = key_file.with_extension("key.old");
    let swap = || {
        let old = zeroize::Zeroizing::new(std::fs::read(key_file)?);
        match std::fs::remove_file(&kept) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private_files::create_new(&kept, &old)?;
        std::fs::rename(data_dir::next_key_file(key_file), key_file)?;
        File::open(key_file.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    swap().map_err(|error: std::io::Error| {
        let other = || Error::new(ErrorCode::Unavailable, format!("{}: {error}", key_file.display()));
        private_files::refusal(key_file, &error).unwrap_or_else(other)
    })
}
