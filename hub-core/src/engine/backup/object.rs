//! A backup as an object in a bucket. An archive is made and read on a thread of its own; a short channel is between it
//! and the client, so that memory holds a few pieces however large the backup is.

use std::io::{self, Read, Write};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart, path::Path};
use tokio::sync::mpsc;

use super::{BackupTarget, blocking};
use crate::{
    egress::{Egress, EgressConfig},
    error::{Error, ErrorCode, Result},
    media::{S3Config, open_bucket},
};

/// Bytes that are handed over at a time, and how many of such pieces wait.
const CHUNK_SIZE: usize = 1 << 20;
const WAITING: usize = 2;
/// Bytes of a part: S3 takes 10,000 of them, so that a backup may have 160 GB. One part fills while one is on its way.
const PART: usize = 16 << 20;
const PARTS: usize = 1;

/// An object, and how to reach it.
struct Object {
    shown: String,
    store: std::sync::Arc<dyn ObjectStore>,
    path: Path,
}

impl Object {
    fn open(bucket: &S3Config, name: &str) -> Result<Self> {
        let (store, prefix) = open(bucket)?;
        let shown = BackupTarget::Bucket(bucket.clone()).place(name).to_string();
        Ok(Self { shown, store, path: prefix.join(name) })
    }

    fn refused(&self, error: object_store::Error) -> Error {
        refused(&self.shown, error)
    }
}

fn open(bucket: &S3Config) -> Result<(std::sync::Arc<dyn ObjectStore>, Path)> {
    let egress = EgressConfig { proxy: bucket.proxy.as_deref().cloned(), ..EgressConfig::default() };
    open_bucket(bucket, &Egress::new(egress)?, "bucket")
}

fn refused(shown: &str, error: object_store::Error) -> Error {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Error::new(ErrorCode::NotFound, format!("there is no {shown}")),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            Error::new(ErrorCode::Unavailable, format!("{shown} is refused to the hub")).with_source(error)
        }
        error => Error::new(ErrorCode::Unavailable, format!("{shown} cannot be reached")).with_source(error),
    }
}

/// The names of what lies right below a bucket's prefix.
pub(super) async fn names(bucket: &S3Config) -> Result<Vec<String>> {
    let (store, prefix) = open(bucket)?;
    let shown = BackupTarget::Bucket(bucket.clone()).to_string();
    let listed = store.list_with_delimiter(Some(&prefix)).await.map_err(|error| refused(&shown, error))?;
    Ok(listed.objects.iter().filter_map(|object| object.location.filename()).map(str::to_owned).collect())
}

/// Removes an object; it need not be there.
pub(super) async fn remove(bucket: &S3Config, name: &str) -> Result<()> {
    let object = Object::open(bucket, name)?;
    match object.store.delete(&object.path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(object.refused(error)),
    }
}

/// Makes sure that there is no object of this name.
pub(super) async fn expect_none(bucket: &S3Config, name: &str) -> Result<()> {
    let object = Object::open(bucket, name)?;
    match object.store.head(&object.path).await {
        Ok(_) => Err(Error::conflict(format!("{} is there already", object.shown))),
        // Also where there is no bucket; making the object says so.
        Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(object.refused(error)),
    }
}

/// Makes an object of what `fill` writes; it is there when all of it is. Gives what `fill` gives, and the object's size.
pub(super) async fn upload<T: Send + 'static>(
    bucket: &S3Config,
    name: &str,
    fill: impl FnOnce(&mut Outgoing) -> Result<T> + Send + 'static,
) -> Result<(T, u64)> {
    let object = Object::open(bucket, name)?;
    let begun = object.store.put_multipart(&object.path).await.map_err(|error| match error {
        object_store::Error::NotFound { .. } => {
            Error::new(ErrorCode::NotFound, format!("there is no bucket {}", bucket.bucket))
        }
        error => object.refused(error),
    })?;
    let mut parts = WriteMultipart::new_with_chunk_size(begun, PART);
    let (pieces, mut waiting) = mpsc::channel(WAITING);
    let filling = blocking(move || {
        let mut out = Outgoing { pieces, piece: BytesMut::with_capacity(CHUNK_SIZE), size: 0 };
        let filled = fill(&mut out)?;
        out.send().map_err(Error::internal)?;
        Ok((filled, out.size))
    });
    let carrying = async {
        while let Some(piece) = waiting.recv().await {
            if let Err(error) = parts.wait_for_capacity(PARTS).await {
                // The thread ends at its next piece.
                waiting.close();
                return Err(error);
            }
            parts.put(piece);
        }
        Ok(())
    };
    let (filled, carried) = tokio::join!(filling, carrying);
    let whole = carried.map_err(|error| object.refused(error)).and(filled);
    match whole {
        Ok(whole) => parts.finish().await.map(|_| whole).map_err(|error| object.refused(error)),
        Err(error) => {
            if let Err(error) = parts.abort().await {
                tracing::warn!(%error, "parts of a backup are left in its bucket");
            }
            Err(error)
        }
    }
}

/// Lets `take` read an object from its beginning.
pub(super) async fn download<T: Send + 'static>(
    bucket: &S3Config,
    name: &str,
    take: impl FnOnce(Incoming) -> Result<T> + Send + 'static,
) -> Result<T> {
    let object = Object::open(bucket, name)?;
    let found = object.store.get(&object.path).await.map_err(|error| object.refused(error))?;
    let (pieces, waiting) = mpsc::channel(WAITING);
    let taking = blocking(move || take(Incoming { pieces: waiting, piece: Bytes::new() }));
    let carrying = async move {
        let mut stream = found.into_stream();
        while let Some(piece) = stream.try_next().await? {
            // The reader has finished.
            if pieces.send(piece).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    let (taken, carried) = tokio::join!(taking, carrying);
    // An archive that was cut off by a lost connection is not to blame for it.
    carried.map_err(|error| object.refused(error))?;
    taken
}

/// Writer of data for a bucket.
#[derive(Debug)]
pub(super) struct Outgoing {
    pieces: mpsc::Sender<Bytes>,
    piece: BytesMut,
    size: u64,
}

impl Outgoing {
    fn send(&mut self) -> io::Result<()> {
        let piece = self.piece.split().freeze();
        self.size += piece.len() as u64;
        self.pieces.blocking_send(piece).map_err(|_| io::Error::other("the bucket accepts no more data"))
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_SIZE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == CHUNK_SIZE {
            self.send()?;
        }
        Ok(taken)
    }

    /// Does nothing: an incomplete piece is sent as the last one.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reader of data from a bucket.
#[derive(Debug)]
pub(super) struct Incoming {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let taken = buffer.len().min(self.piece.len());
        buffer[..taken].copy_from_slice(&self.piece.split_to(taken));
        Ok(taken)
    }
}
