//! Fetches of plugins. A worker has no network: it sends each fetch to the hub, which makes it.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// A call of `fetch` in a plugin. Nothing in it is checked but its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchCall {
    /// Target.
    pub url: String,
    /// Method as the plugin wrote it; `GET` when it wrote none.
    pub method: String,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Body, at most [`MAX_FETCH_BODY`](super::MAX_FETCH_BODY) bytes.
    pub body: Option<String>,
}

/// The answer to a fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchAnswer {
    /// Status; redirects are answers like others.
    pub status: u16,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Body as text; what is not UTF-8 is replaced.
    pub body: String,
}

/// Makes the fetches of one run, in the hub's process. It decides which hosts may be reached and uses the guarded
/// client.
#[async_trait]
pub trait FetchGate: Send + Sync {
    /// Makes one call within `left`, the time that the run has left. The future is dropped when the run ends first.
    ///
    /// # Errors
    /// A sentence for the plugin, in which its promise is rejected with a `TypeError`.
    async fn fetch(&self, call: FetchCall, left: Duration) -> Result<FetchAnswer, String>;
}

/// Refuses everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFetch;

#[async_trait]
impl FetchGate for NoFetch {
    async fn fetch(&self, _: FetchCall, _: Duration) -> Result<FetchAnswer, String> {
        Err("fetch reaches nothing in a debug run".to_owned())
    }
}
