//! Hubs that the user is signed in to: one file, readable only by its owner.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use hub_core::{private_files, secret::Secret};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use url::Url;

use crate::exit::Failure;

/// The default name of a profile.
pub const DEFAULT: &str = "default";

/// A hub that the user is signed in to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    pub server: Url,
    #[serde(serialize_with = "expose")]
    pub key: Secret,
    /// Whether `login` created the key, so that `logout` revokes it.
    #[serde(rename = "own_key", default)]
    pub own: bool,
    /// The user of the key.
    pub username: String,
}

/// The key, in the file that only its owner can read.
fn expose<S: Serializer>(key: &Secret, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(key.expose())
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Profiles {
    #[serde(skip)]
    path: PathBuf,
    /// The active profile.
    #[serde(default = "default_name")]
    pub current: String,
    /// By name.
    #[serde(rename = "profiles")]
    pub all: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads the file; without one there are no profiles.
    ///
    /// # Errors
    /// A failure if the file is unreadable, readable by others, or invalid.
    pub fn load() -> Result<Self, Failure> {
        let path = default_path(|name| std::env::var(name).ok());
        Self::read(&path)
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let mut profiles = Self { path: path.to_owned(), current: default_name(), all: BTreeMap::new() };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(profiles),
            Err(error) => return Err(Failure::file(&shown, error)),
        };
        if private_files::is_exposed(path).map_err(|error| Failure::file(&shown, error))? {
            return Err(Failure::file(&shown, "other users can read your keys")
                .with_hint(format!("run: chmod 600 {shown}")));
        }
        profiles = serde_json::from_str(&text).map_err(|_| {
            Failure::file(&shown, "is not a profile file of hub-cli").with_hint("delete it and sign in again")
        })?;
        path.clone_into(&mut profiles.path);
        Ok(profiles)
    }

    /// Replaces the file atomically.
    pub fn save(&self) -> Result<(), Failure> {
        let document = json!(self).to_string();
        let write = || {
            if let Some(folder) = self.path.parent() {
                private_files::create_folder(folder)?;
            }
            let fresh = self.path.with_extension(format!("{}.new", std::process::id()));
            private_files::create_new(&fresh, document.as_bytes())?;
            std::fs::rename(&fresh, &self.path)
        };
        write().map_err(|error| Failure::file(&self.path, error))
    }

    /// The profile of a name, or the current one.
    pub fn find(&self, name: Option<&str>) -> Result<(&str, &Profile), Failure> {
        let name = name.unwrap_or(&self.current);
        let found = self.all.get_key_value(name).map(|(name, profile)| (name.as_str(), profile));
        found.ok_or_else(|| {
            Failure::new(crate::exit::Exit::Denied, "UNAUTHORIZED", format!("there is no profile {name}"))
                .with_hint("hub-cli login --server URL")
        })
    }
}

fn default_name() -> String {
    DEFAULT.to_owned()
}

/// `$XDG_CONFIG_HOME/hub/credentials.json`, or the same under `~/.config`.
fn default_path(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let folder = folder.or_else(|| set("HOME").map(|home| home.join(".config")));
    folder.unwrap_or_default().join("hub").join("credentials.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_profiles_are_read_back_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub/credentials.json");
        let mut profiles = Profiles::read(&path).unwrap();
        assert!(profiles.find(None).is_err());
        let profile = Profile {
            server: "https://hub.example".parse().unwrap(),
            key: "hubu_secret".into(),
            own: true,
            username: "ada".to_owned(),
        };
        profiles.all.insert("work".to_owned(), profile);
        profiles.current = "work".to_owned();
        profiles.save().unwrap();
        profiles.save().unwrap();
        assert!(!private_files::is_exposed(&path).unwrap());
        let again = Profiles::read(&path).unwrap();
        let (name, found) = again.find(None).unwrap();
        assert_eq!((name, found.username.as_str(), found.key.expose()), ("work", "ada", "hubu_secret"));
        assert!(found.own);
        assert!(!format!("{again:?}").contains("hubu_"));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
        std::fs::write(&path, "{}").unwrap();
        assert!(Profiles::read(&path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_profile_file_that_others_can_read_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.json");
        std::fs::write(&path, r#"{"profiles":{}}"#).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Profiles::read(&path).unwrap_err().hint.unwrap().contains("chmod 600"));
    }

    #[test]
    fn the_profile_file_is_in_the_configuration_folder() {
        let path = |pairs: &[(&str, &str)]| {
            let find =
                |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            default_path(find).display().to_string()
        };
        assert_eq!(path(&[("HOME", "/h")]), "/h/.config/hub/credentials.json");
        assert_eq!(path(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), "/x/hub/credentials.json");
        assert_eq!(path(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]), "/h/.config/hub/credentials.json");
    }
}
