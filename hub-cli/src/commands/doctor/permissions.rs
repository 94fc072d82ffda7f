//! Permissions of files and folders, and fixing them.

use std::{io, path::PathBuf};

/// A path that only its owner may read.
pub struct ProtectedPath {
    pub path: PathBuf,
    pub is_folder: bool,
}

impl ProtectedPath {
    /// Whether others may read it; `None` if it does not exist.
    pub fn is_exposed(&self) -> io::Result<Option<bool>> {
        match hub_core::private_files::is_exposed(&self.path) {
            Ok(exposed) => Ok(Some(exposed)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The intended mode.
    pub fn mode(&self) -> u32 {
        if self.is_folder { 0o700 } else { 0o600 }
    }

    /// Removes the permissions of others.
    pub fn close(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(self.mode()))?;
        }
        Ok(())
    }
}
