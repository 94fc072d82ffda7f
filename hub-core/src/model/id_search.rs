//! Ids as the text of a search.

use crate::id::{MessageId, TraceId};

/// A message or a trace that a search names by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Message(MessageId),
    Trace(TraceId),
}

impl Named {
    /// The id that a text is.
    pub fn read(text: &str) -> Option<Self> {
        text.parse().map(Self::Message).or_else(|_| text.parse().map(Self::Trace)).ok()
    }
}
