//! Verification and restore of a backup.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;

#[cfg(feature = "s3")]
use super::object;
use super::{
    Home, Location,
    archive::{self, DATABASE, KEY, MEDIA, Manifest, NEXT_KEY},
    blocking, remove,
    swap::{self, Journal, Move},
    unusable, with_suffix,
};
use crate::{
    data_dir,
    error::{Advice, Error, ErrorCode, Result, Setting},
    private_files,
    random::Random,
    secret::{Sealer, Secret},
    store::{SEALED_COLUMNS, StoreConfig, Upkeep, claim_file},
};

/// A restored backup.
#[derive(Debug, Clone)]
pub struct Restored {
    /// Manifest of the backup.
    pub manifest: Manifest,
    /// New paths of the replaced files.
    pub replaced: Vec<PathBuf>,
}

/// Checks a backup: its checksums, the database's own checks, that this program knows its schema, and that its key
/// opens a secret. Changes nothing of the hub. The key of the hub is only read if the backup has none.
///
/// # Errors
/// `INVALID_PARAMS` naming the problem of the backup.
pub async fn verify(
    from: &Location,
    home: &Home,
    passphrase: Option<Secret>,
    random: &Random,
) -> Result<Manifest> {
    let name = HEXLOWER.encode(&random.bytes::<8>());
    let folder = Scratch(std::env::temp_dir().join(format!("hub-verify-{name}")));
    private_files::create_folder(&folder.0).map_err(|error| unusable(&folder.0, error))?;
    let paths = MemberPaths::in_folder(&folder.0);
    let manifest = unpack(from, passphrase, paths.clone()).await?;
    check(&manifest, &paths, home, random).await?;
    Ok(manifest)
}

/// A folder that goes when it is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a folder for a moment is left");
        }
    }
}

/// Whether a restore would replace a hub.
///
/// # Errors
/// `CONFLICT` for a PostgreSQL database.
pub fn would_replace(home: &Home) -> Result<bool> {
    let key_file = data_dir::key_file(&home.data_dir);
    Ok(home.database()?.exists() || (home.key.is_none() && key_file.exists()))
}

/// Restores a backup in place of a hub that does not run, after a check of all of it. The replaced files are kept
/// next to the restored ones, under names that end in `.replaced`; the next restore removes them.
///
/// # Errors
/// `UNAVAILABLE` while a hub works on the database; `CONFLICT` when there is a hub and it was not said to be
/// replaced, or the hub's key is another one; `INVALID_PARAMS` as [`verify`]. Nothing is changed then.
pub async fn restore(
    from: &Location,
    home: &Home,
    passphrase: Option<Secret>,
    replace: bool,
    random: &Random,
) -> Result<Restored> {
    let database = home.database()?.to_owned();
    for folder in [Some(home.data_dir.as_path()), database.parent()].into_iter().flatten() {
        private_files::create_folder(folder).map_err(|error| unusable(folder, error))?;
    }
    let _claim = claim_file(&database)?;
    swap::finish(&home.data_dir)?;
    let key_file = data_dir::key_file(&home.data_dir);
    if would_replace(home)? && !replace {
        return Err(Error::conflict(format!("there is a hub in {} already", home.data_dir.display()))
            .with_hint("confirm that it is replaced, which keeps it aside, or choose another data directory")
            .with_advice([Advice::Confirm, Advice::Set(Setting::DataDir, None)]));
    }
    let targets = MemberPaths {
        database,
        media: home.media_folder().map(Path::to_owned),
        next_key: data_dir::next_key_file(&key_file),
        key: key_file,
    };
    let staged = targets.staged();
    let cleaned = staged.remove();
    cleaned.map_err(|error| unusable(&home.data_dir, error))?;
    let checked = async {
        let manifest = unpack(from, passphrase, staged.clone()).await?;
        check(&manifest, &staged, home, random).await?;
        fits(&manifest, home, random)?;
        Ok(manifest)
    };
    let manifest: Manifest = match checked.await {
        Ok(manifest) => manifest,
        Err(error) => {
            // The rest does no harm, and the next restore removes it.
            let _ = staged.remove();
            return Err(error);
        }
    };
    let (data_dir, moves) = (home.data_dir.clone(), moves(&manifest, &targets, &staged));
    let replaced = blocking(move || swap::run(&data_dir, &Journal { moves })).await?;
    Ok(Restored { manifest, replaced })
}

/// Unpacks the members of a backup to their targets; returns its manifest.
async fn unpack(from: &Location, passphrase: Option<Secret>, paths: MemberPaths) -> Result<Manifest> {
    let read = move |from: &mut dyn Read| {
        paths.make_media()?;
        let manifest = archive::read(from, passphrase.as_ref(), |name, from| paths.take(name, from))?;
        paths.sync_media()?;
        Ok(manifest)
    };
    match from {
        Location::File(path) => {
            let path = path.clone();
            blocking(move || read(&mut open(&path)?)).await
        }
        #[cfg(feature = "s3")]
        Location::Object(bucket, name) => {
            object::download(bucket, name, move |mut from| read(&mut from)).await
        }
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::new(ErrorCode::NotFound, format!("{}: {error}", path.display())),
        _ => unusable(path, error),
    })
}

/// Target paths of the members of a backup.
#[derive(Debug, Clone)]
struct MemberPaths {
    database: PathBuf,
    key: PathBuf,
    next_key: PathBuf,
    /// `None`: files are checked and not kept.
    media: Option<PathBuf>,
}

impl MemberPaths {
    fn in_folder(folder: &Path) -> Self {
        let (database, key) = (folder.join(DATABASE), folder.join(KEY));
        Self { database, next_key: data_dir::next_key_file(&key), key, media: None }
    }

    fn staged(&self) -> Self {
        let staged = |path: &Path| with_suffix(path, ".restoring");
        Self {
            database: staged(&self.database),
            key: staged(&self.key),
            next_key: staged(&self.next_key),
            media: self.media.as_deref().map(staged),
        }
    }

    fn remove(&self) -> io::Result<()> {
        [Some(&self.database), Some(&self.key), Some(&self.next_key), self.media.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(|path| remove(path))
    }

    fn make_media(&self) -> Result<()> {
        self.media
            .as_deref()
            .map_or(Ok(()), |path| private_files::create_folder(path).map_err(|error| unusable(path, error)))
    }

    /// The files are on disk already; this is for their names.
    fn sync_media(&self) -> Result<()> {
        let Some(folder) = &self.media else { return Ok(()) };
        let sync = || -> io::Result<()> {
            for entry in std::fs::read_dir(folder)? {
                File::open(entry?.path())?.sync_all()?;
            }
            File::open(folder)?.sync_all()
        };
        sync().map_err(|error| unusable(folder, error))
    }

    /// Puts a member where it goes; it is on disk when this returns.
    fn take(&self, name: &str, from: &mut dyn Read) -> Result<()> {
        let path = match name {
            DATABASE => self.database.clone(),
            KEY => self.key.clone(),
            NEXT_KEY => self.next_key.clone(),
            _ => {
                let Some(folder) = &self.media else {
                    let read = io::copy(from, &mut io::sink());
                    return read.map(|_| ()).map_err(|error| Error::invalid("backup", error.to_string()));
                };
                folder.join(name.strip_prefix(MEDIA).unwrap_or(name))
            }
        };
        let mut write = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                private_files::create_folder(folder)?;
            }
            private_files::create_new(&path, b"")?;
            let mut file = File::options().write(true).open(&path)?;
            io::copy(from, &mut file)?;
            file.flush()?;
            file.sync_all()
        };
        write().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Error::invalid("backup", error.to_string())
            }
            _ => unusable(&path, error),
        })
    }
}

/// Checks what was unpacked, apart from its checksums.
async fn check(manifest: &Manifest, paths: &MemberPaths, home: &Home, random: &Random) -> Result<()> {
    if !manifest.has(DATABASE) {
        return Err(Error::invalid("backup", "has no database in it"));
    }
    let sealer = if manifest.has(KEY) {
        let sealer = Sealer::new(&data_dir::read_key(&paths.key)?, random.clone());
        if manifest.has(NEXT_KEY) { sealer.opening(&data_dir::read_key(&paths.next_key)?) } else { sealer }
    } else {
        home.sealer(random).map_err(|error| {
            error
                .with_hint("the backup was created without its key: copy the key to secret.key, or set it")
                .with_advice([Advice::Set(Setting::SecretKey, None)])
        })?
    };
    if sealer.key_id() != manifest.key_id {
        return Err(Error::conflict(format!(
            "the backup needs the key {}, but the key here is {}",
            manifest.key_id,
            sealer.key_id()
        ))
        .with_hint("the backup was created without its key: copy the key to secret.key, or set it")
        .with_advice([Advice::Set(Setting::SecretKey, None)]));
    }
    let mut database = Upkeep::open(&StoreConfig::Sqlite(paths.database.clone())).await?;
    let damaged =
        |found: &[String]| Error::invalid("backup", format!("has a damaged database: {}", found[0]));
    let found = database.integrity().await?;
    if !found.is_empty() {
        return Err(damaged(&found));
    }
    let found = database.broken_references().await?;
    if !found.is_empty() {
        return Err(damaged(&found));
    }
    if let Err(error) = database.expect_readable_log().await {
        return Err(damaged(&[error.message().to_owned()]));
    }
    let schema = database.schema().await?;
    if schema.is_newer() {
        return Err(Error::invalid(
            "backup",
            format!("has schema version {}, and this program knows {}", schema.version, schema.newest),
        )
        .with_hint("a newer hub created it; restore it with that version"));
    }
    for column in SEALED_COLUMNS {
        // A migration that this database has yet to see may add the column.
        let Ok(rows) = database.sealed().page(column, None, 1).await else { continue };
        for row in rows {
            sealer.open(&column.place(&row), &row.value).map_err(|_| {
                Error::invalid(
                    "backup",
                    format!("has secrets in {} that its key cannot decrypt", column.table),
                )
            })?;
        }
    }
    database.close().await
}

/// Checks that a backup can be restored here: a hub with a key from a setting keeps that key.
fn fits(manifest: &Manifest, home: &Home, random: &Random) -> Result<()> {
    if let Some(key) = &home.key {
        let sealer = Sealer::new(&key.0, random.clone());
        if sealer.key_id() != manifest.key_id {
            return Err(Error::conflict(format!(
                "the configured key is {}, but the backup needs {}",
                sealer.key_id(),
                manifest.key_id
            ))
            .with_hint("set the key of the backup, or none")
            .with_advice([Advice::Set(Setting::SecretKey, None)]));
        }
    }
    if manifest.files() > 0 && home.media_folder().is_none() {
        return Err(Error::conflict("the backup has files in it, and this hub keeps files in a bucket")
            .with_hint("leave media_url out to restore them into the data folder"));
    }
    Ok(())
}

/// Returns the renames to do. A log of the old database must never be next to the new one.
fn moves(manifest: &Manifest, targets: &MemberPaths, staged: &MemberPaths) -> Vec<Move> {
    let gone = |target: PathBuf| Move { target, staged: None };
    let there =
        |target: &Path, staged: &Path| Move { target: target.to_owned(), staged: Some(staged.to_owned()) };
    let mut moves = vec![
        gone(with_suffix(&targets.database, "-wal")),
        gone(with_suffix(&targets.database, "-shm")),
        there(&targets.database, &staged.database),
    ];
    if manifest.has(KEY) {
        moves.push(there(&targets.key, &staged.key));
        moves.push(if manifest.has(NEXT_KEY) {
            there(&targets.next_key, &staged.next_key)
        } else {
            gone(targets.next_key.clone())
        });
    }
    if let (Some(target), Some(staged), false) = (&targets.media, &staged.media, manifest.media_elsewhere) {
        moves.push(there(target, staged));
    }
    moves
}
