//! Protocol between hub and worker: frames of a length in four bytes, little-endian, and JSON.
//!
//! ```text
//! hub ▶ worker   run, answer
//! worker ▶ hub   ready, fetch, done
//! ```
//!
//! A worker makes the runs of one frame one after another, and reports them in one write. It may leave out the last ones:
//! `ready` ends the frame.
//!
//! The hub does not trust a worker: a frame that is too large, is no JSON, arrives at the wrong time or breaks a cap
//! counts as a crash of the worker.

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    engine,
    fetch_gate::{FetchAnswer, FetchCall},
    hook::{
        Body, HookInput, HookOutcome, MAX_ERROR_TEXT, MAX_HEADERS, MAX_LOG_BYTES, MAX_LOG_LINES, MAX_NAME,
        MAX_NAMES, MAX_REPLIES, MAX_REPLY_TEXT, MAX_RESULT, MAX_STATE, Reply,
    },
};

/// Largest frame to a worker: a source, a message, a request and an answer, each escaped.
pub(super) const MAX_TO_WORKER: usize = 16 << 20;
/// Largest frame from a worker: a result of 512 KiB, escaped.
pub(super) const MAX_FROM_WORKER: usize = 4 << 20;
/// After this time a worker makes no further run of a frame, so that other tenants wait no longer.
pub(super) const FRAME_TIME: Duration = Duration::from_millis(20);
/// Bytes of outcomes after which a worker makes no further run of a frame: the hub reads them at once.
pub(super) const FRAME_SIZE: usize = 256 << 10;

/// Messages from the hub to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToWorker<'a> {
    /// Make a run of the source with each input, or compile it only, without inputs.
    Run {
        /// Number of the first run; the next ones follow it. Responses carry the number of their run.
        id: u64,
        /// Hash of the source.
        hash: [u8; 32],
        /// The source, unless it was sent to this worker before.
        source: Option<Cow<'a, str>>,
        /// Arguments of each run.
        inputs: Vec<Cow<'a, HookInput>>,
    },
    /// Find the undeclared names of a source.
    Names {
        /// Number under which the search counts as a run.
        id: u64,
        source: Cow<'a, str>,
    },
    /// The answer to a fetch.
    Answer {
        /// Number of the run.
        id: u64,
        /// Number of the fetch.
        fetch: u32,
        /// The response, or the error for the plugin.
        answer: Result<FetchAnswer, String>,
    },
}

/// Messages from a worker to the hub.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time is read and taken apart")]
pub(super) enum FromWorker {
    /// The worker is idle: after its start, and after it cleaned up after the runs of a frame.
    Ready {
        /// Whether system calls are filtered.
        filtered: bool,
    },
    /// The plugin fetches something.
    Fetch {
        /// Number of the run.
        id: u64,
        /// Number of the fetch.
        fetch: u32,
        /// Request of the plugin.
        call: FetchCall,
    },
    /// The run is over.
    Done {
        /// Number of the run.
        id: u64,
        /// Result of the run.
        outcome: HookOutcome,
    },
}

/// A frame that breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(&'static str);

/// Encodes a whole frame, ready to be written.
pub(super) fn encode(message: &impl Serialize, max: usize) -> Result<Vec<u8>, Malformed> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message).map_err(|_| Malformed("a frame has no JSON"))?;
    let length = frame.len() - 4;
    if length > max {
        return Err(Malformed("a frame is too large"));
    }
    let length = u32::try_from(length).map_err(|_| Malformed("a frame is too large"))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Decodes the length from a frame's first four bytes.
pub(super) fn length(head: [u8; 4], max: usize) -> Result<usize, Malformed> {
    let length = usize::try_from(u32::from_le_bytes(head)).map_err(|_| Malformed("a frame is too large"))?;
    if length > max { Err(Malformed("a frame is too large")) } else { Ok(length) }
}

/// Decodes the message of a frame.
pub(super) fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(json).map_err(|_| Malformed("a frame cannot be read"))
}

impl HookOutcome {
    /// Decodes the frame in which a worker reports the outcome of a run, without its length, and checks it against
    /// every cap of the sandbox.
    ///
    /// # Errors
    /// [`Malformed`] when a worker of this program would not send it.
    pub fn decode(json: &[u8]) -> Result<Self, Malformed> {
        let FromWorker::Done { outcome, .. } = decode(json)? else {
            return Err(Malformed("a frame has no outcome"));
        };
        outcome.check()?;
        Ok(outcome)
    }

    fn size_of_replies(&self) -> usize {
        let sizes = self.replies.iter().map(|reply| match reply {
            Reply::Text(text) | Reply::DataUri(text) => text.len(),
            Reply::File { base64, filename } => base64.len() + filename.len(),
            Reply::Forward => 0,
        });
        sizes.sum()
    }

    fn size_of_request(&self) -> usize {
        self.request.as_ref().map_or(0, |request| {
            let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
            request.url.len() + request.method.len() + headers + request.body.text().len()
        })
    }

    /// Bytes of the hook's result, without log and error, which are small.
    pub(super) fn size(&self) -> usize {
        self.size_of_replies()
            + self.size_of_request()
            + self.state.as_ref().map_or(0, |state| state.get().len())
    }

    pub(super) fn check(&self) -> Result<(), Malformed> {
        let long = |reply: &Reply| matches!(reply, Reply::Text(text) if text.len() > MAX_REPLY_TEXT);
        let logs: usize = self.logs.iter().map(|line| line.text.len()).sum();
        let state = self.state.as_ref().map_or("null", |state| state.get());
        let body = match self.request.as_ref().map(|request| &request.body) {
            Some(Body::Json(json)) => json.get(),
            _ => "null",
        };
        let error = self
            .error
            .as_ref()
            .map_or(0, |error| error.message.len().max(error.stack.as_ref().map_or(0, String::len)));
        let fits = self.replies.len() <= MAX_REPLIES
            && !self.replies.iter().any(long)
            && self.size_of_replies() <= MAX_RESULT
            && self.logs.len() <= MAX_LOG_LINES
            && logs <= MAX_LOG_BYTES
            && self.unknown_names.len() <= MAX_NAMES
            && self.unknown_names.iter().all(|name| name.len() <= MAX_NAME)
            && self.request.as_ref().is_none_or(|request| request.headers.len() <= MAX_HEADERS)
            && self.size_of_request() <= MAX_RESULT + MAX_ERROR_TEXT
            && state.len() <= MAX_STATE
            && error <= 2 * MAX_ERROR_TEXT
            && engine::usable(state)
            && engine::usable(body);
        if fits { Ok(()) } else { Err(Malformed("an outcome breaks a cap")) }
    }
}
