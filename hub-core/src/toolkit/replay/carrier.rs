//! Interface for sending a recording again.

use async_trait::async_trait;

use super::{Outcome, Recording};
use crate::id::TraceId;

/// A transport for recordings. A recording that cannot be sent is found before anything is sent.
#[async_trait]
pub trait Carrier: Send + Sync {
    /// Returns the target of the recording as text; sends nothing.
    ///
    /// # Errors
    /// The reason why it cannot be sent.
    async fn target(&self, recording: &Recording) -> Result<String, NotSent>;

    /// Sends it.
    async fn carry(&self, recording: &Recording) -> Carried;
}

/// Reason why a recording was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSent {
    /// There is nothing to send, and nothing was expected.
    Nothing(String),
    /// It should be sent, and cannot be.
    Impossible(String),
}

/// Result of sending a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Success, failure or skip.
    pub outcome: Outcome,
    /// HTTP status of the response.
    pub status: Option<u16>,
    /// Body of the response, as a trace keeps it.
    pub body: String,
    /// Summary of the attempt, or the reason why there was none.
    pub reason: String,
    /// The trace of the replay, where the hub made it.
    pub new_trace_id: Option<TraceId>,
    /// Replies of plugins that ran in this process.
    pub replies: Vec<String>,
}

impl Carried {
    /// Creates a failure without a response.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Fail,
            status: None,
            body: String::new(),
            reason: reason.into(),
            new_trace_id: None,
            replies: Vec::new(),
        }
    }
}

impl From<NotSent> for Carried {
    fn from(why: NotSent) -> Self {
        match why {
            NotSent::Nothing(reason) => Self { outcome: Outcome::Skipped, ..Self::failed(reason) },
            NotSent::Impossible(reason) => Self::failed(reason),
        }
    }
}
