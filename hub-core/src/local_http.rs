//! HTTP services inside the process: the simulator, the demo's receiver, receivers of tests. They are called
//! directly, without a port, or served on a listener.

use async_trait::async_trait;
use bytes::Bytes;

/// The connection ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut;

/// Answers HTTP requests.
#[async_trait]
pub trait LocalService: Send + Sync + 'static {
    /// Answers one request, or cuts the connection.
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut>;
}
