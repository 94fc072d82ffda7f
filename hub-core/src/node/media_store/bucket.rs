//! A service that speaks the S3 protocol, called with the hub's own HTTP client.

use std::sync::Arc;

use object_store::{ObjectStore, RetryConfig, aws::AmazonS3Builder, path::Path};
use url::Url;

use crate::{
    egress::{Egress, OutboundProxy, objects::ObjectHttp},
    error::{Error, Result},
    secret::Secret,
};

/// Tries of a request to the S3 service, and how long they may take together.
const RETRIES: usize = 3;
const RETRY_FOR: std::time::Duration = std::time::Duration::from_secs(30);

/// A bucket of a service that speaks the S3 protocol.
#[derive(Debug, Clone)]
pub struct S3Config {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of the names of objects; empty for none.
    pub prefix: String,
    /// Address of the service; AWS when absent. Buckets are addressed by path then.
    pub endpoint: Option<Url>,
    /// Region.
    pub region: String,
    /// Id of the access key.
    pub access_key_id: String,
    /// Secret of the access key.
    pub secret_access_key: Secret,
    /// Proxy to the service, for backups; requests for files use the hub's other settings.
    pub proxy: Option<Box<OutboundProxy>>,
}

/// Opens the bucket; returns it with the prefix of the names of its objects.
///
/// # Errors
/// `INVALID_PARAMS` on `field` for a bucket that cannot be addressed.
pub(crate) fn open_bucket(
    s3: &S3Config,
    egress: &Egress,
    field: &'static str,
) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let prefix = Path::parse(s3.prefix.trim_matches('/'))
        .map_err(|_| Error::invalid(field, "its path cannot start names of objects"))?;
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&s3.bucket)
        .with_region(&s3.region)
        .with_access_key_id(&s3.access_key_id)
        .with_secret_access_key(s3.secret_access_key.expose())
        .with_retry(retry)
        .with_http_connector(ObjectHttp::new(egress)?);
    if let Some(endpoint) = &s3.endpoint {
        builder = builder
            .with_endpoint(endpoint.as_str().trim_end_matches('/'))
            .with_allow_http(endpoint.scheme() == "http");
    }
    let bucket = builder.build().map_err(|error| Error::invalid(field, error.to_string()))?;
    Ok((Arc::new(bucket), prefix))
}
