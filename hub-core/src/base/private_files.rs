//! Files that only their owner may read: databases, keys, setup links.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError},
    io::{self, Write},
    ops::Deref,
    path::Path,
};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};

use crate::error::{Error, ErrorCode};

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

/// Explains that the operating system refuses access to a path: names the file or directory that refuses, and its
/// owner. `None` for other errors.
pub fn refusal(path: &Path, error: &io::Error) -> Option<Error> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    // What cannot be seen, or does not exist, is refused by a directory above it.
    let found = path.ancestors().find_map(|part| Some((part, part.symlink_metadata().ok()?)));
    let (refusing, owner) = match &found {
        Some((part, metadata)) => (*part, owner(metadata)),
        None => (path, String::new()),
    };
    let message = format!("{}: permission denied{owner}", refusing.display());
    Some(Error::new(ErrorCode::Forbidden, message).with_hint("run this as the user that owns it"))
}

fn owner(metadata: &Metadata) -> String {
    #[cfg(unix)]
    return format!("; it belongs to the user with the id {}", metadata.uid());
    #[cfg(not(unix))]
    return String::new();
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

    #[test]
    fn a_refusal_names_what_refuses_and_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let below = folder.path().join("no/such/file");
        let refused = refusal(&below, &denied).unwrap();
        assert_eq!(refused.code(), ErrorCode::Forbidden);
        let named = format!("{}: permission denied", folder.path().display());
        assert!(refused.message().starts_with(&named), "{refused}");
        #[cfg(unix)]
        {
            let owner = folder.path().metadata().unwrap().uid();
            assert!(refused.message().ends_with(&format!("the user with the id {owner}")), "{refused}");
        }
        assert!(refusal(&below, &io::ErrorKind::NotFound.into()).is_none());
    }
}
