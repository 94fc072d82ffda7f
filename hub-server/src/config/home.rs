//! What a hub keeps, and the key that seals it.

use hub_core::{
    HubBuilder,
    backup::{Home, HomeKey},
    data_dir,
};

use super::{Config, values::read_key};

impl Config {
    /// Tells a builder which key seals secrets: that of the setting, or the file in the data folder.
    ///
    /// # Errors
    /// When the setting is not a key.
    pub fn with_key(&self, builder: HubBuilder) -> Result<HubBuilder, String> {
        Ok(match &self.secret_key {
            Some(key) => builder.secret_key(read_key(key)?),
            None => builder.key_file(data_dir::key_file(&self.data_dir)),
        })
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
