//! Creation of a backup.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tokio_util::sync::CancellationToken;

#[cfg(feature = "s3")]
use super::object;
use super::{
    Home, LAST_BACKUP, Location,
    archive::{DATABASE, KEY, MEDIA, Manifest, NEXT_KEY, Writing},
    blocking,
    envelope::Sealing,
    media_path, remove, sync_folder_of, unusable, with_suffix,
};
use crate::{
    data_dir,
    error::{Error, ErrorCode, Result},
    private_files::{self, Locked},
    random::Random,
    secret::Secret,
    store::{StoreConfig, Upkeep},
    time::{Clock, Timestamp},
};

/// Ids of files that are read at a time.
const PAGE: u32 = 1_000;
/// Name of the copy of the database, in the data directory, during an upload to a bucket.
#[cfg(feature = "s3")]
const FOR_BUCKETS: &str = "backup-for-bucket";

/// A backup to create.
#[derive(Debug)]
pub struct NewBackup {
    /// Destination; nothing of this name may exist.
    pub to: Location,
    /// Passphrase that seals it, if it is sealed.
    pub passphrase: Option<Secret>,
    /// Whether the key in the data folder is in it.
    pub with_key: bool,
}

/// A backup that was created.
#[derive(Debug, Clone)]
pub struct Created {
    /// Location of the backup.
    pub location: Location,
    /// Its bytes.
    pub size: u64,
    /// Whether it contains the key.
    pub has_key: bool,
    /// Its manifest.
    pub manifest: Manifest,
}

/// Returns the name of a backup created at an instant: `hub-20260131T120000Z.tar`.
pub fn default_name(at: Timestamp, sealed: bool) -> String {
    named("hub", at, sealed)
}

/// A name with the instant in it, to the second.
pub(super) fn named(series: &str, at: Timestamp, sealed: bool) -> String {
    let time: String = at.to_string().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    format!("{series}-{time}Z.tar{}", if sealed { ".sealed" } else { "" })
}

/// Creates a backup of a hub that may be running. It gets its name once all of it is on disk, or in its bucket;
/// before that, and after a failure, there is at most a temporary file that the next backup of that name removes. If
/// dropped, it stops at its next write.
///
/// # Errors
/// `CONFLICT` when there is one of that name, another backup makes it, or the database is not SQLite; `NOT_FOUND`
/// without a database or without the bucket; `UNAVAILABLE` when something cannot be read or written, or the commit log
/// has entries that this program cannot read, so that no restore could use the backup.
pub async fn create(home: &Home, new: NewBackup, clock: &Clock, random: &Random) -> Result<Created> {
    home.database()?;
    expect_none(&new.to).await?;
    let mut upkeep = Upkeep::open(&home.store).await?;
    let sealer = home.sealer(random)?;
    let partial = match &new.to {
        Location::File(path) => Partial::take(path),
        #[cfg(feature = "s3")]
        Location::Object(..) => Partial::take(&home.data_dir.join(FOR_BUCKETS)),
    }?;
    let at = clock.now();
    upkeep.copy_into(&partial.database).await?;

    let mut copy = Upkeep::open(&StoreConfig::Sqlite(partial.database.clone())).await?;
    copy.expect_readable_log().await?;
    let mut manifest = Manifest::new(at, copy.schema().await?.version, sealer.key_id());
    manifest.counts =
        copy.counts().await?.into_iter().map(|(table, count)| (table.to_owned(), count)).collect();
    manifest.media_elsewhere = home.media_folder().is_none();
    let files = if manifest.media_elsewhere { Vec::new() } else { ready_files(&mut copy).await? };
    copy.close().await?;

    let stop = CancellationToken::new();
    let _ended = stop.clone().drop_guard();
    let content = Content {
        home: home.clone(),
        database: partial.database.clone(),
        with_key: new.with_key && home.key.is_none(),
        passphrase: new.passphrase,
        manifest,
        files,
        random: random.clone(),
        stop,
    };
    let (manifest, size) = match &new.to {
        Location::File(path) => {
            let path = path.clone();
            blocking(move || {
                let manifest = content.write(BufWriter::with_capacity(1 << 18, &*partial.file))?;
                Ok((manifest, partial.publish(&path)?))
            })
            .await?
        }
        #[cfg(feature = "s3")]
        Location::Object(bucket, name) => object::upload(bucket, name, move |out| content.write(out)).await?,
    };
    // The time is only for information: a failure to store it loses nothing.
    if let Err(error) = upkeep.note(LAST_BACKUP, &at.as_millis().to_string()).await {
        tracing::debug!(%error, "the time of the backup was not noted");
    }
    upkeep.close().await?;
    Ok(Created { location: new.to, size, has_key: manifest.has(KEY), manifest })
}

async fn expect_none(to: &Location) -> Result<()> {
    let found = match to {
        Location::File(path) if path.exists() => {
            Err(Error::conflict(format!("{} is there already", path.display())))
        }
        Location::File(_) => Ok(()),
        #[cfg(feature = "s3")]
        Location::Object(bucket, name) => object::expect_none(bucket, name).await,
    };
    found.map_err(|error| match error.code() {
        ErrorCode::Conflict => error.with_hint("choose another name for the backup"),
        _ => error,
    })
}

/// The ids of all files that a database names.
async fn ready_files(database: &mut Upkeep) -> Result<Vec<String>> {
    let mut files = Vec::new();
    loop {
        let after = files.last().map_or("", String::as_str);
        let page = database.ready_files(after, PAGE).await?;
        let full = page.len() == PAGE as usize;
        files.extend(page);
        if !full {
            return Ok(files);
        }
    }
}

/// Content of a backup, and the options for writing it.
struct Content {
    home: Home,
    database: PathBuf,
    with_key: bool,
    passphrase: Option<Secret>,
    manifest: Manifest,
    files: Vec<String>,
    random: Random,
    /// Cancelled when the caller has gone.
    stop: CancellationToken,
}

impl Content {
    /// Writes the archive, sealed where it is to be.
    fn write(mut self, out: impl Write) -> Result<Manifest> {
        let mut out = Stoppable { inner: out, stop: self.stop.clone() };
        let failed =
            |error| Error::new(ErrorCode::Unavailable, format!("the backup cannot be written: {error}"));
        if let Some(passphrase) = self.passphrase.take() {
            let mut sealing = Sealing::new(&mut out, &passphrase, &self.random)?;
            self.fill(&mut sealing)?;
            sealing.finish().map_err(failed)?;
        } else {
            self.fill(&mut out)?;
        }
        out.flush().map_err(failed)?;
        Ok(self.manifest)
    }

    fn fill(&mut self, out: &mut dyn Write) -> Result<()> {
        let mut archive = Writing::new(out, self.manifest.created_at);
        archive.add_file(DATABASE, &self.database)?;
        if self.with_key {
            let key_file = data_dir::key_file(&self.home.data_dir);
            archive.add_file(KEY, &key_file)?;
            archive.add_file(NEXT_KEY, &data_dir::next_key_file(&key_file))?;
        }
        for id in &self.files {
            let folder = self.home.media_folder().expect("without a folder there are no files");
            let path = media_path(folder, id);
            let name = media_path(Path::new(MEDIA), id).display().to_string();
            // One that was forgotten since the copy of the database was made.
            if !archive.add_file(&name, &path)? {
                self.manifest.missing_files += 1;
            }
        }
        archive.finish(&mut self.manifest).map(drop)
    }
}

/// Writes until it is cancelled: a thread does not end when its waiter is dropped.
struct Stoppable<W> {
    inner: W,
    stop: CancellationToken,
}

impl<W: Write> Write for Stoppable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the caller has gone"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Suffixes of unfinished files.
const PARTIAL: &str = ".partial";
const PARTIAL_DATABASE: &str = ".partial-db";

/// Removes files of backups that were killed during their creation, under names that are `ours`. A backup in progress
/// is left alone.
pub(super) fn remove_leftovers(folder: &Path, names: &[String], ours: impl Fn(&str) -> bool) {
    let whole = |name: &'_ String| {
        let name = name.strip_suffix(PARTIAL).or_else(|| name.strip_suffix(PARTIAL_DATABASE))?;
        ours(name).then(|| name.to_owned())
    };
    for name in names.iter().filter_map(whole) {
        // Holding it includes removing existing files, even without writing.
        match Partial::take(&folder.join(&name)) {
            Ok(rest) => drop(rest),
            Err(error) => tracing::debug!(%error, name, "a backup is in progress, or parts of one were left"),
        }
    }
}

/// Suffix of a backup until it is complete.
struct Partial {
    path: PathBuf,
    /// Locked: two that make the same backup would write into each other's.
    file: Locked,
    database: PathBuf,
}

impl Partial {
    fn take(target: &Path) -> Result<Self> {
        let (path, database) = (with_suffix(target, PARTIAL), with_suffix(target, PARTIAL_DATABASE));
        if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private_files::create_folder(folder).map_err(|error| unusable(folder, error))?;
        }
        let locked = private_files::lock(&path).map_err(|error| unusable(&path, error))?;
        let file = locked
            .ok_or_else(|| Error::conflict(format!("another backup is writing {}", target.display())))?;
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
                tracing::warn!(%error, path = %path.display(), "parts of a backup were left");
            }
        }
    }
}
