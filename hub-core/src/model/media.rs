//! Files of messages.

use std::fmt;

use serde::Serialize;

use crate::{id::MediaId, network::MessageKind, secret::Secret, time::Timestamp, words::words};

words! {
    /// State of a file.
    pub enum MediaState {
        /// It may be uploaded.
        Pending = "pending",
        /// It is being uploaded.
        Uploading = "uploading",
        /// It is with the network.
        Downloading = "downloading",
        /// It is in the store.
        Ready = "ready",
        /// The download failed, unless it is retried.
        Failed = "failed",
    }
}

/// A file of a message, as programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MediaView {
    /// Id.
    pub id: MediaId,
    /// Which of the message's items it is, from 0.
    pub item: u32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// `downloading`, `ready` or `failed`.
    pub status: MediaState,
    /// Its name; empty until it has one.
    pub file_name: String,
    /// Media type, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Bytes, once they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where to read it; absent when it failed. Reading waits for a file that is still being fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<SignedUrl>,
    /// Until when that works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_expires_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A URL that grants access to the file. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SignedUrl(String);

impl SignedUrl {
    pub(crate) fn new(url: String) -> Self {
        Self(url)
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part that must not be written down.
    pub(crate) fn signature(&self) -> Secret {
        Secret::new(self.0.rsplit_once("sig=").map_or("", |(_, signature)| signature))
    }
}

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedUrl(***)")
    }
}

/// A file that is kept, ready to be part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Id.
    pub id: MediaId,
    /// As what people see it: image, video or file.
    pub kind: MessageKind,
    /// Its name; never empty.
    pub file_name: String,
    /// Bytes.
    pub size: u64,
}
