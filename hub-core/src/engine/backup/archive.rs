//! The archive itself: members with their hashes, and the manifest that names them, last.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Write},
    path::Path,
};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    envelope::{MAGIC, Opening},
    unusable,
};
use crate::{
    error::{Advice, Error, ErrorCode, Result, Setting},
    secret::Secret,
    time::Timestamp,
};

/// Version of the archive's layout.
const FORMAT: u32 = 1;
/// Name of the manifest.
const MANIFEST: &str = "manifest.json";
/// Longest manifest: two million files.
const MAX_MANIFEST: u64 = 256 << 20;

pub(super) const DATABASE: &str = "hub.db";
pub(super) const KEY: &str = "secret.key";
pub(super) const NEXT_KEY: &str = "secret.key.new";
pub(super) const MEDIA: &str = "media/";

/// Description of a backup, stored as its last member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// Time of the copy of the database.
    pub created_at: Timestamp,
    /// Version of the program that created it.
    pub version: String,
    /// Newest migration of the database.
    pub schema: i64,
    /// Fingerprint of the key that opens its secrets.
    pub key_id: String,
    /// Whether files are in a bucket, and not in this archive.
    pub media_elsewhere: bool,
    /// Files that the database names and that did not exist.
    pub missing_files: u64,
    /// Number of rows of the main tables.
    pub counts: BTreeMap<String, i64>,
    /// All other members of the archive, in order.
    pub members: Vec<Member>,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name: `hub.db`, `secret.key` or `media/…`.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 as hex.
    pub sha256: String,
}

impl Manifest {
    /// A manifest of the layout that this program writes.
    pub(super) fn new(created_at: Timestamp, schema: i64, key_id: &str) -> Self {
        Self {
            format: FORMAT,
            created_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema,
            key_id: key_id.to_owned(),
            media_elsewhere: false,
            missing_files: 0,
            counts: BTreeMap::new(),
            members: Vec::new(),
        }
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// Files of messages in it.
    pub fn files(&self) -> usize {
        self.members.iter().filter(|member| member.name.starts_with(MEDIA)).count()
    }
}

struct Hashing<T> {
    inner: T,
    hash: Sha256,
    size: u64,
}

impl<T> Hashing<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }

    fn member(self, name: String) -> Member {
        Member { name, size: self.size, sha256: HEXLOWER.encode(&self.hash.finalize()) }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.size += read as u64;
        Ok(read)
    }
}

/// An archive that is being written.
pub(super) struct Writing<W: Write> {
    tar: tar::Builder<W>,
    members: Vec<Member>,
    at: Timestamp,
}

impl<W: Write> Writing<W> {
    pub(super) fn new(inner: W, at: Timestamp) -> Self {
        Self { tar: tar::Builder::new(inner), members: Vec::new(), at }
    }

    /// Adds a file that does not change; `false` when it is not there.
    pub(super) fn add_file(&mut self, name: &str, path: &Path) -> Result<bool> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unusable(path, error)),
        };
        let size = file.metadata().map_err(|error| unusable(path, error))?.len();
        self.add(name, size, file)?;
        Ok(true)
    }

    fn add(&mut self, name: &str, size: u64, content: impl Read) -> Result<()> {
        let mut hashing = Hashing::new(content.take(size));
        self.append(name, size, &mut hashing)?;
        if hashing.size != size {
            return Err(Error::new(
                ErrorCode::Unavailable,
                format!("{name} became shorter while it was read"),
            ));
        }
        self.members.push(hashing.member(name.to_owned()));
        Ok(())
    }

    fn append(&mut self, name: &str, size: u64, content: impl Read) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(self.at.as_seconds()).unwrap_or(0));
        let added = self.tar.append_data(&mut header, name, content);
        added.map_err(|error| {
            Error::new(ErrorCode::Unavailable, format!("the backup cannot be written: {error}"))
        })
    }

    /// Adds the manifest, and ends the archive.
    pub(super) fn finish(mut self, manifest: &mut Manifest) -> Result<W> {
        manifest.members = std::mem::take(&mut self.members);
        let text = serde_json::to_vec_pretty(&manifest).map_err(Error::internal)?;
        self.append(MANIFEST, text.len() as u64, text.as_slice())?;
        self.tar.into_inner().map_err(|error| {
            Error::new(ErrorCode::Unavailable, format!("the backup cannot be written: {error}"))
        })
    }
}

/// Reads an archive to its end: `take` gets each member but the manifest and has to read it.
///
/// # Errors
/// `INVALID_PARAMS` when the file is no backup, is cut off, was changed, or is of a newer layout.
pub(super) fn read(
    from: impl Read,
    passphrase: Option<&Secret>,
    mut take: impl FnMut(&str, &mut dyn Read) -> Result<()>,
) -> Result<Manifest> {
    let mut archive = tar::Archive::new(open(from, passphrase)?);
    let (mut found, mut manifest) = (Vec::<Member>::new(), None);
    // The words of `tar` are for its authors: they quote the bytes that are no header.
    let no_header = |error: io::Error, is_first: bool| match error.kind() {
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof if is_first => {
            Error::invalid("backup", "was not created by a hub")
        }
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof => {
            Error::invalid("backup", "is damaged, or cut off")
        }
        _ => Error::invalid("backup", format!("cannot be read: {error}")),
    };
    for entry in archive.entries().map_err(|error| no_header(error, true))? {
        let mut entry = entry.map_err(|error| no_header(error, found.is_empty()))?;
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap_or_default();
        if !entry.header().entry_type().is_file() || manifest.is_some() {
            return Err(Error::invalid("backup", format!("holds {name:?}, which no backup does")));
        }
        if name == MANIFEST {
            let read: Manifest = serde_json::from_reader(entry.by_ref().take(MAX_MANIFEST))
                .map_err(|error| Error::invalid("backup", format!("has a broken manifest: {error}")))?;
            manifest = Some(read);
            continue;
        }
        if !is_member(&name) {
            return Err(Error::invalid("backup", format!("holds {name:?}, which no backup does")));
        }
        let mut hashing = Hashing::new(&mut entry);
        take(&name, &mut hashing)?;
        found.push(hashing.member(name));
    }
    let manifest = manifest.ok_or_else(|| {
        let reason = if found.is_empty() { "is empty" } else { "is cut off: its manifest is missing" };
        Error::invalid("backup", reason)
    })?;
    if manifest.format > FORMAT {
        return Err(
            Error::invalid("backup", "was created by a newer hub").with_hint("restore it with that one")
        );
    }
    if let Some((found, _)) = found.iter().zip(&manifest.members).find(|(found, named)| found != named) {
        return Err(Error::invalid("backup", format!("is damaged: {} has another checksum", found.name)));
    }
    if found.len() != manifest.members.len() {
        return Err(Error::invalid("backup", "is damaged: it has not the members that its manifest names"));
    }
    Ok(manifest)
}

/// Opens the archive, inside its envelope if it has one.
fn open<'r>(from: impl Read + 'r, passphrase: Option<&Secret>) -> Result<Box<dyn Read + 'r>> {
    let mut from = BufReader::with_capacity(1 << 16, from);
    let mut start = Vec::with_capacity(MAGIC.len());
    let read = from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(|error| Error::new(ErrorCode::Unavailable, format!("the backup cannot be read: {error}")))?;
    match (start == MAGIC, passphrase) {
        (true, Some(passphrase)) => Ok(Box::new(Opening::new(from, passphrase)?)),
        (true, None) => Err(Error::invalid("passphrase", "is needed: this backup is sealed")
            .with_advice([Advice::Set(Setting::BackupPassphrase, None)])),
        (false, _) => Ok(Box::new(io::Cursor::new(start).chain(from))),
    }
}

/// Whether a name is one that backups have: nothing else is ever made of it.
fn is_member(name: &str) -> bool {
    let is_word = |part: &str| {
        (1..=64).contains(&part.len()) && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match name.strip_prefix(MEDIA).and_then(|rest| rest.split_once('/')) {
        Some((folder, file)) => is_word(folder) && is_word(file),
        None => [DATABASE, KEY, NEXT_KEY].contains(&name),
    }
}
