//! Files that only their owner may read: databases, keys, setup links.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    path::Path,
};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

/// Makes a folder with mode 0700, and its parents.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(path)
}

/// Opens a file for reading and writing, making it with mode 0600 when missing.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path)
}

/// Makes a new file with mode 0600 and content that is on disk when this returns.
///
/// # Errors
/// `AlreadyExists` when there is one.
pub fn create_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Whether others than the owner may read a file.
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    let permissions: Permissions = path.metadata()?.permissions();
    #[cfg(unix)]
    return Ok(permissions.mode() & 0o077 != 0);
    #[cfg(not(unix))]
    return Ok(permissions.readonly() && false);
}
