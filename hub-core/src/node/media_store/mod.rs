//! Storage of bytes: a directory, or a [bucket](super::bucket). The name of an object is derived from its id only,
//! never from untrusted input.

use std::{
    fmt,
    ops::Range,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart, local::LocalFileSystem,
    memory::InMemory, path::Path,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[cfg(feature = "s3")]
pub(crate) mod bucket;
pub(crate) mod links;
pub(crate) mod views;

use crate::{
    config::MediaLimits,
    egress::Egress,
    error::{Error, ErrorCode, Result},
    id::MediaId,
    media_store::links::Links,
    private_files,
};
#[cfg(feature = "s3")]
use bucket::{S3Config, open_bucket};

/// Bytes of a file, as they come.
pub type MediaStream = BoxStream<'static, Result<Bytes>>;

/// One unit of the budget of memory.
const MIB: usize = 1 << 20;
/// Parts of an upload that are on their way at a time.
const PARTS: usize = 1;
/// Memory of one upload: the part that fills, and the one being sent (5 MiB each, the minimum of S3).
const UPLOAD_MEMORY: usize = 10 * MIB;
/// Location of a hub's files.
#[derive(Debug, Clone)]
pub enum MediaConfig {
    /// In a folder that no other hub uses; created if it does not exist.
    Folder(PathBuf),
    /// In a bucket. Several nodes share it.
    #[cfg(feature = "s3")]
    S3(S3Config),
    /// In memory: for tests.
    Memory,
}

/// Room in memory for bytes of files, until it is dropped.
#[derive(Debug)]
pub struct MediaRoom {
    _permit: OwnedSemaphorePermit,
}

/// The store of files. Cheap to clone.
#[derive(Clone)]
pub struct MediaStore {
    /// Made at the first use where it is a folder.
    objects: Arc<OnceLock<Arc<dyn ObjectStore>>>,
    prefix: Path,
    folder: Option<PathBuf>,
    links: Links,
    memory: Arc<Semaphore>,
    budget: usize,
}

impl MediaStore {
    /// Opens a store; without a configuration there is none, and requests for files fail.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a bucket that cannot be addressed.
    #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "only a bucket is called"))]
    pub(crate) fn open(
        config: Option<&MediaConfig>,
        egress: &Egress,
        links: Links,
        limits: &MediaLimits,
    ) -> Result<Self> {
        let budget = (limits.max_in_memory / MIB).max(1);
        let mut store = Self {
            objects: Arc::default(),
            prefix: Path::default(),
            folder: None,
            links,
            memory: Arc::new(Semaphore::new(budget)),
            budget,
        };
        match config {
            None => {}
            Some(MediaConfig::Memory) => {
                let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
                store.objects = Arc::new(OnceLock::from(memory));
            }
            Some(MediaConfig::Folder(path)) => store.folder = Some(path.clone()),
            #[cfg(feature = "s3")]
            Some(MediaConfig::S3(s3)) => {
                let (bucket, prefix) = open_bucket(s3, egress, "media_url")?;
                store.objects = Arc::new(OnceLock::from(bucket));
                store.prefix = prefix;
            }
        }
        Ok(store)
    }

    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Waits for room in memory for so many bytes; the room is given back with the answer.
    pub(crate) async fn room(&self, bytes: usize) -> MediaRoom {
        let units = u32::try_from(bytes.div_ceil(MIB).clamp(1, self.budget)).unwrap_or(u32::MAX);
        let memory = Arc::clone(&self.memory);
        MediaRoom { _permit: memory.acquire_many_owned(units).await.expect("the semaphore is never closed") }
    }

    /// Stores a file whole. A file that is there already is replaced.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store does not take it.
    pub(crate) async fn put(&self, id: MediaId, bytes: Bytes) -> Result<()> {
        self.objects()?.put(&self.path(id), PutPayload::from_bytes(bytes)).await.map_err(refused).map(drop)
    }

    /// Begins to store a file piece by piece; nothing of it is there before [`Writing::finish`].
    pub(crate) async fn write(&self, id: MediaId) -> Result<Writing> {
        let room = self.room(UPLOAD_MEMORY).await;
        let upload = self.objects()?.put_multipart(&self.path(id)).await.map_err(refused)?;
        Ok(Writing { parts: WriteMultipart::new(upload), _room: room })
    }

    /// Reads a file of at most `max` bytes whole.
    ///
    /// # Errors
    /// `NOT_FOUND`, `PAYLOAD_TOO_LARGE`, or `UNAVAILABLE` when the store does not answer.
    pub(crate) async fn read(&self, id: MediaId, max: usize) -> Result<Bytes> {
        let found = self.objects()?.get(&self.path(id)).await.map_err(refused)?;
        if found.meta.size > max as u64 {
            return Err(Error::new(
                ErrorCode::PayloadTooLarge,
                format!("the file is larger than {max} bytes"),
            ));
        }
        let mut bytes = BytesMut::with_capacity(usize::try_from(found.meta.size).unwrap_or(0));
        let mut stream = found.into_stream();
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.map_err(refused)?);
        }
        Ok(bytes.freeze())
    }

    /// Reads a part of a file as it comes.
    pub(crate) async fn stream(&self, id: MediaId, range: Range<u64>) -> Result<MediaStream> {
        if range.is_empty() {
            return Ok(futures_util::stream::empty().boxed());
        }
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let found = self.objects()?.get_opts(&self.path(id), options).await.map_err(refused)?;
        Ok(found.into_stream().map(|piece| piece.map_err(refused)).boxed())
    }

    /// Makes a second file of the same bytes.
    pub(crate) async fn copy(&self, from: MediaId, to: MediaId) -> Result<()> {
        self.objects()?.copy(&self.path(from), &self.path(to)).await.map_err(refused)
    }

    /// Removes a file, and what an interrupted write left of it. It need not be there.
    pub(crate) async fn remove(&self, id: MediaId) -> Result<()> {
        let path = self.path(id);
        if let Some(folder) = &self.folder {
            // Temporary parts are next to the file until it is complete; a crash leaves them there.
            let mut piece = folder.join(path.as_ref()).into_os_string();
            piece.push("#1");
            let _ = tokio::fs::remove_file(piece).await;
        }
        match self.objects()?.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(refused(error)),
        }
    }

    /// Makes sure that there is a place for files, where there is to be one.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the folder cannot be made.
    pub(crate) fn check(&self) -> Result<()> {
        if self.folder.is_some() { self.objects().map(drop) } else { Ok(()) }
    }

    fn objects(&self) -> Result<&Arc<dyn ObjectStore>> {
        if let (None, Some(path)) = (self.objects.get(), &self.folder) {
            let folder: Arc<dyn ObjectStore> = Arc::new(folder(path)?);
            return Ok(self.objects.get_or_init(|| folder));
        }
        let none = || Error::new(ErrorCode::Unavailable, "this hub has no store for files");
        self.objects.get().ok_or_else(none)
    }

    /// Two characters of the random part in front, so that no folder gets too full.
    fn path(&self, id: MediaId) -> Path {
        let name = id.to_string();
        self.prefix.clone().join(&name[name.len() - 2..]).join(name.as_str())
    }
}

/// A file that is being stored.
pub(crate) struct Writing {
    parts: WriteMultipart,
    _room: MediaRoom,
}

impl Writing {
    /// Adds bytes; waits when the store is slower than they come.
    pub(crate) async fn add(&mut self, bytes: Bytes) -> Result<()> {
        self.parts.wait_for_capacity(PARTS).await.map_err(refused)?;
        self.parts.put(bytes);
        Ok(())
    }

    /// Makes the file be there.
    pub(crate) async fn finish(self) -> Result<()> {
        self.parts.finish().await.map_err(refused).map(drop)
    }

    pub(crate) async fn abort(self) {
        if let Err(error) = self.parts.abort().await {
            tracing::debug!(%error, "an interrupted upload was not removed from the media store");
        }
    }
}

fn folder(path: &std::path::Path) -> Result<LocalFileSystem> {
    let unusable = |error: &dyn fmt::Display| {
        let message = format!("cannot use the folder for files {}: {error}", path.display());
        Error::new(ErrorCode::Unavailable, message)
    };
    private_files::create_folder(path).map_err(|error| unusable(&error))?;
    let folder = LocalFileSystem::new_with_prefix(path).map_err(|error| unusable(&error))?;
    // What was accepted has to survive the machine.
    Ok(folder.with_fsync(true))
}

fn refused(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::not_found("file"),
        // Addresses of the operator's own services stay in the log.
        error => Error::new(ErrorCode::Unavailable, "the file store does not respond").with_source(error),
    }
}

impl fmt::Debug for MediaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MediaStore({:?})", self.objects.get().map(ToString::to_string))
    }
}
