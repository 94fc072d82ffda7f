//! Files of messages on a network: references, fetched files and uploads.

use std::fmt;

use bytes::Bytes;

use super::{MessageKind, NetworkError};
use crate::secret::Secret;

/// A file that came with a message and that the network stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMedia {
    /// Index of the message's item that it belongs to, from 0.
    pub item: usize,
    /// Image, voice, video or file.
    pub kind: MessageKind,
    /// The name its sender gave it; empty when there is none.
    pub file_name: String,
    /// Its size, as far as the network says, in bytes before or after encryption.
    pub size: Option<u64>,
    /// MD5 of its bytes, as lower-case hex, when the network says so.
    pub md5: Option<String>,
    /// The network's reference and keys of the file: opaque to other modules, and secret.
    pub reference: Secret,
}

/// A file that was fetched and opened.
#[derive(Clone)]
pub struct FetchedMedia {
    /// Its bytes, as its sender had them.
    pub bytes: Bytes,
    /// The reference with which it was opened; it may differ from the one it came with.
    pub reference: Secret,
}

/// A file to be handed to the network.
#[derive(Clone)]
pub struct MediaFile {
    /// Kind that people see: image, video or file. Sound is a file.
    pub kind: MessageKind,
    /// Its name, for files.
    pub file_name: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A file that the network has, ready to be sent to the one person it was uploaded for: the network's own
/// notes, opaque and secret. It may be sent again for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedMedia(pub Secret);

/// Failure to fetch or upload a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// It will never work: gone, not to be opened, over the limit, refused.
    #[error("{0}")]
    Unavailable(String),
    /// It is larger than was allowed.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// It may work later: no connection, an error of the other side.
    #[error("{0}")]
    Later(String),
    /// The login is no longer valid.
    #[error("the network requires a new login: {0}")]
    LoginExpired(String),
}

impl From<NetworkError> for MediaError {
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::LoginExpired(message) => Self::LoginExpired(message),
            NetworkError::Refused { .. } => Self::Unavailable(error.to_string()),
            NetworkError::Throttled { .. } | NetworkError::Unreachable(_) => Self::Later(error.to_string()),
        }
    }
}

impl fmt::Debug for FetchedMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FetchedMedia({} bytes)", self.bytes.len())
    }
}

impl fmt::Debug for MediaFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bytes, .. } = self;
        write!(f, "MediaFile({} of {} bytes)", kind.as_str(), bytes.len())
    }
}
