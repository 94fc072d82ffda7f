//! Files that only their owner may read: databases, keys, setup links.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write},
    ops::Deref,
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

/// A file that no one else can lock as long as this lives.
#[derive(Debug)]
pub struct Locked(File);

/// Opens a file as [`open`] does, and locks it. `None` when it is locked already.
pub fn lock(path: &Path) -> io::Result<Option<Locked>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Locked(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A child process that was just forked has the file, too, until it runs its program: to close it is not enough.
        let _ = self.0.unlock();
    }
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

/// Whether others than the owner may read a file or a folder.
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    Ok(others_may_read(&path.metadata()?.permissions()))
}

/// Checks that a path is the file of a key that only its owner may read.
///
/// # Errors
/// An error whose text says what is wrong and what to do.
pub fn check_key_file(path: &Path) -> io::Result<()> {
    let found = path.metadata()?;
    if found.is_dir() {
        let reason =
            "is a directory, not a file; container engines create one where a mounted file is missing";
        return Err(io::Error::new(io::ErrorKind::IsADirectory, reason));
    }
    if others_may_read(&found.permissions()) {
        return Err(io::Error::other("other users may read this key; run: chmod 600"));
    }
    Ok(())
}

fn others_may_read(permissions: &Permissions) -> bool {
    #[cfg(unix)]
    return permissions.mode() & 0o077 != 0;
    #[cfg(not(unix))]
    return permissions.readonly() && false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_when_it_is_dropped_even_if_a_forked_child_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locked");
        let locked = lock(&path).unwrap().unwrap();
        assert!(lock(&path).unwrap().is_none());
        // As a child has it: the same open file under another number.
        let inherited = locked.try_clone().unwrap();
        drop(locked);
        assert!(lock(&path).unwrap().is_some());
        drop(inherited);
    }
}
