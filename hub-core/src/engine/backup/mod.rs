//! Backups: everything that a hub keeps on its machine, in one file, and its restore.
//!
//! A backup is a tar archive with the database as it was at one moment, the files that its rows name, the key that
//! opens its secrets, and last a manifest with the SHA-256 of each. Under a passphrase the archive is sealed as a
//! whole. It is created while the hub runs: the copy of the database is consistent, and files never change once they
//! are there.
//!
//! A restore unpacks everything next to its target, verifies it there, and then renames it, under a journal that the
//! next start completes: the result is the old hub or the new one, never a part of both.
//!
//! PostgreSQL has its own tools, and files in a bucket have theirs: neither is copied here. A backup itself may lie in a
//! bucket, and a server may make one each night ([`Nightly`]).

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    data_dir,
    error::{Error, ErrorCode, Result},
    media::MediaConfig,
    private_files,
    random::Random,
    secret::Sealer,
    store::StoreConfig,
};

mod archive;
mod create;
mod envelope;
mod location;
mod nightly;
#[cfg(feature = "s3")]
mod object;
mod restore;
mod swap;

pub use archive::{Manifest, Member};
pub use create::{Created, NewBackup, create, default_name};
pub use location::{BackupTarget, Location};
pub use nightly::{Nightly, TimeOfDay, newest_nightly};
pub use restore::{Restored, restore, verify, would_replace};
pub use swap::settle;

/// `meta` key of the time of the last backup, in Unix milliseconds.
pub const LAST_BACKUP: &str = "backup.last";

/// Locations of the data that a hub keeps.
#[derive(Debug, Clone)]
pub struct Home {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The database.
    pub store: StoreConfig,
    /// Files of messages.
    pub media: MediaConfig,
    /// The key when a setting gives it; otherwise it is the one in the data folder.
    pub key: Option<HomeKey>,
}

/// A key that a setting gives. Not shown by `Debug`.
#[derive(Clone)]
pub struct HomeKey(pub [u8; 32]);

impl std::fmt::Debug for HomeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HomeKey(***)")
    }
}

impl Home {
    /// The database file.
    ///
    /// # Errors
    /// `CONFLICT` on PostgreSQL, with what to use there.
    pub fn database(&self) -> Result<&Path> {
        match &self.store {
            StoreConfig::Sqlite(path) => Ok(path),
            StoreConfig::Postgres(_) => {
                Err(Error::conflict("this hub's database is PostgreSQL's to back up").with_hint(
                    "pg_dump --format custom and pg_restore do; keep secret.key and the files with the dump",
                ))
            }
        }
    }

    /// The folder of files; `None` where they lie in a bucket.
    pub fn media_folder(&self) -> Option<&Path> {
        if let MediaConfig::Folder(path) = &self.media { Some(path) } else { None }
    }

    /// Returns the sealer for the hub's secrets, including the key that a rotation has begun to use; creates no key.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the key cannot be read.
    pub fn sealer(&self, random: &Random) -> Result<Sealer> {
        if let Some(key) = &self.key {
            return Ok(Sealer::new(&key.0, random.clone()));
        }
        let sealer = Sealer::new(&data_dir::read_key(&data_dir::key_file(&self.data_dir))?, random.clone());
        let next = data_dir::next_key(&self.data_dir)?;
        Ok(match next {
            Some(next) => sealer.opening(&next),
            None => sealer,
        })
    }
}

/// Returns the path of a file of this id in the folder of files.
pub(crate) fn media_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(id.get(id.len().saturating_sub(2)..).unwrap_or_default()).join(id)
}

fn unusable(path: &Path, error: impl Into<io::Error>) -> Error {
    let error = error.into();
    let other = || Error::new(ErrorCode::Unavailable, format!("{}: {error}", path.display()));
    private_files::refusal(path, &error).unwrap_or_else(other)
}

/// The same path with a suffix after its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes renames in a folder durable across a loss of power.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}

/// Removes a file or a folder with its content; it need not exist.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs blocking file operations off the async threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}

#[cfg(test)]
mod tests;
