//! The folder of a hub that runs on its own: where it is, and the key in it. The server and the command line
//! find the same hub because both ask here. The environment is an argument: this crate reads none itself.

use std::{
    io,
    path::{Path, PathBuf},
};

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use zeroize::Zeroizing;

use crate::{
    error::{Advice, Error, ErrorCode, Result, Setting},
    private_files,
    random::Random,
    secret::Secret,
};

/// Where a hub keeps its things unless a setting says otherwise: systemd's state folder, the person's data
/// folder, or the machine's. `variable` reads the environment.
pub fn default_path(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(folders) = set("STATE_DIRECTORY") {
        // systemd joins several with colons; the first is ours.
        return folders.split(':').next().unwrap_or(&folders).into();
    }
    let data_home = set("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let data_home = data_home.or_else(|| set("HOME").map(|home| Path::new(&home).join(".local/share")));
    data_home.map_or_else(|| "/var/lib/hub".into(), |path| path.join("hub"))
}

/// A path of a setting. No shell reads a setting, so `~` and variables would become names of folders.
///
/// # Errors
/// Half a sentence that follows the text.
pub fn path(text: &str) -> std::result::Result<PathBuf, String> {
    let first = text.trim_start_matches('/');
    match first.chars().next() {
        Some(sign @ ('~' | '$')) => Err(format!("must be the whole path: only a shell replaces {sign}")),
        _ => Ok(text.into()),
    }
}

/// The database file of a folder.
pub fn database(folder: &Path) -> PathBuf {
    folder.join("hub.db")
}

/// The key file of a folder.
pub fn key_file(folder: &Path) -> PathBuf {
    folder.join("secret.key")
}

/// Where the key that is to follow a key file lies while a rotation is under way.
pub fn next_key_file(key_file: &Path) -> PathBuf {
    let mut name = key_file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// The key that is to follow the one in a folder; `None` unless a rotation is under way. Until it ends, secrets are
/// sealed with either.
///
/// # Errors
/// As [`read_key`].
pub fn next_key(folder: &Path) -> Result<Option<[u8; 32]>> {
    let path = next_key_file(&key_file(folder));
    if path.exists() { read_key(&path).map(Some) } else { Ok(None) }
}

/// The key in a folder that seals secrets at rest; folder and key are made when missing.
///
/// # Errors
/// `UNAVAILABLE` naming the file: it cannot be read or written, others may read it, or it holds no key.
pub fn load_key(folder: &Path, random: &Random) -> Result<[u8; 32]> {
    create_key(&key_file(folder), random)
}

/// The key in a file, which is made when missing.
///
/// # Errors
/// As [`load_key`].
pub fn create_key(path: &Path, random: &Random) -> Result<[u8; 32]> {
    store_key(path, &random.bytes())
}

/// Stores a key in a file unless there is one, and returns the key that is in the file then.
///
/// # Errors
/// As [`load_key`].
pub(crate) fn store_key(path: &Path, key: &[u8; 32]) -> Result<[u8; 32]> {
    if let Some(folder) = path.parent() {
        private_files::create_folder(folder).map_err(|error| inaccessible(folder, &error))?;
    }
    let text = Zeroizing::new(HEXLOWER.encode(key));
    match private_files::create_new(path, text.as_bytes()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(inaccessible(path, &error)),
    }
    read_key(path)
}

/// The key in a file that only its owner may read.
///
/// # Errors
/// As [`load_key`].
pub fn read_key(path: &Path) -> Result<[u8; 32]> {
    let inaccessible = |error: io::Error| inaccessible(path, &error);
    private_files::check_key_file(path).map_err(inaccessible)?;
    let text = Secret::new(std::fs::read_to_string(path).map_err(inaccessible)?);
    parse_key(&text).map_err(|error| unusable(path, error.message()))
}

/// The key in a text: 32 bytes as 64 hex digits or as base64.
///
/// # Errors
/// `INVALID_PARAMS` on the field `secret_key`, without the text.
pub fn parse_key(text: &Secret) -> Result<[u8; 32]> {
    let text = text.expose().trim().as_bytes();
    let bytes = HEXLOWER_PERMISSIVE.decode(text).or_else(|_| BASE64.decode(text)).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| Error::invalid("secret_key", "must be 32 bytes, as 64 hex digits or as base64"))
}

/// Bytes that are free for the hub where a folder is.
///
/// # Errors
/// The error of the system; on systems other than Unix, that it is not supported.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    #[cfg(unix)]
    {
        let found = nix::sys::statvfs::statvfs(folder)?;
        // The widths of these numbers differ between systems.
        #[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "u64 here already"))]
        let free = u64::from(found.blocks_available()).saturating_mul(u64::from(found.fragment_size()));
        Ok(free)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn inaccessible(path: &Path, error: &io::Error) -> Error {
    private_files::refusal(path, error).unwrap_or_else(|| unusable(path, error))
}

fn unusable(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::Unavailable, format!("{}: {reason}", path.display()))
        .with_hint("choose another data directory")
        .with_advice([Advice::Set(Setting::DataDir, None)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_follows_the_environment() {
        let path = |pairs: &[(&str, &str)]| {
            let found = default_path(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            });
            found.display().to_string()
        };
        assert_eq!(path(&[]), "/var/lib/hub");
        assert_eq!(path(&[("HOME", "/home/a")]), "/home/a/.local/share/hub");
        assert_eq!(path(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "/d")]), "/d/hub");
        assert_eq!(path(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "d")]), "/home/a/.local/share/hub");
        assert_eq!(path(&[("STATE_DIRECTORY", "/s/a:/s/b"), ("HOME", "/h")]), "/s/a");
    }

    #[test]
    fn a_key_is_made_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("new/hub");
        let first = load_key(&dir, &Random::seeded(1)).unwrap();
        assert_eq!(load_key(&dir, &Random::seeded(2)).unwrap(), first);
        std::fs::write(dir.join("secret.key"), "short").unwrap();
        let error = load_key(&dir, &Random::seeded(3)).unwrap_err();
        assert!(error.message().contains("secret.key") && !error.message().contains("short"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        load_key(folder.path(), &Random::seeded(1)).unwrap();
        let path = folder.path().join("secret.key");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_key(&path).unwrap_err().code(), ErrorCode::Unavailable);
    }

    #[test]
    fn a_directory_in_place_of_the_key_is_named_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = key_file(folder.path());
        std::fs::create_dir(&path).unwrap();
        for refused in [read_key(&path), load_key(folder.path(), &Random::seeded(1))] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::Unavailable);
            let message = refused.message();
            assert!(
                message.contains("secret.key: is a directory") && !message.contains("chmod"),
                "{message}"
            );
        }
    }
}
