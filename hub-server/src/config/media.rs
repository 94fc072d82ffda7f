//! Where files are kept: a folder, or a bucket of a service that speaks the S3 protocol.

use std::path::Path;

use hub_core::{
    media::{MediaConfig, S3Config},
    secret::Secret,
};
use url::Url;

use super::Reader;

/// A folder in the data folder unless a setting says otherwise.
pub(super) fn read(reader: &mut Reader, data_dir: &Path) -> MediaConfig {
    let (text, origin) = reader.text("media_url", "");
    let endpoint = reader.url("media_s3_endpoint");
    let region = reader.text("media_s3_region", "us-east-1").0;
    let (access_key_id, _) = reader.text("media_s3_access_key_id", "");
    let (secret_access_key, _) = reader.text("media_s3_secret_access_key", "");
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
    let Some(bucket) = url.host_str().filter(|bucket| !bucket.is_empty()) else {
        reader.problem(&origin, format!("{text:?} must be like s3://bucket/prefix"));
        return folder();
    };
    if access_key_id.is_empty() || secret_access_key.is_empty() {
        reader.problem(
            &origin,
            "s3:// needs media_s3_access_key_id and media_s3_secret_access_key (or …_file) beside it",
        );
    }
    MediaConfig::S3(S3Config {
        bucket: bucket.to_owned(),
        prefix: url.path().trim_matches('/').to_owned(),
        endpoint,
        region,
        access_key_id,
        secret_access_key: Secret::new(secret_access_key),
    })
}
