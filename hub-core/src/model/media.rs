//! Files of messages.

use std::fmt;

use serde::Serialize;

use crate::{id::MediaId, network::MessageKind, secret::Secret, time::Timestamp, words::words};

words! {
    /// State of a file.
    #[api(name = "MediaStatus")]
    pub enum MediaState {
        /// Announced, not uploaded yet.
        Pending = "pending",
        /// It is being uploaded.
        Uploading = "uploading",
        /// It is being downloaded from the chat network.
        Downloading = "downloading",
        /// It is available.
        Ready = "ready",
        /// The download failed; it can be retried.
        Failed = "failed",
    }
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, hub_macros::Api)]
#[api(name = "Media")]
pub struct MediaView {
    /// Id of the file.
    pub id: MediaId,
    /// Index of its item, from 0.
    pub item: u32,
    /// Kind of the file.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// State of the file.
    pub status: MediaState,
    /// File name; empty if unknown.
    pub file_name: String,
    /// Media type, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Size in bytes, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// URL to download it, without further credentials; absent if the download failed. A request waits up to 20
    /// seconds for a file that is still being downloaded; ranges, `HEAD` and `If-None-Match` are supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[api(with(Option<String>, |url: &Option<SignedUrl>| url.as_ref().map(|url| url.as_str().to_owned())))]
    pub url: Option<SignedUrl>,
    /// When the URL expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_expires_at: Option<Timestamp>,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[api(cause)]
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
