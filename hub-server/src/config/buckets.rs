//! Buckets of an S3-compatible service, for files and for backups.

use std::num::NonZeroUsize;

use hub_core::{
    backup::{BackupTarget, Nightly, TimeOfDay},
    data_dir,
    egress::OutboundProxy,
    media::{MediaConfig, S3Config},
    secret::Secret,
    store::StoreConfig,
};
use url::Url;

use super::{Config, Reader, Warning};

/// The S3 service and the hub's credentials.
#[derive(Debug, Clone)]
pub struct S3Service {
    endpoint: Option<Url>,
    region: String,
    access_key_id: String,
    secret_access_key: Secret,
    proxy: Option<OutboundProxy>,
}

impl S3Service {
    pub(super) fn read(reader: &mut Reader, proxy: Option<OutboundProxy>) -> Self {
        Self {
            endpoint: reader.url("media_s3_endpoint"),
            region: reader.text("media_s3_region"),
            access_key_id: reader.text("media_s3_access_key_id"),
            secret_access_key: Secret::new(reader.text("media_s3_secret_access_key")),
            proxy,
        }
    }

    /// Parses an address like `s3://bucket/prefix`.
    ///
    /// # Errors
    /// Half a sentence that follows the address.
    pub fn bucket(&self, address: &Url) -> Result<S3Config, String> {
        let bucket = address.host_str().filter(|bucket| address.scheme() == "s3" && !bucket.is_empty());
        let bucket = bucket.ok_or("must be like s3://bucket/prefix")?;
        if self.access_key_id.is_empty() || self.secret_access_key.expose().is_empty() {
            return Err(
                "requires media_s3_access_key_id and media_s3_secret_access_key (or …_file)".to_owned()
            );
        }
        Ok(S3Config {
            bucket: bucket.to_owned(),
            prefix: address.path().trim_matches('/').to_owned(),
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            access_key_id: self.access_key_id.clone(),
            secret_access_key: self.secret_access_key.clone(),
            proxy: self.proxy.clone().map(Box::new),
        })
    }

    /// Parses the storage of files: a folder, or a bucket.
    pub(super) fn media(&self, text: &str) -> Result<MediaConfig, String> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "file" | "s3"));
        let url = url.ok_or("must start with file:// or s3://")?;
        if url.scheme() == "s3" {
            return self.bucket(&url).map(MediaConfig::S3);
        }
        let folder = url.to_file_path().map_err(|()| "must be like file:///var/lib/hub/media")?;
        data_dir::path(&folder.display().to_string()).map(MediaConfig::Folder)
    }

    /// Parses the storage of backups: a folder, or the address of a bucket.
    ///
    /// # Errors
    /// Half a sentence that follows the text.
    pub fn target(&self, text: &str) -> Result<BackupTarget, String> {
        match Url::parse(text) {
            Ok(address) if address.scheme() == "s3" => self.bucket(&address).map(BackupTarget::Bucket),
            _ if text.contains("://") => Err("must be a folder, or like s3://bucket/prefix".to_owned()),
            _ => data_dir::path(text).map(BackupTarget::Folder),
        }
    }
}

/// Settings of nightly backups.
#[derive(Debug, Clone)]
pub struct BackupSettings {
    /// Storage of the backups.
    pub target: BackupTarget,
    at: TimeOfDay,
    keep: NonZeroUsize,
    passphrase: Option<Secret>,
}

impl BackupSettings {
    /// Reads the settings. `None` unless a storage is set.
    pub(super) fn read(reader: &mut Reader, service: &S3Service, store: &StoreConfig) -> Option<Self> {
        let target = reader.optional("backup_to", |text| service.target(text));
        let at = reader.number("backup_at", "a time in UTC, like 03:00");
        let keep = reader.number("backup_keep", "a number of backups from 1 on");
        let passphrase = reader.secret("backup_passphrase");
        let target = target?;
        if matches!(store, StoreConfig::Postgres(_)) {
            let reason = "PostgreSQL is backed up by its own tools (pg_dump); leave it out";
            reader.problem("backup_to", reason);
        }
        if matches!(target, BackupTarget::Bucket(_)) && passphrase.is_none() {
            let text = format!(
                "{}: set backup_passphrase; without it, anyone who reads the bucket has every bot's login",
                reader.origin("backup_to")
            );
            reader.findings.warnings.push(Warning::new("store.backup-sealed", text));
        }
        Some(Self { target, at, keep, passphrase })
    }
}

impl Config {
    /// Returns the nightly backups, if enabled.
    pub fn nightly(&self) -> Option<Nightly> {
        let BackupSettings { target, at, keep, passphrase } = self.backup.clone()?;
        Some(Nightly { home: self.home(), target, at, keep, passphrase })
    }
}
