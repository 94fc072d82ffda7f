//! Making a backup.

use std::{
    fs::{File, TryLockError},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{
    Home, LAST_BACKUP,
    archive::{DATABASE, KEY, MEDIA, Manifest, NEXT_KEY, Writing},
    beside, blocking,
    envelope::Sealing,
    media_path, remove, sync_folder_of, unusable,
};
use crate::{
    data_dir,
    error::{Error, Result},
    private_files,
    random::Random,
    secret::Secret,
    store::{StoreConfig, Upkeep},
    time::{Clock, Timestamp},
};

/// Ids of files that are read at a time.
const PAGE: u32 = 1_000;

/// A backup to be made.
#[derive(Debug)]
pub struct NewBackup {
    /// The file; there must be none of this name.
    pub to: PathBuf,
    /// What it is sealed with.
    pub passphrase: Option<Secret>,
    /// Whether the key in the data folder is in it.
    pub with_key: bool,
}

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct Created {
    /// The file.
    pub file: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// Whether the key is in it.
    pub has_key: bool,
    /// What is in it.
    pub manifest: Manifest,
}

/// The name of a backup made at an instant: `hub-20260131T120000Z.tar`.
pub fn default_name(at: Timestamp, sealed: bool) -> String {
    let time: String = at.to_string().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    format!("hub-{time}Z.tar{}", if sealed { ".sealed" } else { "" })
}

/// Makes a backup of a hub that may be running. It has its name when all of it is on disk; before that, and after a
/// failure, there is at most something beside it that the next backup of that name removes.
///
/// # Errors
/// `CONFLICT` when there is a file of that name, another backup makes it, or the database is not SQLite; `NOT_FOUND`
/// without a database; `UNAVAILABLE` when something cannot be read or written.
pub async fn create(home: &Home, new: NewBackup, clock: &Clock, random: &Random) -> Result<Created> {
    home.database()?;
    if new.to.exists() {
        return Err(Error::conflict(format!("{} is there already", new.to.display()))
            .with_hint("choose another name with --to"));
    }
    let mut upkeep = Upkeep::open(&home.store).await?;
    let sealer = home.sealer(random)?;
    let partial = Partial::take(&new.to)?;
    let at = clock.now();
    upkeep.copy_into(&partial.database).await?;

    let mut copy = Upkeep::open(&StoreConfig::Sqlite(partial.database.clone())).await?;
    let mut manifest = Manifest::new(at, copy.schema().await?.version, sealer.key_id());
    manifest.counts =
        copy.counts().await?.into_iter().map(|(table, count)| (table.to_owned(), count)).collect();
    manifest.media_elsewhere = home.media_folder().is_none();
    let mut files = Vec::new();
    if !manifest.media_elsewhere {
        loop {
            let after = files.last().map_or("", String::as_str);
            let page = copy.ready_files(after, PAGE).await?;
            let full = page.len() == PAGE as usize;
            files.extend(page);
            if !full {
                break;
            }
        }
    }
    copy.close().await?;

    let (home, random) = (home.clone(), random.clone());
    let created = blocking(move || write(partial, &home, new, manifest, &files, &random)).await?;
    // That it was made is worth knowing, and nothing is lost when it cannot be noted.
    if let Err(error) = upkeep.note(LAST_BACKUP, &at.as_millis().to_string()).await {
        tracing::debug!(%error, "the time of the backup was not noted");
    }
    upkeep.close().await?;
    Ok(created)
}

fn write(
    partial: Partial,
    home: &Home,
    new: NewBackup,
    mut manifest: Manifest,
    files: &[String],
    random: &Random,
) -> Result<Created> {
    let with_key = new.with_key && home.key.is_none();
    let key_file = with_key.then(|| data_dir::key_file(&home.data_dir));
    let out = BufWriter::with_capacity(1 << 18, &partial.file);
    let mut fill = |out: &mut dyn Write| -> Result<()> {
        let mut archive = Writing::new(out, manifest.created_at);
        archive.add_file(DATABASE, &partial.database)?;
        if let Some(key_file) = &key_file {
            archive.add_file(KEY, key_file)?;
            archive.add_file(NEXT_KEY, &data_dir::next_key_file(key_file))?;
        }
        for id in files {
            let folder = home.media_folder().expect("without a folder there are no files");
            let path = media_path(folder, id);
            let name = media_path(Path::new(MEDIA), id).display().to_string();
            // One that was forgotten since the copy of the database was made.
            if !archive.add_file(&name, &path)? {
                manifest.missing_files += 1;
            }
        }
        archive.finish(&mut manifest).map(|_| ())
    };
    let failed = |error: std::io::Error| unusable(&new.to, error);
    let mut out = out;
    if let Some(passphrase) = &new.passphrase {
        let mut sealing = Sealing::new(out, passphrase, random)?;
        fill(&mut sealing)?;
        out = sealing.finish().map_err(failed)?;
    } else {
        fill(&mut out)?;
    }
    out.flush().map_err(failed)?;
    drop(out);
    let size = partial.publish(&new.to)?;
    let has_key = manifest.has(KEY);
    Ok(Created { file: new.to, size, has_key, manifest })
}

/// What is written beside a backup's name until it is whole.
struct Partial {
    path: PathBuf,
    /// Locked: two that make the same backup would write into each other's.
    file: File,
    database: PathBuf,
}

impl Partial {
    fn take(target: &Path) -> Result<Self> {
        let (path, database) = (beside(target, ".partial"), beside(target, ".partial-db"));
        if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_files::create_folder(folder).map_err(|error| unusable(folder, error))?;
        }
        let file = private_files::open(&path).map_err(|error| unusable(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::conflict(format!("another backup is writing {}", target.display())));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(&path, error)),
        }
        let fresh = || {
            file.set_len(0)?;
            remove(&database)?;
            private_files::create_new(&database, b"")
        };
        fresh().map_err(|error| unusable(&path, error))?;
        Ok(Self { path, file, database })
    }

    /// Gives it its name, once all of it is on disk.
    fn publish(self, target: &Path) -> Result<u64> {
        let publish = || {
            self.file.sync_all()?;
            let size = self.file.metadata()?.len();
            std::fs::rename(&self.path, target)?;
            sync_folder_of(target)?;
            Ok(size)
        };
        publish().map_err(|error: std::io::Error| unusable(target, error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for path in [&self.path, &self.database] {
            if let Err(error) = remove(path) {
                tracing::warn!(%error, path = %path.display(), "a rest of a backup is left");
            }
        }
    }
}
