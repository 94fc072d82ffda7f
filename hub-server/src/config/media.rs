//! Where files are kept: a folder, or a bucket of a service that speaks the S3 protocol.

use std::path::Path;

use hub_core::media::MediaConfig;
use url::Url;

use super::{Reader, S3Service};

/// A directory in the data directory unless configured.
pub(super) fn read(reader: &mut Reader, service: &S3Service, data_dir: &Path) -> MediaConfig {
    let (text, origin) = reader.text("media_url", "");
    let folder = || MediaConfig::Folder(data_dir.join("media"));
    if text.is_empty() {
        return folder();
    }
    let Some(url) = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "file" | "s3")) else {
        reader.problem(&origin, format!("{text:?} must start with file:// or s3://"));
        return folder();
    };
    if url.scheme() == "file" {
        return url.to_file_path().map_or_else(
            |()| {
                reader.problem(&origin, format!("{text:?} must be like file:///var/lib/hub/media"));
                folder()
            },
            MediaConfig::Folder,
        );
    }
    match service.bucket(&url) {
        Ok(bucket) => MediaConfig::S3(bucket),
        Err(reason) => {
            reader.problem(&origin, format!("{text:?} {reason}"));
            folder()
        }
    }
}
