//! What a hub keeps, and the key that seals it.

use std::path::PathBuf;

use hub_core::{
    backup::{self, Home, HomeKey},
    data_dir,
    random::Random,
};

use super::{Config, values::read_key};

impl Config {
    /// The key that seals secrets: the setting, or the file in the data folder, which is made on first start.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn load_key(&self, random: &Random) -> Result<[u8; 32], String> {
        // The key may be what a restore was about to replace.
        backup::settle(&self.data_dir).map_err(|error| error.message().to_owned())?;
        if let Some(key) = &self.secret_key {
            return read_key(key);
        }
        data_dir::load_key(&self.data_dir, random).map_err(|error| error.message().to_owned())
    }

    /// Where [`load_key`](Self::load_key) will create the key file, unless there is one or the key is set otherwise.
    pub fn new_key_file(&self) -> Option<PathBuf> {
        // The key may be what a restore was about to replace; what fails here fails in `load_key` again.
        backup::settle(&self.data_dir).ok()?;
        let path = data_dir::key_file(&self.data_dir);
        (self.secret_key.is_none() && !path.exists()).then_some(path)
    }

    /// The key that a rotation has begun to seal with, when one was interrupted.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn next_key(&self) -> hub_core::Result<Option<[u8; 32]>> {
        if self.secret_key.is_some() { Ok(None) } else { data_dir::next_key(&self.data_dir) }
    }

    /// What the hub keeps, and where.
    pub fn home(&self) -> Home {
        let key = self.secret_key.as_ref().and_then(|key| read_key(key).ok()).map(HomeKey);
        Home { data_dir: self.data_dir.clone(), store: self.store.clone(), media: self.media.clone(), key }
    }
}
