//! Results of the recordings.

use serde::Serialize;

use super::Differences;
use crate::id::TraceId;
use crate::words::words;

/// Result of one recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The recorded trace.
    pub trace_id: TraceId,
    /// Success, failure or skip.
    pub outcome: Outcome,
    /// HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// Summary of the attempt, or the reason why there was none.
    pub reason: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// The trace of the replay, where the hub made it.
    pub new_trace_id: Option<TraceId>,
    /// Replies of plugins that ran here; they are not sent.
    pub replies: Vec<String>,
    /// Differences between the response and the recorded one; absent without a comparison.
    pub differences: Option<Differences>,
}

words! {
    /// How a recording ended.
    pub enum Outcome {
        /// It was answered with success.
        Ok = "ok",
        /// It was not.
        Fail = "fail",
        /// There was nothing to send.
        Skipped = "skipped",
    }
}

/// Counts of all recordings that are over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Answered with success.
    pub ok: u64,
    /// Not answered so.
    pub failed: u64,
    /// Nothing to send.
    pub skipped: u64,
    /// Of those that were answered, other than the recording.
    pub differing: u64,
}

impl Totals {
    /// All of them.
    pub const fn done(&self) -> u64 {
        self.ok + self.failed + self.skipped
    }

    pub(super) fn count(&mut self, report: &Report) {
        match report.outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Fail => self.failed += 1,
            Outcome::Skipped => self.skipped += 1,
        }
        self.differing += u64::from(report.differences.as_ref().is_some_and(Differences::any));
    }
}
