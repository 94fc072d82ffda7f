//! Files and folders: who may read them, and mending that.

use std::{io, path::PathBuf};

/// Something that its owner alone may read.
pub struct Place {
    pub path: PathBuf,
    pub is_folder: bool,
}

impl Place {
    /// Whether others may read it; `None` when it is not there.
    pub fn is_exposed(&self) -> io::Result<Option<bool>> {
        match hub_core::private_files::is_exposed(&self.path) {
            Ok(exposed) => Ok(Some(exposed)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The mode it should have.
    pub fn mode(&self) -> u32 {
        if self.is_folder { 0o700 } else { 0o600 }
    }

    /// Takes from others what they may do.
    pub fn close(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&self.path, std::fs::Permissions::from_mode(self.mode()))?;
        }
        Ok(())
    }
}
