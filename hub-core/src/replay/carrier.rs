//! How a recording is sent again.

use async_trait::async_trait;

use super::{Outcome, Recording};
use crate::id::TraceId;

/// A way for recordings. What a recording lacks is found before anything is sent.
#[async_trait]
pub trait Carrier: Send + Sync {
    /// Where the recording would go, in words. Sends nothing.
    ///
    /// # Errors
    /// Why it would not go anywhere.
    async fn look(&self, recording: &Recording) -> Result<String, NotSent>;

    /// Sends it.
    async fn carry(&self, recording: &Recording) -> Carried;
}

/// Why a recording was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSent {
    /// There is nothing to send, and nothing was expected.
    Nothing(String),
    /// It should have been, and cannot.
    Impossible(String),
}

/// What came of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// How it ended.
    pub outcome: Outcome,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Body of the answer, as a trace keeps it.
    pub body: String,
    /// What was done, or why nothing was.
    pub reason: String,
    /// The trace of the replay, where the hub made it.
    pub new_trace_id: Option<TraceId>,
    /// What plugins that ran here replied.
    pub replies: Vec<String>,
}

impl Carried {
    /// Nothing came back.
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
