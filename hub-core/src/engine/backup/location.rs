//! Locations of backups: files in a folder, or objects in a bucket.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::{blocking, sync_folder_of, unusable};
use crate::error::Result;
#[cfg(feature = "s3")]
use crate::media::S3Config;

/// Location of one backup.
#[derive(Debug, Clone)]
pub enum Location {
    /// A file.
    File(PathBuf),
    /// An object of a bucket; its name follows the bucket's prefix.
    #[cfg(feature = "s3")]
    Object(Box<S3Config>, String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            #[cfg(feature = "s3")]
            Self::Object(bucket, name) => write!(f, "{}/{name}", address(bucket)),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// Location of a series of backups.
#[derive(Debug, Clone)]
pub enum BackupTarget {
    /// A folder; the first backup creates it.
    Folder(PathBuf),
    /// A bucket, below its prefix.
    #[cfg(feature = "s3")]
    Bucket(S3Config),
}

impl fmt::Display for BackupTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => f.write_str(&address(bucket)),
        }
    }
}

impl BackupTarget {
    /// The place of a backup of this name.
    pub fn place(&self, name: &str) -> Location {
        match self {
            Self::Folder(path) => Location::File(path.join(name)),
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => Location::Object(Box::new(bucket.clone()), name.to_owned()),
        }
    }

    /// The folder; `None` for a bucket.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => Some(path),
            #[cfg(feature = "s3")]
            Self::Bucket(_) => None,
        }
    }

    /// Lists all names at the location; none if the folder does not exist yet.
    ///
    /// # Errors
    /// `UNAVAILABLE` if it cannot be read; `NOT_FOUND` when there is no such bucket.
    pub async fn names(&self) -> Result<Vec<String>> {
        match self {
            Self::Folder(path) => {
                let path = path.clone();
                blocking(move || names_in(&path).map_err(|error| unusable(&path, error))).await
            }
            #[cfg(feature = "s3")]
            Self::Bucket(bucket) => super::object::names(bucket).await,
        }
    }

    /// Removes what has this name.
    pub(super) async fn remove(&self, name: &str) -> Result<()> {
        match self.place(name) {
            Location::File(path) => {
                blocking(move || {
                    let removed = super::remove(&path).and_then(|()| sync_folder_of(&path));
                    removed.map_err(|error| unusable(&path, error))
                })
                .await
            }
            #[cfg(feature = "s3")]
            Location::Object(bucket, name) => super::object::remove(&bucket, &name).await,
        }
    }
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // A name that is no text is none of a backup.
    let name = |entry: io::Result<std::fs::DirEntry>| entry.map(|entry| entry.file_name().into_string().ok());
    entries.filter_map(|entry| name(entry).transpose()).collect()
}

/// Returns the address of a bucket with its prefix, as `s3://bucket/prefix`.
#[cfg(feature = "s3")]
fn address(bucket: &S3Config) -> String {
    let prefix = bucket.prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("s3://{}{slash}{prefix}", bucket.bucket)
}
