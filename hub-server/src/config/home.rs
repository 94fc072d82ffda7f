//! Location of a hub's data, and the key that seals it.

use hub_core::{
    HubBuilder,
    backup::{Home, HomeKey},
    data_dir,
};

use super::{Config, values::read_key};

impl Config {
    /// Sets the sealing key of a builder: the key of the setting, or the file in the data folder.
    ///
    /// # Errors
    /// The reason if the setting is not a key.
    pub fn with_key(&self, builder: HubBuilder) -> Result<HubBuilder, String> {
        Ok(match &self.secret_key {
            Some(key) => builder.secret_key(read_key(key)?),
            None => builder.key_file(data_dir::key_file(&self.data_dir)),
        })
    }

    /// Returns the new key of an interrupted rotation, if there is one.
    ///
    /// # Errors
    /// An error if its file cannot be read.
    pub fn next_key(&self) -> hub_core::Result<Option<[u8; 32]>> {
        if self.secret_key.is_some() { Ok(None) } else { data_dir::next_key(&self.data_dir) }
    }

    /// Returns the location of the hub's data.
    pub fn home(&self) -> Home {
        let key = self.secret_key.as_ref().and_then(|key| read_key(key).ok()).map(HomeKey);
        Home { data_dir: self.data_dir.clone(), store: self.store.clone(), media: self.media.clone(), key }
    }
}
